"""The greedy algorithm on problems without an IR."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import (
    CopyAllocation,
    MemorySpace,
    MirroredAllocation,
    ParentAllocation,
)
from msa.assignment.filters import (
    HloOperandFilter,
    HloPositionMatcher,
    MsaSortOrderOverride,
)
from msa.assignment.options import (
    CostAnalysisPicker,
    InstructionCountPicker,
    Options,
)
from msa.assignment.outcomes import Outcome, Served, Skip
from msa.assignment.problem import Problem
from msa.errors import OptionsError

IC = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
)


def a1_3() -> Sketch:
    """Two inputs, a chain of seven, and a last step that reads the second input."""
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    sketch.op("add", (sketch.chain("neg", 7, p0), p1))
    return sketch


def in_alternate(problem: Problem, result: AllocationResult) -> set[str]:
    return {
        problem.names[a.position.step]
        for a in result.allocations
        if a.is_alternate and a.kind == "pinned"
    }


def copies(problem: Problem, result: AllocationResult) -> list[tuple]:
    return [
        (
            problem.names[c.position.step],
            c.space.value,
            c.start_after,
            c.done_before,
            [problem.describe_use(u) for u in c.uses],
        )
        for c in result.allocations.copies()
    ]


def test_small_dag_without_copies_a1_2() -> None:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    add, sub = sketch.op("add", (p0, p1)), sketch.op("sub", (p0, p1))
    sketch.op("mul", (add, sub))
    problem = sketch.problem()
    result = run_greedy(problem, IC)
    assert in_alternate(problem, result) == {"add", "sub"}
    offsets = [
        a.chunk.offset
        for a in result.allocations
        if a.chunk is not None and a.kind == "pinned"
    ]
    assert len(set(offsets)) == 2


def test_prefetch_over_a_chain_a1_3() -> None:
    problem = a1_3().problem()
    result = run_greedy(problem, IC)
    assert in_alternate(problem, result) == {f"neg{i}" for i in range(7)}
    assert copies(problem, result) == [("p1", "alternate", 1, 9, ["add:1{}"])]


def test_no_prefetches_allowed_a1_8() -> None:
    problem = a1_3().problem()
    result = run_greedy(problem, IC.replace(max_outstanding_prefetches=0))
    assert copies(problem, result) == []
    decision = next(d for d in result.decisions if problem.names[d.use.step] == "add")
    assert decision.served in (Served.NO_COPY, Served.DEFAULT)


def contention() -> Sketch:
    """A value read early and late, with larger values in between."""
    sketch = Sketch(replace(SMALL, capacity=64))
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    tanh = sketch.op("tanh", (p0,))
    early = sketch.op("early", (p0, tanh))
    x = sketch.op("x0", (p1, early), 48)
    for number in range(1, 12):
        x = sketch.op(f"x{number}", (x,), 48)
    sketch.op("late", (x, tanh))
    return sketch


def test_evict_then_prefetch_a1_5() -> None:
    problem = contention().problem()
    options = IC.replace(
        buffer_interval_comparator=lambda x: (x.value not in (2, 3), -x.size, x.value)
    )
    result = run_greedy(problem, options)
    rows = [c for c in copies(problem, result) if c[0] == "tanh"]
    assert rows[0][1:4] == ("default", 2, 4)
    assert [r for r in rows if r[1] == "alternate"] == [
        ("tanh", "alternate", rows[1][2], 16, ["late:1{}"])
    ]
    copy = next(
        c
        for c in result.allocations.copies()
        if c.is_alternate and problem.names[c.position.step] == "tanh"
    )
    assert isinstance(copy.source, CopyAllocation)
    assert copy.source.space is MemorySpace.DEFAULT


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_outstanding_limits_a1_6(limit) -> None:
    sketch = contention()
    result = run_greedy(
        sketch.problem(),
        IC.replace(max_outstanding_prefetches=limit, max_outstanding_evictions=limit),
    )
    for space in MemorySpace:
        spans = [
            (c.start_after + 1, c.done_before)
            for c in result.allocations.copies()
            if c.space is space
        ]
        for start, _ in spans:
            assert sum(s <= start < e for s, e in spans) <= limit


def test_determinism_a1_12() -> None:
    def rows() -> list[tuple]:
        problem = contention().problem()
        return [
            (a.kind, a.position, a.start, a.end, a.chunk, tuple(a.uses))
            for a in run_greedy(problem, IC).allocations
        ]

    assert rows() == rows()


def test_values_read_at_once_are_not_copied_a1_14() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    c = sketch.op("c", (), opcode="constant")
    sketch.op("r", (p, c))
    problem = sketch.problem()
    values = [replace(v, is_constant=v.id == c) for v in problem.values]
    result = run_greedy(replace(problem, values=values), IC)
    assert all(not a.is_alternate for a in result.allocations)


def test_constants_far_from_use_are_prefetched_a1_13() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    c = sketch.op("c", (), opcode="constant")
    sketch.op("r", (sketch.chain("n", 6, p), c))
    problem = sketch.problem()
    values = [replace(v, is_constant=v.id == c) for v in problem.values]
    result = run_greedy(replace(problem, values=values), IC)
    assert [row[0] for row in copies(problem, result)] == ["c"]


def test_disallowed_use_reads_default_memory_a1_11() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    tanh = sketch.op("tanh", (p,))
    near = sketch.op("near", (tanh,))
    far = sketch.chain("n", 9, near)
    sketch.op("last", (far, tanh))
    problem = sketch.problem()
    values = list(problem.values)
    values[tanh] = replace(values[tanh], banned_uses=frozenset({0}))
    result = run_greedy(replace(problem, values=values), IC)
    served = {problem.describe_use(u): a for a in result.allocations for u in a.uses}
    assert served["near:0{}"].space is MemorySpace.DEFAULT
    assert served["last:1{}"].is_alternate


def test_in_place_operations_share_an_offset_a5_1() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    neg = sketch.op("neg", (p,))
    update = sketch.op("update", (neg, p), in_place=True)
    sketch.op("add", (update, p))
    problem = sketch.problem()
    result = run_greedy(problem, IC)
    chunks = {
        problem.names[a.position.step]: a.chunk
        for a in result.allocations
        if a.is_alternate
    }
    assert chunks["neg"] == chunks["update"]


def test_memory_bound_values_first_a6_2() -> None:
    sketch = Sketch(replace(SMALL, capacity=96), seconds=0.0)
    a = sketch.op("neg0", (), 48)
    t = sketch.op("tanh0", (), 48)
    for number in range(1, 4):
        a = sketch.op(f"neg{number}", (a,), 48)
        t = sketch.op(f"tanh{number}", (t,), 48)
    sketch.op("sum", (a, t), 48)
    problem = sketch.problem()
    seconds = [9.0 if n.startswith("tanh") else 0.0 for n in problem.names]
    problem = replace(problem, compute_seconds=seconds)
    options = Options(enable_cross_program_prefetch=False)
    placed = in_alternate(problem, run_greedy(problem, options))
    assert {n for n in placed if n.startswith("neg")}
    first = Options(
        enable_cross_program_prefetch=False,
        msa_sort_order_overrides=(
            MsaSortOrderOverride(
                HloPositionMatcher(
                    hlo_use_filter=HloOperandFilter(instruction_name_regex="tanh.*")
                ),
                assign_first=True,
            ),
        ),
    )
    assert {"tanh0", "tanh1"} <= in_alternate(problem, run_greedy(problem, first))


def test_cross_program_prefetch_b3_1() -> None:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0", 256), sketch.parameter("p1", 64)
    sketch.op("dot", (p0, p1), 64)
    sketch.candidates = [p1]
    problem = sketch.problem()
    result = run_greedy(problem, IC.replace(enable_cross_program_prefetch=True))
    (fetched,) = result.cross_program_prefetches
    assert (fetched.value, fetched.offset, fetched.freed) == (p1, 0, False)
    assert copies(problem, result) == [("p1", "alternate", -1, 2, ["dot:1{}"])]


@pytest.mark.parametrize("limit", [0, 1, 2, -1])
def test_number_of_cross_program_prefetches_b3_2(limit) -> None:
    sketch = Sketch(replace(SMALL, capacity=256))
    inputs = [sketch.parameter(f"p{i}", 64) for i in range(4)]
    for number, p in enumerate(inputs):
        sketch.op(f"dot{number}", (p,), 8)
    sketch.candidates = inputs[1:]
    result = run_greedy(
        sketch.problem(),
        IC.replace(
            enable_cross_program_prefetch=True, max_cross_program_prefetches=limit
        ),
    )
    count = 3 if limit < 0 else limit
    fetched = [f.value for f in result.cross_program_prefetches]
    assert fetched == inputs[1 : 1 + count]


def test_cross_program_prefetch_is_freed_and_fetched_again_b3_11() -> None:
    sketch = Sketch(replace(SMALL, capacity=512))
    p0, p1 = sketch.parameter("p0", 256), sketch.parameter("p1", 256)
    dot = sketch.op("dot", (p0, p1), 256)
    sketch.chain("neg", 9, dot, 256)
    sketch.candidates = [p1]
    problem = sketch.problem()
    options = IC.replace(
        enable_cross_program_prefetch=True,
        prefetch_interval_picker=InstructionCountPicker(2, 5),
    )
    result = run_greedy(problem, options)
    assert [f.freed for f in result.cross_program_prefetches] == [True]
    ahead, again = (
        c for c in result.allocations.copies() if c.cross_program_index == 0
    )
    assert (ahead.start_after, ahead.end) == (-1, 2)
    assert again.uses == []
    assert again.done_before == problem.end
    assert again.chunk == ahead.chunk
    assert again.aliased_offset is ahead.aliased_offset
    kept = run_greedy(
        problem, options.replace(enable_cross_program_prefetch_freeing=False)
    )
    assert [f.freed for f in kept.cross_program_prefetches] == [False]


def test_autotuning_config_must_be_a_permutation() -> None:
    problem = a1_3().problem()
    count = len(problem.values)
    reverse = tuple(reversed(range(count)))
    run_greedy(problem, IC.replace(autotuning_config=reverse))
    with pytest.raises(OptionsError, match="autotuning_config"):
        run_greedy(problem, IC.replace(autotuning_config=(0, 1)))


def test_decisions_say_why() -> None:
    problem = replace(a1_3().problem(), machine=replace(SMALL, capacity=16))
    result = run_greedy(problem, IC)
    assert result.heap_bytes == 0
    assert {d.skipped for d in result.buffer_decisions} == {Skip.TOO_LARGE}
    problem = a1_3().problem()
    result = run_greedy(
        problem, IC.replace(prefetch_interval_picker=InstructionCountPicker(0, 0))
    )
    served = {d.served for d in result.decisions}
    assert served == {Served.DEFAULT}
    assert any(Outcome.LIVE_RANGE_TOO_LONG in d.failures for d in result.decisions)


def test_nothing_for_nothing() -> None:
    sketch = Sketch()
    sketch.parameter("p")
    problem = sketch.problem()
    result = run_greedy(problem, IC)
    assert [a for a in result.allocations if a.is_alternate] == []


# -- properties ------------------------------------------------------------------


@st.composite
def sketches(draw) -> Problem:
    capacity = draw(st.sampled_from([40, 64, 128, 300]))
    sketch = Sketch(
        replace(SMALL, capacity=capacity, alignment=draw(st.sampled_from([1, 8])))
    )
    for number in range(draw(st.integers(1, 3))):
        sketch.parameter(f"p{number}", draw(st.integers(1, 60)))
    dead: set[int] = set()
    for number in range(draw(st.integers(1, 25))):
        alive = [s for s in range(len(sketch.opcodes)) if s not in dead]
        operands = draw(st.lists(st.sampled_from(alive), max_size=3))
        in_place = (
            bool(operands)
            and draw(st.booleans())
            and operands[0] not in sketch.parameters
            and operands.count(operands[0]) == 1
        )
        size = draw(st.integers(1, 60))
        if in_place:
            size = sketch.sizes[operands[0]]
            dead.add(operands[0])
        sketch.op(f"op{number}", tuple(operands), size, in_place=in_place)
    sketch.candidates = draw(st.sampled_from([[], [0]]))
    return replace(
        sketch.problem(),
        compute_seconds=[
            float(draw(st.integers(0, 3))) for _ in range(len(sketch.opcodes))
        ],
    )


option_sets = st.builds(
    lambda picker, spatial, retries, limit, fifo, faithful: Options(
        prefetch_interval_picker=picker,
        buffer_interval_comparator="spatial" if spatial else "memory_boundedness",
        max_retries=retries,
        max_outstanding_prefetches=limit,
        max_outstanding_evictions=limit,
        enforce_prefetch_fifo_order=fifo,
        faithful=faithful,
    ),
    st.sampled_from(
        [
            InstructionCountPicker(1, 6),
            InstructionCountPicker(2, 100),
            CostAnalysisPicker(),
            CostAnalysisPicker(0.1, 0.5, 50.0),
        ]
    ),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([-1, 1, 2]),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(sketches(), option_sets)
def test_plans_are_sound(problem: Problem, options: Options) -> None:
    result = run_greedy(problem, options)
    check_rectangles(problem, result)
    check_uses(problem, result)
    check_copies(result)


def check_rectangles(problem: Problem, result: AllocationResult) -> None:
    machine = problem.machine
    placed = [
        a
        for a in result.allocations
        if a.is_alternate and not isinstance(a, MirroredAllocation)
    ]
    for a in placed:
        assert a.chunk is not None
        assert a.chunk.offset % machine.alignment == 0
        assert a.chunk.end <= machine.capacity
        assert a.aliased_offset is not None
        assert a.aliased_offset.offset == a.chunk.offset
    for i, a in enumerate(placed):
        for b in placed[:i]:
            # An allocation's last step may be another's first.
            if a.start < b.end and b.start < a.end:
                assert a.chunk is not None
                assert b.chunk is not None
                assert not a.chunk.overlaps(b.chunk)


def check_uses(problem: Problem, result: AllocationResult) -> None:
    served: dict[tuple, int] = {}
    allocated = {a.value for a in result.allocations}
    for a in result.allocations:
        for use in a.uses:
            served[a.value, use] = served.get((a.value, use), 0) + 1
            assert a.available <= use.step <= a.end
    for value in problem.values:
        if value.id in allocated:
            for use in value.uses:
                assert served.get((value.id, use), 0) == 1


def check_copies(result: AllocationResult) -> None:
    for copy in result.allocations.copies():
        assert copy.start_after < copy.done_before
        assert copy.source.space is not copy.space
        assert copy.source.available <= max(copy.start_after, 0) or (
            copy.start_after < 0
        )
        assert copy.source.end >= copy.done_before or not copy.source.is_alternate
        assert not isinstance(copy.source, ParentAllocation)
