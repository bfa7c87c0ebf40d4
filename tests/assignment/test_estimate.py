"""Estimates of results, idle bandwidth, and what room and prefetches are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import run_greedy
from msa.assignment.allocation import (
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
    Position,
    Use,
)
from msa.assignment.costs import CostModel
from msa.assignment.estimate import Estimator
from msa.assignment.ledgers.idle import IdleBandwidth
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.problem import CrossProgramCandidate, Problem, Region
from msa.heap.chunk import Chunk

ALTERNATE, DEFAULT = MemorySpace.ALTERNATE, MemorySpace.DEFAULT


def chain(seconds: float = 0.0) -> Problem:
    """p; a = f(p); b = f(a); c = f(b): 40 bytes each, 100 B/s and 1000 B/s."""
    sketch = Sketch(replace(SMALL), seconds=seconds)
    p = sketch.parameter("p", 40)
    sketch.chain("n", 3, p, 40)
    return sketch.problem()


def pinned(step: int, uses: list[Use]) -> PinnedAllocation:
    return PinnedAllocation(
        value=step,
        position=Position(step),
        space=ALTERNATE,
        chunk=Chunk(0, 40),
        start=step,
        end=step + 1,
        uses=uses,
    )


def fetched(start_after: int, done_before: int) -> CopyAllocation:
    source = PinnedAllocation(
        value=0, position=Position(0), space=DEFAULT, chunk=None, start=0, end=4
    )
    return CopyAllocation(
        value=0,
        position=Position(0),
        space=ALTERNATE,
        chunk=Chunk(0, 40),
        start=start_after + 1,
        end=done_before,
        uses=[Use(done_before, 0)],
        source=source,
        start_after=start_after,
        done_before=done_before,
    )


def test_nothing_placed() -> None:
    assert Estimator(chain()).seconds([]) == pytest.approx(3 * 0.8)
    assert Estimator(chain(2.0)).seconds([]) == pytest.approx(4 * 2.0)


def test_accesses_in_alternate_memory() -> None:
    # n0 is written and read there: two accesses of 40 bytes at 1000 B/s.
    result = Estimator(chain()).seconds([pinned(1, [Use(2, 0)])])
    assert result == pytest.approx(2.4 - 2 * 0.4 + 2 * 0.04)


def test_a_copy_that_nothing_hides_stalls() -> None:
    run = Estimator(chain()).run([fetched(0, 1)])
    # 0.4 s of copy, then n0 reads 40 bytes fast.
    assert run.stall == pytest.approx(0.4)
    assert run.seconds == pytest.approx(2.4 - 0.4 + 0.04 + 0.4)


def test_a_copy_behind_arithmetic_is_free() -> None:
    problem = chain()
    problem = replace(problem, compute_seconds=[0.0, 5.0, 0.0, 0.0])
    values = list(problem.values)
    values[0] = replace(values[0], uses=(Use(3, 0),), use_bytes=(40.0,))
    run = Estimator(replace(problem, values=values)).run([fetched(0, 3)])
    assert run.stall == 0.0
    assert run.seconds == pytest.approx(5.0 + 0.8 + 0.44)


def test_the_end_of_a_copy_right_after_its_start() -> None:
    # Between steps, ends come first; this end needs the start of the same gap.
    run = Estimator(chain()).run([fetched(1, 2)])
    assert run.stall == pytest.approx(0.4)


def test_loops_run_as_often_as_they_trip() -> None:
    problem = replace(
        chain(),
        opcodes=["parameter", "negate", "negate", "while"],
        total_bytes=[0.0, 80.0, 80.0, 80.0],
        region_of=[0, 1, 2, 0],
        regions=[
            Region("main", "entry", -1, 0, 4, 3, (0,)),
            Region("cond", "condition", 3, 1, 2, 1, (1,), 7.0),
            Region("body", "body", 3, 2, 3, 2, (2,), 7.0),
        ],
        called={3: (2, 1)},
    )
    # Condition and body take 0.8 s a trip; the loop itself takes none.
    assert Estimator(problem).seconds([]) == pytest.approx(7 * 1.6)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=600),
    st.lists(
        st.tuples(st.floats(0, 0.99), st.floats(0, 40), st.floats(0, 40)), max_size=8
    ),
    st.floats(0, 0.99),
    st.floats(0, 0.99),
)
def test_idle_bandwidth_agrees_with_sums(seconds, placed, a, b) -> None:
    sketch = Sketch()
    sketch.chain("n", len(seconds) - 1, sketch.parameter("p", 40), 40)
    problem = replace(sketch.problem(), compute_seconds=[float(x) for x in seconds])
    costs = CostModel(problem, Options())
    idle = IdleBandwidth(costs)
    count = problem.end
    fast = np.zeros((count, 2))
    for where, read, written in placed:
        step = int(where * count)
        if fast[step].any() or step == 0:
            continue
        idle.place(step, read, written)
        fast[step] = read, written
    expected = [
        max(
            0.0,
            max(seconds[i], (80 - sum(fast[i])) / 100 + sum(fast[i]) / 1000)
            - (80 - sum(fast[i])) / 100,
        )
        if i
        else float(seconds[0])
        for i in range(count)
    ]
    start, end = sorted((int(a * count), int(b * count)))
    assert idle.between(start, end) == pytest.approx(
        sum(expected[start + 1 : end]), abs=1e-4
    )


def late_read(compute: float) -> Problem:
    """An input that is read by the last of five steps."""
    sketch = Sketch()
    p, q = sketch.parameter("p", 40), sketch.parameter("q", 40)
    x = sketch.chain("n", 4, q, 40)
    sketch.op("last", (x, p), 40)
    problem = sketch.problem()
    seconds = [0.0, 0.0, *[compute] * 4, 0.0]
    return replace(problem, compute_seconds=seconds)


@pytest.mark.parametrize(
    ("faithful", "compute", "copied"),
    [
        # Memory-bound steps leave no bandwidth: 0.4 s of stall to save 0.36 s.
        (False, 0.0, False),
        (True, 0.0, True),
        (False, 2.0, True),
    ],
)
def test_prefetches_have_to_pay_unless_faithful(faithful, compute, copied) -> None:
    problem = late_read(compute)
    values = [
        v if problem.names[v.id] == "p" else replace(v, placeable=False)
        for v in problem.values
    ]
    problem = replace(problem, values=values)
    options = Options(
        faithful=faithful,
        enable_cross_program_prefetch=False,
        prefetch_interval_picker=CostAnalysisPicker(0.8, 1.5, 100.0),
    )
    result = run_greedy(problem, options)
    assert any(c.is_alternate for c in result.allocations.copies()) is copied
    estimator = Estimator(problem)
    if not faithful:
        assert estimator.seconds(result.allocations) <= estimator.seconds([]) + 1e-9


@pytest.mark.parametrize(
    ("faithful", "early", "fetched_ahead"),
    [(False, True, False), (True, True, True), (False, False, True)],
)
def test_inputs_fetched_ahead_have_to_pay(faithful, early, fetched_ahead) -> None:
    problem = late_read(2.0)
    values = list(problem.values)
    if early:  # read at once: 0.4 s of waiting to save 0.36 s
        values[0] = replace(values[0], uses=(Use(2, 1),), use_bytes=(40.0,))
        seconds = [0.0] * problem.end
        problem = replace(problem, values=values, compute_seconds=seconds)
    candidate = CrossProgramCandidate(0, values[0].uses)
    problem = replace(problem, cross_program=[candidate])
    result = run_greedy(problem, Options(faithful=faithful))
    assert bool(result.cross_program_prefetches) is fetched_ahead
