"""What a buffer assignment may be asked to do.

Source: `xla/service/buffer_assignment.h` (BufferAssigner::Options).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msa.analysis.values import Position, Value
from msa.errors import OptionsError

if TYPE_CHECKING:
    from msa.hlo.computation import Computation

BUFFER_ORDERS = ("biggest_first", "topological", "live_range_start")
SHARING = ("standard", "tight")


@dataclass(frozen=True, slots=True)
class PresetAssignments:
    """Places that an earlier plan gave to values of one memory space.

    Attributes:
        sizes: bytes of the preset storage per colour.
        chunks: defining position to (offset, size).
    """

    sizes: Mapping[int, int]
    chunks: Mapping[Position, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Isolation:
    """Moving chosen temporaries apart, to find out which access is wrong.

    Attributes:
        base: bytes below which nothing is moved.
        padding: bytes kept free behind each isolated value.
        fuel: how many values are isolated, in order.
        colors: memory spaces that take part.
        order: sort key of values; None sorts by id.
    """

    base: int = 0
    padding: int = 0
    fuel: int = 0
    colors: frozenset[int] = frozenset({0})
    order: Callable[[Value], Any] | None = None


@dataclass(frozen=True, slots=True)
class BufferAssignmentOptions:
    """Options of `BufferAssignment.run`; the defaults are those of the source.

    Attributes:
        pointer_bytes: size of a pointer in index tables.
        size: bytes of a value; None for its logical size.
        alignment: bytes per colour, or one number for all.
        allocate_constants: constants get allocations.
        color: memory space of a value; None takes it from its layout.
        can_use: whether a value of the first colour may live in an allocation of
            the second; None demands equality.
        must_not_live_out: values that must not share storage with an output.
        presets: places given by an earlier plan.
        private_stacks: per colour, computations whose temporaries overlay each other.
        strict_source: private stacks take the size of the last one combined, as the
            source does, instead of the largest.
        isolation: see `Isolation`.
        temp_color: colour of combined temporaries of colour 0, or None.
        view_color: values of this colour get no allocation, or None.
        buffer_order: `biggest_first`, `topological` or `live_range_start`.
        heap_limit: temporaries are combined up to this many bytes, or None.
        page_bytes: temporaries of colours 0 and 1 are cut into pages, or None.
        color_limit: per colour, bytes beyond which the fallback runs.
        enable_fallback: run again in biggest-first order when a limit is exceeded.
        fallback_margin_bytes: bytes that are kept below the limit.
        sharing: `standard` puts a temporary into an output's or donated argument's
            storage as a whole, as the source does; `tight` packs temporaries into
            any part of it that is free, and shares operands' storage more often.
        effort: steps that packing may take to search.
    """

    pointer_bytes: int = 8
    size: Callable[[Value], int] | None = None
    alignment: int | Mapping[int, int] = 1
    allocate_constants: bool = False
    color: Callable[[Value], int] | None = None
    can_use: Callable[[int, int], bool] | None = None
    must_not_live_out: Callable[[Value], bool] | None = None
    presets: PresetAssignments | None = None
    private_stacks: Mapping[int, tuple[Computation, ...]] = field(default_factory=dict)
    strict_source: bool = False
    isolation: Isolation | None = None
    temp_color: int | None = None
    view_color: int | None = None
    buffer_order: str = "biggest_first"
    heap_limit: int | None = None
    page_bytes: int | None = None
    color_limit: Mapping[int, int] = field(default_factory=dict)
    enable_fallback: bool = False
    fallback_margin_bytes: int = 5 * 2**29
    sharing: str = "standard"
    effort: int | None = None

    def __post_init__(self) -> None:
        for name, allowed in (
            ("buffer_order", BUFFER_ORDERS),
            ("sharing", SHARING),
        ):
            if getattr(self, name) not in allowed:
                raise OptionsError(
                    f"{name} is {getattr(self, name)!r}",
                    hint=f"one of {', '.join(allowed)}",
                )

    def alignment_of(self, color: int) -> int:
        """Bytes that offsets of a colour are multiples of."""
        if isinstance(self.alignment, Mapping):
            return self.alignment.get(color, 1)
        return self.alignment

    def size_of(self, value: Value) -> int:
        """Bytes of a value."""
        if self.size is not None:
            return self.size(value)
        return value.byte_size(self.pointer_bytes)

    def color_of(self, value: Value) -> int:
        """Memory space of a value."""
        return self.color(value) if self.color else value.shape.memory_space

    def usable(self, color: int, allocation_color: int) -> bool:
        """Whether a value of one colour may live in an allocation of another."""
        if self.can_use is None:
            return color == allocation_color
        return self.can_use(color, allocation_color)
