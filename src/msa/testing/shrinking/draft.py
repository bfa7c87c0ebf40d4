"""A copy of a module on which an edit is tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msa.hlo.computation import Computation
from msa.hlo.dead_code import dead_instructions
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.opcode import has_side_effect
from msa.hlo.primitive import PrimitiveType
from msa.hlo.shape import Shape

Key = tuple[str, str]
"""Names of a computation and of an instruction in it."""


def key_of(x: Instruction) -> Key:
    """By which a draft finds an instruction."""
    return x.computation.name, x.name


class Draft:
    """A clone that may be changed freely; instructions are found by name.

    Args:
        module: what to clone.
        numbers: of new instructions, for names that no earlier draft gave away.

    Invariant: the schedule holds what its computations hold.
    """

    __slots__ = ("_instructions", "_numbers", "_unread", "module")

    def __init__(self, module: Module, numbers: Iterator[int]) -> None:
        self.module = module.clone()
        self._numbers = numbers
        self._instructions = {
            key_of(x): x for c in self.module.computations for x in c.instructions
        }
        self._unread = {k for k, x in self._instructions.items() if x.is_dead}

    def find(self, key: Key) -> Instruction:
        """The instruction of that name; raises KeyError."""
        return self._instructions[key]

    def keep(self, x: Instruction) -> None:
        """Let the sweep spare an instruction and all that it reads."""
        self._unread.add(key_of(x))

    # -- instructions ---------------------------------------------------------------

    def put_before(
        self,
        place: Instruction,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        called: tuple[Computation, ...] = (),
        backend_config: str | None = None,
    ) -> Instruction:
        """A new instruction, which runs just before `place`."""
        computation = place.computation
        name = f"{opcode}.s{next(self._numbers)}"
        new = computation.create(name, opcode, shape, operands, attributes, called)
        new.backend_config = backend_config
        self._instructions[key_of(new)] = new
        del computation.instructions[-1]
        computation.instructions.insert(computation.instructions.index(place), new)
        schedule = self.module.schedule
        if schedule is not None and computation in schedule:
            order = list(schedule.sequence(computation))
            order.insert(order.index(place), new)
            schedule.set_sequence(computation, order)
        return new

    def plain(self, place: Instruction, shape: Shape) -> Instruction | None:
        """An array out of nothing: a count, or one number everywhere."""
        kind = shape.element_type
        if shape.dimensions and kind.name != "pred" and not kind.is_complex:
            return self.put_before(
                place, "iota", shape, (), _attribute(iota_dimension=0)
            )
        scalar = Shape.array(kind)
        number = self.constant(place, kind, "true" if kind.name == "pred" else "1")
        if not shape.dimensions:
            return number if shape == scalar else None
        return self.put_before(
            place, "broadcast", shape, [number], _attribute(dimensions=())
        )

    def constant(
        self, place: Instruction, kind: PrimitiveType, text: str
    ) -> Instruction:
        """A scalar constant."""
        shape = Shape.array(kind)
        return self.put_before(
            place, "constant", shape, (), _attribute(literal=Literal(shape, text))
        )

    def last_element(self, whole: Instruction, index: int) -> Instruction:
        """Element `index` of a computation's root, taken after everything else."""
        if whole.opcode == "tuple":
            return whole.operands[index]
        shape = whole.shape.children[index]
        get = self.put_before(
            whole, "get-tuple-element", shape, [whole], _attribute(index=index)
        )
        computation = whole.computation
        schedule = self.module.schedule
        computation.instructions.remove(get)
        computation.instructions.append(get)
        if schedule is not None and computation in schedule:
            rest = [x for x in schedule.sequence(computation) if x is not get]
            schedule.set_sequence(computation, [*rest, get])
        return get

    # -- the whole ------------------------------------------------------------------

    def sweep(self) -> None:
        """Drop what nothing reads any more, and follow the schedule's order.

        What nothing read to begin with stays, with all that it reads.
        """
        module = self.module
        for computation in module.computations:
            doomed = dead_instructions(computation, self._may_go)
            if doomed:
                self.drop(doomed)
        self._drop_uncalled()
        schedule = module.schedule
        if schedule is not None:
            for computation in schedule:
                computation.instructions = list(schedule.sequence(computation))

    def _drop_uncalled(self) -> None:
        reached = {self.module.entry}
        work = [self.module.entry]
        while work:
            for x in work.pop().instructions:
                work.extend(c for c in x.called_computations if c not in reached)
                reached.update(x.called_computations)
        for computation in self.module.computations[:]:
            if computation not in reached:
                self.module.remove(computation)

    def _may_go(self, x: Instruction) -> bool:
        kept = x.opcode == "parameter" or key_of(x) in self._unread
        return not (kept or has_side_effect(x))

    def forget_entry_layout(self) -> None:
        """The entry's parameters or results are about to change."""
        self.module.entry_layout = None

    def renumber(self, computation: Computation, gone: int) -> None:
        """Parameter `gone` was read by nothing: take it out."""
        parameters = computation.parameters
        self.drop([parameters[gone]])
        for number, parameter in enumerate(computation.parameters):
            parameter.attributes = changed(
                parameter.attributes, parameter_number=number
            )

    def drop(self, doomed: Iterable[Instruction]) -> None:
        """Take out instructions of one computation that nothing reads."""
        doomed = set(doomed)
        computation = next(iter(doomed)).computation
        computation.remove(doomed)
        schedule = self.module.schedule
        if schedule is not None and computation in schedule:
            order = schedule.sequence(computation)
            schedule.set_sequence(computation, (x for x in order if x not in doomed))

    def drop_aliases_of_output(self, gone: int) -> None:
        """Element `gone` of the entry's result is no more."""
        kept = []
        for alias in self.module.aliases:
            at = alias.output_index
            if at and at[0] == gone:
                continue
            if at and at[0] > gone:
                alias = replace(alias, output_index=(at[0] - 1, *at[1:]))
            kept.append(alias)
        self.module.aliases = tuple(kept)

    def drop_aliases_of_parameter(self, gone: int) -> None:
        """Parameter `gone` of the entry is no more."""
        module = self.module
        module.aliases = tuple(
            replace(
                a, parameter_number=a.parameter_number - (a.parameter_number > gone)
            )
            for a in module.aliases
            if a.parameter_number != gone
        )
        module.buffer_donors = tuple(
            (number - (number > gone), index)
            for number, index in module.buffer_donors
            if number != gone
        )


def _attribute(**values: Any) -> Mapping[str, Any]:
    return MappingProxyType(values)


def changed(attributes: Mapping[str, Any], **values: Any) -> Mapping[str, Any]:
    """Attributes, some of them with other values."""
    return MappingProxyType({**attributes, **values})


def without(shape: Shape, index: int) -> Shape:
    """A tuple's shape without one element."""
    children = shape.children
    return Shape.tuple_of(*children[:index], *children[index + 1 :])


def shift(get: Instruction, gone: int) -> None:
    """A get-tuple-element of a tuple that lost element `gone`."""
    index = get.tuple_index
    if index > gone:
        get.attributes = changed(get.attributes, index=index - 1)
