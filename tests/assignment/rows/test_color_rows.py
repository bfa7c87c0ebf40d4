"""Rows B5: colours under pressure: fragmentation, one place at a time, chains."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from assignment.hlo_rows import F, chain, count_options, module, p, plan
from assignment.sketch import SMALL, Sketch
from assignment.test_coloring import IC, chains, color, defined_in, spaces
from assignment.test_conversions import moving, replaced
from msa.assignment.algorithm import run_greedy
from msa.assignment.allocation import CopyAllocation, MemorySpace
from msa.assignment.options import MemoryBoundLoopOptimizerOptions, Options
from msa.assignment.outcomes import OUT_OF_MEMORY, REQUIRES_UNCOMMIT

ALTERNATE, DEFAULT = MemorySpace.ALTERNATE, MemorySpace.DEFAULT


def test_several_reads_b5_4() -> None:
    problem = chains(48)
    uses = [("tanh2", 0), ("neg3", 0), ("tanh4", 0), ("sum", 1)]
    colorings = tuple(color(name, ALTERNATE, operand) for name, operand in uses)
    result = run_greedy(problem, IC.replace(buffer_colorings=colorings))
    for name, operand in uses:
        assert spaces(problem, result)[f"{name}:{operand}{{}}"] is ALTERNATE
    assert result.heap_bytes <= 48


def test_room_that_is_kept_splits_the_rest_b5_5() -> None:
    sketch = Sketch(replace(SMALL, capacity=4096))
    p0 = sketch.parameter("p0", 8)
    neg1 = sketch.op("neg1", (p0,), 1024)
    neg0 = sketch.op("neg0", (p0,), 2048)
    use1 = sketch.op("use1", (neg1,), 9000)
    neg3 = sketch.op("neg3", (p0,), 2048)
    use3 = sketch.op("use3", (neg3, use1), 9000)
    sketch.op("use0", (neg0, use3), 8)
    problem = sketch.problem()
    options = IC.replace(
        buffer_colorings=(color("neg1", ALTERNATE), color("use1", ALTERNATE, 0)),
        allocate_colored_buffers_early=False,
        buffer_interval_comparator=lambda x: (x.value not in (neg0, neg3), x.value),
    )
    made = defined_in(problem, run_greedy(problem, options))
    # 1 kB at the bottom, then neg0: 1 kB is free above and, later, 1 kB below.
    assert made["neg0"] is made["neg1"] is ALTERNATE
    result = run_greedy(problem, options)
    assert spaces(problem, result)["use3:0{}"] is DEFAULT
    again = run_greedy(problem, options.replace(max_repacks=1))
    assert spaces(problem, again)["use3:0{}"] is ALTERNATE


@pytest.mark.parametrize("operand", [0, 1])
def test_operands_of_one_operation_b5_7(operand) -> None:
    problem = chains(48)
    result = run_greedy(
        problem, IC.replace(buffer_colorings=(color("sum", ALTERNATE, operand),))
    )
    assert spaces(problem, result)[f"sum:{operand}{{}}"] is ALTERNATE


@pytest.mark.parametrize("name", ["neg3", "tanh4", "sum"])
def test_colours_with_the_loop_optimizer_b5_8(name) -> None:
    problem = chains(48)
    options = Options(
        faithful=True,
        enable_cross_program_prefetch=False,
        allocate_colored_buffers_early=False,
        memory_bound_loop_optimizer_options=MemoryBoundLoopOptimizerOptions(
            enabled=True, desired_copy_ratio=0.1, min_num_iterations=4
        ),
        buffer_colorings=(color(name, ALTERNATE, 0),),
    )
    result = run_greedy(problem, options)
    assert spaces(problem, result)[f"{name}:0{{}}"] is ALTERNATE


def test_evicted_at_once_b5_9() -> None:
    sketch = Sketch(replace(SMALL, capacity=48))
    neg0 = sketch.op("neg0", (sketch.parameter("p0", 8),), 48)
    neg1 = sketch.op("neg1", (neg0,), 48)
    neg2 = sketch.op("neg2", (neg1,), 48)
    sketch.op("last", (neg2, neg0, neg1), 48)
    problem = sketch.problem()
    values = [replace(v, pinned=v.id == neg2) for v in problem.values]
    problem = replace(problem, values=values)
    result = run_greedy(
        problem,
        IC.replace(
            verify=True,
            allocate_colored_buffers_early=False,
            buffer_colorings=(color("neg0", ALTERNATE), color("neg1", ALTERNATE)),
        ),
    )
    made = defined_in(problem, result)
    assert made["neg0"] is made["neg1"] is made["neg2"] is ALTERNATE
    evictions = sorted(
        (x.start_after, x.done_before)
        for x in result.allocations.copies()
        if not x.is_alternate
    )
    assert len(evictions) == 2
    for (_, done), (start, _) in pairwise(evictions):
        assert done - 1 <= start


def test_eviction_and_fetch_at_one_point_b5_10() -> None:
    big = "f32[4,3]{1,0}"
    made = plan(
        module(
            f"  p0 = {big} parameter(0)\n  p1 = {big} parameter(1)\n"
            f"  a = {big} negate(p0)\n  b = {big} tanh(p1)\n"
            f"  ROOT c = {big} add(a, b)"
        ),
        count_options(
            allocate_colored_buffers_early=False,
            buffer_colorings=(color("a", ALTERNATE), color("b", ALTERNATE, 0)),
        ),
        alternate_memory_bytes=48,
    )
    order = made.order()
    between = order[order.index("a") + 1 : order.index("b")]
    steps = [
        (made.by_name[n].opcode, made.by_name[n].operands[0].name) for n in between
    ]
    assert [opcode for opcode, _ in steps] == [
        "copy-start",
        "copy-done",
        "copy-start",
        "copy-done",
    ]
    assert (steps[0][1], steps[2][1]) == ("a", "p1")
    made.plan.prove()


def move_sketch(opcode: str) -> Sketch:
    sketch = Sketch(replace(SMALL, capacity=48))
    p0, p1 = sketch.parameter("p0", 24), sketch.parameter("p1", 24)
    neg = sketch.op("neg", (p0,), 24)
    tail = sketch.chain("n", 6, p1)
    moved = sketch.op("moved", (neg,), 24, opcode=opcode)
    add = sketch.op("add", (tail, moved), 24)
    tail = sketch.chain("m", 6, add)
    sketch.op("late", (tail, neg), 24)
    return sketch


@pytest.mark.parametrize("opcode", ["copy", "slice"])
@pytest.mark.parametrize(
    "places",
    [[("neg", None)], [("moved", 0)], [("add", 1)], [("neg", None), ("add", 1)]],
)
def test_coloured_source_of_a_move_b5_12(opcode, places) -> None:
    problem = moving(move_sketch(opcode))
    result = run_greedy(
        problem,
        IC.replace(
            enable_sync_copy_replacement=True,
            enable_sync_slice_replacement=True,
            allocate_colored_buffers_early=False,
            buffer_colorings=tuple(
                color(name, ALTERNATE, operand) for name, operand in places
            ),
        ),
    )
    served = spaces(problem, result)
    for name, operand in places:
        if operand is None:
            assert defined_in(problem, result)[name] is ALTERNATE
        elif not (name == "moved" and replaced(problem, result)):
            assert served[f"{name}:{operand}{{}}"] is ALTERNATE


def test_room_is_kept_again_after_a_failure_b5_13() -> None:
    problem = chains(72)
    seen = []

    class Watch:
        """Sees blocks and moves nothing."""

        def repack(self, blocks):
            seen.append(len(blocks))
            for block in blocks:
                block.offset = block.initial_offset
            return False

    def fail(request, outcome, retry):
        # The first attempt at neg3 is taken back, after its colour was given up.
        if retry == 0 and problem.names[request.use.use.step] == "neg4":
            return OUT_OF_MEMORY | REQUIRES_UNCOMMIT
        return outcome

    result = run_greedy(
        problem,
        IC.replace(
            max_retries=2,
            max_repacks=2,
            repacker=Watch(),
            allocate_colored_buffers_early=False,
            allocation_result_modifier_testing_fn=fail,
            buffer_colorings=tuple(
                color(name, ALTERNATE) for name in ("neg0", "neg3", "neg4")
            ),
        ),
    )
    made = defined_in(problem, result)
    assert made["neg0"] is made["neg3"] is made["neg4"] is ALTERNATE


def linked(place) -> bool:
    return place.instruction.attributes.get("custom_call_target") == "link"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_chain_in_one_piece_b5_14(number) -> None:
    alias = 'custom_call_target="link", output_to_operand_aliasing={{}: (0, {})}'
    text = module(
        f"{p('p0', 'p1')}\n  neg = {F} negate(p0)\n"
        f"  l0 = {F} custom-call(neg), {alias}\n{chain('a', 12, 'p1')}\n"
        f"  l1 = {F} custom-call(l0), {alias}\n{chain('b', 12, 'a11')}\n"
        f"  l2 = {F} custom-call(l1), {alias}\n{chain('c', 12, 'b11')}\n"
        f"  l3 = {F} custom-call(l2), {alias}\n  x = {F} add(c11, l3)\n"
        f"  ROOT r = {F} negate(x)"
    )
    made = plan(
        text,
        count_options(
            position_requires_contiguous_allocation_fn=linked,
            allocate_colored_buffers_early=False,
            buffer_colorings=(color(f"l{number}", ALTERNATE, 0),),
        ),
        alternate_memory_bytes=48,
    )
    assert {made.space(f"l{i}") for i in range(3)} == {1}
    assert made.operand_space(f"l{number}", 0) == 1
    kinds = [x for x in made.plan.allocations if isinstance(x, CopyAllocation)]
    names = made.plan.problem.names
    assert not any(names[x.position.step].startswith("l") for x in kinds)
