"""Builds a module: computations, schedule and header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msa.errors import HloError
from msa.hlo.arguments import expect
from msa.hlo.builder.computation_builder import ComputationBuilder
from msa.hlo.builder.regions import COMPARISONS
from msa.hlo.builder.values import ShapeLike, to_shape
from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.module import Alias, ComputationLayout, Module
from msa.hlo.naming import NameUniquer
from msa.hlo.opcode import OPCODES
from msa.hlo.schedule import Schedule
from msa.hlo.shape import Shape, ShapeIndex
from msa.hlo.verifier import verify

Order = Mapping["ComputationBuilder | Computation | str", Sequence["Instruction | str"]]


class Builder:
    """Builds one module; `build` hands it over.

    Args:
        name: the module's name.
        replica_count, num_partitions: number of replicas and of partitions.
        attributes: further header attributes (`frontend_attributes`, …).

    >>> builder = Builder("loop")
    >>> main = builder.entry()
    >>> n = main.parameter("s32[]")
    >>> loop = main.while_(
    ...     n,
    ...     body=lambda b, i: b.subtract(i, b.constant(1)),
    ...     condition=lambda b, i: b.compare(i, b.constant(0), "GT"),
    ... )
    >>> [c.name for c in builder.build().computations]
    ['body', 'condition', 'main']
    """

    def __init__(
        self,
        name: str,
        *,
        replica_count: int = 1,
        num_partitions: int = 1,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        expect(name, str, where="Builder", what="the module's name")
        for count in (replica_count, num_partitions):
            expect(count, int, where="Builder", what="a number of replicas, partitions")
        self._module = Module(name)
        self._module.replica_count = replica_count
        self._module.num_partitions = num_partitions
        if attributes:
            self._module.attributes = MappingProxyType(dict(attributes))
        self._names = NameUniquer()
        self._standard: dict[tuple[str, tuple[str, ...]], Computation] = {}
        self._shared: dict[tuple[tuple[str, Any], ...], Mapping[str, Any]] = {}
        self._aliases: list[Alias] = []
        self._donors: list[tuple[int, ShapeIndex]] = []
        self._layout: ComputationLayout | None = None
        self._entry: Computation | None = None

    # -- computations --------------------------------------------------------

    def computation(self, name: str, *, thread: str = "main") -> ComputationBuilder:
        """A new computation, under a name made unique in the module."""
        expect(name, str, where="Builder.computation", what="a name")
        expect(thread, str, where="Builder.computation", what="a thread's name")
        computation = Computation(self._names.unique(name), thread)
        self._module.add(computation)
        return ComputationBuilder(self, computation)

    def entry(self, name: str = "main") -> ComputationBuilder:
        """The entry computation; without one the last computation is it."""
        if self._entry is not None:
            raise HloError(f"the module already has the entry {self._entry.name}")
        builder = self.computation(name)
        self._entry = builder.computation
        return builder

    def region(
        self,
        name: str,
        body: Callable[..., Instruction | None],
        parameters: Iterable[ShapeLike],
    ) -> Computation:
        """A computation filled by a function of a builder and its parameters.

        The function returns the root, or None when it is the last instruction.
        """
        builder = self.computation(name)
        inputs = [builder.parameter(shape) for shape in parameters]
        root = body(builder, *inputs)
        if root is not None:
            builder.root(root)
        return builder.computation

    def standard_computation(
        self, name: str, parameters: tuple[Shape, ...]
    ) -> Computation:
        """The computation that applies one opcode or comparison to two scalars."""
        key = (name, tuple(map(str, parameters)))
        found = self._standard.get(key)
        if found is None:
            if len(parameters) != 2 or (
                name not in COMPARISONS
                and (name not in OPCODES or OPCODES[name].arity != 2)
            ):
                raise HloError(
                    f"{name!r} is no computation of {len(parameters)} scalars",
                    hint="an opcode of two operands, a comparison, or a function",
                )
            found = self.region(name.lower(), _applying(name), parameters)
            self._standard[key] = found
        return found

    def share(self, values: dict[str, Any]) -> Mapping[str, Any]:
        """One immutable mapping for equal attributes."""
        if not values:
            return NO_ATTRIBUTES
        try:
            key = tuple(values.items())
            return self._shared.setdefault(key, MappingProxyType(values))
        except TypeError:  # a value that cannot be hashed
            return MappingProxyType(values)

    # -- header --------------------------------------------------------------

    def alias(
        self,
        output_index: ShapeIndex,
        parameter_number: int,
        parameter_index: ShapeIndex = (),
        *,
        must_alias: bool = False,
    ) -> None:
        """Let an output live in a parameter's storage."""
        number = expect(parameter_number, int, where="alias", what="a number")
        output, index = _index(output_index, "alias"), _index(parameter_index, "alias")
        self._aliases.append(Alias(output, number, index, must_alias))

    def donate(self, parameter_number: int, parameter_index: ShapeIndex = ()) -> None:
        """Let any output reuse a parameter's storage."""
        number = expect(parameter_number, int, where="donate", what="a number")
        self._donors.append((number, _index(parameter_index, "donate")))

    def entry_layout(self, parameters: Iterable[ShapeLike], result: ShapeLike) -> None:
        """State the entry's shapes with layouts; else the computation's are taken."""
        self._layout = ComputationLayout(
            tuple(map(to_shape, parameters)), to_shape(result)
        )

    # -- finishing -----------------------------------------------------------

    def build(
        self, *, schedule: bool | Order = False, verify_module: bool = True
    ) -> Module:
        """Finish the module; the builder must not be used afterwards.

        Args:
            schedule: True takes the order in which instructions were added; a mapping
                from computations to instructions (or names) gives some computations
                another order.
            verify_module: whether to check the module.

        Raises:
            HloVerifyError: the module breaks rules.
            HloError: there is no computation, or a schedule names what is not there.
        """
        module = self._module
        if not module.computations:
            raise HloError("the module has no computation")
        module.entry = self._entry or module.computations[-1]
        if not isinstance(schedule, bool):
            what = "True, False or a mapping from computations to instructions"
            expect(schedule, Mapping, where="Builder.build", what=what)
        ordered = module.computation_post_order()
        if len(ordered) == len(module.computations):
            module.computations[:] = ordered
        module.aliases = tuple(self._aliases)
        module.buffer_donors = tuple(self._donors)
        module.entry_layout = self._layout
        if module.entry_layout is None and module.entry.root is not None:
            module.entry_layout = ComputationLayout(
                tuple(p.shape for p in module.entry.parameters), module.entry.root.shape
            )
        if schedule is not False:
            module.schedule = self._schedule({} if schedule is True else schedule)
        if verify_module:
            verify(module)
        return module

    def _schedule(self, order: Order) -> Schedule:
        module = self._module
        fused = {
            callee
            for computation in module.computations
            for instruction in computation.instructions
            if instruction.opcode == "fusion"
            for callee in instruction.called_computations
        }
        schedule = Schedule()
        for computation in module.computations:
            if computation not in fused:
                schedule.set_sequence(computation, computation.instructions)
        for key, sequence in order.items():
            computation = self._find(key)
            by_name = {x.name: x for x in computation.instructions}
            schedule.set_sequence(
                computation, [_named(computation, by_name, x) for x in sequence]
            )
        return schedule

    def _find(self, key: ComputationBuilder | Computation | str) -> Computation:
        if isinstance(key, ComputationBuilder):
            return key.computation
        if isinstance(key, Computation):
            return key
        for computation in self._module.computations:
            if computation.name == key:
                return computation
        raise HloError(f"there is no computation {key!r} to schedule")


def _index(value: Iterable[int], where: str) -> ShapeIndex:
    expect(value, Iterable, where=where, what="an index into a shape, such as (0, 1)")
    return tuple(expect(x, int, where=where, what="whole numbers") for x in value)


def _applying(name: str) -> Callable[..., Instruction]:
    def body(
        builder: ComputationBuilder, lhs: Instruction, rhs: Instruction
    ) -> Instruction:
        if name in COMPARISONS:
            return builder.compare(lhs, rhs, name)
        return builder.op(name, lhs, rhs)

    return body


def _named(
    computation: Computation, by_name: Mapping[str, Instruction], x: Instruction | str
) -> Instruction:
    if isinstance(x, Instruction):
        return x
    if x not in by_name:
        raise HloError(f"{computation.name} has no instruction {x!r} to schedule")
    return by_name[x]
