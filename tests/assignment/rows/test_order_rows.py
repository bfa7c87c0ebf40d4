"""Rows A6: by cost, and with overrides of the order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.hlo_rows import Planned, cost_options, module, plan
from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import run_greedy
from msa.assignment.filters import (
    HloOperandFilter,
    HloPositionMatcher,
    HloRandomFilter,
    MsaSortOrderOverride,
)
from msa.assignment.options import CostAnalysisPicker, Options


def interleaved(
    shape: str = "f32[4,3]{1,0}", capacity: int = 96, *overrides
) -> Planned:
    """Two chains, of negates (of that shape) and of hyperbolic tangents."""
    tall = "f32[4,3]{1,0}"
    lines = [f"  p0 = {tall} parameter(0)\n  p1 = {shape} parameter(1)"]
    tanh, neg = "p0", "p1"
    for i in range(5):
        lines.append(
            f"  tanh{i} = {tall} tanh({tanh})\n  neg{i} = {shape} negate({neg})"
        )
        tanh, neg = f"tanh{i}", f"neg{i}"
    lines.append(f"  ROOT t = ({tall}, {shape}) tuple(tanh4, neg4)")
    return plan(
        module("\n".join(lines)),
        cost_options(msa_sort_order_overrides=overrides),
        alternate_memory_bytes=capacity,
    )


def fast(made: Planned) -> set[str]:
    """Operations whose results are in alternate memory."""
    return {
        name
        for name, x in made.by_name.items()
        if x.opcode in ("negate", "tanh") and x.shape.memory_space == 1
    }


NEGATES = {f"neg{i}" for i in range(4)}
TANHS = {f"tanh{i}" for i in range(4)}


def first(**conditions) -> MsaSortOrderOverride:
    return MsaSortOrderOverride(HloPositionMatcher(**conditions), assign_first=True)


def test_memory_bound_values_come_first_a6_2() -> None:
    made = fast(interleaved())
    assert made & NEGATES
    assert not made & TANHS


@pytest.mark.parametrize(
    ("shape", "capacity", "override", "expected"),
    [
        pytest.param(
            "f32[4,3]{1,0}",
            96,
            first(instruction_name_regex="neg(.*)"),
            NEGATES,
            id="A6.3",
        ),
        pytest.param(
            "f32[4,3]{1,0}",
            96,
            MsaSortOrderOverride(
                HloPositionMatcher(instruction_name_regex="tanh(.*)"), assign_last=True
            ),
            NEGATES,
            id="A6.4",
        ),
        pytest.param("f32[4,5]{1,0}", 120, first(size_lte=48), TANHS, id="A6.5"),
        pytest.param("f32[4,5]{1,0}", 160, first(size_gte=80), NEGATES, id="A6.6"),
        pytest.param(
            "f32[4,3]{1,0}",
            96,
            first(hlo_use_filter=HloOperandFilter(instruction_name_regex="neg(.*)")),
            NEGATES,
            id="A6.7",
        ),
    ],
)
def test_overrides_of_the_order(shape, capacity, override, expected) -> None:
    made = fast(interleaved(shape, capacity, override))
    assert made == expected


def test_a_random_share_comes_first_a6_8() -> None:
    problem = interleaved().plan.problem
    marks = {
        name: problem.fingerprint_of(problem.names.index(name))
        for name in sorted(NEGATES | TANHS)
    }
    # What an operation computes counts, not its name.
    assert len({marks[n] for n in NEGATES}) == len({marks[n] for n in TANHS}) == 1
    seed = next(
        s
        for s in range(100)
        if HloRandomFilter(s, 0.0, 0.5).selects(marks["tanh0"])
        and not HloRandomFilter(s, 0.0, 0.5).selects(marks["neg0"])
    )
    chosen = first(hlo_random_filter=HloRandomFilter(seed, 0.0, 0.5))
    assert fast(interleaved("f32[4,3]{1,0}", 96, chosen)) >= TANHS


def test_copies_share_memory_and_time_a6_10() -> None:
    sketch = Sketch(replace(SMALL, capacity=300, default_bandwidth=12.8))
    p0, p1 = sketch.parameter("p0", 256), sketch.parameter("p1", 256)
    a = sketch.op("a", (), 400)
    b = sketch.op("b", (a,), 400)
    c = sketch.op("c", (p0, p0), 400)
    d = sketch.op("d", (c, b), 400)
    e = sketch.op("e", (d,), 400)
    f = sketch.op("f", (p1, p1), 400)
    sketch.op("g", (e, f), 400)
    problem = sketch.problem()
    # Operations take 10 seconds whatever they read; a copy of 256 bytes takes 20.
    problem = replace(
        problem,
        compute_seconds=[0.0, 0.0, *[10.0] * 7],
        total_bytes=[0.0] * problem.end,
    )
    result = run_greedy(
        problem,
        Options(
            faithful=True,
            prefetch_interval_picker=CostAnalysisPicker(0.8, 1.5, 10.0),
            buffer_interval_comparator=lambda x: (x.value,),
            enable_cross_program_prefetch=False,
        ),
    )
    copies = {
        problem.names[x.position.step]: (
            x.start_after,
            x.done_before,
            [problem.describe_use(u) for u in x.uses],
        )
        for x in result.allocations.copies()
    }
    assert copies["p0"][1:] == (c, ["c:0{}", "c:1{}"])
    # The room is free after c, and d and e hide the copy.
    assert copies["p1"] == (c, f, ["f:0{}", "f:1{}"])
