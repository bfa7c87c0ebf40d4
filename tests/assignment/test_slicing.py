"""Prefetches in slices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL, Sketch
from assignment.test_greedy import check_uses, sketches
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import (
    CopyAllocation,
    SliceBounds,
    SlicedCopyAllocation,
)
from msa.assignment.options import (
    CostAnalysisPicker,
    InstructionCountPicker,
    Options,
    SlicedPrefetchOptions,
)
from msa.assignment.problem import Problem, Region
from msa.assignment.slicing.proposals import SliceProposal, cut_evenly
from msa.assignment.slicing.start_times import pick_start_times
from msa.hlo import parse_shape

# -- start times (B4) -----------------------------------------------------------------


def elapsed_of(seconds: list[float]):
    def elapsed(start: int, end: int) -> float:
        return sum(seconds[max(start + 1, 0) : end])

    return elapsed


@pytest.mark.parametrize(
    ("seconds", "start", "end", "expected"),
    [
        ([1, 1, 1], -1, 3, [-1, 0]),
        ([10, 1, 1], -1, 3, [-1, -1]),
        ([1, 1], -1, 2, [-1, 0]),
        ([1, 0, 0, 0, 1], -1, 5, [-1, 0]),
        ([1, 0, 1, 0, 1, 0, 1], -1, 7, [-1, 2]),
        ([1, 0, 1, 0, 1, 0, 1], 1, 7, [1, 2]),
        ([1] * 12, 5, 10, [5, 7]),
    ],
    ids=lambda x: f"B4-{x}",
)
def test_start_times(seconds, start, end, expected) -> None:
    picked = pick_start_times(2, start, end, elapsed_of(seconds), lambda a, b: True)
    assert picked == expected


def test_slices_start_in_the_region_of_the_first() -> None:
    picked = pick_start_times(
        2, 0, 10, elapsed_of([1] * 10), lambda a, b: b < 3 or b > 7
    )
    assert picked == [0, 2]


# -- proposals -------------------------------------------------------------------------


def bounds(*pairs: tuple[int, int]) -> tuple[SliceBounds, ...]:
    return tuple(SliceBounds(*pair) for pair in pairs)


def test_cut_along_the_outermost_dimension_in_memory_b4_4() -> None:
    options = SlicedPrefetchOptions(max_slices=3)
    cuts = cut_evenly(parse_shape("f32[8,8]{1,0}"), options)
    assert [(c.bounds, c.size) for c in cuts] == [
        (bounds((0, 3), (0, 8)), 96),
        (bounds((3, 6), (0, 8)), 96),
        (bounds((6, 8), (0, 8)), 64),
    ]
    column = cut_evenly(parse_shape("f32[8,8]{0,1}"), options)
    assert column[0].bounds == bounds((0, 8), (0, 3))
    ones = cut_evenly(parse_shape("f32[1,8]{1,0}"), options)
    assert ones[0].bounds == bounds((0, 1), (0, 3))


def test_cut_into_bytes_b4_9() -> None:
    options = SlicedPrefetchOptions(max_slices=100000, preferred_slice_size=128)
    sizes = [c.size for c in cut_evenly(parse_shape("f32[8,16]{1,0}"), options)]
    assert sizes == [128] * 4
    few = SlicedPrefetchOptions(max_slices=2, preferred_slice_size=128)
    assert [c.size for c in cut_evenly(parse_shape("f32[8,16]{1,0}"), few)] == [256] * 2


@pytest.mark.parametrize("text", ["f32[]", "f32[1,1]{1,0}", "f32[8,128]{1,0:T(8,128)}"])
def test_what_cannot_be_cut(text) -> None:
    assert cut_evenly(parse_shape(text), SlicedPrefetchOptions(max_slices=2)) is None


# -- plans -----------------------------------------------------------------------------


def halves(value, options) -> list[SliceProposal]:
    rows = value.size // 8
    half = rows // 2
    return [
        SliceProposal(bounds((0, half)), half * 8),
        SliceProposal(bounds((half, rows)), (rows - half) * 8),
    ]


SLICED = Options(
    prefetch_interval_picker=InstructionCountPicker(1, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
    sliced_prefetch_options=SlicedPrefetchOptions(max_slices=2, min_bytes=8),
    propose_slice_fn=halves,
)


def b4_1(capacity: int = 1024) -> Problem:
    sketch = Sketch(replace(SMALL, capacity=capacity))
    p0, p1 = sketch.parameter("p0", 256), sketch.parameter("p1", 256)
    a = sketch.op("a", (p0,), 256)
    b = sketch.op("b", (a,), 256)
    c = sketch.op("c", (b,), 256)
    sketch.op("r", (c, p1), 256)
    return sketch.problem()


def sliced(result: AllocationResult) -> list[SlicedCopyAllocation]:
    return [a for a in result.allocations if isinstance(a, SlicedCopyAllocation)]


def test_two_slices_b4_1() -> None:
    problem = b4_1()
    (made,) = sliced(run_greedy(problem, SLICED))
    assert problem.names[made.position.step] == "p1"
    assert [problem.describe_use(u) for u in made.uses] == ["r:1{}"]
    assert made.done_before == 5
    first, second = made.slices
    assert first.start_after == 1
    assert second.start_after > first.start_after
    chunks = sorted(s.chunk for s in made.slices)
    assert chunks[0].end == chunks[1].offset
    assert made.chunk is not None
    assert (made.chunk.offset, made.chunk.end) == (chunks[0].offset, chunks[1].end)


@pytest.mark.parametrize(
    "options",
    [
        SlicedPrefetchOptions(max_slices=0),
        SlicedPrefetchOptions(max_slices=2, min_bytes=1 << 20),
    ],
    ids=["B4.5-off", "B4.5-small"],
)
def test_no_slices(options) -> None:
    result = run_greedy(b4_1(), SLICED.replace(sliced_prefetch_options=options))
    assert sliced(result) == []
    assert any(c.is_alternate for c in result.allocations.copies())


@pytest.mark.parametrize(
    "proposal", [None, [], [SliceProposal(bounds((0, 32)), 256)]], ids=str
)
def test_no_proposal_b4_5(proposal) -> None:
    options = SLICED.replace(propose_slice_fn=lambda value, options: proposal)
    result = run_greedy(b4_1(), options)
    assert sliced(result) == []
    assert any(c.is_alternate for c in result.allocations.copies())


def test_slices_off_alignment_can_be_refused() -> None:
    odd = [SliceProposal(bounds((0, 1)), 100), SliceProposal(bounds((1, 2)), 156)]
    refuse = SlicedPrefetchOptions(
        max_slices=2, min_bytes=8, fail_on_non_alignment_boundary_slice_proposal=True
    )
    options = SLICED.replace(propose_slice_fn=lambda value, options: odd)
    assert sliced(run_greedy(b4_1(), options))
    result = run_greedy(b4_1(), options.replace(sliced_prefetch_options=refuse))
    assert sliced(result) == []


def test_slices_fit_where_the_whole_does_not() -> None:
    """The second half of the room is free only later: slices can start early."""
    sketch = Sketch(replace(SMALL, capacity=256))
    p0, p1 = sketch.parameter("p0", 8), sketch.parameter("p1", 256)
    a = sketch.op("a", (p0,), 128)
    b = sketch.op("b", (a,), 8)
    for number in range(4):
        b = sketch.op(f"c{number}", (b,), 8)
    sketch.op("r", (b, p1), 8)
    problem = sketch.problem()
    values = [
        v if problem.names[v.id] in ("a", "p1") else replace(v, placeable=False)
        for v in problem.values
    ]
    problem = replace(problem, values=values)
    options = SLICED.replace(
        prefetch_interval_picker=InstructionCountPicker(1, 10),
        buffer_interval_comparator=lambda x: (problem.names[x.value] != "a", x.value),
    )
    (made,) = sliced(run_greedy(problem, options))
    starts = [s.start_after for s in made.slices]
    assert starts[0] < 3 <= starts[1]


def test_start_times_by_cost_b4_6() -> None:
    problem = replace(b4_1(), compute_seconds=[0.0, 0.0, 30.0, 30.0, 30.0, 0.0])
    options = SLICED.replace(
        cost_analysis=True,
        prefetch_interval_picker=CostAnalysisPicker(0.8, 1.5, 100.0),
        buffer_interval_comparator="memory_boundedness",
        faithful=True,
    )
    (made,) = sliced(run_greedy(problem, options))
    # Not at the earliest: 2.56 s of copy want 3.84 s of overlap.
    assert made.slices[0].start_after >= 2


def test_a_whole_copy_if_slices_would_start_together_b4_8() -> None:
    sketch = Sketch(replace(SMALL, capacity=1024))
    p0 = sketch.parameter("p0", 8)
    p1 = sketch.parameter("p1", 256)
    w = sketch.op("w", (p0,), 8)
    sketch.op("r", (w, p1), 8)
    problem = sketch.problem()
    result = run_greedy(problem, SLICED)
    assert sliced(result) == []
    made = [a for a in result.allocations if isinstance(a, CopyAllocation)]
    assert [c.start_after for c in made if c.value == p1] == [1]


def test_no_slice_starts_inside_a_loop() -> None:
    problem = b4_1()
    problem = replace(
        problem,
        opcodes=["parameter", "parameter", "negate", "negate", "while", "add"],
        region_of=[0, 0, 1, 2, 0, 0],
        regions=[
            problem.regions[0],
            Region("cond", "condition", 4, 2, 3, 2, (2,)),
            Region("body", "body", 4, 3, 4, 3, (3,)),
        ],
        called={4: (2, 1)},
        values=[replace(v, placeable=v.id == 1) for v in problem.values],
    )
    for made in sliced(run_greedy(problem, SLICED)):
        assert all(s.start_after not in (2, 3) for s in made.slices)


@settings(max_examples=80, deadline=None)
@given(sketches(), st.booleans(), st.booleans(), st.integers(2, 4))
def test_plans_with_slices_are_sound(problem, faithful, repack, count) -> None:
    def pieces(value, options):
        cuts = [value.size * i // count for i in range(count + 1)]
        return [
            SliceProposal(bounds((a, b)), b - a) for a, b in pairwise(cuts) if a < b
        ]

    options = Options(
        faithful=faithful,
        prefetch_interval_picker=InstructionCountPicker(1, 20),
        max_repacks=5 if repack else 0,
        sliced_prefetch_options=SlicedPrefetchOptions(
            max_slices=count, min_bytes=2, all_slice_time_permutations_threshold=2
        ),
        propose_slice_fn=pieces,
    )
    result = run_greedy(problem, options)
    check_uses(problem, result)
    rectangles = []
    for a in result.allocations:
        if isinstance(a, SlicedCopyAllocation):
            assert sum(s.chunk.size for s in a.slices) == problem.values[a.value].size
            rectangles += [(s.start_after + 1, a.end, s.chunk, a) for s in a.slices]
        elif a.chunk is not None:
            rectangles.append((a.start, a.end, a.chunk, a))
    for i, (start, end, chunk, one) in enumerate(rectangles):
        assert chunk.end <= problem.machine.capacity
        for other_start, other_end, other, two in rectangles[:i]:
            if one is not two and start < other_end and other_start < end:
                assert not chunk.overlaps(other)
