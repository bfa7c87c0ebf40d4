"""A memory space for every value: colourings and their combination.

A colour is the number of a memory space in layouts. Values that share storage get
one colour; wishes that contradict each other are an error that names both.

Source: `xla/service/gpu/gpu_memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msa.analysis.alias import AliasAnalysis
from msa.analysis.values import HloBuffer, Value
from msa.hlo.instruction import Instruction
from msa.passes.binding.attributes import OPERANDS, RESULTS, asked_for
from msa.passes.binding.errors import BindingError
from msa.passes.binding.symmetric import SymmetricFilter, collective_kind

DEFAULT: Final = 0
COLLECTIVE: Final = 1


@dataclass(frozen=True, slots=True)
class Wish:
    """A colour that something asks for.

    Attributes:
        color: memory space.
        reason: `layout`, `annotation` or `collective`.
        by: name of the instruction that asks.
    """

    color: int
    reason: str
    by: str


Wishes = Callable[[AliasAnalysis, Value], Iterator[Wish]]
"""What is asked for a value; nothing means the default."""


@dataclass(frozen=True, slots=True)
class GpuColoring:
    """What makes GPU buffers collective.

    Attributes:
        user_buffers: of every collective.
        filters: of the collectives that one of these matches.
        multimem_targets: custom calls with multicast parameters.
        one_shot_ragged: the destination and result of ragged all-to-alls.
    """

    user_buffers: bool = False
    filters: tuple[SymmetricFilter, ...] = ()
    multimem_targets: frozenset[str] = field(default_factory=frozenset)
    one_shot_ragged: bool = False

    def wishes(self, alias: AliasAnalysis, value: Value) -> Iterator[Wish]:
        """What layouts, custom calls and collectives ask for."""
        yield from layout_wishes(alias, value)
        yield from annotation_wishes(alias, value)
        if value.shape.is_tuple:
            return
        users = [(use.instruction, use.operand_number) for use in value.uses]
        for x, operand in ((value.instruction, -1), *users):
            if self._is_collective(x, operand):
                yield Wish(COLLECTIVE, "collective", x.name)
                return

    def _is_collective(self, x: Instruction, operand: int) -> bool:
        if x.opcode == "custom-call":
            return x.attributes.get("custom_call_target") in self.multimem_targets
        kind = collective_kind(x)
        if not kind:
            return False
        if kind == "ragged-all-to-all" and self.one_shot_ragged and operand in (-1, 1):
            return True
        return self.wants_symmetric(x)

    def wants_symmetric(self, x: Instruction) -> bool:
        """Whether the buffers of a collective are to be symmetric."""
        return self.user_buffers or any(f.matches(x) for f in self.filters)


def layout_wishes(alias: AliasAnalysis, value: Value) -> Iterator[Wish]:
    """The space in the layout of the defining position."""
    del alias
    shape = value.shape
    if shape.is_array and shape.memory_space:
        yield Wish(shape.memory_space, "layout", value.instruction.name)


def annotation_wishes(alias: AliasAnalysis, value: Value) -> Iterator[Wish]:
    """What custom calls ask for their results and operands."""
    del alias
    x = value.instruction
    wanted = asked_for(x, RESULTS)
    if wanted:
        index = value.index
        number = index[0] if len(index) == 1 else 0
        is_result = len(index) == 1 if x.shape.is_tuple else not index
        if is_result and wanted.get(number):
            yield Wish(wanted[number], "annotation", x.name)
    for use in value.uses:
        if use.operand_index:
            continue
        color = asked_for(use.instruction, OPERANDS).get(use.operand_number)
        if color:
            yield Wish(color, "annotation", use.instruction.name)


def no_wishes(alias: AliasAnalysis, value: Value) -> Iterator[Wish]:
    """Everything stays in default memory."""
    del alias, value
    return iter(())


def compose(*rules: Wishes, on_conflict: str = "error") -> Wishes:
    """All wishes of several rules, or with `first` those of the first that has any.

    >>> compose(layout_wishes, annotation_wishes) is not None
    True
    """

    def together(alias: AliasAnalysis, value: Value) -> Iterator[Wish]:
        for rule in rules:
            found = list(rule(alias, value))
            yield from found
            if found and on_conflict == "first":
                return

    return together


def assign_colors(alias: AliasAnalysis, wishes: Wishes = no_wishes) -> dict[int, int]:
    """The colour of every value, by value id; one per buffer. Linear.

    Raises:
        BindingError: two wishes about one buffer differ; both are named.

    >>> import msa
    >>> module = msa.parse("ENTRY e { ROOT x = f32[4]{0:S(1)} parameter(0) }")
    >>> assign_colors(AliasAnalysis.run(module), layout_wishes)
    {0: 1}
    """
    colors: dict[int, int] = {}
    for buffer in alias.buffers:
        wish = wish_of(alias, buffer, wishes)
        for value in buffer.values:
            colors[value.id] = wish.color if wish else DEFAULT
    return colors


def wish_of(alias: AliasAnalysis, buffer: HloBuffer, wishes: Wishes) -> Wish | None:
    """The one wish about a buffer, or None.

    Raises:
        BindingError: two differ.
    """
    first: Wish | None = None
    for value in buffer.values:
        for wish in wishes(alias, value):
            if first is None:
                first = wish
            elif wish.color != first.color:
                raise BindingError(
                    f"buffer {buffer.id} is wanted in memory space {first.color} by "
                    f"{first.by} ({first.reason}) and in {wish.color} by {wish.by} "
                    f"({wish.reason})",
                    colors=(first.color, wish.color),
                    where=str(buffer.values[0].position),
                    hint="put a copy between the two",
                )
    return first


def can_use_allocation(
    buffer_color: int,
    allocation_color: int,
    also: Mapping[int, frozenset[int]] | None = None,
) -> bool:
    """Whether a temporary of one colour may lie in an allocation of another.

    Ordinary temporaries may lie in collective memory, never the reverse. `also`
    replaces that rule: allocation colours by buffer colour.

    >>> can_use_allocation(0, 1), can_use_allocation(1, 0), can_use_allocation(2, 2)
    (True, False, True)
    """
    allowed = {DEFAULT: frozenset({COLLECTIVE})} if also is None else also
    return buffer_color == allocation_color or (
        allocation_color in allowed.get(buffer_color, frozenset())
    )
