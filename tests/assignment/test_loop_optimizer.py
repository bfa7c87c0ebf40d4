"""The memory-bound loop optimizer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.sketch import Sketch
from msa.assignment.algorithm import run_greedy
from msa.assignment.allocation import CopyAllocation
from msa.assignment.costs import CostModel
from msa.assignment.loop_optimizer.detect import Loop, find_loops
from msa.assignment.loop_optimizer.heap import EvenOdd, LoopHeap
from msa.assignment.loop_optimizer.optimize import LoopOptimizer
from msa.assignment.loop_optimizer.values import ValueType
from msa.assignment.options import MemoryBoundLoopOptimizerOptions, Options
from msa.assignment.problem import Machine, Problem

MACHINE = Machine(80, 1, 32.0, 128.0, 128.0)
ON = MemoryBoundLoopOptimizerOptions(enabled=True, desired_copy_ratio=0.7)


def repeated(
    iterations: int = 6,
    *,
    capacity: int = 80,
    pinned: int = 0,
    extra: bool = False,
) -> Problem:
    """Five operations an iteration; the last reads an input of its own.

    With `pinned`, op1 reads an input of that size that all iterations share.
    """
    sketch = Sketch(replace(MACHINE, capacity=capacity), seconds=0.25)
    inputs = [sketch.parameter(f"param{i}", 16) for i in range(iterations)]
    shared = sketch.parameter("shared", pinned) if pinned else None
    before3, before4 = sketch.parameter("b3", 16), sketch.parameter("b4", 16)
    for number in range(iterations):
        a = sketch.op(f"op0.{number}", (before3, before4), 16)
        second = before4 if shared is None else shared
        b = sketch.op(f"op1.{number}", (second, a), 16)
        c = sketch.op(f"op2.{number}", (a, b), 16)
        before3 = sketch.op(f"op3.{number}", (b, c), 16)
        before4 = sketch.op(
            f"op4.{number}", (inputs[number], before3), 16, opcode="multiply"
        )
        if extra and number == iterations - 2:
            sketch.op("gte", (before4,), 8, opcode="get-tuple-element")
    sketch.op("last", (before3, before4), 16, opcode="subtract")
    return sketch.problem()


def optimizer(problem: Problem, options=ON, scratch=None) -> LoopOptimizer:
    loop = next(iter(find_loops(problem)))
    found = LoopOptimizer(
        problem,
        CostModel(problem, Options()),
        loop,
        problem.machine.capacity,
        problem.machine.alignment,
        options,
        scratch,
    )
    found.optimize()
    return found


def test_repetitions_are_found() -> None:
    problem = repeated()
    (loop,) = find_loops(problem)
    first = problem.names.index("op0.0")
    assert loop == Loop(first, first + 29, 5)
    assert loop.iterations == 6.0


def test_a_stray_rename_ends_the_loop_b14_5() -> None:
    problem = repeated(extra=True)
    loop = next(iter(find_loops(problem)))
    assert problem.names[loop.end] == "op4.4"


def test_nothing_repeats() -> None:
    sketch = Sketch()
    value = sketch.parameter("p")
    for number in range(12):
        value = sketch.op(f"op{number}", (value,), 8 + number)
    assert list(find_loops(sketch.problem())) == []


def test_kinds_of_values() -> None:
    found = optimizer(repeated(pinned=16))
    names = {
        found.problem.names[found.problem.values[v.value].position.step]: v.kind
        for v in found.values
    }
    assert names["op0.1"] is ValueType.TEMPORARY
    assert names["op4.1"] is ValueType.TEMPORARY
    assert names["param1"] is ValueType.PREFETCH
    assert names["shared"] is ValueType.PINNED


def test_every_use_is_covered_once_b14_1() -> None:
    found = optimizer(repeated())
    served = [u for v in found.values for a in v.allocations for u in a.uses]
    first = found.loop.start + found.loop.size
    wanted = {
        (step, number)
        for step in range(first, first + 5)
        for number in range(len(found.problem.operands[step]))
    }
    assert len(served) == len(wanted)
    assert {(u.step, u.operand) for u in served} == wanted


def test_a_prefetch_that_is_hidden_b14_1() -> None:
    found = optimizer(repeated())
    fetched = next(v for v in found.values if v.kind is ValueType.PREFETCH)
    assert isinstance(fetched.allocations[-1], CopyAllocation)
    # Five additions at 0.375 s each with everything in alternate memory.
    assert found.execution_seconds() == pytest.approx(1.875)
    assert found.heap.height() <= 80


def test_scratch_fills_the_memory_b14_3() -> None:
    problem = repeated(capacity=128)
    first = problem.names.index("op0.1")
    found = optimizer(problem, scratch={first + i: 128 for i in range(5)})
    assert all(not a.is_alternate for v in found.values for a in v.allocations)


def test_no_memory_b14_4() -> None:
    found = optimizer(repeated(capacity=1))
    assert all(not a.is_alternate for v in found.values for a in v.allocations)
    assert found.execution_seconds() == pytest.approx(5 * 1.5)


def test_a_pinned_value_b14_8() -> None:
    found = optimizer(repeated(capacity=256, pinned=16))
    shared = next(v for v in found.values if v.kind is ValueType.PINNED)
    assert shared.allocations[0].is_alternate
    assert shared.savings == 16 + 16 - 16


def test_a_pinned_value_that_does_not_pay_b14_9() -> None:
    problem = repeated(capacity=256, pinned=16)
    values = [
        replace(v, use_bytes=(1.0,) * len(v.uses))
        if problem.names[v.position.step] == "shared"
        else v
        for v in problem.values
    ]
    found = optimizer(replace(problem, values=values))
    shared = next(v for v in found.values if v.kind is ValueType.PINNED)
    assert shared.savings < 0
    assert all(not a.is_alternate for a in shared.allocations)


# -- heap --------------------------------------------------------------------------


def test_even_and_odd_iterations_may_differ() -> None:
    heap = LoopHeap(4, 16, 1)
    # Longer than an iteration: neighbours overlap, so they cannot lie alike.
    at = heap.allocate(-2, 3, 8)
    assert at == EvenOdd(0, 8)
    assert heap.remaining() == [8, 8, 0, 0]
    assert heap.allocate(0, 3, 1) is None
    heap.release(-2, 3, 8, EvenOdd(0, 8))
    assert heap.remaining() == [16] * 4
    assert heap.allocate_same(0, 3, 16) == 0
    assert heap.allocate_same(0, 4, 1) is None
    assert heap.allocate(0, 8, 1) is None


def test_preferred_offsets() -> None:
    heap = LoopHeap(4, 16, 1)
    assert heap.allocate(0, 1, 4, EvenOdd(8, 4)) == EvenOdd(8, 4)
    assert heap.allocate(1, 2, 4, EvenOdd(8, 0)) is None
    assert heap.height() == 12


# -- in the algorithm ------------------------------------------------------------------


@pytest.mark.parametrize("faithful", [False, True])
def test_prefetches_at_equal_places_b14_10(faithful) -> None:
    problem = repeated(8)
    options = Options(
        memory_bound_loop_optimizer_options=ON,
        enable_cross_program_prefetch=False,
        faithful=faithful,
    )
    result = run_greedy(problem, options)
    leads = {}
    for copy in result.allocations.copies():
        name = problem.names[copy.position.step]
        if name.startswith("param") and copy.is_alternate:
            leads[name] = copy.done_before - copy.start_after
    # All but the ends of the loop alike.
    assert len({leads[f"param{i}"] for i in range(2, 7) if f"param{i}" in leads}) == 1


def test_a_prefetch_that_is_waited_for_b14_2() -> None:
    found = optimizer(repeated(capacity=64))
    # Only one index is left to hide half a second of copy in 0.375 s.
    assert found.execution_seconds() == pytest.approx(2.0)
    assert found.heap.height() == 64


def three_prefetches() -> Problem:
    """Fifteen operations; the second reads two large inputs, the last a small one."""
    sketch = Sketch(replace(MACHINE, capacity=1024), seconds=0.25)
    iterations = 6
    large = [
        (sketch.parameter(f"a{i}", 128), sketch.parameter(f"b{i}", 128))
        for i in range(iterations)
    ]
    small = [sketch.parameter(f"c{i}", 16) for i in range(iterations)]
    value = sketch.parameter("start", 16)
    for number in range(iterations):
        for index in range(15):
            if index == 1:
                operands: tuple[int, ...] = (value, *large[number])
            elif index == 14:
                operands = (value, small[number])
            else:
                operands = (value, value)
            value = sketch.op(f"op{index}.{number}", operands, 16, opcode=f"f{index}")
    return sketch.problem()


def test_large_and_small_prefetches_share_the_bandwidth_b14_6() -> None:
    found = optimizer(
        three_prefetches(),
        MemoryBoundLoopOptimizerOptions(
            enabled=True,
            desired_copy_ratio=0.9,
            allow_unsatisfied_fully_pipelined_prefetch=True,
        ),
    )
    copies = {
        found.problem.names[found.problem.values[v.value].position.step][0]: a
        for v in found.values
        for a in v.allocations
        if isinstance(a, CopyAllocation)
    }
    # The small one is forced to start early; one large one overlaps its own previous
    # iteration. What the copies move in an iteration is what bounds it.
    assert (copies["c"].start_after, copies["c"].done_before) == (0, 14)
    assert copies["a"].done_before == copies["b"].done_before == 1
    assert copies["a"].start_after + 1 >= copies["a"].done_before
    assert found.execution_seconds() == pytest.approx((16 + 2 * 128) / 32)


def overlaps_itself(found: LoopOptimizer, copy: CopyAllocation) -> bool:
    """Whether its room is still held for one iteration when the next one's is taken."""
    size = found.loop.size
    begin = copy.start_after + 1
    if begin >= copy.done_before or begin == size:
        begin -= size  # it starts in the iteration before
    return copy.end - begin >= size


def test_one_large_prefetch_overlaps_its_previous_iteration_b14_6() -> None:
    options = MemoryBoundLoopOptimizerOptions(
        enabled=True,
        desired_copy_ratio=0.9,
        allow_unsatisfied_fully_pipelined_prefetch=True,
    )
    found = optimizer(three_prefetches(), options)
    overlapping = [
        v.size
        for v in found.values
        for a in v.allocations
        if isinstance(a, CopyAllocation) and overlaps_itself(found, a)
    ]
    assert overlapping == [128]


@pytest.mark.parametrize("ratio", [0.0, 0.9])
def test_no_copy_overlaps_its_own_previous_iteration_b14_7(ratio) -> None:
    found = optimizer(
        three_prefetches(),
        MemoryBoundLoopOptimizerOptions(enabled=True, desired_copy_ratio=ratio),
    )
    copies = [
        a for v in found.values for a in v.allocations if isinstance(a, CopyAllocation)
    ]
    assert copies
    assert not any(overlaps_itself(found, copy) for copy in copies)
    # Nothing rolls around, so the small one is not forced to start early (as in B14.6).
    (small,) = (c for c in copies if c.done_before == 14)
    assert small.start_after > 0
    # What is moved bounds it from below, and so does the arithmetic.
    moved = sum(v.size for v in found.values for a in v.allocations if a in copies)
    assert found.execution_seconds() >= max(moved / 32, 15 * 0.25) - 1e-9
    used = {u for v in found.values for u in v.uses}
    served = {
        (use.step, use.operand)
        for v in found.values
        for a in v.allocations
        for use in a.uses
    }
    assert len(used) <= len(served)
