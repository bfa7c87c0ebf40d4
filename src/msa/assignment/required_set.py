"""What has to be in alternate memory at once, and the error when it does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from msa.assignment.allocation import MemorySpace
from msa.assignment.options import Options
from msa.assignment.problem import Problem, Value
from msa.errors import CapacityError
from msa.hlo.metadata import source_location
from msa.units import format_bytes

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RequiredRow:
    """One thing that must be in alternate memory at a step.

    Attributes:
        name: `name{index}` of the value, or the scratch of an instruction.
        bytes: its size.
        shape: as text; empty for scratch.
        padding_factor: bytes that tiled layouts really take, over `bytes`.
        source: operation and line of the user's program, where known.
    """

    name: str
    bytes: int
    shape: str = ""
    padding_factor: float = 1.0
    source: str = ""

    def __str__(self) -> str:
        parts = [self.name, format_bytes(self.bytes)]
        if self.shape:
            parts.append(self.shape)
        if self.padding_factor != 1.0:
            parts.append(f"padded {self.padding_factor:.2f} times")
        if self.source:
            parts.append(self.source)
        return ", ".join(parts)


def check_required(problem: Problem, options: Options) -> None:
    """Raise if what must be in alternate memory exceeds it at some step. Linear.

    Counted are values whose layouts (or colourings) ask for alternate memory, while
    they are live, and scratch. A value that is read for the last time does not count
    at that step: its room may be taken over.

    Raises:
        CapacityError: at the fullest step they need more than there is.
    """
    change = np.zeros(problem.end + 2, np.int64)
    for value in _required_values(problem, options):
        start, end = value.live
        change[start] += value.size
        change[max(end, start + 1)] -= value.size
    for step, size in problem.scratch_bytes.items():
        change[step] += size
        change[step + 1] -= size
    needed = np.cumsum(change)[: problem.end]
    if not len(needed) or int(needed.max()) <= problem.machine.capacity:
        return
    step = int(needed.argmax())
    raise capacity_error(problem, options, step, int(needed[step]))


def explain_capacity(
    error: CapacityError, problem: Problem, options: Options
) -> CapacityError:
    """The algorithm's error with the instruction and the live set added."""
    if error.live or not 0 <= error.step < problem.end:
        return error
    needed = max(error.needed, error.capacity + 1)
    return capacity_error(
        problem, options, error.step, needed, reason=error.message, hint=error.hint
    )


def capacity_error(
    problem: Problem,
    options: Options,
    step: int,
    needed: int,
    *,
    reason: str = "what must be in fast memory does not fit",
    hint: str = "",
) -> CapacityError:
    """An error that names the step, the figures and everything required there."""
    capacity = problem.machine.capacity
    rows = required_rows(problem, options, step)
    lines = [f"  {row}" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  … and {len(rows) - _SHOWN} more")
    live = "".join(f"\n{line}" for line in lines)
    return CapacityError(
        f"{reason}: needed {format_bytes(needed)} ({needed} bytes), capacity "
        f"{format_bytes(capacity)} ({capacity} bytes), over by "
        f"{format_bytes(needed - capacity)} ({needed - capacity} bytes){live}\n",
        step=step,
        needed=needed,
        capacity=capacity,
        live=[(row.name, row.bytes) for row in rows],
        where=f"step {step}, {problem.names[step]}",
        hint=hint
        or "raise the capacity, take S(1) off some of these layouts, or make them smaller",
    )


def required_rows(problem: Problem, options: Options, step: int) -> list[RequiredRow]:
    """Everything that must be in alternate memory at a step, largest first."""
    rows = [
        _row(problem, value)
        for value in _required_values(problem, options)
        if value.live[0] <= step < max(value.live[1], value.live[0] + 1)
    ]
    scratch = problem.scratch_bytes.get(step, 0)
    if scratch:
        rows.append(RequiredRow(f"scratch of {problem.names[step]}", scratch))
    rows.sort(key=lambda row: (-row.bytes, row.name))
    return rows


def _required_values(problem: Problem, options: Options) -> Iterable[Value]:
    colored = {
        (coloring.instruction, coloring.index)
        for coloring in options.buffer_colorings
        if coloring.space is MemorySpace.ALTERNATE and coloring.operand is None
    }
    for value in problem.values:
        if value.is_tuple:
            continue
        place = (problem.names[value.position.step], value.position.index)
        if value.pinned or place in colored:
            yield value


def _row(problem: Problem, value: Value) -> RequiredRow:
    name = problem.describe(value.position)
    key = problem.keys[value.position.step] if problem.keys else None
    if key is None:
        return RequiredRow(name, value.size)
    shape = key.shape.subshape(value.position.index)
    metadata = key.metadata
    place = source_location(key)
    source = " ".join(
        part for part in (metadata.op_name, "" if place is None else str(place)) if part
    )
    logical = shape.byte_size()
    padding = shape.padded_byte_size() / logical if logical else 1.0
    return RequiredRow(name, value.size, str(shape), padding, source)
