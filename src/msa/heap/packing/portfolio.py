"""`pack`: which method runs on what, and when to stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from msa.errors import CapacityError, PackingError, PlanError
from msa.heap.packing.bounds import Bound, lower_bound
from msa.heap.packing.buffer import Buffer, read_buffers
from msa.heap.packing.instance import Instance, build_instance
from msa.heap.packing.plan import HeapPlan
from msa.heap.packing.reservation import Reservation, read_reservations
from msa.heap.packing.sections import Sections, compute_sections
from msa.heap.packing.solve import Solution, solve
from msa.heap.packing.verify import verify_disjoint
from msa.heap.whole_number import SIZE_LIMIT, WORD_LIMIT, read_whole
from msa.units import format_bytes

#: Search nodes (see `pack`); the hard public instances need a tenth of it.
DEFAULT_EFFORT: Final = 60_000


def pack(
    buffers: Iterable[Any] | str | Path,
    *,
    capacity: int | None = None,
    alignment: int = 1,
    effort: int = DEFAULT_EFFORT,
    seed: int = 0,
    reserved: Sequence[Reservation | tuple[int, ...]] = (),
) -> HeapPlan:
    """Offsets for buffers with lifetimes, as low as `effort` allows.

    Fast heuristics run first; a search follows for the parts of time in which they
    miss the lower bound. Without a capacity the height is minimised; with one the
    search stops as soon as the plan fits.

    Args:
        buffers: rows `(id, start, end, size[, alignment][, offset])` (bytes,
            half-open times, `offset` pins), mappings with these keys, `Buffer`s, or
            the path of a CSV file (minimalloc's form, with more columns if wanted)
            or a JSON file of such rows.
        capacity: bytes available, or None to minimise.
        alignment: of the buffers that state none (bytes); pins need not heed it.
        effort: how many nodes the search may look at; 0 for heuristics alone. Nodes
            with much to look at count as several. A count, not a time: the answer is
            the same on every machine.
        seed: of the search; plans differ, guarantees do not.
        reserved: ranges that no buffer may use: `Reservation`s or
            `(offset, size[, start, end])`.

    Returns:
        A plan in the order of the input; `plan.optimal` only with a proof.

    Raises:
        CapacityError: the buffers do not fit; with the crowded step and its live set.
        PackingError: buffers are malformed or contradict each other.
        OptionsError: capacity, alignment, effort or seed is no whole number or out of
            range.

    Heuristics are about O(n log n) for n buffers as long as the number of live
    ones stays bounded; above some thousands of buffers only they run.

    >>> plan = pack([("a", 0, 2, 64), ("b", 1, 3, 32), ("c", 2, 4, 64)])
    >>> plan.height, plan.optimal, plan.as_dict()
    (96, True, {'a': 32, 'b': 0, 'c': 32})
    """
    alignment = read_whole(alignment, "alignment", at_least=1, below=SIZE_LIMIT)
    effort = read_whole(effort, "effort", at_least=0)
    seed = read_whole(seed, "seed", at_least=0)
    if capacity is not None:
        capacity = read_whole(capacity, "capacity", at_least=0, below=WORD_LIMIT)
    rows = _rows(buffers)
    holds = read_reservations(reserved)
    group_at = _check_pins(rows, holds, alignment)
    instance = build_instance(rows, alignment=alignment, reserved=holds)
    sections = compute_sections(instance)
    bound = lower_bound(instance, sections)
    if capacity is not None and bound.height > capacity:
        raise _over_capacity(rows, instance, sections, bound, capacity, group_at)
    unit, scaled = instance.in_units()
    solution = solve(
        scaled,
        goal=-(-bound.height // unit),
        capacity=None if capacity is None else min(capacity, SIZE_LIMIT) // unit,
        effort=effort,
        seed=seed,
    )
    plan = _plan(
        rows, instance, unit, solution, bound, capacity, alignment, holds, group_at
    )
    if capacity is not None and plan.height > capacity:
        raise _not_found(rows, instance, sections, plan, capacity, solution)
    return plan


def _rows(buffers: Iterable[Any] | str | Path) -> list[Buffer]:
    if isinstance(buffers, (str, Path)):
        from msa.heap.packing.io import load_buffers

        return load_buffers(buffers)
    return read_buffers(buffers)


def _check_pins(
    rows: list[Buffer], holds: tuple[Reservation, ...], alignment: int
) -> dict[Any, int]:
    """Where groups are pinned. Pins must not contradict each other or a reservation.

    A pin holds for the whole group, whose other members must be aligned there.
    """
    group_at: dict[Any, int] = {}
    for row in rows:
        if row.group is None or row.offset is None:
            continue
        at = group_at.setdefault(row.group, row.offset)
        if at != row.offset:
            raise PackingError(
                f"group {row.group!r} is pinned at {at} and at {row.offset}",
                where=f"buffer {row.id!r}",
            )
    pinned, offsets = [], []
    for row in rows:
        place = row.offset if row.offset is not None else group_at.get(row.group)
        if place is None:
            continue
        multiple = row.alignment or alignment
        if row.offset is None and place % multiple:
            raise PackingError(
                f"its group {row.group!r} is pinned at {place}, which is not a "
                f"multiple of its alignment {multiple}",
                where=f"buffer {row.id!r}",
            )
        pinned.append(row)
        offsets.append(place)
    if not pinned:
        return group_at
    try:
        verify_disjoint(pinned, offsets, holds)
    except PlanError as error:
        raise PackingError(
            f"pinned: {error.message}", where=error.where, hint="move a pin"
        ) from None
    return group_at


def _plan(
    rows: list[Buffer],
    instance: Instance,
    unit: int,
    solution: Solution,
    bound: Bound,
    capacity: int | None,
    alignment: int,
    holds: tuple[Reservation, ...],
    group_at: dict[Any, int],
) -> HeapPlan:
    # An empty buffer is item -1: the zero at the end.
    by_item = np.append(solution.offsets * unit, 0)
    placed = by_item[instance.item_of].tolist()
    for index in np.flatnonzero(instance.item_of < 0).tolist():
        row = rows[index]
        placed[index] = row.offset or group_at.get(row.group, 0)
    plan = HeapPlan.of(
        rows,
        placed,
        lower_bound=bound.height,
        optimal=False,
        capacity=capacity,
        alignment=alignment,
        reserved=holds,
        method=solution.method,
    )
    proved = plan.height if solution.proved else bound.height
    return HeapPlan.of(
        rows,
        placed,
        lower_bound=proved,
        optimal=proved == plan.height,
        capacity=capacity,
        alignment=alignment,
        reserved=holds,
        method=solution.method,
    )


def _live_set(
    rows: list[Buffer], instance: Instance, sections: Sections, section: int
) -> list[tuple[str, int]]:
    """`(id, bytes)` of what lives in a section, largest first."""
    pieces = (sections.low <= section) & (section < sections.high)
    live = set(instance.piece_item[pieces].tolist())
    members = [
        (str(row.id), row.size)
        for row, item in zip(rows, instance.item_of.tolist(), strict=True)
        if item in live and row.start <= int(sections.time[section]) < row.end
    ]
    return sorted(members, key=lambda member: (-member[1], member[0]))


def _over_capacity(
    rows: list[Buffer],
    instance: Instance,
    sections: Sections,
    bound: Bound,
    capacity: int,
    group_at: dict[Any, int],
) -> CapacityError:
    step, live = -1, []
    if bound.section >= 0:
        step = int(sections.time[bound.section])
        live = _live_set(rows, instance, sections, bound.section)
        what = f"{len(live)} buffers that live together need {bound.height} B"
    else:
        # A pin of a group holds for all its members, also that of an empty one.
        top = max(
            (row for row in rows if row.is_live),
            key=lambda row: (
                (row.offset or group_at.get(row.group, 0)) + row.size
                if row.offset is not None or row.group in group_at
                else -1
            ),
        )
        step, live = top.start, [(str(top.id), top.size)]
        what = f"pinned buffer {top.id!r} ends at {bound.height} B"
    largest = ", ".join(f"{name} {format_bytes(size)}" for name, size in live[:4])
    return CapacityError(
        f"{what}, capacity is {capacity} B ({bound.height - capacity} B over); "
        f"largest: {largest}",
        step=step,
        needed=bound.height,
        capacity=capacity,
        live=live,
        where=f"time {step}",
        hint="shorten lifetimes, split or recompute the largest, raise the capacity",
    )


def _not_found(
    rows: list[Buffer],
    instance: Instance,
    sections: Sections,
    plan: HeapPlan,
    capacity: int,
    solution: Solution,
) -> CapacityError:
    section = int(sections.load.argmax())
    step = int(sections.time[section])
    found = "is impossible" if solution.refuted else "was not found"
    hint = "raise the capacity, or shorten lifetimes at the crowded step"
    if not solution.refuted:
        hint = f"a higher effort or another seed; {hint}"
    return CapacityError(
        f"a packing into {capacity} B {found}; the best needs {plan.height} B, "
        f"the lower bound is {plan.lower_bound} B",
        step=step,
        needed=plan.height,
        capacity=capacity,
        live=_live_set(rows, instance, sections, section),
        where=f"time {step}",
        hint=hint,
    )
