"""When storage holds something that is still needed, computation by computation.

A live range (`live_ranges`) is one interval of the flattened schedule. That is more
than what is needed when a value enters only some branches of a conditional, or only
part of a loop's body reads it. Here a value has one interval per computation in which
it appears, so that storage which is free on every path counts as free.

All intervals are half-open `[start, end)` in flattened steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msa.analysis.alias import AliasAnalysis
from msa.analysis.async_chains import chain_done
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.values import Value
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

Span = tuple[int, int]


class Residency:
    """Intervals in which values of a scheduled module are needed.

    Within its computation a value is needed from its definition (or the computation's
    start, for what is handed in) to its last reader, or to the computation's end if
    it is part of the result. Naming it in a tuple, or together with others as an
    element of one, does not read it. A reader that runs other computations needs it
    until those start; there it has intervals of its own. A loop needs what it only
    reads until it ends. Inputs of the program that it may not overwrite are needed
    throughout.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[4] parameter(0)
    ...   b = f32[4] negate(a)
    ...   c = f32[4] exponential(b)
    ...   ROOT d = f32[4] add(c, c)
    ... }''')
    >>> alias = AliasAnalysis.run(module)
    >>> residency = Residency(alias, FlattenedSchedule.run(module))
    >>> [residency.spans(value) for value in alias.dataflow.values]
    [[(0, 4)], [(1, 3)], [(2, 4)], [(3, 4)]]
    """

    __slots__ = ("_alias", "_read_only", "_schedule", "_starts", "_time")

    def __init__(self, alias: AliasAnalysis, schedule: FlattenedSchedule) -> None:
        self._alias = alias
        self._schedule = schedule
        self._time: list[int] = schedule.time.tolist()
        # When what calls and conditionals run starts.
        self._starts: dict[Instruction, int] = {}
        self._read_only = alias.module.read_only_inputs(donors=True)

    def spans(self, value: Value) -> list[Span]:
        """Intervals of one value, ascending. Linear in its positions and uses."""
        if value.position in self._read_only:
            return [(0, self._schedule.end)]
        if len(value.positions) == 1:
            return self._spans_of_one(value)
        begins: dict[Computation, int] = {}
        ends: dict[Computation, int] = {}
        entered: set[Computation] = set()  # through a parameter
        defining = value.instruction
        for instruction, _ in value.positions:
            time = self._time[instruction.id]
            if time < 0:
                continue
            computation = instruction.computation
            begin, end = self._of_position(instruction, time)
            if instruction is defining:
                end = max(end, time + 1)
            if instruction.opcode == "parameter":
                entered.add(computation)
            begins[computation] = min(begins.get(computation, begin), begin)
            ends[computation] = max(ends.get(computation, end), end)
        for user, _, _ in value.uses:
            computation = user.computation
            if computation in begins:
                end = self._of_use(user, entered)
                ends[computation] = max(ends[computation], end)
        for computation in begins:
            context = self._schedule.async_context.get(computation)
            if context is not None:
                ends[computation] = max(ends[computation], self._done_of(context))
        return sorted((begin, max(begin + 1, ends[c])) for c, begin in begins.items())

    def _spans_of_one(self, value: Value) -> list[Span]:
        """Intervals of a value that is nowhere but where it is made."""
        instruction = value.positions[0].instruction
        time = self._time[instruction.id]
        if time < 0:
            return []
        computation = instruction.computation
        begin, end = self._of_position(instruction, time)
        end = max(end, time + 1)
        entered = {computation} if instruction.opcode == "parameter" else set()
        for user, _, _ in value.uses:
            if user.computation is computation:
                end = max(end, self._of_use(user, entered))
        context = self._schedule.async_context.get(computation)
        if context is not None:
            end = max(end, self._done_of(context))
        return [(begin, end)]

    def of_buffer(self, values: Iterable[Value]) -> list[Span]:
        """Intervals of values that share storage, joined where they meet."""
        found = [span for value in values for span in self.spans(value)]
        return found if len(found) < 2 else merged(found)

    def _of_position(self, instruction: Instruction, time: int) -> Span:
        """Begin, and the least end, that appearing at an instruction asks for.

        By appearing there a value is kept only as part of a computation's result:
        what reads it is among its uses, all else names it.
        """
        span = self._schedule.spans[instruction.computation]
        begin = span[0] if instruction.opcode == "parameter" else time
        if instruction.computation.root is instruction:
            return begin, span[1]
        return begin, 0

    def _of_use(self, user: Instruction, entered: set[Computation]) -> int:
        opcode, time = user.opcode, self._time[user.id]
        if opcode in ("call", "conditional", "while"):
            spans = self._schedule.spans
            if opcode == "while":
                body = user.while_body
                if body in spans:
                    return time + 1 if body in entered else spans[body][0]
                return time + 1
            if user not in self._starts:
                called = [spans[c][0] for c in user.called_computations if c in spans]
                self._starts[user] = min(called, default=time + 1)
            return self._starts[user]
        return time + 1

    def _done_of(self, context: Computation) -> int:
        """Right after the end of the asynchronous operation that runs a computation."""
        start = self._alias.dataflow.call_graph.parent_call(context)
        done = None if start is None else chain_done(start)
        return 0 if done is None else self._time[done.id] + 1


def merged(spans: Iterable[Span]) -> list[Span]:
    """Half-open spans, joined where they meet, ascending.

    >>> merged([(4, 6), (0, 2), (2, 3)])
    [(0, 3), (4, 6)]
    """
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def handovers(
    ending: Sequence[tuple[int, Value]], beginning: Sequence[tuple[int, Value]]
) -> list[tuple[int, Value, Value]]:
    """Pairs `(step, old, new)`: `old` is last read at the step that makes `new`.

    `ending` holds values with one past their last step, `beginning` values with
    their first. Only values of equal size are paired.
    """
    started: dict[tuple[int, int], list[Value]] = {}
    for step, value in beginning:
        started.setdefault((step, value.byte_size()), []).append(value)
    return [
        (end - 1, old, new)
        for end, old in ending
        for new in started.get((end - 1, old.byte_size()), ())
        if new is not old
    ]
