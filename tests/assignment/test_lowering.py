"""Lowering, kind by kind: what becomes of an allocation in the module."""

from __future__ import annotations

from typing import Any

import pytest

import msa
from msa.analysis import FlattenedSchedule
from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    MirroredAllocation,
    ParentAllocation,
    PinnedAllocation,
    Position,
    ScopedAllocation,
    Slice,
    SliceBounds,
    SlicedCopyAllocation,
    Use,
    WindowPrefetchedAllocation,
)
from msa.assignment.lowering import Lowered, lower
from msa.assignment.lowering.needed import needed_allocations
from msa.assignment.options import Options
from msa.assignment.verification import verify_plan
from msa.errors import PlanError
from msa.heap.chunk import Chunk
from msa.hlo import Instruction, Module
from msa.target import Target

DEFAULT, ALTERNATE = MemorySpace.DEFAULT, MemorySpace.ALTERNATE


class Steps:
    """A module with its steps by name, to write allocations of it."""

    def __init__(self, text: str) -> None:
        self.module = msa.parse(text)
        self.flat = FlattenedSchedule.run(self.module).instructions
        self.step = {x.name: i for i, x in enumerate(self.flat)}

    def _common(
        self, at: str, index: tuple[int, ...], offset: int | None, size: int
    ) -> dict[str, Any]:
        step = self.step[at]
        return {
            "value": 0,
            "position": Position(step, index),
            "space": DEFAULT if offset is None else ALTERNATE,
            "chunk": None if offset is None else Chunk(offset, size),
            "start": step,
            "end": step + 1,
        }

    def uses(self, *texts: str) -> list[Use]:
        """`name:operand` or `name:operand:index`."""
        found = []
        for text in texts:
            name, operand, *index = text.split(":")
            found.append(
                Use(self.step[name], int(operand), tuple(int(i) for i in index))
            )
        return found

    def pinned(
        self,
        at: str,
        *uses: str,
        offset: int | None = None,
        index: tuple[int, ...] = (),
        size: int = 1024,
    ) -> PinnedAllocation:
        return PinnedAllocation(
            **self._common(at, index, offset, size), uses=self.uses(*uses)
        )

    def copy(
        self,
        source: Allocation,
        after: int | str,
        before: str,
        *uses: str,
        offset: int | None = None,
        size: int = 1024,
        **more: Any,
    ) -> CopyAllocation:
        start = after if isinstance(after, int) else self.step[after]
        return CopyAllocation(
            value=0,
            position=source.position,
            space=DEFAULT if offset is None else ALTERNATE,
            chunk=None if offset is None else Chunk(offset, size),
            start=start + 1,
            end=self.step[before],
            uses=self.uses(*uses),
            source=source,
            start_after=start,
            done_before=self.step[before],
            **more,
        )

    def lower(self, *allocations: Allocation, **options: Any) -> Lowered:
        before = self.module.to_text()
        lowered = lower(self.module, self.flat, allocations, Options(**options))
        assert self.module.to_text() == before
        msa.hlo.verify(lowered.module)
        assert msa.parse(lowered.module.to_text()) == lowered.module
        return lowered

    def verify(self, lowered: Lowered) -> None:
        verify_plan(
            self.module,
            lowered.module,
            {p.text: (c.offset, c.size) for p, c in lowered.chunks.items()},
            Target.preset("tpu_v5e"),
            scoped={x.name: (c.offset, c.size) for x, c in lowered.scoped.items()},
        )


def named(module: Module) -> dict[str, Instruction]:
    return {x.name: x for c in module.computations for x in c.instructions}


def order(module: Module) -> list[str]:
    assert module.schedule is not None
    return [x.name for x in module.schedule.sequence(module.entry)]


CHAIN = """
HloModule chain, is_scheduled=true
ENTRY main {
  x = f32[256]{0} parameter(0)
  w = f32[256]{0} parameter(1)
  a = f32[256]{0} negate(x)
  b = f32[256]{0} exponential(a)
  c = f32[256]{0} subtract(b, w)
  d = f32[256]{0} reverse(c), dimensions={0}
  ROOT e = f32[256]{0} subtract(d, a)
}
"""


def test_nothing_decided_changes_nothing() -> None:
    steps = Steps(CHAIN)
    assert steps.lower().module == steps.module


def test_a_pinned_value_is_colored_where_it_is_defined() -> None:
    steps = Steps(CHAIN)
    lowered = steps.lower(steps.pinned("b", "c:0", offset=0))
    assert order(lowered.module) == order(steps.module)
    assert named(lowered.module)["b"].shape.memory_space == 1
    assert named(lowered.module)["a"].shape.memory_space == 0
    assert [(p.text, c) for p, c in lowered.chunks.items()] == [("b{}", Chunk(0, 1024))]
    assert lowered.peak_bytes == 1024
    steps.verify(lowered)


def test_a_prefetch_is_a_pair_in_its_gap_and_its_users_read_the_end() -> None:
    steps = Steps(CHAIN)
    w = steps.pinned("w")
    lowered = steps.lower(w, steps.copy(w, "a", "c", "c:1", offset=2048))
    names = order(lowered.module)
    assert names == ["x", "w", "a", "copy-start", "b", "copy-done", "c", "d", "e"]
    by_name = named(lowered.module)
    start, done = by_name["copy-start"], by_name["copy-done"]
    assert str(start.shape) == "(f32[256]{0:S(1)}, f32[256]{0}, u32[])"
    assert str(done.shape) == "f32[256]{0:S(1)}"
    assert start.operands == (by_name["w"],)
    assert by_name["c"].operands == (by_name["b"], done)
    steps.verify(lowered)


def test_an_eviction_and_the_way_back() -> None:
    steps = Steps(CHAIN)
    a = steps.pinned("a", "b:0", offset=0)
    out = steps.copy(a, "b", "c")
    back = steps.copy(out, "c", "e", "e:1", offset=1024)
    lowered = steps.lower(a, out, back)
    assert order(lowered.module) == (
        [
            "x",
            "w",
            "a",
            "b",
            "copy-start",
            "copy-done",
            "c",
            "copy-start.1",
            "d",
            "copy-done.1",
            "e",
        ]
    )
    by_name = named(lowered.module)
    assert str(by_name["copy-start"].shape) == "(f32[256]{0}, f32[256]{0:S(1)}, u32[])"
    assert by_name["copy-start.1"].operands == (by_name["copy-done"],)
    steps.verify(lowered)


def test_ends_come_before_starts_and_evictions_before_prefetches_b5_11() -> None:
    steps = Steps(CHAIN)
    w, x = steps.pinned("w"), steps.pinned("x")
    a = steps.pinned("a", "b:0", offset=0)
    lowered = steps.lower(
        w,
        steps.copy(w, "x", "c", "c:1", offset=1024),
        a,
        steps.copy(a, "b", "d", "e:1"),
        x,
        steps.copy(x, "b", "d", offset=2048),
    )
    names = order(lowered.module)
    gap = names[names.index("b") + 1 : names.index("c")]
    ends = [n.startswith("copy-done") for n in gap]
    assert ends == [True, False, False]
    starts = [named(lowered.module)[n] for n in gap[1:]]
    assert [s.operands[0].name for s in starts] == ["a", "x"]


def test_a_cross_program_prefetch_comes_first_and_carries_its_number() -> None:
    steps = Steps(CHAIN)
    w = steps.pinned("w")
    copy = steps.copy(w, -1, "c", "c:1", offset=0, cross_program_index=0)
    lowered = steps.lower(w, copy)
    assert order(lowered.module)[:2] == ["w", "copy-start"]
    start = named(lowered.module)["copy-start"]
    assert start.attributes["cross_program_prefetch_index"] == 0
    assert "cross_program_prefetch_index=0" in lowered.module.to_text()


def test_a_start_inside_a_called_computation_moves_behind_the_call() -> None:
    steps = Steps("""
HloModule calls, is_scheduled=true
f { p = f32[256]{0} parameter(0)  q = f32[256]{0} sine(p)  ROOT r = f32[256]{0} cosine(q) }
ENTRY main {
  x = f32[256]{0} parameter(0)
  w = f32[256]{0} parameter(1)
  a = f32[256]{0} call(x), to_apply=f
  b = f32[256]{0} negate(a)
  ROOT c = f32[256]{0} add(b, w)
}
""")
    w = steps.pinned("w")
    lowered = steps.lower(w, steps.copy(w, "q", "c", "c:1", offset=0))
    assert order(lowered.module) == ["x", "w", "a", "copy-start", "b", "copy-done", "c"]


# -- tuples and loops ----------------------------------------------------------------

LOOP = """
HloModule loop, is_scheduled=true
body {
  p = (f32[256]{0}, f32[256]{0}, pred[]) parameter(0)
  v = f32[256]{0} get-tuple-element(p), index=0
  w = f32[256]{0} get-tuple-element(p), index=1
  go = pred[] get-tuple-element(p), index=2
  u = f32[256]{0} subtract(v, w)
  s = f32[256]{0} sine(u)
  ROOT q = (f32[256]{0}, f32[256]{0}, pred[]) tuple(s, w, go)
}
cond {
  cp = (f32[256]{0}, f32[256]{0}, pred[]) parameter(0)
  ROOT on = pred[] get-tuple-element(cp), index=2
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  f = pred[] parameter(2)
  a = f32[256]{0} negate(x)
  b = f32[256]{0} exponential(y)
  g = pred[] copy(f)
  init = (f32[256]{0}, f32[256]{0}, pred[]) tuple(a, b, g)
  l = (f32[256]{0}, f32[256]{0}, pred[]) while(init), condition=cond, body=body
  e = f32[256]{0} get-tuple-element(l), index=0
  ROOT out = f32[256]{0} subtract(e, b)
}
"""


def test_loop_state_is_colored_at_every_place() -> None:
    steps = Steps(LOOP)
    lowered = steps.lower(
        steps.pinned("a", "l:0:0", offset=0),
        steps.pinned("p", "u:0", offset=0, index=(0,)),
        steps.pinned("s", "q:0", offset=0),
        steps.pinned("l", "out:0", offset=0, index=(0,)),
    )
    wanted = "(f32[256]{0:S(1)}, f32[256]{0}, pred[])"
    by_name = named(lowered.module)
    for name in ("p", "cp", "init", "l", "q"):
        assert str(by_name[name].shape) == wanted, name
    assert [p.text for p in lowered.chunks] == ["a{}"]
    steps.verify(lowered)


def test_a_copied_element_goes_into_the_tuple_in_place() -> None:
    steps = Steps(LOOP)
    b = steps.pinned("b", "out:1")
    into = steps.copy(b, "b", "init", "l:0:1", offset=0)
    lowered = steps.lower(
        b, into, steps.pinned("p", "u:1", "q:1", offset=0, index=(1,))
    )
    by_name = named(lowered.module)
    assert [o.name for o in by_name["init"].operands] == ["a", "copy-done", "g"]
    assert "tuple" not in by_name  # no new one was needed
    assert by_name["out"].operands[1] is by_name["b"]
    steps.verify(lowered)


def test_a_shared_tuple_is_not_changed_for_others() -> None:
    text = (
        LOOP.replace("subtract(e, b)\n", "subtract(e, b)\n")
        .replace(
            "  e = f32",
            "  again = f32[256]{0} get-tuple-element(init), index=1\n  e = f32",
        )
        .replace("subtract(e, b)", "subtract(e, again)")
    )
    steps = Steps(text)
    b = steps.pinned("b", "out:1")
    into = steps.copy(b, "b", "init", "l:0:1", offset=0)
    lowered = steps.lower(
        b, into, steps.pinned("p", "u:1", "q:1", offset=0, index=(1,))
    )
    out = named(lowered.module)["out"]
    assert out.operands[1].name == "b"
    steps.verify(lowered)


def test_a_parent_widens_the_loop_and_is_handed_on() -> None:
    steps = Steps(LOOP)
    b = steps.pinned("b")
    into = steps.copy(b, "b", "init", "l:0:1", offset=0)
    in_loop = steps.pinned("p", "u:1", offset=0, index=(1,))
    parent = ParentAllocation(
        value=0,
        position=Position(steps.step["p"], (1,)),
        space=DEFAULT,
        chunk=None,
        start=steps.step["p"],
        end=steps.step["p"],
        original=b,
        loop=steps.step["l"],
    )
    again = steps.copy(parent, "u", "q", "q:1", offset=0)
    mirrored = MirroredAllocation(
        value=0,
        position=Position(steps.step["b"]),
        space=DEFAULT,
        chunk=None,
        start=steps.step["l"],
        end=steps.step["l"],
        uses=steps.uses("out:1"),
        original=b,
    )
    lowered = steps.lower(b, into, in_loop, parent, again, mirrored)
    by_name = named(lowered.module)
    assert len(by_name["l"].shape.children) == 4
    assert len(by_name["cp"].shape.children) == 4
    assert [o.name for o in by_name["init"].operands][3] == "b"
    last = by_name["q"].operands[3]
    assert last.opcode == "get-tuple-element"
    assert last.tuple_index == 3
    assert by_name["q"].operands[1].opcode == "copy-done"
    assert by_name["out"].operands[1] is by_name["b"]
    steps.verify(lowered)


def test_a_parent_that_nothing_reads_is_not_made() -> None:
    steps = Steps(LOOP)
    b = steps.pinned("b")
    parent = ParentAllocation(
        value=0,
        position=Position(steps.step["p"], (1,)),
        space=DEFAULT,
        chunk=None,
        start=1,
        end=1,
        original=b,
        loop=steps.step["l"],
    )
    assert needed_allocations([b, parent]) == [b]
    assert steps.lower(b, parent).module == steps.module


def test_readers_of_a_whole_loop_state_keep_what_they_had() -> None:
    text = LOOP.replace(
        "  e = f32[256]{0} get-tuple-element(l), index=0\n"
        "  ROOT out = f32[256]{0} subtract(e, b)\n",
        "  ROOT out = (f32[256]{0}, f32[256]{0}, pred[]) opt-barrier(l)\n",
    )
    steps = Steps(text)
    b = steps.pinned("b")
    parent = ParentAllocation(
        value=0,
        position=Position(steps.step["p"], (1,)),
        space=DEFAULT,
        chunk=None,
        start=steps.step["p"],
        end=steps.step["p"],
        uses=steps.uses("u:1"),
        original=b,
        loop=steps.step["l"],
    )
    lowered = steps.lower(b, parent)
    out = named(lowered.module)["out"]
    assert len(out.shape.children) == 3
    assert out.operands[0].opcode == "tuple"


# -- other shapes ------------------------------------------------------------------------


def test_a_bitcast_is_made_again_behind_a_copy() -> None:
    steps = Steps("""
HloModule casts, is_scheduled=true
ENTRY main {
  x = f32[16,16]{1,0} parameter(0)
  y = f32[256]{0} parameter(1)
  v = f32[256]{0} bitcast(x)
  a = f32[256]{0} negate(y)
  ROOT b = f32[256]{0} add(a, v)
}
""")
    x = steps.pinned("x")
    lowered = steps.lower(x, steps.copy(x, "y", "b", "b:1", offset=0))
    b = named(lowered.module)["b"]
    assert b.operands[1].opcode == "bitcast"
    assert b.operands[1].operands[0].opcode == "copy-done"
    assert b.operands[1].shape.memory_space == 1
    assert "v" not in named(lowered.module)
    steps.verify(lowered)


SLICED = """
HloModule sliced, is_scheduled=true
ENTRY main {
  w = f32[4,256]{1,0} parameter(0)
  x = f32[4,256]{1,0} parameter(1)
  a = f32[4,256]{1,0} negate(x)
  b = f32[4,256]{1,0} sine(a)
  ROOT c = f32[4,256]{1,0} subtract(b, w)
}
"""


def sliced(steps: Steps, *pieces: Slice, uniform: bool = False) -> SlicedCopyAllocation:
    return SlicedCopyAllocation(
        value=0,
        position=Position(steps.step["w"]),
        space=ALTERNATE,
        chunk=Chunk(0, 4096),
        start=steps.step["x"] + 1,
        end=steps.step["c"],
        uses=steps.uses("c:1"),
        source=steps.pinned("w"),
        slices=pieces,
        done_before=steps.step["c"],
        uniform=uniform,
    )


def test_a_sliced_prefetch_joins_its_pieces_by_address() -> None:
    steps = Steps(SLICED)
    full = SliceBounds(0, 256)
    late = Slice((SliceBounds(0, 2), full), Chunk(0, 2048), steps.step["a"])
    early = Slice((SliceBounds(2, 4), full), Chunk(2048, 2048), steps.step["x"])
    allocation = sliced(steps, early, late)
    lowered = steps.lower(allocation.source, allocation)
    by_name = named(lowered.module)
    join = by_name["c"].operands[1]
    assert join.attributes["custom_call_target"] == "ConcatBitcast"
    starts = [done.operands[0] for done in join.operands]
    roots = [s.called_computations[0].root for s in starts]
    assert [r.attributes["slice"][0] for r in roots] == [(0, 2, 1), (2, 4, 1)]
    names = order(lowered.module)
    assert names.index(starts[1].name) < names.index(starts[0].name)
    assert {p.text: c.offset for p, c in lowered.chunks.items()} == {
        join.operands[1].name + "{}": 2048,
        join.operands[0].name + "{}": 0,
        join.name + "{}": 0,
    }
    assert "slice-start" in lowered.module.to_text()
    steps.verify(lowered)


@pytest.mark.parametrize("bounds", [(0, 5), (3, 3), (-1, 2)])
def test_slices_outside_the_array_are_refused(bounds: tuple[int, int]) -> None:
    steps = Steps(SLICED)
    piece = Slice((SliceBounds(*bounds), SliceBounds(0, 256)), Chunk(0, 4096), 1)
    allocation = sliced(steps, piece)
    with pytest.raises(PlanError, match="slice"):
        steps.lower(allocation.source, allocation)


def test_a_slice_of_another_rank_is_refused() -> None:
    steps = Steps(SLICED)
    allocation = sliced(steps, Slice((SliceBounds(0, 4),), Chunk(0, 4096), 1))
    with pytest.raises(PlanError, match="dimensions"):
        steps.lower(allocation.source, allocation)


def test_uniform_slices_are_of_bytes() -> None:
    steps = Steps(SLICED)
    pieces = [
        Slice((SliceBounds(i * 2048, (i + 1) * 2048),), Chunk(i * 2048, 2048), i + 1)
        for i in range(2)
    ]
    allocation = sliced(steps, *pieces, uniform=True)
    lowered = steps.lower(allocation.source, allocation)
    whole = named(lowered.module)["c"].operands[1]
    assert whole.opcode == "bitcast"
    join = whole.operands[0]
    assert str(join.shape) == "s8[4096]{0:S(1)}"


def test_a_synchronous_slice_is_replaced_by_an_asynchronous_one() -> None:
    steps = Steps("""
HloModule moves, is_scheduled=true
ENTRY main {
  w = f32[4,256]{1,0} parameter(0)
  x = f32[1,256]{1,0} parameter(1)
  a = f32[1,256]{1,0} negate(x)
  s = f32[1,256]{1,0} slice(w), slice={[2:3], [0:256]}
  ROOT c = f32[1,256]{1,0} subtract(a, s)
}
""")
    w = steps.pinned("w")
    copy = steps.copy(w, "w", "c", "c:1", offset=0, replaces=steps.step["s"])
    lowered = steps.lower(w, copy)
    assert "s" not in named(lowered.module)
    assert "slice-start" in lowered.module.to_text()
    assert order(lowered.module) == ["w", "async-start", "x", "a", "async-done", "c"]
    steps.verify(lowered)


def test_a_synchronous_copy_is_bypassed() -> None:
    steps = Steps(CHAIN.replace("reverse(c), dimensions={0}", "copy(c)"))
    c = steps.pinned("c")
    copy = steps.copy(c, "c", "e", "e:0", offset=0, replaces=steps.step["d"])
    lowered = steps.lower(c, copy)
    assert "d" not in named(lowered.module)
    assert named(lowered.module)["e"].operands[0].opcode == "copy-done"
    steps.verify(lowered)


def test_what_has_no_asynchronous_form_is_refused() -> None:
    steps = Steps(CHAIN)
    c = steps.pinned("c")
    copy = steps.copy(c, "c", "e", "e:0", offset=0, replaces=steps.step["d"])
    with pytest.raises(PlanError, match="reverse has no asynchronous form"):
        steps.lower(c, copy)


WINDOW = """
HloModule windows, is_scheduled=true
fused {
  fp = f32[256]{0} parameter(0)
  fq = f32[256]{0} parameter(1)
  ROOT fr = f32[256]{0} subtract(fp, fq)
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  w = f32[256]{0} parameter(1)
  a = f32[256]{0} negate(x)
  ROOT f = f32[256]{0} fusion(a, w), kind=kLoop, calls=fused
}
"""


def window(steps: Steps, reader: str) -> WindowPrefetchedAllocation:
    return WindowPrefetchedAllocation(
        value=0,
        position=Position(steps.step["w"]),
        space=ALTERNATE,
        chunk=Chunk(0, 512),
        start=steps.step["w"] + 1,
        end=steps.step[reader],
        source=steps.pinned("w"),
        use=Use(steps.step[reader], 1),
        window_bytes=512,
        start_after=steps.step["w"],
        done_before=steps.step[reader],
    )


def test_a_window_is_two_more_operands_of_the_fusion() -> None:
    steps = Steps(WINDOW)
    told: list[tuple[str, int, int]] = []
    allocation = window(steps, "f")
    lowered = steps.lower(
        allocation.source,
        allocation,
        notify_operand_appended_fn=lambda x, a, b: told.append((x.name, a, b)),
    )
    f = named(lowered.module)["f"]
    assert len(f.operands) == 4
    fetch = f.operands[2].operands[0]
    assert fetch.attributes["custom_call_target"] == "WindowPrefetch"
    assert str(fetch.shape) == "(u8[512]{0:S(1)}, s32[2]{0})"
    assert len(f.fused_computation.parameters) == 4
    assert told == [("f", 1, 2), ("f", 1, 3)]
    assert order(lowered.module)[:3] == ["x", "w", fetch.name]


def test_a_window_for_something_else_is_refused() -> None:
    steps = Steps(CHAIN)
    allocation = window(steps, "c")
    with pytest.raises(PlanError, match="fusion"):
        steps.lower(allocation.source, allocation)


# -- scratch, contradictions, spilling -----------------------------------------------


def test_scratch_is_exported_with_its_instruction() -> None:
    steps = Steps(CHAIN)
    scoped = [
        ScopedAllocation(
            value=-1,
            position=Position(steps.step["b"]),
            space=ALTERNATE,
            chunk=Chunk(0, 512),
            start=steps.step["b"],
            end=steps.step["b"],
        ),
        ScopedAllocation(
            value=-1,
            position=Position(steps.step["e"]),
            space=ALTERNATE,
            chunk=Chunk(0, 2048),
            start=len(steps.flat),
            end=len(steps.flat),
            is_post_module=True,
        ),
    ]
    lowered = steps.lower(*scoped)
    assert {x.name: c for x, c in lowered.scoped.items()} == {"b": Chunk(0, 512)}
    assert lowered.post_module == Chunk(0, 2048)
    assert lowered.peak_bytes == 2048
    assert lowered.module == steps.module


def test_one_place_pinned_twice_is_a_contradiction() -> None:
    steps = Steps(CHAIN)
    with pytest.raises(PlanError, match="pinned twice") as caught:
        steps.lower(steps.pinned("b", offset=0), steps.pinned("b", "c:0"))
    assert caught.value.where == "step 3, b{}"


def test_one_buffer_at_two_offsets_is_a_contradiction() -> None:
    steps = Steps(LOOP)
    with pytest.raises(PlanError, match="share storage"):
        steps.lower(
            steps.pinned("a", "l:0:0", offset=0),
            steps.pinned("p", "u:0", offset=1024, index=(0,)),
        )


def test_a_copy_of_what_is_not_there_is_a_contradiction() -> None:
    steps = Steps(CHAIN)
    w = steps.pinned("w")
    copy = steps.copy(w, "a", "c", "c:1", offset=0)
    with pytest.raises(PlanError, match="before it is made"):
        steps.lower(copy, w)


def test_always_spilling_leaves_nothing_in_fast_memory_between_uses_b7() -> None:
    steps = Steps(CHAIN)
    a = steps.pinned("a", "b:0", "e:1", offset=0)
    a.end = steps.step["e"]
    lowered = steps.lower(a, always_spill_to_default_memory=True)
    by_name = named(lowered.module)
    assert by_name["b"].operands[0] is by_name["a"]
    back = by_name["e"].operands[1]
    assert back.opcode == "copy-done"
    assert back.shape.memory_space == 1
    out = back.operands[0].operands[0]
    assert out.opcode == "copy-done"
    assert out.shape.memory_space == 0
    steps.verify(lowered)


def test_dead_code_and_what_only_it_calls_goes() -> None:
    steps = Steps(
        WINDOW.replace("ROOT f =", "f =").replace(
            "calls=fused\n", "calls=fused\n  ROOT r = f32[256]{0} cosine(a)\n"
        )
    )
    lowered = steps.lower()
    assert [c.name for c in lowered.module.computations] == ["main"]
    assert order(lowered.module) == ["x", "w", "a", "r"]


def test_control_dependencies_stay_true() -> None:
    text = CHAIN.replace(
        "d = f32[256]{0} reverse(c), dimensions={0}",
        "d = f32[256]{0} reverse(c), dimensions={0}, control-predecessors={a}",
    )
    steps = Steps(text)
    lowered = steps.lower(steps.pinned("b", "c:0", offset=0))
    by_name = named(lowered.module)
    assert by_name["d"].control_predecessors == (by_name["a"],)


NESTED_STATE = """
HloModule m, is_scheduled=true
body { p = (s32[], (f32[256]), (f32[256])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = (f32[256]) get-tuple-element(p), index=1
  x = f32[256] get-tuple-element(a), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  b = (f32[256]) tuple(x)
  ROOT r = (s32[], (f32[256]), (f32[256])) tuple(j, a, b) }
condition { p = (s32[], (f32[256]), (f32[256])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(2)
  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY e {
  x = f32[256] iota(), iota_dimension=0
  zero = s32[] constant(0)
  i = s32[] copy(zero)
  a = (f32[256]) tuple(x)
  b = (f32[256]) tuple(x)
  t = (s32[], (f32[256]), (f32[256])) tuple(i, a, b)
  w = (s32[], (f32[256]), (f32[256])) while(t), condition=condition, body=body,
    backend_config={"known_trip_count":{"n":"2"}}
  ROOT r = (f32[256]) get-tuple-element(w), index=1 }
"""


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_a_tuple_in_loop_state_does_not_stand_in_for_its_twin(strategy: str) -> None:
    """Both hold the same array, but each element of the state has its own tuple."""
    module = msa.parse(NESTED_STATE)
    plan = msa.assign(
        module,
        msa.Target.preset("tpu_v5e"),
        msa.Options(strategy=strategy),  # type: ignore[arg-type]
    )
    plan.verify()
    plan.prove(seed=1)
    result = plan.module.computation("body").root
    assert result.operands[1] is not result.operands[2]


# How a call's result, in which an array is twice, is handed on as the result of all.
TWICE = {
    "one of both": (
        "(s32[16], s32[16]) tuple(j, j)",
        "ROOT h = s32[16] get-tuple-element(c), index=1",
    ),
    "one of both, the other read as well": (
        "(s32[16], s32[16]) tuple(j, j)",
        """g = s32[16] get-tuple-element(c), index=0
  n = s32[16] negate(g)
  ROOT h = s32[16] get-tuple-element(c), index=1""",
    ),
    "a tuple of both": (
        "((s32[16], s32[16]), s32[16]) tuple(t, j)",
        "ROOT h = (s32[16], s32[16]) get-tuple-element(c), index=0",
    ),
    "one of a tuple of both": (
        "((s32[16], s32[16]), s32[16]) tuple(t, j)",
        """g = (s32[16], s32[16]) get-tuple-element(c), index=0
  ROOT h = s32[16] get-tuple-element(g), index=1""",
    ),
    "a copy of the tuple": (
        "(s32[16], s32[16]) tuple(j, j)",
        "ROOT h = (s32[16], s32[16]) copy(c)",
    ),
}


@pytest.mark.parametrize("form", TWICE)
@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_what_a_tuple_holds_twice_is_not_made_of_itself(
    form: str, strategy: str
) -> None:
    made, read = TWICE[form]
    shape = made.partition(" tuple")[0]
    module = msa.parse(f"""HloModule m, is_scheduled=true
f {{ a = f32[16] parameter(0)
  j = s32[16] iota(), iota_dimension=0
  t = (s32[16], s32[16]) tuple(j, j)
  ROOT r = {made} }}
ENTRY e {{ p = f32[16] parameter(0)
  c = {shape} call(p), to_apply=f
  {read} }}""")
    plan = msa.assign(
        module,
        msa.Target.preset("tpu_v5e"),
        msa.Options(strategy=strategy),  # type: ignore[arg-type]
    )
    plan.verify()
    plan.prove(seed=1)
    results = msa.execute(plan.module, [[0.0] * 16])
    for result in results if isinstance(results, tuple) else [results]:
        assert result.tolist() == list(range(16))
