"""When a value needs its storage, on its own: half-open times per value.

Unlike live ranges these are not chained along buffers, so that two values which
would share storage and overlap can be told apart. Storage that is handed over (into
a loop, out of its body, into a branch) is free for the receiver from that time on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msa.analysis.async_chains import chain_done

if TYPE_CHECKING:
    from msa.analysis.dataflow import DataflowAnalysis
    from msa.analysis.flatten import FlattenedSchedule
    from msa.analysis.values import Value
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction

_NAMING: Final = frozenset({"copy", "domain", "get-tuple-element", "tuple"})
"""What they pass on from an operand they name but do not read."""


class Lifetimes:
    """Half-open `[start, end)` of every value whose definition is scheduled.

    Attributes:
        spans: value id to its time.
        end: one past the last step; values of the program's result and parameters
            that are not given away live until then.
        held: ids of values that live to the end of a computation as part of its
            result, so that nothing may take over their storage there.

    Linear in positions and uses.
    """

    __slots__ = (
        "_dataflow",
        "_flat",
        "_inside",
        "_read_only",
        "_time",
        "end",
        "held",
        "spans",
    )

    def __init__(self, dataflow: DataflowAnalysis, flat: FlattenedSchedule) -> None:
        self._dataflow = dataflow
        self._flat = flat
        self._time: list[int] = flat.time.tolist()
        self._read_only = dataflow.module.read_only_inputs()
        self.end = flat.end
        self.held: set[int] = set()
        self.spans: dict[int, tuple[int, int]] = {}
        self._inside: dict[int, tuple[Computation, int]] = {}
        for value in dataflow.values:
            if self._time[value.instruction.id] >= 0:
                self.spans[value.id] = self._span(value)

    def is_read_only(self, value: Value) -> bool:
        """Whether a value's storage must not be written: constants, kept arguments."""
        return (
            value.instruction.opcode == "constant" or value.position in self._read_only
        )

    def _span(self, value: Value) -> tuple[int, int]:
        x = value.instruction
        start = self._time[x.id]
        if x.opcode == "parameter":
            start = self._flat.spans[x.computation][0]
        end = start + 1
        if self.is_read_only(value):
            return start, self.end
        for place, _ in value.positions:
            end = max(end, self._position_end(place))
        for user, operand, _ in value.uses:
            end = max(end, self._use_end(user, operand))
        for place, _ in value.positions:
            if self._ends_with(place, end):
                self.held.add(value.id)
                break
        return start, self._in_async(value, end)

    def ends_within(self, one: int, other: int) -> tuple[int, int] | None:
        """When two values end for each other, if they are of one asynchronous operation.

        Its steps run in order, at whatever time that is: only for what runs beside
        it does all of its storage last until it is done. None: not of one operation.
        """
        mine, theirs = self._inside.get(one), self._inside.get(other)
        if mine is None or theirs is None or mine[0] is not theirs[0]:
            return None
        return mine[1], theirs[1]

    def end_in_branch(
        self, value: Value, conditional: Instruction, branch: int
    ) -> tuple[int, bool]:
        """When a value is needed last if a conditional takes one of its branches.

        What other branches do with it does not count. The flag says whether it is
        part of a result at that time, so that nothing may take over its storage.
        """
        others = {
            c for k, c in enumerate(conditional.called_computations) if k != branch
        }
        end = self.spans[value.id][0] + 1
        for place in value.positions:
            if not self._within(place.instruction, others):
                end = max(end, self._position_end(place.instruction))
        for use in value.uses:
            x, operand = use.instruction, use.operand_number
            if x is conditional and operand and operand != branch + 1:
                continue
            if not self._within(x, others):
                end = max(end, self._use_end(x, operand))
        held = any(
            self._ends_with(place.instruction, end)
            for place in value.positions
            if not self._within(place.instruction, others)
        )
        return end, held

    def _within(self, x: Instruction, computations: set[Computation]) -> bool:
        """Whether an instruction runs as part of one of the computations."""
        computation: Computation | None = x.computation
        while computation is not None:
            if computation in computations:
                return True
            caller = self._dataflow.call_graph.parent_call(computation)
            computation = None if caller is None else caller.computation
        return False

    def _ends_with(self, x: Instruction, end: int) -> bool:
        """Whether a value at a node of `x` ends with the computation around it."""
        computation = x.computation
        span = self._flat.spans.get(computation)
        return computation.root is x and span is not None and span[1] == end

    def _position_end(self, x: Instruction) -> int:
        computation = x.computation
        time = self._time[x.id]
        if time < 0:
            return 0
        if computation.root is x:
            return self._flat.spans[computation][1]
        if x.opcode == "parameter":
            # A loop's condition passes the state on to the body.
            caller = self._dataflow.call_graph.parent_call(computation)
            if (
                caller is not None
                and caller.opcode == "while"
                and computation is caller.while_condition
            ):
                return self._flat.spans[caller.while_body][0]
        return 0 if x.opcode in _NAMING else time + 1

    def _use_end(self, user: Instruction, operand: int) -> int:
        if user.opcode == "call":
            return 0
        if user.opcode == "while":
            return self._entered(user.while_condition, user)
        if user.opcode == "conditional" and operand:
            return self._entered(user.called_computations[operand - 1], user) + 1
        return self._time[user.id] + 1

    def _entered(self, callee: Computation, user: Instruction) -> int:
        span = self._flat.spans.get(callee)
        return self._time[user.id] + 1 if span is None else span[0]

    def _in_async(self, value: Value, end: int) -> int:
        """What runs asynchronously keeps its storage until the operation is done."""
        context = self._flat.async_context.get(value.instruction.computation)
        if context is None:
            return end
        self._inside[value.id] = (context, end)
        start = self._dataflow.call_graph.parent_call(context)
        done = None if start is None else chain_done(start)
        return end if done is None else max(end, self._time[done.id] + 1)
