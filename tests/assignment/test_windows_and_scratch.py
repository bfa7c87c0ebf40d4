"""Window prefetch, scoped memory, inefficient sites, overrides and copy factors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import (
    MemorySpace,
    ScopedAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.filters import (
    HloOperandFilter,
    HloPositionMatcher,
    PreferredPrefetchOverride,
)
from msa.assignment.options import InstructionCountPicker, Options
from msa.assignment.problem import Problem
from msa.errors import OptionsError
from msa.heap.chunk import Chunk

IC = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
)


# -- windows (B8) ----------------------------------------------------------------


def fused(near_scratch: int = 0) -> Problem:
    sketch = Sketch(replace(SMALL, capacity=128 << 20))
    inputs = [sketch.parameter(f"p{i}", 200 << 20) for i in range(3)]
    chain = sketch.chain("near", 6, inputs[0], 1000 << 20)
    sketch.op("fusion", (*inputs, chain), 200 << 20, opcode="fusion")
    problem = sketch.problem()
    scratch = {chain: near_scratch} if near_scratch else {}
    return replace(problem, scratch_bytes=scratch)


WINDOWS = IC.replace(
    prefetch_interval_picker=InstructionCountPicker(0, 10),
    enable_window_prefetch=True,
    window_prefetch_min_span_size=2,
    op_span_size_fn=lambda user, placed, operand: 32,
)


def windows(result: AllocationResult) -> list[WindowPrefetchedAllocation]:
    return [a for a in result.allocations if isinstance(a, WindowPrefetchedAllocation)]


def test_windows_of_operands_in_default_memory_b8() -> None:
    problem = fused()
    # Values that are too large are never looked at, so nothing is left in default.
    assert windows(run_greedy(problem, WINDOWS)) == []
    sketch = Sketch()
    inputs = [sketch.parameter(f"p{i}", 24) for i in range(3)]
    sketch.op("fusion", tuple(inputs), 24, opcode="fusion")
    problem = sketch.problem()
    options = WINDOWS.replace(max_outstanding_prefetches=0)
    made = windows(run_greedy(problem, options))
    assert [w.use.operand for w in made] == [0, 1, 2]
    assert {(w.start_after, w.done_before) for w in made} == {(2, 3)}
    offsets = sorted(w.chunk.offset for w in made if w.chunk is not None)
    assert offsets == [0, 32, 64]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"window_prefetch_max_operands": 2}, 2),
        ({"window_prefetch_min_span_size": 33}, 0),
        ({"is_window_prefetchable_instruction_fn": lambda user: False}, 0),
        ({"enable_window_prefetch": False}, 0),
        ({"max_size_in_bytes": 64}, 2),
    ],
)
def test_window_limits_b8(changes, count) -> None:
    sketch = Sketch()
    inputs = [sketch.parameter(f"p{i}", 24) for i in range(3)]
    sketch.op("fusion", tuple(inputs), 24, opcode="fusion")
    options = WINDOWS.replace(max_outstanding_prefetches=0, **changes)
    assert len(windows(run_greedy(sketch.problem(), options))) == count


def test_windows_copied_ahead_start_after_what_is_in_the_way_b8() -> None:
    sketch = Sketch(replace(SMALL, capacity=128))
    p = sketch.parameter("p", 120)
    q = sketch.parameter("q", 4)
    chain = sketch.chain("near", 6, q, 4)
    sketch.op("fusion", (p, chain), 24, opcode="fusion")
    problem = replace(sketch.problem(), scratch_bytes={4: 128})
    options = WINDOWS.replace(
        window_prefetch_mode="WindowPrefetch",
        is_use_allowed_in_alternate_mem_fn=None,
    )
    values = list(problem.values)
    values[p] = replace(values[p], banned_uses=frozenset({0}))
    problem = replace(problem, values=values)
    made = windows(run_greedy(problem, options))
    assert [(w.value, w.start_after, w.done_before) for w in made] == [(p, 4, 8)]


# -- scoped memory (B1) ----------------------------------------------------------


def test_scratch_limits_neighbours_b1_1() -> None:
    sketch = Sketch()
    a = sketch.op("a", (), 32)
    b = sketch.op("b", (a,), 32)
    c = sketch.op("c", (b,), 32)
    d = sketch.op("d", (c,), 32)
    e = sketch.op("e", (d,), 32)
    sketch.op("f", (e, b), 32)
    problem = replace(sketch.problem(), scratch_bytes={c: 100})
    result = run_greedy(problem, IC)
    placed = {
        problem.names[x.position.step]
        for x in result.allocations
        if x.is_alternate and x.kind == "pinned"
    }
    assert placed == {"a", "d", "e"}
    (scratch,) = (x for x in result.allocations if isinstance(x, ScopedAllocation))
    assert (scratch.chunk, scratch.start, scratch.end) == (Chunk(0, 100), c, c)


def test_scratch_is_limited_by_the_capacity() -> None:
    sketch = Sketch()
    sketch.chain("n", 3, sketch.parameter("p"))
    problem = replace(sketch.problem(), scratch_bytes={1: 10_000})
    result = run_greedy(problem, IC)
    (scratch,) = (a for a in result.allocations if isinstance(a, ScopedAllocation))
    assert scratch.chunk == Chunk(0, 128)


def test_post_module_scratch_a1_2() -> None:
    sketch = Sketch()
    sketch.chain("n", 2, sketch.parameter("p"))
    options = IC.replace(post_module_scoped_alternate_memory_size_in_bytes=10)
    scratch = [
        a
        for a in run_greedy(sketch.problem(), options).allocations
        if isinstance(a, ScopedAllocation)
    ]
    assert [(a.is_post_module, a.start, a.chunk) for a in scratch] == [
        (True, 3, Chunk(0, 10))
    ]


def test_scratch_grows_into_what_is_free_b1_9() -> None:
    sketch = Sketch(replace(SMALL, capacity=600, alignment=10))
    p = [sketch.parameter(f"p{i}", 256) for i in range(4)]
    v = sketch.op("v0", (p[0], p[1]), 1000)
    v = sketch.op("v1", (v, p[1]), 1000)
    v = sketch.op("v2", (v, p[1]), 1000)
    v = sketch.op("v3", (v, p[2]), 1000)
    v = sketch.op("v4", (v, p[3]), 1000)
    sketch.op("t", (v,), 1000)
    problem = replace(sketch.problem(), scratch_bytes=dict.fromkeys(range(10), 10))
    options = IC.replace(
        prefetch_interval_picker=InstructionCountPicker(2, 1000),
        buffer_interval_comparator=lambda x: (x.value not in p[2:], x.value),
        expanded_scoped_alternate_memory_mode="ENABLED",
    )
    result = run_greedy(problem, options)
    fetched = {
        problem.names[c.position.step]: c.chunk
        for c in result.allocations.copies()
        if c.is_alternate
    }
    assert fetched["p2"] == Chunk(10, 256)
    assert fetched["p3"] == Chunk(270, 256)
    scratch = sorted(
        (a.start, a.chunk)
        for a in result.allocations
        if isinstance(a, ScopedAllocation)
    )
    ranges = [(c.offset, c.end) for _, c in scratch if c is not None]
    # Free above p3 while both inputs are there, and all of it before and after.
    assert ranges == (
        [(0, 600)] * 3 + [(270, 600)] + [(530, 600)] * 4 + [(0, 270), (0, 600)]
    )


# -- inefficient sites (A5.2, A5.3, A3.17) ------------------------------------------


def updated(ratio: float) -> tuple[Problem, AllocationResult]:
    """An in-place operation that touches 8 of 24 bytes, input to output."""
    sketch = Sketch(replace(SMALL, capacity=128))
    p = sketch.parameter("p0")
    q = sketch.parameter("q", 8)
    chain = sketch.chain("n", 6, q, 8)
    fusion = sketch.op("fusion", (p, chain), 24, opcode="fusion")
    tail = sketch.chain("m", 6, chain, 8)
    sketch.op("out", (tail,), 8)
    problem = sketch.problem()
    values = list(problem.values)
    values[p] = replace(values[p], use_bytes=(0.0,), buffer=values[p].buffer)
    values[fusion] = replace(
        values[fusion],
        position_bytes=(8.0,),
        buffer=values[p].buffer,
        live=(fusion, problem.end),
        live_out=True,
    )
    buffers = [
        (p, fusion) if p in b else tuple(x for x in b if x != fusion)
        for b in problem.buffers
    ]
    buffers = [b for b in buffers if b]
    where = {m: i for i, b in enumerate(buffers) for m in b}
    values = [replace(x, buffer=where[x.id]) for x in values]
    seconds = [10.0] * problem.end
    problem = replace(problem, values=values, buffers=buffers, compute_seconds=seconds)
    problem.check()
    options = Options(
        enable_cross_program_prefetch=False,
        inefficient_use_to_copy_ratio=ratio,
        faithful=True,  # else copies for what is compute bound are not made at all
    )
    return problem, run_greedy(problem, options)


@pytest.mark.parametrize(("ratio", "copied"), [(0.0, True), (0.5, False)])
def test_copies_that_do_not_pay_a5_2_a5_3(ratio, copied) -> None:
    problem, result = updated(ratio)
    served = {problem.describe_use(u): a for a in result.allocations for u in a.uses}
    expected = MemorySpace.ALTERNATE if copied else MemorySpace.DEFAULT
    assert served["fusion:0{}"].space is expected


def test_a_hook_that_flags_the_same_site_forever_ends_a3_17() -> None:
    sketch = Sketch()
    sketch.chain("n", 6, sketch.parameter("p"))
    problem = sketch.problem()
    options = IC.replace(get_inefficient_allocation_sites_fn=lambda places: places)
    result = run_greedy(problem, options)
    assert not any(a.kind == "pinned" and a.is_alternate for a in result.allocations)


# -- preferred prefetch overrides (A7) -----------------------------------------------


def a7() -> Problem:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    sketch.op("add", (sketch.chain("neg", 7, p0), p1))
    return sketch.problem()


SIZE_24 = HloOperandFilter(size_gte=24, size_lte=24)
ADD_1 = HloOperandFilter(instruction_name_regex="add", operand_number=1)


def named(name: str) -> HloPositionMatcher:
    return HloPositionMatcher(instruction_name_regex=name)


HALF = PreferredPrefetchOverride(SIZE_24, prefetch_eagerness=0.5)
AFTER_2 = PreferredPrefetchOverride(ADD_1, after_instruction=named("neg1"))


@pytest.mark.parametrize(
    ("overrides", "start_after"),
    [
        pytest.param((HALF,), 5, id="A7.1"),
        pytest.param(
            (PreferredPrefetchOverride(ADD_1, before_instruction=named("neg3")),),
            4,
            id="A7.2",
        ),
        pytest.param((AFTER_2,), 3, id="A7.3"),
        pytest.param(
            (PreferredPrefetchOverride(ADD_1, after_instruction=named("neg5")),),
            None,
            id="A7.4",
        ),
        pytest.param((HALF, AFTER_2), 5, id="A7.5"),
        pytest.param((AFTER_2, HALF), 3, id="A7.6"),
        pytest.param(
            (
                PreferredPrefetchOverride(
                    HloOperandFilter(size_gte=25, size_lte=24), prefetch_eagerness=0.5
                ),
            ),
            1,
            id="A7.7",
        ),
    ],
)
def test_preferred_prefetch_overrides(overrides, start_after) -> None:
    problem = a7()
    result = run_greedy(problem, IC.replace(preferred_prefetch_overrides=overrides))
    starts = [
        c.start_after
        for c in result.allocations.copies()
        if problem.names[c.position.step] == "p1"
    ]
    assert starts == ([] if start_after is None else [start_after])


def test_an_anchor_that_does_not_exist() -> None:
    override = PreferredPrefetchOverride(ADD_1, after_instruction=named("nobody"))
    with pytest.raises(OptionsError, match="nobody"):
        run_greedy(a7(), IC.replace(preferred_prefetch_overrides=(override,)))


# -- bandwidth factors (A6.9) --------------------------------------------------------


@pytest.mark.parametrize(("factor", "copied"), [(0.0, False), (1.0, True)])
def test_copies_under_an_asynchronous_operation_a6_9(factor, copied) -> None:
    problem = replace(a7(), copy_factors={1: (factor, 9)})
    result = run_greedy(problem, Options(enable_cross_program_prefetch=False))
    starts = [
        c for c in result.allocations.copies() if problem.names[c.position.step] == "p1"
    ]
    assert bool(starts) is copied
