"""Allocations: contiguous storage and the values assigned to parts of it.

Source: `xla/service/buffer_assignment.h`.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.errors import PlanError
from msa.hlo.shape import ShapeIndex


@dataclass(frozen=True, slots=True)
class Slice:
    """A byte range of an allocation; equal when all three numbers are."""

    allocation: int
    offset: int
    size: int

    def overlaps(self, other: Slice) -> bool:
        """Whether the two share a byte.

        >>> Slice(0, 0, 8).overlaps(Slice(0, 8, 8)), Slice(0, 0, 9).overlaps(Slice(0, 8, 8))
        (False, True)
        """
        return (
            self.allocation == other.allocation
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )


class BufferAllocation:
    """Storage of `size` bytes and the values that live in it.

    Attributes:
        index: place in the assignment's list.
        size: bytes.
        color: memory space.
        page: number of the page when pages are limited, or -1.
        assigned: value id to (offset, size) in bytes, in order of assignment.
        parameter: (number, index) of the entry parameter that it holds, or None.
        aliased_with_output: the parameter's storage becomes an output's.
        is_constant: holds a constant of the program.
        is_tuple: an index table of pointers.
        is_thread_local: a value of an embedded computation.
        maybe_live_out: holds a buffer that occurs at the entry root.
        preset: comes from a plan made earlier.
        peak: ids of the values live when the allocation is fullest.
        cross_color: ids of values of other colours placed here.

    Invariant: every assigned range lies within the allocation (`check`).
    """

    __slots__ = (
        "aliased_with_output",
        "assigned",
        "color",
        "cross_color",
        "index",
        "is_constant",
        "is_thread_local",
        "is_tuple",
        "maybe_live_out",
        "page",
        "parameter",
        "peak",
        "preset",
        "size",
    )

    def __init__(self, index: int, size: int, color: int) -> None:
        self.index = index
        self.size = size
        self.color = color
        self.page = -1
        self.assigned: dict[int, tuple[int, int]] = {}
        self.parameter: tuple[int, ShapeIndex] | None = None
        self.aliased_with_output = False
        self.is_constant = False
        self.is_tuple = False
        self.is_thread_local = False
        self.maybe_live_out = False
        self.preset = False
        self.peak: tuple[int, ...] = ()
        self.cross_color: list[int] = []

    @property
    def is_parameter(self) -> bool:
        """Whether it holds an entry parameter."""
        return self.parameter is not None

    @property
    def is_readonly(self) -> bool:
        """Whether the program must not write into it."""
        return self.is_constant or (self.is_parameter and not self.aliased_with_output)

    @property
    def is_reusable(self) -> bool:
        """Whether several values may live in it one after another."""
        return not self.is_thread_local and not self.is_tuple

    @property
    def is_input_or_output(self) -> bool:
        """Whether callers of the program see it."""
        return self.is_parameter or self.maybe_live_out

    @property
    def is_temporary(self) -> bool:
        """Whether it belongs to the program alone."""
        return not (
            self.is_parameter
            or self.maybe_live_out
            or self.is_thread_local
            or self.is_constant
        )

    @property
    def kind(self) -> str:
        """`parameter`, `constant`, `output`, `thread-local` or `temporary`."""
        if self.is_parameter:
            return "parameter"
        if self.is_constant:
            return "constant"
        if self.is_thread_local:
            return "thread-local"
        return "output" if self.maybe_live_out else "temporary"

    def assign(self, value: int, offset: int, size: int) -> None:
        """Put a value at an offset.

        Raises:
            PlanError: the value is there already, or the range lies outside.
        """
        where = f"allocation {self.index}"
        if value in self.assigned:
            raise PlanError(f"value {value} is assigned twice", where=where)
        if offset < 0 or size < 0 or offset + size > self.size:
            raise PlanError(
                f"value {value} at [{offset}, {offset + size}) lies outside the "
                f"allocation of {self.size} bytes",
                where=where,
            )
        self.assigned[value] = (offset, size)

    def slice_of(self, value: int) -> Slice:
        """Where a value lies (raises KeyError when it is not here)."""
        offset, size = self.assigned[value]
        return Slice(self.index, offset, size)

    def check(self) -> list[str]:
        """Broken invariants, as text."""
        return [
            f"allocation {self.index}: value {value} at [{offset}, {offset + size}) "
            f"lies outside {self.size} bytes"
            for value, (offset, size) in self.assigned.items()
            if offset < 0 or size < 0 or offset + size > self.size
        ]

    def __repr__(self) -> str:
        return (
            f"<BufferAllocation {self.index}: {self.size} B {self.kind}, "
            f"{len(self.assigned)} values>"
        )
