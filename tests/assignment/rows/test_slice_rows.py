"""Rows B4 and B1.10: prefetches in slices in whole modules, and their repacking."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.hlo_rows import Planned, count_options, loop, module, plan
from assignment.sketch import SMALL, Sketch
from assignment.test_slicing import SLICED
from msa.assignment.algorithm import run_greedy
from msa.assignment.allocation import SlicedCopyAllocation
from msa.assignment.options import InstructionCountPicker, SlicedPrefetchOptions

A = "f32[8,8]{1,0}"


def in_slices(text: str, low: int = 1, high: int = 10, **changes) -> Planned:
    options = count_options(
        low,
        high,
        sliced_prefetch_options=SlicedPrefetchOptions(max_slices=2, min_bytes=8),
        **changes,
    )
    return plan(text, options, alternate_memory_bytes=1024)


HEAD = (
    f"  p0 = {A} parameter(0)\n  p1 = {A} parameter(1)\n  a = {A} tanh(p0)\n"
    f"  b = {A} tanh(a)\n  c = {A} tanh(b)\n"
)


def joined(made: Planned, name: str, operand: int):
    """The join of slices that an operand is, with the starts of the slices."""
    join = made.operand(name, operand)
    assert join.attributes.get("custom_call_target") == "ConcatBitcast"
    return join, [done.operands[0] for done in join.operands]


@pytest.mark.parametrize("copies", [False, True], ids=["B4.1", "B4.3"])
def test_slices_in_the_schedule(copies) -> None:
    made = in_slices(
        module(f"{HEAD}  ROOT r = {A} add(c, p1)"), enable_sync_copy_replacement=copies
    )
    join, starts = joined(made, "r", 1)
    assert len(starts) == 2
    order = made.order()
    one, two = sorted(order.index(s.name) for s in starts)
    assert order.index("p1") < one < order.index("a")
    assert any(made.by_name[n].opcode == "tanh" for n in order[one:two])
    assert order.index(join.name) == order.index("r") - 1
    chunks = made.plan.chunks
    low, high = sorted(chunks[f"{d.name}{{}}"] for d in join.operands)
    assert low[0] + low[1] == high[0]
    made.plan.prove()


def test_slices_that_two_read_b4_2() -> None:
    made = in_slices(
        module(
            f"{HEAD}  r = {A} add(c, p1)\n  n = {A} add(p1, b)\n"
            f"  ROOT t = ({A}, {A}) tuple(r, n)"
        )
    )
    join, _ = joined(made, "r", 1)
    assert made.operand("n", 0) is join
    # Each slice has a chunk that lasts as long as the whole is read.
    spans = [x for x in made.plan.allocations if isinstance(x, SlicedCopyAllocation)]
    names = made.plan.problem.names
    assert [x.end for x in spans] == [names.index("n")]
    made.plan.prove()


def test_slices_through_a_loop_b4_7() -> None:
    state = f"({A}, {A}, f32[])"
    text = loop(
        state,
        f"  b0 = {A} get-tuple-element(bp), index=0\n"
        f"  b1 = {A} get-tuple-element(bp), index=1\n"
        f"  bi = f32[] get-tuple-element(bp), index=2\n  one = f32[] constant(1)\n"
        f"  next = f32[] add(bi, one)\n  by = {A} add(b0, b1)\n"
        f"  ROOT bt = {state} tuple(by, b1, next)",
        f"{HEAD}  zero = f32[] constant(0)\n  copy = {A} negate(c)\n"
        f"  init = {state} tuple(copy, p1, zero)\n"
        f"  while = {state} while(init), condition=cond, body=body\n"
        f"  w0 = {A} get-tuple-element(while), index=0\n"
        f"  w1 = {A} get-tuple-element(while), index=1\n  ROOT r = {A} add(w0, w1)",
        counter=2,
    )
    made = in_slices(text, 1, 50)
    init = made.by_name["while"].operands[0].operands[1]
    assert init.attributes.get("custom_call_target") == "ConcatBitcast"
    for name in ("while", "cp", "bp", "bt"):
        assert made.space(name, (1,)) == 1
    # One chunk for the joined buffer, whatever hands it on.
    places = [p for p in made.plan.chunks if p.startswith((init.name, "while", "bp"))]
    assert f"{init.name}{{}}" in places
    made.plan.prove()


class Moves:
    """Moves p2 up with its slices swapped, and p3 below it."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []

    def repack(self, blocks) -> bool:
        from msa.heap import AllocatedSlice

        self.seen = [(b.size, b.original_slices is not None) for b in blocks]
        for block in blocks:
            block.offset = block.initial_offset
            if block.original_slices is not None:
                block.offset = 2048
                first, last = sorted(
                    s.inclusive_start_time for s in block.original_slices
                )
                block.repacked_slices = (
                    AllocatedSlice(1024, 2048, last),
                    AllocatedSlice(1024, 3072, first),
                )
            elif block.size == 1024 and block.initial_offset == 3072:
                block.offset = 1024
        return True


def four_inputs(watch: Moves, repacks: int):
    """p1, p2 (in slices), p3 and p4 (in slices), asked in this order.

    p3 is read at step 25, p1 at 30, p4 at 35 and p2 at 40; nothing else fits.
    """
    from assignment.test_slicing import halves

    sketch = Sketch(replace(SMALL, capacity=4096))
    x = sketch.parameter("x", 9000)
    sizes = {"p1": 1024, "p2": 2048, "p3": 1024, "p4": 2048}
    inputs = {name: sketch.parameter(name, size) for name, size in sizes.items()}
    for number in range(20):
        x = sketch.op(f"k{number}", (x,), 9000)
    for name in ("p3", "p1", "p4", "p2"):
        x = sketch.op(f"r{name}", (x, inputs[name]), 9000)
        for number in range(4):
            x = sketch.op(f"m{name}{number}", (x,), 9000)
    options = SLICED.replace(
        prefetch_interval_picker=InstructionCountPicker(2, 50),
        buffer_interval_comparator=lambda i: (i.value,),
        propose_slice_fn=lambda value, options: (
            halves(value, options) if value.size == 2048 else None
        ),
        max_repacks=repacks,
        repacker=watch,
    )
    result = run_greedy(sketch.problem(), options)
    return inputs, {
        a.value: a for a in result.allocations if a.is_copy_like and a.is_alternate
    }


def test_without_repacking_the_fourth_does_not_fit_b1_10() -> None:
    watch = Moves()
    inputs, copies = four_inputs(watch, 0)
    # From step 30 on 2048 bytes are free, in two pieces.
    offsets = {name: copies[inputs[name]].chunk.offset for name in ("p1", "p2", "p3")}
    assert offsets == {"p1": 0, "p2": 1024, "p3": 3072}
    first, second = copies[inputs["p2"]].slices
    assert first.start_after < second.start_after
    assert (first.chunk.offset, second.chunk.offset) == (1024, 2048)
    assert first.bounds[0].limit == second.bounds[0].start
    assert inputs["p4"] not in copies
    assert watch.seen == []


def test_slices_are_repacked_b1_10() -> None:
    watch = Moves()
    inputs, copies = four_inputs(watch, 1)
    assert sorted(watch.seen) == [(1024, False), (1024, False), (2048, True)]
    p2, p3, p4 = (copies[inputs[name]] for name in ("p2", "p3", "p4"))
    assert (p2.chunk.offset, p3.chunk.offset) == (2048, 1024)
    first, second = sorted(p2.slices, key=lambda s: s.start_after)
    assert (first.chunk.offset, second.chunk.offset) == (3072, 2048)
    # The first in time brings the second half now.
    assert first.bounds[0].start == second.bounds[0].limit
    # And the fourth fits below, where p3 was first and p1 after it.
    assert isinstance(p4, SlicedCopyAllocation)
    assert (p4.chunk.offset, p4.chunk.size) == (0, 2048)
    first, second = sorted(p4.slices, key=lambda s: s.start_after)
    assert (first.chunk.offset, second.chunk.offset) == (1024, 0)
    assert 25 <= first.start_after < 30 <= second.start_after < 35
