"""Scratch of loops and of asynchronous computations."""

from __future__ import annotations

import pytest

import msa
from msa.assignment.scratch import scratch_rooms
from msa.assignment.verification import verify_plan
from msa.errors import CapacityError, PlanError

ASYNC = """
HloModule m, is_scheduled=true
inner { x = f32[256] parameter(0)  y = f32[256] tanh(x)  ROOT z = f32[256] negate(y) }
ENTRY e {
  p = f32[256] parameter(0)
  q = f32[256] parameter(1)
  s = ((f32[256]), f32[256], u32[]) async-start(p), calls=inner
  a = f32[256] negate(q)
  b = f32[256] abs(a)
  d = f32[256] async-done(s)
  ROOT r = f32[256] add(b, d)
}
"""
LOOP = """
HloModule m, is_scheduled=true
body {
  bp = (s32[], f32[256], f32[256]) parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  v = f32[256] get-tuple-element(bp), index=1
  w = f32[256] get-tuple-element(bp), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[256] subtract(v, w)
  ROOT t = (s32[], f32[256], f32[256]) tuple(j, u, w)
}
cond {
  cp = (s32[], f32[256], f32[256]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(ci, ten), direction=LT
}
ENTRY main {
  x = f32[256] parameter(0)
  y = f32[256] parameter(1)
  nil = s32[] constant(0)
  zero = s32[] copy(nil)
  v0 = f32[256] negate(x)
  w0 = f32[256] exponential(y)
  init = (s32[], f32[256], f32[256]) tuple(zero, v0, w0)
  loop = (s32[], f32[256], f32[256]) while(init), condition=cond, body=body
  v1 = f32[256] get-tuple-element(loop), index=1
  ROOT out = f32[256] cosine(v1)
}
"""


def plan(text: str, sizes: dict[str, int], capacity: int = 8192, **changes):
    options = msa.Options(
        reserved_scoped_memory_fn=lambda x, operands, results: sizes.get(x.name, 0),
        **changes,
    )
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=capacity)
    return msa.assign(msa.parse(text), target, options)


def stays(text: str, sizes: dict[str, int]):
    problem = plan(text, sizes).problem
    steps = {problem.names.index(name): size for name, size in sizes.items()}
    return problem.names, scratch_rooms(problem, steps)


def test_asynchronous_steps_share_room_from_start_to_done() -> None:
    names, (room,) = stays(ASYNC, {"y": 512, "z": 1024, "a": 64})
    # The computation is laid out right before its start.
    span = (names.index("x"), names.index("d"))
    assert room.pieces == [(*span, 1024)]
    assert room.stays == {names.index("y"): span, names.index("z"): span}
    assert not room.at_bottom


def test_a_loops_scratch_lasts_as_long_as_the_loop() -> None:
    names, (room,) = stays(LOOP, {"loop": 512, "u": 1024, "v0": 64})
    first, last, inside = (names.index(n) for n in ("cp", "loop", "u"))
    assert room.pieces == [
        (first, inside - 1, 512),
        (inside, inside, 1024),
        (inside + 1, last, 512),
    ]
    assert room.stays == {inside: (inside, inside), last: (first, last)}
    assert room.at_bottom


@pytest.mark.parametrize("strategy", ["greedy", "search"])
@pytest.mark.parametrize("repacks", [0, 5])
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (ASYNC, {"y": 1024, "z": 2048, "a": 512, "b": 4096}),
        (LOOP, {"loop": 2048, "u": 1024, "cp": 64}),
    ],
    ids=["async", "loop"],
)
def test_plans_keep_clear_of_it(text, sizes, repacks, strategy) -> None:
    made = plan(text, sizes, max_repacks=repacks, strategy=strategy)
    assert {n: size for n, (_, size) in made.scoped_chunks.items()} == sizes
    made.verify()
    made.prove()


def test_asynchronous_scratch_that_finds_no_room() -> None:
    with pytest.raises(CapacityError, match="asynchronous") as caught:
        plan(ASYNC, {"y": 1024, "a": 2048}, capacity=2048)
    assert caught.value.needed == 3072


def check(made: msa.Assignment, scoped: dict[str, tuple[int, int]]) -> None:
    verify_plan(made.original, made.module, made.chunks, made.target, scoped=scoped)


@pytest.mark.parametrize("other", ["a", "b"])
def test_verify_sees_scratch_of_what_runs_meanwhile(other) -> None:
    made = plan(ASYNC, {"y": 1024, other: 512})
    check(made, made.scoped_chunks)
    offset = made.scoped_chunks["y"][0]
    with pytest.raises(PlanError, match="scratch of y"):
        check(made, {**made.scoped_chunks, other: (offset, 512)})


def test_verify_lets_steps_of_one_computation_share_scratch() -> None:
    made = plan(ASYNC, {"y": 1024, "z": 1024})
    assert made.scoped_chunks["y"] == made.scoped_chunks["z"]
    made.verify()
