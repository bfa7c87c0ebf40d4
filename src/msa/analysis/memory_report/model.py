"""What a memory report says: plain values, with a text form and plain data.

Nothing here computes; `build` fills it in.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msa.files import write_text


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Bytes of default memory by purpose.

    Attributes:
        arguments: entry parameters.
        outputs: the program's result, including what lives in donated arguments.
        temporaries: the block that the program needs for itself.
        constants: constants, which are part of the program and not of the peak.
        aliased: bytes of outputs that live in donated arguments (counted once in
            the peak).
        padding: bytes of tiled layouts that hold no elements, of all buffers that
            are live at the peak.
    """

    arguments: int
    outputs: int
    temporaries: int
    constants: int
    aliased: int
    padding: int

    @property
    def total(self) -> int:
        """Arguments, outputs and temporaries, what is aliased once."""
        return self.arguments + self.outputs - self.aliased + self.temporaries


class BufferKind(StrEnum):
    """Why a buffer is at the peak."""

    ARGUMENT = "argument"
    OUTPUT = "output"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A buffer that takes memory at the peak.

    Attributes:
        buffer: defining position, `name{index}`.
        bytes: what it takes, padding included.
        logical_bytes: what its elements need.
        padding_factor: bytes / logical bytes.
        shape: as HLO text, with layout.
        op_name: the operation in the user's program, or an empty string.
        source: `file:line`, or an empty string.
        kind: argument, output or temporary.
        start, end: half-open steps in which it holds a needed value.
        waiting: an output's storage that is allocated but not written yet.
    """

    buffer: str
    bytes: int
    logical_bytes: int
    padding_factor: float
    shape: str
    op_name: str
    source: str
    kind: BufferKind
    start: int
    end: int
    waiting: bool = False


class DonationStatus(StrEnum):
    """What became of an argument that is, or could be, given away."""

    IN_PLACE = "in place"
    COPIED = "copied"
    UNUSED = "unused"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Donation:
    """An argument that is donated, or that could be.

    Attributes:
        argument: `name{index}` of the parameter.
        parameter, index: its place among the entry parameters.
        bytes: its size.
        donated: the caller gives it away.
        used: an output takes its storage without a copy.
        output: index of that output, or of the one that could, or None.
        status: in place, copied, unused, or possible (not donated).
        reason: why, in one sentence.
        op_name: the argument's name in the user's program.
    """

    argument: str
    parameter: int
    index: tuple[int, ...]
    bytes: int
    donated: bool
    used: bool
    output: tuple[int, ...] | None
    status: DonationStatus
    reason: str
    op_name: str = ""


class HintKind(StrEnum):
    """What could be done about memory."""

    DONATION = "donation"
    LOOP_COPY = "loop-carried copy"
    PADDING = "padding"
    LARGE_BUFFER = "large buffer"
    FRAGMENTATION = "fragmentation"
    PREPARED = "prepared"


@dataclass(frozen=True, slots=True)
class Hint:
    """Something worth a look.

    Attributes:
        kind: what it is about.
        message: one sentence with the numbers.
        subject: the buffer or instruction, `name{index}`.
        bytes: what is at stake.
        source: `file:line`, or an empty string.
    """

    kind: HintKind
    message: str
    subject: str
    bytes: int
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryReport:
    """The default memory of a scheduled module: how much, when, and what.

    Attributes:
        module: name of the module.
        peak_bytes: arguments, outputs and temporaries together.
        peak_step: the first step at which most bytes are live.
        breakdown: the peak by purpose.
        at_peak: every buffer that takes memory at the peak, largest first.
        timeline: int64 per step: arguments and outputs, which are allocated all the
            time, plus the temporaries live at the step.
        donations: arguments that are or could be donated, largest first.
        lower_bound: bytes that hold needed values at the fullest step; no placement
            gets below with this schedule.
        hints: most bytes first.
        steps: instruction names in order of execution.
        other_spaces: bytes of allocations in other memory spaces, by number.
    """

    module: str
    peak_bytes: int
    peak_step: int
    breakdown: Breakdown
    at_peak: tuple[LiveRow, ...]
    timeline: NDArray[np.int64]
    donations: tuple[Donation, ...]
    lower_bound: int
    hints: tuple[Hint, ...]
    steps: tuple[str, ...]
    other_spaces: tuple[tuple[int, int], ...] = ()

    def to_text(self, rows: int = 20) -> str:
        """The report for a terminal, with the `rows` largest buffers at the peak."""
        from msa.analysis.memory_report.text import report_text

        return report_text(self, rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: numbers, strings, lists and dicts."""
        return {
            "module": self.module,
            "peak_bytes": self.peak_bytes,
            "peak_step": self.peak_step,
            "peak_instruction": self.steps[self.peak_step] if self.steps else "",
            "lower_bound": self.lower_bound,
            "breakdown": asdict(self.breakdown),
            "other_spaces": dict(self.other_spaces),
            "at_peak": [_plain(row) for row in self.at_peak],
            "donations": [_plain(row) for row in self.donations],
            "hints": [_plain(row) for row in self.hints],
            "timeline": self.timeline.tolist(),
            "steps": list(self.steps),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The report as JSON; written to `path` if given."""
        text = json.dumps(self.to_dict(), indent=1) + "\n"
        return write_text(text, path)

    def html(self, path: str | Path | None = None) -> str:
        """A self-contained page; written to `path` if given."""
        from msa.report.memory_page import memory_page

        return write_text(memory_page(self), path)

    def _repr_html_(self) -> str:
        from msa.report.memory_page import memory_fragment

        return memory_fragment(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<MemoryReport {self.module}: peak {self.peak_bytes} B>"


def _plain(row: LiveRow | Donation | Hint) -> dict[str, Any]:
    data = asdict(row)
    for name, value in data.items():
        if isinstance(value, StrEnum):
            data[name] = str(value)
        elif isinstance(value, tuple):
            data[name] = list(value)
    return data
