"""A plan as plain text: the summary and the table of buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment


def summary(plan: Assignment) -> str:
    """What the plan brings, in a few lines."""
    estimate = plan.estimate
    capacity = plan.problem.machine.capacity
    gap = estimate.after_seconds / max(estimate.lower_bound_seconds, 1e-300) - 1.0
    kinds: dict[str, int] = {}
    moved = 0.0
    for copy in plan.copies:
        kinds[copy.kind] = kinds.get(copy.kind, 0) + 1
        moved += copy.bytes * copy.trip_count
    copies = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in kinds.items())
    rows = [
        ("module", f"{plan.module.name}, {plan.problem.end} steps"),
        ("target", f"{plan.target.name}, {format_bytes(capacity)} fast memory"),
        ("before", format_seconds(estimate.before_seconds)),
        (
            "after",
            (
                f"{format_seconds(estimate.after_seconds)} "
                f"({estimate.speedup:.2f} times as fast)"
            ),
        ),
        (
            "lower bound",
            f"{format_seconds(estimate.lower_bound_seconds)} (the plan is {gap:.0%} above)"
            if estimate.lower_bound_seconds > 0
            else "0 s",
        ),
        ("waiting for copies", format_seconds(estimate.copy_stall_seconds)),
        (
            "fast memory",
            (
                f"{format_bytes(plan.alternate_peak_bytes)} used, "
                f"{len(plan.chunks)} buffers"
            ),
        ),
        ("copies", f"{copies or 'none'}; {format_bytes(int(moved))} moved"),
    ]
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


def table(plan: Assignment, limit: int | None = 40) -> str:
    """Buffers in fast memory: where, how long, how large; largest first."""
    rows = []
    for place, chunk in plan.lowered.chunks.items():
        step = plan.times.get(place.instruction, -1)
        rows.append(
            (
                chunk.size,
                (
                    place.text,
                    place.instruction.opcode,
                    str(step),
                    str(chunk.offset),
                    format_bytes(chunk.size),
                ),
            )
        )
    rows.sort(key=lambda row: (-row[0], row[1]))
    shown = [cells for _, cells in rows[:limit]]
    head = ("buffer", "opcode", "step", "offset", "size")
    widths = [max(len(row[i]) for row in [head, *shown]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *shown]
    ]
    if len(rows) > len(shown):
        lines.append(f"… and {len(rows) - len(shown)} more")
    return "\n".join(lines)
