"""One time axis for the whole program: the flattened schedule.

Computations that run as part of the program are laid out where they run, a loop's
condition and body once each. Fusions, reductions and the like take one step.

Source: `xla/hlo/utils/hlo_live_range.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from msa.analysis.async_chains import ASYNC_OPCODES, runs_wrapped, wrapped_computation
from msa.errors import ScheduleError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import RUNNING_OPCODES

_RUNNING: Final = RUNNING_OPCODES | ASYNC_OPCODES

_Step = tuple[Computation, Computation | None]
"""A computation to lay out and the asynchronous computation around it."""


@dataclass(frozen=True, slots=True, eq=False)
class FlattenedSchedule:
    """Times of instructions and spans of computations.

    Attributes:
        module: the module.
        instructions: in order of time.
        time: int64 by instruction id; -1 for instructions that are not scheduled.
        spans: computation to its half-open span `[start, end)`; `end` is one past
            its last instruction, the time of its caller when that follows.
        async_context: computations that run asynchronously, to the wrapped
            computation that they belong to.
        is_total: whether every computation reached has a schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... f { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }
    ... ENTRY main { p = f32[4] parameter(0)  ROOT c = f32[4] call(p), to_apply=f }
    ... ''')
    >>> flat = FlattenedSchedule.run(module)
    >>> [i.name for i in flat.instructions], flat.span_of(module.computation("f"))
    (['p', 'x', 'y', 'c'], (1, 3))
    """

    module: Module
    instructions: tuple[Instruction, ...]
    time: NDArray[np.int64]
    spans: dict[Computation, tuple[int, int]]
    async_context: dict[Computation, Computation]
    is_total: bool

    @classmethod
    def run(
        cls,
        module: Module,
        *,
        computation: Computation | None = None,
        module_scoped: bool = True,
    ) -> FlattenedSchedule:
        """Lay out the entry (or one computation) and all that runs within it.

        Args:
            module: a scheduled module.
            computation: start here instead of at the entry.
            module_scoped: lay out called computations too.

        Raises:
            ScheduleError: the module has no schedule.
            HloError: an asynchronous chain has no start.

        Linear in the number of instructions.
        """
        if module.schedule is None:
            raise ScheduleError(
                f"module {module.name!r} has no schedule",
                hint="msa.schedule(module) makes one",
            )
        start = computation or module.entry
        return _lay_out(module, start, module_scoped=module_scoped)

    @property
    def end(self) -> int:
        """One past the last time."""
        return len(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def time_of(self, instruction: Instruction) -> int:
        """Time of an instruction, -1 if it is not scheduled."""
        return int(self.time[instruction.id])

    def span_of(self, computation: Computation) -> tuple[int, int]:
        """Half-open span of a computation.

        Raises:
            ScheduleError: it is not part of the schedule.
        """
        try:
            return self.spans[computation]
        except KeyError:
            raise ScheduleError(
                f"computation {computation.name!r} is not part of the schedule"
            ) from None


def _lay_out(
    module: Module, start: Computation, *, module_scoped: bool
) -> FlattenedSchedule:
    schedule = module.schedule
    assert schedule is not None
    flat: list[Instruction] = []
    time = np.full(module.id_limit, -1, np.int64)
    spans: dict[Computation, tuple[int, int]] = {}
    contexts: dict[Computation, Computation] = {}
    is_total = True
    # A frame: computation, context, sequence, next place, start, callees still to do.
    stack: list[_Frame] = []

    def enter(computation: Computation, context: Computation | None) -> bool:
        if computation not in schedule:
            return False
        if computation not in spans:
            if context is not None:
                contexts[computation] = context
            spans[computation] = (len(flat), len(flat))
            sequence = schedule.sequence(computation)
            stack.append(_Frame(computation, context, sequence, len(flat)))
        return True

    is_total = enter(start, None)
    while stack:
        frame = stack[-1]
        if frame.pending:
            is_total &= enter(*frame.pending.pop())
            continue
        if frame.place == len(frame.sequence):
            stack.pop()
            spans[frame.computation] = (frame.start, len(flat))
            continue
        instruction = frame.sequence[frame.place]
        if module_scoped and not frame.expanded and instruction.opcode in _RUNNING:
            frame.expanded = True
            frame.pending = _steps_before(instruction, frame.context)
            continue
        frame.expanded = False
        frame.place += 1
        flat.append(instruction)
    for step, instruction in enumerate(flat):
        time[instruction.id] = step
    time.setflags(write=False)
    return FlattenedSchedule(module, tuple(flat), time, spans, contexts, is_total)


class _Frame:
    __slots__ = (
        "computation",
        "context",
        "expanded",
        "pending",
        "place",
        "sequence",
        "start",
    )

    def __init__(
        self,
        computation: Computation,
        context: Computation | None,
        sequence: tuple[Instruction, ...],
        start: int,
    ) -> None:
        self.computation = computation
        self.context = context
        self.sequence = sequence
        self.start = start
        self.place = 0
        self.expanded = False
        self.pending: list[_Step] = []


def _steps_before(instruction: Instruction, context: Computation | None) -> list[_Step]:
    """What runs before an instruction ends, last first."""
    called = instruction.called_computations
    if instruction.opcode == "while":
        return [(called[0], context), (called[1], context)]
    if instruction.opcode in ASYNC_OPCODES:
        if not runs_wrapped(instruction):
            return []
        wrapped = wrapped_computation(instruction)
        return [(wrapped, wrapped)]
    return [(callee, context) for callee in reversed(called)]
