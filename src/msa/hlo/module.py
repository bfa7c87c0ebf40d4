"""Modules: computations, entry, schedule and the module's configuration.

Source: `xla/hlo/ir/hlo_module.h`, `xla/hlo/ir/hlo_input_output_alias_config.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msa.hlo.naming import NameUniquer
from msa.hlo.opcode import CONTROL_FLOW_OPCODES

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.schedule import Schedule
    from msa.hlo.shape import Shape, ShapeIndex

NO_MODULE_ATTRIBUTES: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Alias:
    """Output `output_index` may (or must) live in a parameter's storage.

    >>> Alias((0,), 1, ()).must_alias
    False
    """

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex
    must_alias: bool = False


@dataclass(frozen=True, slots=True)
class ComputationLayout:
    """Parameter and result shapes of the entry, with layouts.

    >>> from msa.hlo import parse_shape
    >>> layout = ComputationLayout((parse_shape("f32[4]"),), parse_shape("f32[]"))
    >>> len(layout.parameters), str(layout.result)
    (1, 'f32[]')
    """

    parameters: tuple[Shape, ...]
    result: Shape


class Module:
    """A tensor program.

    Attributes:
        name: the module's name.
        computations: in order of addition (callees before callers as read).
        entry: where execution starts.
        schedule: execution order, or None.
        aliases: input/output aliases, at most one per output index.
        buffer_donors: `(parameter number, index)` pairs whose storage may be reused.
        entry_layout: entry shapes with layouts, or None to take the computation's.
        replica_count, num_partitions: at least 1.
        attributes: immutable mapping of the remaining header attributes
            (`frontend_attributes`, …) to parsed values or raw text.
        stack_frames: text of the stack-frame tables, verbatim, or an empty string.

    Equality is structural (names, shapes, attributes, order, schedule).

    >>> import msa
    >>> module = msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }")
    >>> module.entry.name, module.is_scheduled, msa.parse(module.to_text()) == module
    ('e', False, True)
    """

    __slots__ = (
        "_next_id",
        "_notes",
        "_uniquer",
        "aliases",
        "attributes",
        "buffer_donors",
        "computations",
        "entry",
        "entry_layout",
        "name",
        "num_partitions",
        "replica_count",
        "schedule",
        "stack_frames",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.computations: list[Computation] = []
        self.entry: Computation = None  # type: ignore[assignment]  # set by add
        self.schedule: Schedule | None = None
        self.aliases: tuple[Alias, ...] = ()
        self.buffer_donors: tuple[tuple[int, ShapeIndex], ...] = ()
        self.entry_layout: ComputationLayout | None = None
        self.replica_count = 1
        self.num_partitions = 1
        self.attributes: Mapping[str, Any] = NO_MODULE_ATTRIBUTES
        self.stack_frames = ""
        self._next_id = 0
        self._uniquer: NameUniquer | None = None
        # What higher floors keep with a module (analyses); never copied or compared.
        self._notes: dict[str, Any] = {}

    # -- reading -------------------------------------------------------------

    @property
    def is_scheduled(self) -> bool:
        """Whether a schedule is attached."""
        return self.schedule is not None

    @property
    def instruction_count(self) -> int:
        """Instructions in all computations."""
        return sum(len(c.instructions) for c in self.computations)

    @property
    def tied_inputs(self) -> dict[tuple[int, ShapeIndex], Alias]:
        """`(parameter number, index)` of inputs that give an output its storage."""
        return {(a.parameter_number, a.parameter_index): a for a in self.aliases}

    def read_only_inputs(
        self, *, donors: bool = False
    ) -> frozenset[tuple[Instruction, ShapeIndex]]:
        """Nodes of the entry's parameters whose storage may not be overwritten.

        Those are all but the tied ones; with `donors`, but for storage that the
        caller gives away without tying it to an output, too. Linear in the nodes.

        >>> import msa
        >>> module = msa.parse('''
        ... HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
        ... ENTRY e { p = f32[4] parameter(0) q = f32[4] parameter(1)
        ...           ROOT a = f32[4] add(p, q) }''')
        >>> [(x.name, index) for x, index in module.read_only_inputs()]
        [('q', ())]
        """
        given = set(self.tied_inputs)
        if donors:
            given.update(self.buffer_donors)
        return frozenset(
            (parameter, index)
            for parameter in self.entry.parameters
            for index, _ in parameter.shape.nodes()
            if (parameter.parameter_number, index) not in given
        )

    def computation(self, name: str) -> Computation:
        """The computation of that name (raises KeyError)."""
        for computation in self.computations:
            if computation.name == name:
                return computation
        raise KeyError(name)

    def embedded_computations(self) -> set[Computation]:
        """Computations that only fusions, reductions and the like call.

        They have no schedule of their own. Computations that nothing calls count
        as control flow, except when only embedded ones call them.
        """
        called: set[Computation] = set()
        control: set[Computation] = set()
        for computation in self.computations:
            for instruction in computation.instructions:
                if instruction.called_computations:
                    called.update(instruction.called_computations)
        work = [c for c in self.computations if c not in called]
        control.update(work)
        while work:
            for instruction in work.pop().instructions:
                if instruction.opcode in CONTROL_FLOW_OPCODES:
                    for callee in instruction.called_computations:
                        if callee not in control:
                            control.add(callee)
                            work.append(callee)
        return {c for c in self.computations if c not in control}

    def computation_post_order(self) -> list[Computation]:
        """Callees before callers; the order of addition when that already holds."""
        place = {c: i for i, c in enumerate(self.computations)}
        ordered = all(
            place[callee] < place[computation]
            for computation in self.computations
            for instruction in computation.instructions
            if instruction.called_computations
            for callee in instruction.called_computations
        )
        return list(self.computations) if ordered else self.printing_order()

    def printing_order(self) -> list[Computation]:
        """Callees first, depth-first from uncalled computations in module order."""
        called = {
            callee
            for computation in self.computations
            for instruction in computation.instructions
            for callee in instruction.called_computations
        }
        done: set[Computation] = set()
        order: list[Computation] = []
        for start in self.computations:
            if start in called or start in done:
                continue
            done.add(start)
            stack = [(start, _callees(start))]
            while stack:
                computation, callees = stack[-1]
                if callees:
                    callee = callees.pop()
                    if callee not in done:
                        done.add(callee)
                        stack.append((callee, _callees(callee)))
                else:
                    stack.pop()
                    order.append(computation)
        return order

    # -- changing ------------------------------------------------------------

    def add(self, computation: Computation, *, entry: bool = False) -> Computation:
        """Append a computation; instructions get their ids here."""
        computation.module = self
        self.computations.append(computation)
        number = self._next_id
        for instruction in computation.instructions:
            instruction.id = number
            number += 1
        self._next_id = number
        if entry or self.entry is None:
            self.entry = computation
        return computation

    def remove(self, computation: Computation) -> None:
        """Take a computation that nothing calls out of the module."""
        self.computations.remove(computation)
        if self.schedule is not None:
            self.schedule.remove(computation)

    def take_id(self) -> int:
        """The next dense instruction id."""
        self._next_id += 1
        return self._next_id - 1

    @property
    def id_limit(self) -> int:
        """One past the largest instruction id: the length of id-indexed arrays."""
        return self._next_id

    def unique_instruction_name(self, name: str) -> str:
        """A name that no instruction of the module has, close to `name`."""
        if self._uniquer is None:
            self._uniquer = NameUniquer(
                i.name for c in self.computations for i in c.instructions
            )
        return self._uniquer.unique(name)

    def make_names_unique(self) -> bool:
        """Rename instructions whose names others before them have; whether any were.

        Names only have to differ within a computation; plans, reports and facts tell
        the instructions of a whole module apart by name. Linear.

        >>> import msa
        >>> module = msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] abs(p) }")
        >>> module.entry.root.name = "p"
        >>> module.make_names_unique(), module.entry.root.name
        (True, 'p.1')
        """
        instructions = [i for c in self.computations for i in c.instructions]
        if len({i.name for i in instructions}) == len(instructions):
            return False
        self._uniquer = NameUniquer()
        for instruction in instructions:
            instruction.name = self._uniquer.unique(instruction.name)
        return True

    def effective_entry_layout(self) -> ComputationLayout:
        """The entry layout, or the entry's own shapes when none is stated."""
        if self.entry_layout is not None:
            return self.entry_layout
        return ComputationLayout(
            tuple(p.shape for p in self.entry.parameters), self.entry.root.shape
        )

    def clone(self) -> Module:
        """A deep copy that shares nothing mutable with this module; linear."""
        from msa.hlo.clone import clone_module

        return clone_module(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Module):
            return NotImplemented
        from msa.hlo.equality import modules_equal

        return modules_equal(self, other)

    __hash__ = object.__hash__

    def to_text(self, *, canonical: bool = False) -> str:
        """HLO text that the reader (and XLA's) accepts; `canonical` normalises names."""
        from msa.hlo.printer import print_module

        return print_module(self, canonical=canonical)

    def __reduce__(self) -> tuple[Any, ...]:
        from msa.hlo.pickling import module_table, restore_module

        return restore_module, (type(self), module_table(self))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Module {self.name}: {len(self.computations)} computations>"


def _callees(computation: Computation) -> list[Computation]:
    """Distinct callees in call order, reversed so that `pop` takes the first."""
    callees: dict[Computation, None] = {}
    for instruction in computation.instructions:
        for callee in instruction.called_computations:
            callees[callee] = None
    return list(reversed(callees))


def root_of(module: Module) -> Instruction:
    """The entry's root: the program's output."""
    return module.entry.root
