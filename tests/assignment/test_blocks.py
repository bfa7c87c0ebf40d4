"""Block prefetch."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from assignment.sketch import SMALL, Sketch
from assignment.test_greedy import check_rectangles
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import ScopedAllocation
from msa.assignment.options import InstructionCountPicker, Options
from msa.assignment.problem import Problem, SyncMove
from msa.errors import OptionsError

NAMES = [f"p{i}" for i in range(6)]
BLOCKS = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
    max_outstanding_prefetches=0,
    max_outstanding_block_prefetches=10,
    reserved_bytes_for_block_prefetches=24,
    block_prefetched_positions=tuple((name, ()) for name in NAMES),
)


def six_inputs(capacity: int = 24, reads: int = 1) -> Problem:
    """Six inputs, each read by every third operation."""
    sketch = Sketch(replace(SMALL, capacity=capacity))
    inputs = [sketch.parameter(name) for name in NAMES]
    x = sketch.parameter("x", 8)
    for number, p in enumerate(inputs):
        x = sketch.op(f"a{number}", (x,), 1000)
        x = sketch.op(f"b{number}", (x,), 1000)
        for read in range(reads):
            x = sketch.op(f"add{number}.{read}", (x, p), 1000)
    return sketch.problem()


def blocks(problem: Problem, result: AllocationResult) -> dict[str, tuple]:
    return {
        problem.names[c.position.step]: (c.start_after, c.done_before, c.end)
        for c in result.allocations.copies()
        if c.is_alternate
    }


def test_a_region_that_is_too_small_b6_1() -> None:
    problem = six_inputs()
    options = BLOCKS.replace(reserved_bytes_for_block_prefetches=23)
    assert blocks(problem, run_greedy(problem, options)) == {}


def test_number_in_flight_b6_2() -> None:
    problem = six_inputs(96)
    options = BLOCKS.replace(
        reserved_bytes_for_block_prefetches=96, max_outstanding_block_prefetches=2
    )
    made = blocks(problem, run_greedy(problem, options))
    assert set(made) == set(NAMES)
    spans = list(made.values())
    for start, _, _ in spans:
        # A copy that ends before step d ends before one starts after step d - 1.
        assert sum(s <= start < d - 1 for s, d, _ in spans) <= 2


def test_one_after_another_b6_3() -> None:
    problem = six_inputs()
    result = run_greedy(problem, BLOCKS)
    made = blocks(problem, result)
    assert set(made) == set(NAMES)
    order = sorted(made.values())
    for (_, _, end), (start, _, _) in pairwise(order):
        assert start >= end
    check_rectangles(problem, result)


def test_double_buffer_b6_4() -> None:
    problem = six_inputs(48)
    options = BLOCKS.replace(reserved_bytes_for_block_prefetches=48)
    result = run_greedy(problem, options)
    assert set(blocks(problem, result)) == set(NAMES)
    check_rectangles(problem, result)


def test_above_scratch_b6_6() -> None:
    problem = replace(six_inputs(48), scratch_bytes={8: 24, 10: 8})
    result = run_greedy(problem, BLOCKS)
    made = [c for c in result.allocations.copies() if c.is_alternate]
    assert len(made) == 6
    assert {c.chunk.offset for c in made if c.chunk is not None} == {24}
    assert sum(isinstance(a, ScopedAllocation) for a in result.allocations) == 2


def test_what_reaches_the_output_is_not_fetched_b6_7() -> None:
    problem = six_inputs()
    values = [
        replace(v, live_out=True) if v.id == problem.names.index("p2") else v
        for v in problem.values
    ]
    made = blocks(problem, run_greedy(replace(problem, values=values), BLOCKS))
    assert set(made) == set(NAMES) - {"p2"}


def test_several_reads_one_fetch_b6_8() -> None:
    problem = six_inputs(reads=3)
    made = blocks(problem, run_greedy(problem, BLOCKS))
    for number, name in enumerate(NAMES):
        first = problem.names.index(f"add{number}.0")
        assert made[name][1] == first
        assert made[name][2] == first + 2


def test_slices_as_positions_b6_9() -> None:
    sketch = Sketch(replace(SMALL, capacity=24))
    inputs = [sketch.parameter(name, 240) for name in NAMES]
    x = sketch.parameter("x", 8)
    slices = []
    for number, p in enumerate(inputs):
        x = sketch.op(f"a{number}", (x,), 1000)
        x = sketch.op(f"b{number}", (x,), 1000)
        slices.append(sketch.op(f"s{number}", (p,), 24, opcode="slice"))
        x = sketch.op(f"add{number}", (x, slices[-1]), 1000)
    problem = replace(
        sketch.problem(), sync_moves={s: SyncMove("slice") for s in slices}
    )
    options = BLOCKS.replace(
        enable_sync_slice_replacement=True,
        block_prefetched_positions=tuple((f"s{i}", ()) for i in range(6)),
    )
    made = list(run_greedy(problem, options).allocations.copies())
    assert [c.replaces for c in made] == slices
    assert {c.source.position.step for c in made} == set(inputs)


def test_aliases_extend_the_stay_b6_5() -> None:
    sketch = Sketch(replace(SMALL, capacity=24))
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    x = sketch.parameter("x", 8)
    x = sketch.op("a", (x,), 1000)
    alias = sketch.op("alias", (p0,), 24, in_place=True)
    x = sketch.op("b", (x, p1), 1000)
    sketch.op("c", (x, alias), 1000)
    problem = sketch.problem()
    options = BLOCKS.replace(block_prefetched_positions=(("p0", ()), ("p1", ())))
    result = run_greedy(problem, options)
    assert set(blocks(problem, result)) == {"p0"}
    served = {problem.describe_use(u): a for a in result.allocations for u in a.uses}
    assert served["c:1{}"].is_alternate
    assert "b:1{}" not in served


def test_positions_must_exist_and_the_region_must_fit() -> None:
    problem = six_inputs()
    with pytest.raises(OptionsError, match="nobody"):
        run_greedy(
            problem, BLOCKS.replace(block_prefetched_positions=(("nobody", ()),))
        )
    with pytest.raises(OptionsError, match="exceed"):
        run_greedy(problem, BLOCKS.replace(reserved_bytes_for_block_prefetches=25))
