"""Pickers: worked enumerations, and walks over steps as oracles of the bisections."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL, Sketch
from msa.assignment.allocation import Use
from msa.assignment.costs import CostModel, single
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.pickers.cost_analysis import CostAnalysisPrefetchIntervalPicker
from msa.assignment.pickers.instruction_count import (
    InstructionCountPrefetchIntervalPicker,
)
from msa.assignment.problem import Problem, Region


class FakeCosts(CostModel):
    """One second per step, half of it with a fast operand; copies take three."""

    copy = 3.0
    seconds: tuple[float, ...] = ()

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, Options())
        self.elapsed[:] = self.seconds or 1.0

    def copy_seconds(self, size: int) -> float:
        return self.copy

    def elapsed_reading(self, step: int, read: float) -> float:
        return float(self.elapsed[step]) - 0.5


def straight(count: int) -> Problem:
    sketch = Sketch()
    sketch.chain("op", count - 1, sketch.parameter("p"))
    return sketch.problem()


def nested(count: int, loops: list[tuple[int, int, int, str]]) -> Problem:
    """`loops`: (start, end, caller step, kind) of regions, outer before inner."""
    problem = straight(count)
    regions = list(problem.regions)
    region_of = [0] * count
    opcodes = list(problem.opcodes)
    called: dict[int, tuple[int, ...]] = {}
    for start, end, caller, kind in loops:
        number = len(regions)
        regions.append(
            Region(f"r{number}", kind, caller, start, end, end - 1, (start,))
        )
        region_of[start:end] = [number] * (end - start)
        opcodes[caller] = "while" if kind in ("body", "condition") else "conditional"
        called[caller] = (*called.get(caller, ()), number)
    return replace(
        problem, regions=regions, region_of=region_of, opcodes=opcodes, called=called
    )


def picker_of(
    problem: Problem, ratios: tuple[float, float, float], faithful: bool = True
) -> CostAnalysisPrefetchIntervalPicker:
    return CostAnalysisPrefetchIntervalPicker(
        FakeCosts(problem), CostAnalysisPicker(*ratios), 32, faithful=faithful
    )


def starts(picker, use: int, start: int, end: int, preferred=None) -> list[int]:
    picker.begin(24, Use(use, 0), 24.0, start, end, preferred)
    found = []
    while not picker.done():
        found.append(picker.next())
    return found


def test_alternating_starts_b11_1() -> None:
    picker = picker_of(straight(24), (1, 2, 4))
    assert starts(picker, 22, 0, 22) == [15, 16, 14, 17, 13, 18, 12, 11, 10, 9]
    assert starts(picker, 22, 19, 22) == []


def test_starts_around_a_loop_b11_2() -> None:
    # Loop over steps 19 … 24 (condition, body), the while itself at 25.
    problem = nested(34, [(19, 22, 25, "condition"), (22, 25, 25, "body")])
    picker = picker_of(problem, (1, 2, 12))
    assert starts(picker, 31, 0, 31) == [25, 26, 18, 27, 17]


def test_no_start_inside_nested_loops_b11_3() -> None:
    loops = [
        (5, 8, 21, "condition"),
        (8, 21, 21, "body"),
        (10, 13, 19, "condition"),
        (13, 19, 19, "body"),
    ]
    picker = picker_of(nested(26, loops), (1, 2, 12))
    assert picker.latest_prefetch_start(24, 0, 23, Use(23, 0), 24.0) == 4


def test_no_start_between_conditionals_b11_4() -> None:
    loops = [
        (5, 7, 9, "branch"),
        (7, 9, 9, "branch"),
        (10, 13, 16, "branch"),
        (13, 16, 16, "branch"),
    ]
    picker = picker_of(nested(20, loops), (1, 2, 12))
    # The end lies inside the second conditional's first branch's depth.
    assert picker.latest_prefetch_start(24, 0, 9, Use(16, 0), 24.0) < 5


def test_a_single_long_step_b11_5() -> None:
    problem = straight(5)
    FakeCosts.seconds = (1.0, 1.0, 20.0, 1.0, 1.0)
    try:
        picker = picker_of(problem, (1, 2, 12))
        assert starts(picker, 3, 1, 3) == [1]
    finally:
        FakeCosts.seconds = ()


def test_preferred_start_is_taken_if_late_enough() -> None:
    picker = picker_of(straight(24), (1, 2, 4))
    assert starts(picker, 22, 0, 22, preferred=17)[:4] == [17, 18, 16, 15]
    assert starts(picker, 22, 0, 22, preferred=20)[0] == 15


def test_instruction_counts() -> None:
    picker = InstructionCountPrefetchIntervalPicker(2, 10)
    assert picker.can_allocate_no_copy(8, 0, 10)
    assert not picker.can_allocate_no_copy(8, 0, 11)
    assert picker.preferred_eviction_end(8, 3, 20) == 5
    assert picker.preferred_eviction_end(8, 3, 4) == 4
    assert picker.preferred_prefetch_start(8, 0, 20, 22) == 12
    assert picker.latest_prefetch_start(8, 0, 22, None, 0.0) == 20
    assert picker.estimated_prefetch_end(8, 0, 22) == 22
    assert picker.latest_prefetch_end(4, 9) == 9
    assert picker.elapsed(3, 9) == 5.0
    assert starts(picker, 9, 0, 9, preferred=5) == [5, 6]
    assert picker.latest_time() == 6
    assert picker.to_debug_string() == "Overlapped HLOs = 2"


class Walk:
    """The plain version of the cost-based picker: loops over steps."""

    def __init__(self, costs: CostModel, ratios, longest: float) -> None:
        self.costs = costs
        self.least, self.preferred, _ = ratios
        self.longest = longest
        self.levels = costs.nest_levels

    def elapsed(self, start: int, end: int) -> float:
        costs = self.costs
        if start == end:
            return 0.0
        total = sum(
            float(costs.elapsed[i]) * costs.multipliers[costs.while_levels[i]]
            for i in range(start + 1, end)
            if costs.problem.opcodes[i] not in ("while", "conditional")
        )
        return total / costs.multipliers[min(costs.while_levels[start : end + 1])]

    def latest(self, start: int, end: int, gain: float) -> int:
        t = end - 1
        while t >= start and (
            self.levels[t] != self.levels[end]
            or self.least * self.costs.copy_seconds(1) > self.elapsed(t, end) + gain
        ):
            t -= 1
        return t

    def preferred_start(self, earliest: int, latest: int, end: int) -> int:
        wanted = self.preferred * self.costs.copy_seconds(1)
        best, distance = earliest, abs(wanted - self.elapsed(earliest, end))
        for t in range(earliest + 1, latest + 1):
            away = abs(wanted - self.elapsed(t, end))
            if self.levels[t] == self.levels[end] and away < distance:
                best, distance = t, away
        return best

    def starts(self, start: int, end: int, gain: float) -> list[int]:
        latest = self.latest(start, end, gain)
        earliest = start
        while earliest < latest and (
            self.levels[earliest] != self.levels[end]
            or self.longest < self.elapsed(earliest, end)
        ):
            earliest += 1
        if earliest > latest:
            return []
        inc = dec = self.preferred_start(earliest, latest, end)
        increasing, found = True, []
        while inc <= latest or dec >= earliest:
            if increasing:
                found.append(inc)
                inc += 1
                while inc <= latest and self.levels[inc] != self.levels[end]:
                    inc += 1
                increasing = dec < earliest
            else:
                found.append(dec)
                target = 0.0
                if inc > latest:
                    target = self.elapsed(dec, end) + self.elapsed(earliest, end) / 100
                dec -= 1
                while dec >= earliest and (
                    self.levels[dec] != self.levels[end]
                    or self.elapsed(dec, end) < target
                ):
                    dec -= 1
                increasing = inc <= latest
        return found[1:]


LOOPS = [
    [],
    [(4, 7, 12, "condition"), (7, 12, 12, "body")],
    [
        (4, 6, 24, "condition"),
        (6, 24, 24, "body"),
        (10, 12, 17, "condition"),
        (12, 17, 17, "body"),
    ],
    [(4, 8, 13, "branch"), (8, 13, 13, "branch"), (15, 18, 21, "branch")],
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(LOOPS),
    st.lists(st.sampled_from([0, 0, 1, 2, 4, 8]), min_size=30, max_size=30),
    st.integers(0, 27),
    st.integers(1, 29),
    st.sampled_from([(0.5, 1.0, 2.0), (1.0, 2.0, 4.0), (1.0, 4.0, 16.0)]),
)
def test_bisections_agree_with_walks(loops, seconds, start, length, ratios) -> None:
    end = min(start + length, 29)
    problem = nested(30, loops)
    FakeCosts.seconds = tuple(float(x) for x in seconds)
    try:
        picker = picker_of(problem, ratios)
    finally:
        FakeCosts.seconds = ()
    costs = picker._costs
    walk = Walk(costs, ratios, ratios[2] * 3.0)
    assert picker.elapsed(start, end) == pytest.approx(walk.elapsed(start, end))
    assert picker.can_allocate_no_copy(8, start, end) == (
        walk.longest > single(walk.elapsed(start, end))
    )
    assert starts(picker, end, start, end) == walk.starts(start, end, 0.5)
    wanted = [
        e
        for e in range(start + 1, end + 1)
        if walk.elapsed(start, e) >= ratios[1] * 3.0
    ]
    assert picker.preferred_eviction_end(8, start, end) == (
        wanted[0] if wanted else end + 1
    )
    landed = [t for t in range(start + 1, end) if walk.elapsed(start, t) >= 3.0]
    assert picker.estimated_prefetch_end(8, start, end) == (
        landed[0] if landed else end
    )


def test_faithful_intervals_leave_out_step_zero() -> None:
    problem = straight(6)
    assert picker_of(problem, (1, 2, 4)).elapsed(-1, 4) == 3.0
    assert picker_of(problem, (1, 2, 4), faithful=False).elapsed(-1, 4) == 4.0


def test_retries_lengthen_evictions() -> None:
    picker = picker_of(straight(40), (1, 2, 4))
    assert picker.preferred_eviction_end(8, 0, 39) == 7
    picker.retry_number = 1
    assert picker.preferred_eviction_end(8, 0, 39) == 19


def test_latest_end_is_at_the_same_depth() -> None:
    problem = nested(30, LOOPS[1])
    picker = picker_of(problem, (1, 2, 4))
    assert picker.latest_prefetch_end(20, 11) == 3
    assert picker.latest_prefetch_end(20, 15) == 15


# -- costs ---------------------------------------------------------------------


def test_elapsed_in_memories_b12() -> None:
    sketch = Sketch(machine=replace(SMALL), seconds=0.1)
    a, b = sketch.parameter("a", 40), sketch.parameter("b", 40)
    add = sketch.op("add", (a, b), 40)
    costs = CostModel(sketch.problem(), Options())
    assert costs.memory[add] == pytest.approx(1.2)
    assert costs.elapsed[add] == pytest.approx(1.2)
    assert costs.elapsed_reading(add, 40.0) == pytest.approx(0.8 + 0.04)
    assert costs.elapsed_reading(add, 80.0) == pytest.approx(0.4 + 0.08)
    assert costs.copy_seconds(40) == pytest.approx(0.4)


def test_latency_bound_b12() -> None:
    sketch = Sketch(seconds=10.0)
    add = sketch.op("add", (sketch.parameter("a", 40),), 40)
    costs = CostModel(sketch.problem(), Options())
    assert costs.elapsed[add] == 10.0
    assert costs.elapsed_reading(add, 40.0) == 10.0


def test_pipeline_overhead_b12() -> None:
    window = 40 / 2**20
    sketch = Sketch(seconds=0.3)
    add = sketch.op("add", (sketch.parameter("a", 40),), 40)
    costs = CostModel(
        sketch.problem(), Options(pipeline_overhead_window_size_mib=window)
    )
    # 80 bytes in all; the window holds 40 of them: half of the compute time more.
    assert costs.elapsed[add] == pytest.approx(0.8 + 0.15)
    assert costs.elapsed_reading(add, 60.0) == pytest.approx(0.06 + 0.2 + 20 / 80 * 0.3)
    assert costs.elapsed_reading(add, 80.0) == pytest.approx(0.3)


def test_memory_boundedness_sums_what_is_memory_bound() -> None:
    sketch = Sketch()
    x = sketch.op("x", (), 64)
    y = sketch.op("y", (x,), 64)
    sketch.op("z", (x, y), 64)
    problem = sketch.problem()
    costs = CostModel(problem, Options())
    saved = 64 / 100 - 64 / 1000
    assert costs.memory_boundedness(problem.values[0], 64) == pytest.approx(
        3 * saved / 8
    )
    plain = CostModel(
        problem,
        Options(alternate_memory_benefit_scaling_factor_for_large_buffers="NO_SCALE"),
    )
    assert plain.memory_boundedness(problem.values[0], 64) == pytest.approx(3 * saved)


def test_compute_bound_benefit_is_the_distance() -> None:
    sketch = Sketch(seconds=5.0)
    x = sketch.op("x", (), 64)
    sketch.op("y", (x,), 64)
    problem = sketch.problem()
    costs = CostModel(problem, Options())
    # The reader is nearer to being memory bound (1.28 s of 5) than the definition.
    assert costs.memory_boundedness(problem.values[0], 64) == pytest.approx(
        (1.28 - 5.0) / 8
    )
