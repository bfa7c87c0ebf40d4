"""How often loops run.

Two answers are offered. The full one takes what the compiler left in
`backend_config` (`known_trip_count`), and else works out counters that are stepped
by a constant and compared with a bound, through copies and fusions. The strict one
is what XLA's planner itself recognises: the counter must be read and stepped without
copies in between, and loops that are not a plain comparison are tried out for at most
128 trips.

Source: `xla/service/while_loop_analysis.cc`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from msa.analysis.call_graph import CallGraph
from msa.analysis.scalar_forms import (
    NO_STATE,
    Form,
    Frame,
    Number,
    comparison,
    form_of,
    wrap,
)
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module

_MAX_TRIALS: Final = 128


class TripCounts:
    """Trips of the loops of a module.

    >>> import msa
    >>> module = msa.parse('''
    ... body {
    ...   p = (s32[]) parameter(0)
    ...   i = s32[] get-tuple-element(p), index=0
    ...   one = s32[] constant(1)
    ...   next = s32[] add(i, one)
    ...   ROOT t = (s32[]) tuple(next)
    ... }
    ... cond {
    ...   p = (s32[]) parameter(0)
    ...   i = s32[] get-tuple-element(p), index=0
    ...   n = s32[] constant(10)
    ...   ROOT lt = pred[] compare(i, n), direction=LT
    ... }
    ... ENTRY main {
    ...   zero = s32[] constant(0)
    ...   t = (s32[]) tuple(zero)
    ...   ROOT w = (s32[]) while(t), condition=cond, body=body
    ... }''')
    >>> TripCounts.run(module).of(module.entry.root)
    10
    """

    __slots__ = ("_counts", "module")

    def __init__(self, module: Module, counts: dict[Instruction, int]) -> None:
        self.module = module
        self._counts = counts

    @classmethod
    def run(
        cls,
        module: Module,
        *,
        use_backend_config: bool = True,
        call_graph: CallGraph | None = None,
    ) -> TripCounts:
        """Count the trips of all loops.

        Args:
            module: the module.
            use_backend_config: the full answer (see above); False gives the strict
                one.
            call_graph: the module's, if at hand.

        Linear in instructions; each loop is tried out for a bounded number of trips.
        """
        counts: dict[Instruction, int] = {}
        loops = list(_loops(module))
        if not loops:
            return cls(module, counts)
        graph = call_graph or CallGraph.run(module)
        for loop in loops:
            if use_backend_config:
                count = stated_trips(loop)
                if count is None:
                    count = _Loop(loop, graph).count()
            else:
                count = _StrictLoop(loop).count()
            if count is not None:
                counts[loop] = count
        return cls(module, counts)

    def of(self, loop: Instruction) -> int | None:
        """Trips of one run of a loop, None if they are not known."""
        return self._counts.get(loop)


def _loops(module: Module) -> Iterator[Instruction]:
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "while":
                yield instruction


def stated_trips(loop: Instruction) -> int | None:
    """The trips that a loop states in its `backend_config`, if it does."""
    config = loop.backend_config
    if not config or "known_trip_count" not in config:
        return None
    try:
        stated = json.loads(config)["known_trip_count"]
        count = int(stated["n"] if isinstance(stated, dict) else stated)
    except (ValueError, KeyError, TypeError):
        return None
    return count if count >= 0 else None


def count_trips(direction: str, difference: int, step: int) -> int | None:
    """Trips of a loop that goes on while `difference DIRECTION 0` holds.

    The difference grows by `step` with each trip. None if it never ends.

    >>> count_trips("LT", -10, 3), count_trips("GE", 4, -2), count_trips("NE", 5, 2)
    (4, 3, None)
    """
    if direction in ("GT", "GE"):
        mirrored = "LT" if direction == "GT" else "LE"
        return count_trips(mirrored, -difference, -step)
    if direction == "LT":
        if difference >= 0:
            return 0
        return None if step <= 0 else -(difference // step)
    if direction == "LE":
        if difference > 0:
            return 0
        return None if step <= 0 else -difference // step + 1
    if direction == "NE":
        if difference == 0:
            return 0
        if step == 0 or difference % step or -difference // step < 0:
            return None
        return -difference // step
    if direction == "EQ":
        if difference != 0:
            return 0
        return None if step == 0 else 1
    return None


def _fits(update: Instruction, start: int, step: int, count: int | None) -> bool:
    """Whether a counter ends before its type wraps around."""
    if count is None:
        return False
    last = start + count * step
    return wrap(last, update.shape.element_type) == last


def _try_out(
    loop: Instruction, counter: int, state: dict[int, Form], start: Number
) -> int | None:
    """Run the counter alone, for a bounded number of trips."""
    body, condition = loop.called_computations
    update = body.root.operands[counter]
    value = start
    for trip in range(_MAX_TRIALS + 1):
        state[counter] = (0, value)
        goes_on = form_of(condition.root, Frame(state))
        if goes_on is None:
            return None
        if not goes_on[1]:
            return trip
        following = form_of(update, Frame(state))
        if following is None:
            return None
        value = following[1]
    return None


class _Loop:
    """A loop whose counter is looked for through copies and fusions."""

    def __init__(self, loop: Instruction, graph: CallGraph) -> None:
        self._loop = loop
        self._graph = graph

    def count(self) -> int | None:
        body, condition = self._loop.called_computations
        start = self._start()
        if start is None or body.root.opcode != "tuple":
            return None
        fixed = self._fixed_elements(start)
        read = sorted(
            {
                x.tuple_index
                for x in condition.instructions
                if x.opcode == "get-tuple-element"
                and x.operands[0] is condition.parameters[0]
            }
        )
        for counter in read:
            if counter in fixed or counter >= len(start.operands):
                continue
            first = form_of(start.operands[counter], NO_STATE)
            if first is None:
                continue
            count = self._closed(counter, fixed, first[1])
            if count is None:
                count = _try_out(self._loop, counter, dict(fixed), first[1])
            if count is not None:
                return count
        return None

    def _start(self) -> Instruction | None:
        """The tuple of initial values, also when a caller makes it."""
        start = self._loop.operands[0]
        while start.opcode in ("parameter", "copy"):
            if start.opcode == "copy":
                start = start.operands[0]
                continue
            caller = self._graph.parent_call(start.computation)
            if caller is None or caller.opcode != "call":
                return None
            start = caller.operands[start.parameter_number]
        return start if start.opcode == "tuple" else None

    def _fixed_elements(self, start: Instruction) -> dict[int, Form]:
        """Elements that the loop hands on unchanged and whose value is known."""
        body = self._loop.while_body
        fixed = {}
        for i, x in enumerate(body.root.operands[: len(start.operands)]):
            if (
                x.opcode == "get-tuple-element"
                and x.operands[0] is body.parameters[0]
                and x.tuple_index == i
            ):
                form = form_of(start.operands[i], NO_STATE)
                if form is not None:
                    fixed[i] = form
        return fixed

    def _closed(
        self, counter: int, fixed: dict[int, Form], first: Number
    ) -> int | None:
        """The count by arithmetic."""
        body, condition = self._loop.called_computations
        update = body.root.operands[counter]
        frame = Frame({**fixed, counter: (1, 0)})
        stepped = form_of(update, frame)
        compared = comparison(condition.root, frame)
        if stepped is None or compared is None or stepped[0] != 1:
            return None
        direction, (a, b), (c, d) = compared
        numbers = (first, stepped[1], b, d)
        if not all(type(x) is int for x in numbers):
            return None
        start, step = int(first), int(stepped[1])
        difference = (a - c) * start + int(b) - int(d)
        count = count_trips(direction, difference, (a - c) * step)
        return count if _fits(update, start, step, count) else None


class _StrictLoop:
    """A loop as XLA's planner recognises it."""

    def __init__(self, loop: Instruction) -> None:
        self._loop = loop

    def count(self) -> int | None:
        body, condition = self._loop.called_computations
        counter = _only_element(condition.root, condition.parameters[0])
        if counter is None or body.root.opcode != "tuple":
            return None
        if counter >= len(body.root.operands):
            return None
        update = body.root.operands[counter]
        if _only_element(update, body.parameters[0]) != counter:
            return None
        start = self._loop.operands[0]
        if start.opcode != "tuple":
            return None
        first = start.operands[counter]
        if any(x.opcode != "constant" for x in first.operands):
            return None
        value = form_of(first, NO_STATE)
        if value is None:
            return None
        count = self._plain(counter, update, value[1])
        return _try_out(self._loop, counter, {}, value[1]) if count is None else count

    def _plain(self, counter: int, update: Instruction, first: Number) -> int | None:
        """`i += step` while `i` is below a bound, without fusions."""
        condition = self._loop.while_condition
        if update.opcode != "add" or condition.root.opcode != "compare":
            return None
        frame = Frame({counter: (1, 0)})
        stepped = form_of(update, frame)
        compared = comparison(condition.root, frame)
        if stepped is None or compared is None:
            return None
        direction, left, right = compared
        if left[0] == 0:
            direction = {"GT": "LT", "GE": "LE"}.get(direction, "")
            left, right = right, left
        if direction not in ("LT", "LE") or left != (1, 0) or right[0] != 0:
            return None
        numbers = (first, stepped[1], right[1])
        if stepped[0] != 1 or not all(type(x) is int for x in numbers):
            return None
        step = int(stepped[1])
        if step <= 0:
            return None
        count = count_trips(direction, int(first) - int(right[1]), step)
        return count if _fits(update, int(first), step, count) else None


def _only_element(x: Instruction, parameter: Instruction) -> int | None:
    """The one element of a loop's state that an operation reads beside constants."""
    found: int | None = None
    for operand in x.operands:
        if operand.opcode == "constant":
            continue
        if (
            operand.opcode != "get-tuple-element"
            or operand.operands[0] is not parameter
        ):
            return None
        if found is not None and operand.tuple_index != found:
            return None
        found = operand.tuple_index
    return found
