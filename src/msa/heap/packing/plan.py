"""The answer: offsets with what is known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msa.errors import PackingError, UnknownBufferError, shown
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.reservation import Reservation
from msa.heap.packing.verify import verify_plan
from msa.heap.whole_number import read_whole


@dataclass(frozen=True, slots=True)
class HeapPlan:
    """Offsets for buffers.

    Attributes:
        buffers: what was packed, in the caller's order.
        offsets: per buffer, its offset (bytes).
        height: the highest end of a buffer (bytes); reservations do not count.
        lower_bound: no packing is lower (bytes).
        optimal: it is proved that no packing is lower than this one.
        capacity: what the plan had to fit into (bytes), or None.
        alignment: the default alignment (bytes).
        reserved: ranges that were kept free of buffers.
        method: which part of the portfolio found the plan.

    >>> from msa.heap import pack
    >>> plan = pack([("a", 0, 2, 64), ("b", 1, 3, 32), ("c", 2, 4, 64)])
    >>> plan.height, plan.lower_bound, plan.optimal
    (96, 96, True)
    """

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]
    height: int
    lower_bound: int
    optimal: bool
    capacity: int | None = None
    alignment: int = 1
    reserved: tuple[Reservation, ...] = ()
    method: str = ""

    @property
    def fragmentation(self) -> float:
        """The share of the height that the lower bound does not explain, 0 to 1."""
        return 1 - self.lower_bound / self.height if self.height else 0.0

    def offset_of(self, buffer_id: Any) -> int:
        """The offset of a buffer by its id (bytes). O(n).

        Raises:
            UnknownBufferError: no buffer has this id; it is also a `KeyError`.
        """
        try:
            return self.as_dict()[buffer_id]
        except (KeyError, TypeError):
            pass
        raise UnknownBufferError(f"no buffer has the id {shown(buffer_id)}")

    def as_dict(self) -> dict[Any, int]:
        """`{id: offset}`."""
        ids = (buffer.id for buffer in self.buffers)
        return dict(zip(ids, self.offsets, strict=True))

    def verify(self) -> None:
        """Check everything that the plan claims, without the code that made it.

        O(n log n). Raises:
            PlanError: two live buffers overlap, an offset is out of range, misaligned
                or not where it was pinned, or a number is wrong.
        """
        verify_plan(self)

    def summary(self) -> str:
        """One line: buffers, height, bound, and whether it is proved best."""
        return (
            f"{len(self.buffers)} buffers in {self.height} B, lower bound "
            f"{self.lower_bound} B ({'optimal' if self.optimal else 'not proved'})"
        )

    def ascii(self, width: int = 72, height: int = 24) -> str:
        """Offset × time as text, for a terminal; in columns and rows of letters.

        Raises:
            OptionsError: a measure is not within 1..10000.
        """
        from msa.heap.packing.picture import ascii_picture

        return ascii_picture(self, width, height)

    def svg(self, width: int = 960, height: int = 480) -> str:
        """Offset × time as a self-contained SVG document; hovering names buffers.

        Args:
            width, height: pixels.

        Raises:
            OptionsError: a measure is not within 1..10000.
        """
        from msa.heap.packing.picture import svg_picture

        return svg_picture(self, width, height)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page: figures, picture, buffers; written if asked."""
        from msa.report.heap_page import heap_page

        return _written(heap_page(self), path)

    def plot(self, ax: Any = None) -> Any:
        """Draw into a matplotlib axes (made if None), which is returned.

        Raises:
            UnsupportedError: matplotlib is not installed.
        """
        from msa.heap.packing.picture import plot_picture

        return plot_picture(self, ax)

    def _repr_html_(self) -> str:
        return self.svg()

    def to_csv(self, path: str | Path | None = None) -> str:
        """The plan in minimalloc's form (`id,lower,upper,size,offset`)."""
        from msa.heap.packing.io import plan_to_csv

        return _written(plan_to_csv(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The plan with its buffers as JSON; `HeapPlan.from_json` reads it."""
        from msa.heap.packing.io import plan_to_json

        return _written(plan_to_json(self), path)

    @classmethod
    def from_json(cls, text: str) -> HeapPlan:
        """A plan from `to_json`; run `verify` on it if it comes from outside.

        Raises:
            FileFormatError: the text is not such a plan.
        """
        from msa.heap.packing.io import plan_from_json

        return plan_from_json(text)

    @classmethod
    def of(
        cls, buffers: Sequence[Buffer], offsets: Sequence[int], **fields: Any
    ) -> HeapPlan:
        """A plan from parts; the height is worked out, the other fields are given.

        Empty buffers (no bytes, no lifetime or nothing but gaps) do not count.

        Raises:
            PackingError: not one offset, a whole number, for each buffer.
        """
        if len(buffers) != len(offsets):
            raise PackingError(f"{len(offsets)} offsets for {len(buffers)} buffers")
        offsets = [read_whole(o, "offset", error=PackingError) for o in offsets]
        height = 0
        for buffer, offset in zip(buffers, offsets, strict=True):
            if buffer.is_live:
                height = max(height, offset + buffer.size)
        return cls(tuple(buffers), tuple(offsets), height, **fields)


def _written(text: str, path: str | Path | None) -> str:
    from msa.files import write_text

    return write_text(text, path)
