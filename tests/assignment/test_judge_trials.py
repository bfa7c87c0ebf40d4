"""Reasons against trials: no copy that a reason rules out would make the plan faster."""

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


def trials(plan: Assignment, value: Value, use: Use, held: Allocation) -> list[float]:
    """Seconds of the plan with one more copy for the use, from each start with room."""
    estimator = Estimator(plan.problem)
    kept = list(held.uses)
    found = []
    for start in range(held.available, use.step):
        if largest_hole(plan, value, start + 1, use.step) < value.size:
            continue
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
        found.append(estimator.seconds(AllocationSequence([*plan.allocations, copy])))
        held.uses = list(kept)
    return found


@pytest.mark.parametrize("strategy", ["greedy", "search"])
@pytest.mark.parametrize("seed", range(100, 130))
def test_no_copy_that_is_ruled_out_would_help(seed: int, strategy: str) -> None:
    """Where a plan waits for copies anyway, another one may use that time as well."""
    rng = random.Random(seed)
    module = program(rng)
    target = V5E.replace(
        alternate_memory_bytes=rng.choice([1, 2, 4]) << 20,
        flops_per_second=rng.choice([1e11, 2e11, 197e12]),
        transcendentals_per_second=rng.choice([5e10, 2e11, 6e12]),
    )
    plan = msa.assign(module, target, msa.Options(strategy=strategy))
    run = Estimator(plan.problem).run(plan.allocations)
    least = run.seconds * (1 - 1e-9) - run.stall
    serving = {(a.value, use): a for a in plan.allocations for use in a.uses}
    for value, use, findings in judged(plan):
        held = serving.get((value.id, use))
        if findings[0].reason in RULED_OUT and held is not None:
            for seconds in trials(plan, value, use, held):
                assert seconds >= least, (plan.problem.describe_use(use), findings)
