"""Live ranges as text.

Source: `xla/hlo/utils/hlo_live_range.cc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.values import Value, index_text

if TYPE_CHECKING:
    from msa.analysis.live_ranges import LiveRanges


def live_range_text(live: LiveRanges) -> str:
    """The schedule, the range of each value, and what is live at the peak."""
    lines = [f"HloLiveRange (max {live.end}):", "  InstructionSequence:"]
    for step, instruction in enumerate(live.schedule.instructions):
        lines.append(f"    {step}:{instruction.name}")
    lines.append("  BufferLiveRange:")
    ranged: list[tuple[Value, int, int]] = []
    for value in live.alias.dataflow.values:
        bound = live.range_of(value)
        if bound is not None:
            ranged.append((value, bound.start, bound.end))
            lines.append(f"    {value.position}:{bound.start}-{bound.end}")
    peak = live.peak_moment()
    if peak < 0:
        lines.append(
            "  Peak memory could not be determined due to unbounded dynamic shape."
        )
        return "\n".join(lines) + "\n"
    lines.append(f"  Live ranges at {peak} (peak):")
    at_peak = [value for value, start, end in ranged if start <= peak <= end]
    rows = sorted(
        (-value.byte_size(), value.instruction.name, index_text(value.index))
        for value in at_peak
    )
    total = 0
    for negative, name, index in rows:
        total -= negative
        lines.append(
            f"    {name}{index}: {-negative} bytes (cumulative: {total} bytes)"
        )
    if live.schedule.instructions:
        lines.append(f"  Stack trace breakdown for peak usage: {total} bytes")
        lines.extend(_by_source(at_peak, total))
    return "\n".join(lines) + "\n"


def _by_source(values: list[Value], total: int) -> list[str]:
    """Bytes per source line (or instruction without one), the largest first."""
    sizes: dict[str, int] = {}
    for value in values:
        metadata = value.instruction.metadata
        place = str(value.position)
        if metadata.source_file:
            place = f"{metadata.source_file}:{metadata.source_line}"
        sizes[place] = sizes.get(place, 0) + value.byte_size()
    lines = []
    remaining = total
    for place, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        remaining -= size
        share = 100 * size / total if total else 0.0
        lines.append(f"    {place} ({share:.1f}%, {size} bytes, {remaining} remaining)")
    return lines
