"""Colours: places that must be in one of the memories."""

from __future__ import annotations

from dataclasses import replace

import pytest

import msa
from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import MemorySpace
from msa.assignment.options import BufferColoring, InstructionCountPicker, Options
from msa.assignment.problem import Problem
from msa.errors import CapacityError, OptionsError

ALTERNATE, DEFAULT = MemorySpace.ALTERNATE, MemorySpace.DEFAULT
IC = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
)


def chains(capacity: int) -> Problem:
    """Two chains of 48-byte values, of which 48 bytes fit at a time."""
    sketch = Sketch(replace(SMALL, capacity=capacity))
    a = sketch.op("neg0", (sketch.parameter("p0", 8),), 48)
    b = sketch.op("tanh0", (sketch.parameter("p1", 8),), 48)
    for number in range(1, 5):
        a = sketch.op(f"neg{number}", (a,), 48)
        b = sketch.op(f"tanh{number}", (b,), 48)
    sketch.op("sum", (a, b), 48)
    return sketch.problem()


def spaces(problem: Problem, result: AllocationResult) -> dict[str, MemorySpace]:
    """The memory of every use."""
    return {
        problem.describe_use(use): a.space for a in result.allocations for use in a.uses
    }


def defined_in(problem: Problem, result: AllocationResult) -> dict[str, MemorySpace]:
    found: dict[str, MemorySpace] = {}
    for a in result.allocations:
        if a.kind == "pinned":
            found.setdefault(problem.names[a.position.step], a.space)
    return found


def color(name: str, space: MemorySpace, operand: int | None = None) -> BufferColoring:
    return BufferColoring(name, (), space, operand)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("name", ["neg4", "tanh4", "tanh0"])
def test_position_in_alternate_b5_1(name, early) -> None:
    problem = chains(48)
    options = IC.replace(
        buffer_colorings=(color(name, ALTERNATE),),
        allocate_colored_buffers_early=early,
    )
    result = run_greedy(problem, options)
    assert defined_in(problem, result)[name] is ALTERNATE
    assert result.heap_bytes <= 48


@pytest.mark.parametrize(
    "uses", [[("neg4", 0)], [("sum", 1)], [("sum", 0)], [("tanh1", 0), ("neg3", 0)]]
)
def test_uses_in_alternate_b5_2(uses) -> None:
    problem = chains(48)
    colorings = tuple(color(name, ALTERNATE, operand) for name, operand in uses)
    result = run_greedy(problem, IC.replace(buffer_colorings=colorings))
    for name, operand in uses:
        assert spaces(problem, result)[f"{name}:{operand}{{}}"] is ALTERNATE


def test_output_default_use_alternate_b5_3() -> None:
    problem = chains(96)
    result = run_greedy(
        problem,
        IC.replace(
            buffer_colorings=(
                color("neg2", DEFAULT),
                color("neg3", ALTERNATE, 0),
                color("tanh2", ALTERNATE),
                color("tanh3", DEFAULT, 0),
            )
        ),
    )
    assert defined_in(problem, result)["neg2"] is DEFAULT
    assert defined_in(problem, result)["tanh2"] is ALTERNATE
    assert spaces(problem, result)["neg3:0{}"] is ALTERNATE
    assert spaces(problem, result)["tanh3:0{}"] is DEFAULT


def test_default_color_keeps_a_value_out() -> None:
    problem = chains(480)
    result = run_greedy(
        problem,
        IC.replace(
            buffer_colorings=(color("neg1", DEFAULT), color("neg2", DEFAULT, 0))
        ),
    )
    assert defined_in(problem, result)["neg1"] is DEFAULT
    assert spaces(problem, result)["neg2:0{}"] is DEFAULT
    assert defined_in(problem, result)["neg2"] is ALTERNATE


def test_contradicting_colors_b5_15() -> None:
    both = (color("neg1", DEFAULT), color("neg1", ALTERNATE))
    with pytest.raises(OptionsError, match="neg1"):
        run_greedy(chains(96), IC.replace(buffer_colorings=both))


def test_too_many_colors_b5_15() -> None:
    # neg4 and tanh4 are read together by sum, but 48 bytes hold one of them.
    both = (color("sum", ALTERNATE, 0), color("sum", ALTERNATE, 1))
    with pytest.raises(CapacityError, match="coloured") as caught:
        run_greedy(chains(48), IC.replace(buffer_colorings=both))
    assert caught.value.needed == 96
    assert caught.value.over == 48


def test_colored_places_must_exist() -> None:
    with pytest.raises(OptionsError, match="nobody"):
        run_greedy(
            chains(48), IC.replace(buffer_colorings=(color("nobody", ALTERNATE),))
        )
    with pytest.raises(OptionsError, match="sum"):
        run_greedy(
            chains(48), IC.replace(buffer_colorings=(color("sum", ALTERNATE, 7),))
        )


def test_colors_come_before_cross_program_prefetches_b3_20() -> None:
    sketch = Sketch(replace(SMALL, capacity=256))
    p0, p1 = sketch.parameter("p0", 256), sketch.parameter("p1", 256)
    dot = sketch.op("dot0", (p0, p1), 256)
    sketch.op("dot1", (dot, p1), 256)
    sketch.candidates = [p1]
    problem = sketch.problem()
    options = IC.replace(enable_cross_program_prefetch=True)
    assert len(run_greedy(problem, options).cross_program_prefetches) == 1
    result = run_greedy(
        problem, options.replace(buffer_colorings=(color("dot1", ALTERNATE, 0),))
    )
    assert result.cross_program_prefetches == ()
    assert spaces(problem, result)["dot1:0{}"] is ALTERNATE


def test_pinned_values_stay_a5_21() -> None:
    problem = chains(128)
    values = [replace(v, pinned=problem.names[v.id] == "tanh1") for v in problem.values]
    problem = replace(problem, values=values)
    result = run_greedy(problem, IC)
    assert defined_in(problem, result)["tanh1"] is ALTERNATE
    assert spaces(problem, result)["tanh2:0{}"] is ALTERNATE


def test_pinned_values_that_do_not_fit_a5_22() -> None:
    sketch = Sketch()
    a = sketch.op("a", (), 96)
    b = sketch.op("b", (), 96)
    sketch.op("c", (a, b), 8)
    problem = sketch.problem()
    values = [replace(v, pinned=v.id in (a, b)) for v in problem.values]
    with pytest.raises(CapacityError, match="must be in alternate memory"):
        run_greedy(replace(problem, values=values), IC)


def test_scalars_that_ask_for_alternate_memory() -> None:
    sketch = Sketch()
    p = sketch.parameter("p", 4)
    s = sketch.op("s", (p,), 4)
    t = sketch.op("t", (s,), 4)
    sketch.op("u", (t, s), 4)
    problem = sketch.problem()
    values = [
        replace(v, placeable=False, is_scalar=True, pinned=v.id == s)
        for v in problem.values
    ]
    problem = replace(problem, values=values)
    result = run_greedy(problem, IC)
    (made,) = result.allocations.in_alternate()
    assert (made.value, made.start, made.end) == (s, s, problem.end - 1)
    assert made.chunk is not None
    assert made.chunk.size == 4
    assert spaces(problem, result) == {"t:0{}": ALTERNATE, "u:1{}": ALTERNATE}
    tiny = replace(problem, machine=replace(SMALL, capacity=3))
    with pytest.raises(CapacityError, match="scalar s"):
        run_greedy(tiny, IC)


# Two results in alternate memory: the one that is read on, and one that nothing reads.
UNREAD = """HloModule m, is_scheduled=true
f { a = f32[256] parameter(0)
  b = f32[256] negate(a)
  c = f32[256] abs(a)
  ROOT r = (f32[256], f32[256]) tuple(b, c) }
ENTRY e { p = f32[256] parameter(0)
  n = (f32[256]{0:S(1)}, f32[256]{0:S(1)}) fusion(p), kind=kLoop, calls=f
  g = f32[256]{0:S(1)} get-tuple-element(n), index=0
  ROOT h = f32[256] negate(g) }
"""


@pytest.mark.parametrize(
    "options",
    [Options(strategy="search"), Options(strategy="greedy"), Options(faithful=True)],
)
def test_a_coloured_result_that_nothing_reads_has_a_place(options: Options) -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=2048)
    module = msa.parse(UNREAD)
    plan = msa.assign(module, target, options)
    plan.verify()
    plan.prove(seed=1)
    assert sorted(plan.chunks) == ["n{0}", "n{1}"]
    assert sorted(plan.chunks.values()) == [(0, 1024), (1024, 1024)]
    with pytest.raises(CapacityError, match="must be in fast memory"):
        msa.assign(module, target.replace(alternate_memory_bytes=2047), options)


def test_a_plan_whose_dead_readers_are_gone_is_planned_again() -> None:
    """The reader of `n{1}` is dead: the first plan places it and drops the reader."""
    text = UNREAD.replace(":S(1)", "").replace("{0}", "")
    text = text.replace(
        "  ROOT h",
        "  d = f32[256] get-tuple-element(n), index=1\n"
        "  dead = f32[256] negate(d)\n  ROOT h",
    )
    target = msa.Target.preset("tpu_v5e")
    plan = msa.assign(msa.parse(text), target, Options(strategy="greedy"))
    plan.verify()
    again = msa.assign(plan.module, target, Options(strategy="greedy"))
    again.verify()
    again.prove(seed=1)
