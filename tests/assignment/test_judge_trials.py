"""Reasons against trials: what would another copy, or another place, make of the plan?"""

from __future__ import annotations

import random

import pytest

import msa
from assignment.test_judge import V5E, judged, largest_hole
from msa import Reason
from msa.assignment import Assignment
from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    MemorySpace,
    Use,
)
from msa.assignment.estimate import Estimator
from msa.assignment.problem import Value

RULED_OUT = frozenset(
    {
        Reason.NO_GAIN,
        Reason.NO_ROOM,
        Reason.NO_TIME,
        Reason.MEMORY_BUSY,
        Reason.NO_BANDWIDTH,
    }
)
SHAPE = "f32[512,256]{1,0}"


def program(rng: random.Random) -> msa.Module:
    """A straight line of elementwise work on buffers of 512 KiB."""
    names = [f"p{i}" for i in range(rng.choice([2, 4]))]
    lines = [f"{name} = {SHAPE} parameter({i})" for i, name in enumerate(names)]
    for i in range(rng.choice([8, 14, 24])):
        near, any_ = rng.choice(names[-6:]), rng.choice(names)
        opcode = rng.choice(["add", "multiply", "power", "tanh"])
        operands = near if opcode == "tanh" else f"{near}, {any_}"
        lines.append(f"v{i} = {SHAPE} {opcode}({operands})")
        names.append(f"v{i}")
    lines.append(f"ROOT r = {SHAPE} add({names[-1]}, {names[-2]})")
    body = "\n".join(lines)
    return msa.parse(f"HloModule m, is_scheduled=true\nENTRY e {{\n{body}\n}}")


def with_copy(
    plan: Assignment, value: Value, use: Use, held: Allocation, start: int
) -> float:
    """Seconds of the plan with one more copy for a use, from after a step."""
    kept = list(held.uses)
    copy = CopyAllocation(
        value=value.id,
        position=held.position,
        space=MemorySpace.ALTERNATE,
        chunk=None,
        start=start + 1,
        end=use.step,
        uses=[x for x in kept if x.step == use.step],
        source=held,
        start_after=start,
        done_before=use.step,
    )
    held.uses = [x for x in kept if x.step != use.step]
    seconds = Estimator(plan.problem).seconds(
        AllocationSequence([*plan.allocations, copy])
    )
    held.uses = kept
    return seconds


def made_fast(plan: Assignment, held: Allocation) -> float:
    """Seconds of the plan with a value in fast memory all the time."""
    held.space = MemorySpace.ALTERNATE
    seconds = Estimator(plan.problem).seconds(plan.allocations)
    held.space = MemorySpace.DEFAULT
    return seconds


@pytest.mark.parametrize("strategy", ["greedy", "search"])
@pytest.mark.parametrize("seed", range(100, 130))
def test_reasons_agree_with_trials(seed: int, strategy: str) -> None:
    """No copy that is ruled out would help, and what is left open would.

    Where a plan waits for copies anyway, another one may use that time as well.
    """
    rng = random.Random(seed)
    module = program(rng)
    target = V5E.replace(
        alternate_memory_bytes=rng.choice([1, 2, 4]) << 20,
        flops_per_second=rng.choice([1e11, 2e11, 197e12]),
        transcendentals_per_second=rng.choice([5e10, 2e11, 6e12]),
    )
    plan = msa.assign(module, target, msa.Options(strategy=strategy))
    run = Estimator(plan.problem).run(plan.allocations)
    serving = {(a.value, use): a for a in plan.allocations for use in a.uses}
    for value, use, findings in judged(plan):
        held = serving.get((value.id, use))
        if held is None:
            continue
        what = plan.problem.describe_use(use), findings
        if findings[0].reason in RULED_OUT:
            for start in range(held.available, use.step):
                if largest_hole(plan, value, start + 1, use.step) >= value.size:
                    seconds = with_copy(plan, value, use, held, start)
                    assert seconds >= run.seconds * (1 - 1e-9) - run.stall, what
        for found in findings:
            if found.reason is not Reason.OPEN or run.stall:
                continue
            if found.way == "copy":
                seconds = with_copy(plan, value, use, held, found.start - 1)
                assert seconds < run.seconds, what
            elif sum(a.value == value.id for a in plan.allocations) == 1 and (
                use.step == max(held.uses).step
            ):
                assert made_fast(plan, held) < run.seconds, what
