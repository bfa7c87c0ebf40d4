"""Modules for `pickle`: flat tables of numbers, whatever the depth of the program.

A module is one table of rows that name each other by number. An instruction or a
computation is its module and its place there, so that whatever else refers to them
(plans, analyses) finds the same objects again.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msa.hlo.module import Module

_HEADER: Final = (
    *("name", "aliases", "buffer_donors", "entry_layout", "replica_count"),
    *("num_partitions", "stack_frames", "_next_id"),
)
_RESTORED: Final = "instructions by id, as restored"


def module_table(module: Module) -> dict[str, Any]:
    """Everything about a module as plain data without references; linear.

    Raises:
        HloError: it refers to instructions or computations outside of it.
    """
    computations = {c: i for i, c in enumerate(module.computations)}
    instructions = {
        x: i
        for i, x in enumerate(x for c in module.computations for x in c.instructions)
    }
    attributes: dict[int, dict[str, Any]] = {}

    def shared(mapping: Mapping[str, Any]) -> dict[str, Any]:
        return attributes.setdefault(id(mapping), dict(mapping))

    def numbers(others: Any) -> tuple[int, ...]:
        return tuple(instructions[x] for x in others)

    try:
        rows = [
            (
                *(x.id, x.name, x.opcode, x.shape, shared(x.attributes), x.line),
                *(x.metadata_text, x.backend_config),
                tuple(computations[c] for c in x.called_computations),
                numbers(x.operands),
                numbers(x._users),
                numbers(x.control_predecessors),
                numbers(x.control_successors),
            )
            for x in instructions
        ]
        schedule = module.schedule
        return {
            "header": tuple(getattr(module, field) for field in _HEADER),
            "attributes": dict(module.attributes),
            "computations": [
                (c.name, c.execution_thread, len(c.instructions), instructions[c.root])
                for c in module.computations
            ],
            "entry": computations[module.entry],
            "instructions": rows,
            "schedule": None
            if schedule is None
            else [(computations[c], numbers(schedule.sequence(c))) for c in schedule],
        }
    except KeyError as error:
        raise HloError(
            f"{error.args[0]!r} is not part of the module, but is referred to",
            where=module.name,
            hint="msa.hlo.verify(module) says what is wrong",
        ) from None


def restore_module(kind: type[Module], table: dict[str, Any]) -> Module:
    """The module of a table, with the same names, ids and orders; linear."""
    module = kind("")
    for field, value in zip(_HEADER, table["header"], strict=True):
        setattr(module, field, value)
    if table["attributes"]:
        module.attributes = MappingProxyType(table["attributes"])
    module.computations = [Computation(n, t) for n, t, _, _ in table["computations"]]
    attributes: dict[int, Mapping[str, Any]] = {}
    found: list[Instruction] = []
    for row in table["instructions"]:
        number, name, opcode, shape, given, line, metadata, backend = row[:8]
        mapping = attributes.get(id(given))
        if mapping is None:
            mapping = MappingProxyType(given) if given else NO_ATTRIBUTES
            attributes[id(given)] = mapping
        called = tuple(module.computations[i] for i in row[8])
        x = Instruction(name, opcode, shape, (), mapping, called, (), metadata, backend)
        x.id, x.line = number, line
        found.append(x)
    for x, row in zip(found, table["instructions"], strict=True):
        operands, users, before, after = row[9:]
        x.operands = tuple(found[i] for i in operands)
        x._users = {found[i]: None for i in users}
        x.control_predecessors = tuple(found[i] for i in before)
        if after:
            x._control_successors = {found[i]: None for i in after}
    start = 0
    for computation, (_, _, count, root) in zip(
        module.computations, table["computations"], strict=True
    ):
        computation.module = module
        for x in found[start : start + count]:
            computation.append_read(x)
        computation.sort_parameters()
        computation.root = found[root]
        start += count
    module.entry = module.computations[table["entry"]]
    if table["schedule"] is not None:
        module.schedule = Schedule(
            {
                module.computations[c]: tuple(found[i] for i in sequence)
                for c, sequence in table["schedule"]
            }
        )
    module._notes[_RESTORED] = {x.id: x for x in found}
    return module


def reduce_instruction(x: Instruction) -> tuple[Any, ...]:
    """How `pickle` makes an instruction again: as its module's, or one removed.

    Raises:
        HloError: it is not part of a module, but reads instructions or is read.
    """
    home = x.computation
    module = None if home is None else home.module
    if module is None:
        if x.operands or x._users:
            raise HloError(
                "it is not part of a module, so what it reads cannot be pickled",
                where=x.name,
            )
    elif (home is module.entry or home in module.computations) and (
        x.operands or x._users or x in home.instructions
    ):
        return instruction_at, (module, x.id)
    row = (x.name, x.opcode, x.shape, dict(x.attributes), x.id, x.line)
    return _removed, (*row, x.metadata_text, x.backend_config)


def _removed(
    name: str,
    opcode: str,
    shape: Any,
    attributes: dict[str, Any],
    number: int,
    line: int,
    metadata_text: str | None,
    backend_config: str | None,
) -> Instruction:
    """An instruction that was taken out of its module, and is named yet.

    It calls nothing: what it called may be gone as well.
    """
    mapping = MappingProxyType(attributes) if attributes else NO_ATTRIBUTES
    x = Instruction(name, opcode, shape, (), mapping, (), (), metadata_text)
    x.backend_config, x.id, x.line = backend_config, number, line
    return x


def instruction_at(module: Module, number: int) -> Instruction:
    """The instruction of an id in a restored module."""
    known = module._notes.get(_RESTORED, {})
    if number not in known:  # `copy.copy`: the module itself
        known = {x.id: x for c in module.computations for x in c.instructions}
    found: Instruction = known[number]
    return found


def place_of_computation(computation: Computation) -> tuple[Module, int]:
    """Where a computation is found again.

    Raises:
        HloError: it is not part of a module.
    """
    home = computation.module
    if home is None or computation not in home.computations:
        raise HloError(
            "it is not part of a module and cannot be pickled alone",
            where=computation.name,
        )
    return home, home.computations.index(computation)


def computation_at(module: Module, number: int) -> Computation:
    """The computation of a number in a restored module."""
    return module.computations[number]
