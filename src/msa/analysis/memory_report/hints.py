"""What could be done about memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msa.analysis.memory_report.describe import origin_of
from msa.analysis.memory_report.donations import find_donations
from msa.analysis.memory_report.model import (
    Breakdown,
    BufferKind,
    DonationStatus,
    Hint,
    HintKind,
    LiveRow,
)
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.hlo.computation import Computation

_SMALL: Final = 0.001
"""Hints about less than this share of the peak are left out."""


def find_hints(
    assignment: BufferAssignment,
    breakdown: Breakdown,
    rows: Sequence[LiveRow],
    notes: Sequence[str],
) -> tuple[Hint, ...]:
    """Hints, most bytes first; notes about what was done to the module lead."""
    floor = max(1, int(_SMALL * breakdown.total))
    hints = [
        *_donations(assignment, floor),
        *_loop_copies(assignment, floor),
        *_padding(assignment, rows, floor),
        *_large(breakdown, rows),
        *_fragmentation(assignment, breakdown, floor),
    ]
    hints.sort(key=lambda h: (-h.bytes, h.kind, h.subject))
    first = [Hint(HintKind.PREPARED, note, "", 0) for note in notes]
    return (*first, *hints)


def _donations(assignment: BufferAssignment, floor: int) -> list[Hint]:
    hints = []
    for d in find_donations(assignment):
        if d.used or d.bytes < floor:
            continue
        name = d.op_name or d.argument
        if d.status is DonationStatus.POSSIBLE:
            message = f"donating {name} would save {format_bytes(d.bytes)}: {d.reason}"
        else:
            message = f"the donation of {name} is not used in place: {d.reason}"
        hints.append(Hint(HintKind.DONATION, message, d.argument, d.bytes))
    return hints


def _loop_copies(assignment: BufferAssignment, floor: int) -> list[Hint]:
    """Copies that run on every trip of a loop."""
    module = assignment.module
    inside: set[Computation] = set()
    for computation in reversed(module.computation_post_order()):
        for x in computation.instructions:
            if x.opcode == "while" or computation in inside:
                inside.update(x.called_computations)
    hints = []
    for x in assignment.live.schedule.instructions:
        if x.opcode != "copy" or x.computation not in inside:
            continue
        size = x.shape.padded_byte_size()
        if size >= floor:
            message = (
                f"{x.name} copies {format_bytes(size)} on every trip of the loop "
                f"around {x.computation.name}"
            )
            place = origin_of(x).source
            hints.append(
                Hint(HintKind.LOOP_COPY, message, f"{x.name}{{}}", size, place)
            )
    return hints


def _padding(
    assignment: BufferAssignment, rows: Sequence[LiveRow], floor: int
) -> list[Hint]:
    hints = []
    for row in rows:
        waste = row.bytes - row.logical_bytes
        if row.padding_factor > 2 and waste >= floor:
            message = (
                f"the layout of {row.buffer} takes {format_bytes(row.bytes)} for "
                f"{format_bytes(row.logical_bytes)} of elements "
                f"({row.padding_factor:.1f}x): {row.shape}"
            )
            hints.append(Hint(HintKind.PADDING, message, row.buffer, waste, row.source))
    return hints


def _large(breakdown: Breakdown, rows: Sequence[LiveRow]) -> list[Hint]:
    if not rows or rows[0].bytes * 2 <= breakdown.total:
        return []
    row = rows[0]
    share = row.bytes / breakdown.total
    what = "argument" if row.kind is BufferKind.ARGUMENT else row.kind
    message = (
        f"{what} {row.buffer} is {share:.0%} of the peak ({format_bytes(row.bytes)})"
    )
    return [Hint(HintKind.LARGE_BUFFER, message, row.buffer, row.bytes, row.source)]


def _fragmentation(
    assignment: BufferAssignment, breakdown: Breakdown, floor: int
) -> list[Hint]:
    share = assignment.statistics().fragmentation
    lost = int(share * breakdown.temporaries)
    if share <= 0.01 or lost < max(floor, 1):
        return []
    message = (
        f"{format_bytes(lost)} of the temporary block ({share:.1%}) are gaps that "
        "packing leaves"
    )
    return [Hint(HintKind.FRAGMENTATION, message, "", lost)]
