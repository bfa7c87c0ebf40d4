"""Retiming copies and dropping losses never makes a plan slower, and keeps it right."""

from __future__ import annotations

import pytest

import msa
from msa.assignment.algorithm import run_greedy
from msa.assignment.allocation import (
    AllocationSequence,
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
    Position,
    Use,
)
from msa.assignment.build import build_problem
from msa.assignment.estimate import Estimator, Flow
from msa.assignment.lowering import lower
from msa.assignment.options import InstructionCountPicker, Options
from msa.assignment.problem import Problem
from msa.assignment.refine import first_half, may_refine, refine
from msa.assignment.refine.draft import duplicate
from msa.assignment.refine.refine import may_retime
from msa.assignment.refine.retime import Retimer
from msa.assignment.refine.room import Room
from msa.assignment.verification import verify_plan
from msa.heap.chunk import Chunk
from msa.target import Target

# f32[25] is 100 bytes: one second of default memory, a tenth of alternate memory.
MACHINE = Target(
    name="toy",
    alternate_memory_bytes=400,
    alignment_bytes=4,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=1000.0,
    flops_per_second=25.0,  # one second for 25 elements
    transcendentals_per_second=1e9,
)

CHAIN = """
HloModule chain, is_scheduled=true
ENTRY main {
  w = f32[25]{0} parameter(0)
  x = f32[5]{0} parameter(1)
  y = f32[25]{0} parameter(2)
  a0 = f32[5]{0} cosine(x)
  a1 = f32[5]{0} negate(a0)
  a2 = f32[5]{0} negate(a1)
  a3 = f32[5]{0} negate(a2)
  b = f32[25]{0} add(y, w)
  c = f32[25]{0} add(b, w)
  ROOT t = (f32[25]{0}, f32[5]{0}) tuple(c, a3)
}
"""


class Case:
    """A problem with allocations written by hand."""

    def __init__(self, text: str = CHAIN, target: Target = MACHINE) -> None:
        self.module = msa.parse(text)
        self.options = Options()
        self.problem: Problem = build_problem(self.module, target, self.options)
        self.target = target
        self.step = {name: i for i, name in enumerate(self.problem.names)}
        self.estimator = Estimator(self.problem)
        self.before = self.estimator.seconds([])

    def pinned(
        self, name: str, offset: int | None = None, end: str = "c"
    ) -> PinnedAllocation:
        position = Position(self.step[name])
        return PinnedAllocation(
            value=self.problem.value_at[position],
            position=position,
            space=MemorySpace.DEFAULT if offset is None else MemorySpace.ALTERNATE,
            chunk=None if offset is None else Chunk(offset, 100),
            start=self.step[name],
            end=self.step[end],
        )

    def fetch(
        self, source: PinnedAllocation, after: str, before: str, *uses: tuple[str, int]
    ) -> CopyAllocation:
        from msa.assignment.allocation import AliasedOffset

        return CopyAllocation(
            value=source.value,
            position=source.position,
            space=MemorySpace.ALTERNATE,
            chunk=Chunk(0, 100),
            start=self.step[after] + 1,
            end=self.step[uses[-1][0]],
            uses=[Use(self.step[name], operand) for name, operand in uses],
            aliased_offset=AliasedOffset(0),
            source=source,
            start_after=self.step[after],
            done_before=self.step[before],
        )

    def refined(self, *allocations: object) -> AllocationSequence:
        import dataclasses

        result = dataclasses.replace(
            run_greedy(self.problem, self.options),
            allocations=AllocationSequence(allocations),  # type: ignore[arg-type]
        )
        refined = refine(self.problem, result, self.options, self.before)
        assert result.allocations == list(allocations)
        self.check(refined.allocations)
        return refined.allocations

    def check(self, allocations: AllocationSequence, *, pays: bool = True) -> None:
        lowered = lower(self.module, self.problem.keys, allocations, self.options)
        verify_plan(
            self.module,
            lowered.module,
            {p.text: (c.offset, c.size) for p, c in lowered.chunks.items()},
            self.target,
        )
        judged = msa.simulate(lowered.module, self.target).elapsed_seconds
        assert judged == pytest.approx(self.estimator.seconds(allocations))
        assert judged <= self.before or not pays


def test_a_copy_that_stalls_starts_earlier() -> None:
    case = Case()
    w = case.pinned("w")
    late = case.fetch(w, "a3", "b", ("b", 1), ("c", 1))
    (copy,) = case.refined(w, late).copies()
    # Idle: a1 to a3 take 0.2 s of arithmetic each but 0.4 s of traffic: nothing hides
    # there. It may still start sooner, never later, and it still serves both uses.
    assert copy.start_after <= late.start_after
    assert copy.start == copy.start_after + 1
    assert copy.uses == late.uses


def test_a_copy_starts_where_arithmetic_hides_it() -> None:
    case = Case(target=MACHINE.replace(flops_per_second=5.0))  # a1 … a3: 1 s each
    w = case.pinned("w")
    late = case.fetch(w, "a3", "b", ("b", 1), ("c", 1))
    before = case.estimator.run([w, late])
    assert before.stall == pytest.approx(1.0)
    allocations = case.refined(w, late)
    (copy,) = allocations.copies()
    assert copy.start_after < case.step["a3"]
    assert case.estimator.run(allocations).stall == pytest.approx(0.0)


def test_a_copy_does_not_start_while_its_room_is_taken() -> None:
    case = Case(target=MACHINE.replace(flops_per_second=5.0))
    w = case.pinned("w")
    a1 = case.pinned("a1", offset=0, end="a2")
    a1.uses = [Use(case.step["a2"], 0)]
    late = case.fetch(w, "a3", "b", ("b", 1), ("c", 1))
    draft = AllocationSequence([w, a1, late])
    before = case.estimator.run(draft).stall
    retimer = Retimer(case.problem, draft, Flow.of(case.estimator, draft))
    retimer.improve(40)
    assert late.start_after == case.step["a2"]
    assert retimer.run.stall < before
    case.check(draft, pays=False)


def test_a_copy_that_costs_more_than_it_brings_is_dropped() -> None:
    # 25 bytes are read of 100 that are copied.
    case = Case(
        """
HloModule m, is_scheduled=true
ENTRY main {
  w = f32[25]{0} parameter(0)
  x = f32[5]{0} parameter(1)
  a = f32[5]{0} negate(x)
  s = f32[5]{0} slice(w), slice={[0:5]}
  ROOT c = f32[5]{0} add(a, s)
}
"""
    )
    w = case.pinned("w")
    copy = case.fetch(w, "x", "s", ("s", 0))
    assert case.estimator.seconds([w, copy]) > case.before
    allocations = case.refined(w, copy)
    assert list(allocations.copies()) == []
    assert allocations[0].uses == copy.uses
    assert case.estimator.seconds(allocations) == pytest.approx(case.before)


def test_the_log_says_what_was_dropped() -> None:
    plan = msa.assign(msa.parse(CHAIN), MACHINE)
    fast = {
        (a.value, use) for a in plan.allocations if a.is_alternate for use in a.uses
    }
    problem = plan.problem
    for value, use in fast:
        name = problem.describe(problem.values[value].position)
        logged = [
            d
            for d in plan.decisions
            if d.value == name and d.use == problem.describe_use(use)
        ]
        assert not logged or logged[-1].fast
    slow = [d for d in plan.decisions if d.use and not d.fast]
    assert all(d.reasons or d.served for d in slow)


def test_buffers_go_when_the_whole_is_slower_than_nothing() -> None:
    case = Case()
    w, y = case.pinned("w"), case.pinned("y")
    draft = AllocationSequence([w, case.fetch(w, "x", "b", ("b", 1)), y])
    half = first_half(case.problem, draft)
    assert [a.value for a in half] == [w.value, w.value]
    assert first_half(case.problem, half) == []
    assert first_half(case.problem, AllocationSequence()) == []


@pytest.mark.parametrize(
    "options",
    [
        Options(faithful=True),
        Options(always_spill_to_default_memory=True),
        Options(enable_sync_copy_replacement=True),
    ],
    ids=["faithful", "spilling", "replacing"],
)
def test_what_was_asked_for_stays(options: Options) -> None:
    case = Case()
    assert not may_refine(case.problem, options)
    result = run_greedy(case.problem, case.options)
    assert refine(case.problem, result, options, case.before) is result


@pytest.mark.parametrize(
    "options",
    [
        Options(prefetch_interval_picker=InstructionCountPicker(1, 4)),
        Options(max_outstanding_prefetches=3),
        Options(max_outstanding_evictions=3),
        Options(enforce_prefetch_fifo_order=True),
    ],
    ids=["counts", "prefetches", "evictions", "order"],
)
def test_limits_on_copies_forbid_retiming(options: Options) -> None:
    assert may_retime(Options())
    assert not may_retime(options)


def test_a_duplicate_shares_nothing_that_changes() -> None:
    case = Case()
    w = case.pinned("w")
    copy = case.fetch(w, "x", "b", ("b", 1))
    twin_w, twin = duplicate([w, copy])
    assert isinstance(twin, CopyAllocation)
    assert twin.source is twin_w
    assert twin_w is not w
    twin.uses.clear()
    twin.start_after = 0
    assert copy.uses
    assert copy.start_after == case.step["x"]


def test_room_is_measured_to_the_next_chunk() -> None:
    case = Case()

    def held(start: int, end: int, offset: int, size: int = 100) -> PinnedAllocation:
        return PinnedAllocation(
            value=0,
            position=Position(0),
            space=MemorySpace.ALTERNATE,
            chunk=Chunk(offset, size),
            start=start,
            end=end,
        )

    before, mine, after = held(2, 5, 50), held(20, 30, 0), held(41, 50, 96, 4)
    above = held(0, 99, 100)
    room = Room([before, mine, after, above])
    assert room.free_since(mine, 0) == 6
    assert room.free_since(mine, 10) == 10
    assert room.free_until(mine, 99) == 40
    assert room.free_until(mine, 35) == 35
    room.remove(before)
    assert room.free_since(mine, 0) == 0
    partner = held(10, 20, 0)
    room.add(partner)
    assert room.free_since(mine, 0) == 20
    assert case.problem.end == 10
