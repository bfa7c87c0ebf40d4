"""What is live where memory is fullest, and what would lower it.

Source: `xla/service/buffer_assignment.cc` (ComputePeakMemoryLogicalBuffers, …).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from msa.analysis.buffer_assignment import (
    BufferAllocation,
    BufferAssignment,
    values_at,
)
from msa.analysis.values import Value
from msa.hlo.metadata import source_location
from msa.runtime.diag.loads import colors_of, load_of, usage_of
from msa.runtime.diag.sizes import human_bytes

_HOST: Final = 5
_COPIES: Final = frozenset({"copy-start", "copy-done"})
_ASYNC: Final = frozenset({"async-start", "async-done"})
_CHEAP: Final = frozenset({"broadcast", "iota", "constant", "convert", "reshape"})


class ValueKind(StrEnum):
    """Why a value takes memory."""

    PARAMETER = "parameter"
    CONSTANT = "constant"
    TEMPORARY = "temp"
    LIVE_OUT = "live-out"
    PREFETCH = "prefetch copy"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value that takes memory at the peak.

    Attributes:
        name, shape: `name{index}` of its definition, and its shape.
        space: memory space.
        size, offset: bytes, in `allocation`.
        padding: bytes of it that hold no elements.
        kind: why it is there.
        producer: opcode that makes it.
        computation: where; `callers`: control flow around it, innermost first.
        first, last: moments from its definition to its last use; -1 if unknown.
        op_name, source: in the user's program.
    """

    name: str
    shape: str
    space: int
    size: int
    allocation: int
    offset: int
    padding: int
    kind: ValueKind
    producer: str
    computation: str
    callers: tuple[str, ...]
    first: int
    last: int
    op_name: str
    source: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A free range of an allocation at the peak."""

    allocation: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The peak without one value; `remedies` name ways to be without it."""

    name: str
    size: int
    peak: int
    remedies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpacePeak:
    """The fullest moment of a memory space (or of all: `space` is -1).

    Attributes:
        space: number.
        bytes: in use then: needed temporaries, and all other allocations.
        step: moment of the schedule; `instruction`: what runs then.
        allocated: bytes of all allocations.
        values: in use then, largest first.
        by_kind, by_computation: sums of bytes.
        holes: unused ranges of temporary allocations.
        padding: bytes of `values` without elements.
        what_if: the peak without one of the largest values, lowest first.
    """

    space: int
    bytes: int
    step: int
    instruction: str
    allocated: int
    values: tuple[LiveValue, ...]
    by_kind: dict[str, int]
    by_computation: dict[str, int]
    holes: tuple[Hole, ...]
    padding: int
    what_if: tuple[WhatIf, ...]


@dataclass(frozen=True, slots=True)
class PeakReport:
    """Peaks of the module and of each memory space.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> assignment = BufferAssignment.run(module)
    >>> peak_report(assignment).spaces[0].space
    0
    """

    module: str
    whole: SpacePeak
    spaces: tuple[SpacePeak, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = asdict(self)
        for peak in (data["whole"], *data["spaces"]):
            for row in peak["values"]:
                row["kind"] = str(row["kind"])
        return data

    def to_text(self, top: int = 15) -> str:
        """For a terminal, with the largest values of each space."""
        lines = [f"{self.module}: peak {human_bytes(self.whole.bytes)}"]
        for peak in self.spaces:
            lines.append(
                f"Space {peak.space}: {human_bytes(peak.bytes)} of "
                f"{human_bytes(peak.allocated)} allocated, at {peak.step} "
                f"({peak.instruction}); {human_bytes(sum(h.size for h in peak.holes))} "
                f"in {len(peak.holes)} holes, {human_bytes(peak.padding)} padding"
            )
            kinds = sorted(peak.by_kind.items(), key=lambda row: (-row[1], row[0]))
            lines.append(
                "  " + ", ".join(f"{kind} {human_bytes(n)}" for kind, n in kinds)
            )
            lines += [f"  {line}" for v in peak.values[:top] for line in _shown(v)]
            if len(peak.values) > top:
                lines.append(f"  … and {len(peak.values) - top} more")
            lines += [
                f"  without {row.name} ({human_bytes(row.size)}): "
                f"{human_bytes(row.peak)}"
                + (f" — {', '.join(row.remedies)}" if row.remedies else "")
                for row in peak.what_if[:3]
            ]
        return "\n".join(lines)


def _shown(value: LiveValue) -> list[str]:
    if value.kind is ValueKind.PARAMETER:
        label = f"Entry Parameter Subshape: {value.shape}"
    else:
        label = f"{value.producer} {value.shape}"
    where = " ".join(filter(None, (value.op_name, value.source)))
    lines = [f"{human_bytes(value.size):>10}  {value.name}  {label}"]
    return lines + ([f"            {where}"] if where else [])


def peak_report(assignment: BufferAssignment) -> PeakReport:
    """Find the peaks of an assignment.

    >>> import msa
    >>> from msa.analysis import BufferAssignment
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> report = peak_report(BufferAssignment.run(module))
    >>> report.whole.bytes, [v.name for v in report.whole.values]
    (2048, ['n{}', 'p{}'])
    """
    whole = _peak(assignment, None)
    spaces = tuple(_peak(assignment, color) for color in colors_of(assignment))
    return PeakReport(assignment.module.name, whole, spaces)


def top_buffers(assignment: BufferAssignment, top: int = 15) -> list[LiveValue]:
    """The largest values at the peaks of all allocations; of equal ones the first.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> assignment = BufferAssignment.run(module)
    >>> [value.name for value in top_buffers(assignment, 2)]
    ['a{}', 'p{}']
    """
    value_of = assignment.alias.dataflow.value
    rows = [
        _row(assignment, allocation, value_of(number))
        for allocation in assignment.allocations
        if not allocation.is_thread_local
        for number in allocation.peak or tuple(allocation.assigned)[:1]
    ]
    return sorted(rows, key=lambda row: -row.size)[:top]


def _peak(assignment: BufferAssignment, color: int | None) -> SpacePeak:
    usage = usage_of(assignment, color)
    chosen = [
        a
        for a in assignment.allocations
        if not a.is_thread_local and color in (None, a.color)
    ]
    # Of equally full moments, one at which most of it is needed.
    needed = np.where(usage == usage.max(initial=0), load_of(assignment, chosen), -1)
    step = int(needed.argmax()) if len(needed) else 0
    value_of = assignment.alias.dataflow.value
    values: list[LiveValue] = []
    holes: list[Hole] = []
    for allocation in chosen:
        numbers = values_at(allocation, assignment.live, step)
        rows = [_row(assignment, allocation, value_of(n)) for n in numbers]
        values += rows
        if allocation.is_temporary:
            holes += _holes(allocation, rows)
    values.sort(key=lambda v: (-v.size, v.name))
    by_kind: Counter[str] = Counter()
    by_computation: Counter[str] = Counter()
    for value in values:
        by_kind[str(value.kind)] += value.size
        by_computation[value.computation] += value.size
    instructions = assignment.live.schedule.instructions
    return SpacePeak(
        -1 if color is None else color,
        int(usage.max(initial=0)),
        step,
        instructions[step].name if step < len(instructions) else "end",
        sum(a.size for a in chosen),
        tuple(values),
        dict(by_kind),
        dict(by_computation),
        tuple(holes),
        sum(v.padding for v in values),
        _what_if(assignment, usage.copy(), values),
    )


def _row(
    assignment: BufferAssignment, allocation: BufferAllocation, value: Value
) -> LiveValue:
    x, shape = value.instruction, value.shape
    offset, size = allocation.assigned[value.id]
    bound = assignment.live.range_of(value)
    return LiveValue(
        str(value.position),
        shape.to_text(with_layout=False),
        allocation.color,
        size,
        allocation.index,
        offset,
        max(0, size - shape.byte_size()) if shape.is_array else 0,
        _kind(allocation, x.opcode),
        x.opcode,
        x.computation.name,
        _callers(assignment, value),
        bound.start if bound else -1,
        bound.end if bound else -1,
        x.metadata.op_name,
        str(source_location(x) or ""),
    )


def _kind(allocation: BufferAllocation, opcode: str) -> ValueKind:
    if allocation.color == _HOST:
        return ValueKind.HOST
    if allocation.is_parameter:
        return ValueKind.PARAMETER
    if allocation.is_constant:
        return ValueKind.CONSTANT
    if opcode in _COPIES or opcode in _ASYNC:
        return ValueKind.PREFETCH
    return ValueKind.LIVE_OUT if allocation.maybe_live_out else ValueKind.TEMPORARY


def _callers(assignment: BufferAssignment, value: Value) -> tuple[str, ...]:
    graph = assignment.alias.dataflow.call_graph
    computation, names = value.instruction.computation, []
    while computation is not assignment.module.entry:
        caller = graph.parent_call(computation)
        if caller is None:
            break
        names.append(caller.name)
        computation = caller.computation
    return tuple(names)


def _holes(allocation: BufferAllocation, rows: list[LiveValue]) -> list[Hole]:
    """Ranges between live values. Values at one offset count with the one listed."""
    found, end = [], 0
    for row in sorted(rows, key=lambda r: r.offset):
        if row.offset > end:
            found.append(Hole(allocation.index, end, row.offset - end))
        end = max(end, row.offset + row.size)
    if end < allocation.size:
        found.append(Hole(allocation.index, end, allocation.size - end))
    return found


def _what_if(
    assignment: BufferAssignment, usage: Any, values: list[LiveValue], most: int = 5
) -> tuple[WhatIf, ...]:
    peak = int(usage.max(initial=0))
    found = []
    for value in values[:most]:
        if value.first < 0:
            continue
        less = usage.copy()
        if value.kind in (ValueKind.TEMPORARY, ValueKind.PREFETCH):
            less[value.first : value.last + 1] -= value.size
        else:
            less -= value.size
        lower = int(less.max(initial=0))
        if lower < peak:
            found.append(WhatIf(value.name, value.size, lower, _remedies(value)))
    found.sort(key=lambda row: (row.peak, row.name))
    return tuple(found)


def _remedies(value: LiveValue) -> tuple[str, ...]:
    """Ways to be without a value."""
    if value.kind is ValueKind.TEMPORARY:
        ways = ["rematerialize"] if value.producer in _CHEAP else []
        return (*ways, "offload to the host", "place in fast memory")
    return ("offload to the host",) if value.kind is ValueKind.PARAMETER else ()
