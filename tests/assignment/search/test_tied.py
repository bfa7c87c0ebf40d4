"""Storage that loops, branches and calls tie together may be fast throughout."""

from __future__ import annotations

import pytest

import msa
from msa.runtime import prove_lowered
from msa.testing import random_module

MIB = 1 << 20
SLOW, FAST = "f32[1024,1024]{1,0}", "f32[1024,1024]{1,0:S(1)}"
SIMPLE = "f32[512,512]{1,0}"


def target(mib: float) -> msa.Target:
    return msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=int(mib * MIB))


def loop(weight: str, fetch: str = "", name: str = "w") -> str:
    """A recurrent step of 12 trips whose weight, given by the caller, is 4 MiB."""
    state = f"(s32[], f32[8,1024]{{1,0}}, {weight})"
    return f"""HloModule m, is_scheduled=true
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  h = f32[8,1024]{{1,0}} get-tuple-element(p), index=1
  wb = {weight} get-tuple-element(p), index=2
  hh = f32[8,1024]{{1,0}} copy(h)
  d = f32[8,1024]{{1,0}} dot(hh, wb), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  i1 = s32[] add(i, one)
  ROOT t = {state} tuple(i1, d, wb)
}}
cond {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(12)
  ROOT lt = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  h0 = f32[8,1024]{{1,0}} parameter(0)
  w = {SLOW} parameter(1)
  z = s32[] constant(0)
  hc = f32[8,1024]{{1,0}} copy(h0)
  zc = s32[] copy(z)
{fetch}
  t = {state} tuple(zc, hc, {name})
  l = {state} while(t), condition=cond, body=body, backend_config={{"known_trip_count":{{"n":"12"}}}}
  ROOT o = f32[8,1024]{{1,0}} get-tuple-element(l), index=1
}}"""


def branches(kept: str) -> str:
    """A value that both branches read, and their result."""
    return f"""HloModule m, is_scheduled=true
br0 {{
  a = {kept} parameter(0)
  b = {kept} negate(a)
  ROOT c = {kept} add(a, b)
}}
br1 {{
  a1 = {kept} parameter(0)
  b1 = {kept} tanh(a1)
  ROOT c1 = {kept} multiply(a1, b1)
}}
ENTRY e {{
  p = {SIMPLE} parameter(0)
  q = pred[] parameter(1)
  v = {kept} negate(p)
  cc = {kept} conditional(q, v, v), true_computation=br0, false_computation=br1
  ROOT r = {SIMPLE} add(cc, v)
}}"""


def called(kept: str) -> str:
    """A value that a called computation reads, and its result."""
    return f"""HloModule m, is_scheduled=true
f {{
  a = {kept} parameter(0)
  b = {kept} negate(a)
  ROOT c = {kept} add(a, b)
}}
ENTRY e {{
  p = {SIMPLE} parameter(0)
  v = {kept} negate(p)
  cc = {kept} call(v), to_apply=f
  ROOT r = {SIMPLE} add(cc, v)
}}"""


def as_fast(kept: str) -> str:
    return kept.replace("}", ":S(1)}")


FETCH = f"""
  cs = ({FAST}, {SLOW}, u32[]) copy-start(w)
  cd = {FAST} copy-done(cs)"""


@pytest.mark.parametrize(
    ("program", "lowered", "mib"),
    [
        (loop(SLOW), loop(FAST, FETCH, "cd"), 16),
        (branches(SIMPLE), branches(as_fast(SIMPLE)), 4),
        (called(SIMPLE), called(as_fast(SIMPLE)), 4),
    ],
    ids=["loop", "conditional", "call"],
)
def test_as_fast_as_lowered_by_hand(program: str, lowered: str, mib: float) -> None:
    by_hand = msa.simulate(msa.parse(lowered), target(mib)).elapsed_seconds
    module = msa.parse(program)
    greedy = msa.assign(module, target(mib), msa.Options(faithful=True))
    assert by_hand < greedy.estimate.after_seconds
    for options in (msa.Options(), msa.Options(strategy="search")):
        plan = msa.assign(module, target(mib), options)
        plan.verify()
        plan.prove()
        assert plan.estimate.after_seconds <= by_hand * (1 + 1e-9)
        assert plan.estimate.after_seconds >= plan.estimate.lower_bound_seconds


def test_the_module_lowered_by_hand_is_right() -> None:
    assert prove_lowered(
        msa.parse(loop(SLOW)), msa.parse(loop(FAST, FETCH, "cd")), target(16)
    )


def test_what_does_not_fit_stays() -> None:
    module = msa.parse(loop(SLOW))
    plan = msa.assign(module, target(3.9), msa.Options(strategy="search"))
    plan.verify()
    assert not any(copy.value == "w{}" for copy in plan.copies)


def test_what_is_in_the_way_makes_room() -> None:
    """A value read once and later holds the room of a weight that is read 12 times."""
    busy = f"  x = {SIMPLE} iota(), iota_dimension=0"
    program = loop(SLOW, busy).replace(
        "ROOT o = f32[8,1024]{1,0} get-tuple-element(l), index=1",
        f"""o = f32[8,1024]{{1,0}} get-tuple-element(l), index=1
  u = {SIMPLE} add(x, x)
  ROOT r = (f32[8,1024]{{1,0}}, {SIMPLE}) tuple(o, u)""",
    )
    alone = msa.assign(msa.parse(program), target(4.5))
    assert "x{}" in alone.chunks
    assert not any(c.value == "w{}" for c in alone.copies)
    plan = msa.assign(msa.parse(program), target(4.5), msa.Options(strategy="search"))
    plan.verify()
    plan.prove()
    assert [c.kind for c in plan.copies if c.value == "w{}"] == ["prefetch"]
    assert plan.estimate.after_seconds < alone.estimate.after_seconds / 2


def test_a_result_that_the_loop_hands_through_needs_no_copy_back() -> None:
    """The caller gets the weight back, which it still has in default memory."""
    program = loop(SLOW).replace(
        "ROOT o = f32[8,1024]{1,0} get-tuple-element(l), index=1",
        f"""o = f32[8,1024]{{1,0}} get-tuple-element(l), index=1
  u = {SLOW} get-tuple-element(l), index=2
  ROOT r = (f32[8,1024]{{1,0}}, {SLOW}) tuple(o, u)""",
    )
    plan = msa.assign(msa.parse(program), target(16), msa.Options(strategy="search"))
    plan.verify()
    plan.prove()
    kinds = sorted((copy.kind, copy.value) for copy in plan.copies)
    assert kinds == [("eviction", "l{1}"), ("prefetch", "w{}")]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_compute_the_same(seed: int) -> None:
    vector = (5000, 200_000)[seed % 2]
    module = random_module(seed, size=60, vector=vector)
    for count in (2, 60):
        here = target(count * vector * 4 / MIB)
        greedy = msa.assign(module, here)
        greedy.verify()
        greedy.prove()
        plan = msa.assign(module, here, msa.Options(strategy="search"))
        plan.verify()
        plan.prove()
        known = greedy.estimate.after_seconds
        assert plan.estimate.after_seconds <= known * (1 + 1e-9)
        least = plan.estimate.lower_bound_seconds
        assert plan.estimate.after_seconds >= least * (1 - 1e-9)


def test_what_only_a_dead_loop_hands_through_is_not_copied_out_of_it() -> None:
    """A copy of the loop's result would keep a loop that nothing else needs."""
    vector = 200_000
    module = random_module(47, size=60, vector=vector)
    here = target(5 * vector * 4 / MIB)
    plan = msa.assign(module, here, msa.Options(strategy="search"))
    greedy = msa.assign(module, here).estimate.after_seconds
    assert plan.estimate.after_seconds < greedy


_BODIES = """
f {
  a = f32[512,512]{1,0} parameter(0)
  b = f32[512,512]{1,0} negate(a)
  ROOT c = f32[512,512]{1,0} add(a, b)
}
g {
  d = f32[512,512]{1,0} parameter(0)
  e = f32[512,512]{1,0} tanh(d)
  ROOT h = f32[512,512]{1,0} multiply(d, e)
}
"""
_ROOTS = {
    "conditional": "conditional(q, p, p), true_computation=f, false_computation=g",
    "call": "call(p), to_apply=f",
}


@pytest.mark.parametrize("strategy", ["greedy", "search"])
@pytest.mark.parametrize("root", sorted(_ROOTS))
def test_the_result_of_the_program_stays_where_its_caller_looks(
    root: str, strategy: str
) -> None:
    module = msa.parse(f"""
HloModule m, is_scheduled=true
{_BODIES}
ENTRY main {{
  p = f32[512,512]{{1,0}} parameter(0)
  q = pred[] parameter(1)
  ROOT r = f32[512,512]{{1,0}} {_ROOTS[root]}
}}""")
    plan = msa.assign(module, target(8), msa.Options(strategy=strategy))
    plan.verify()
    plan.prove()
    assert plan.module.entry.root.shape.layout.memory_space == 0
