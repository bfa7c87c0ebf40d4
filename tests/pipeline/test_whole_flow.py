"""The whole flow on small programs (MB-16): equal results, clean checks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import msa
from msa.errors import HloError, PlanError
from msa.passes.binding import BindingOptions, GpuColoring
from msa.pipeline import PipelineOptions, run

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="256KiB")
SHARED = os.environ.get("MSA_SHARED")
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
M = "f32[128,128]{1,0}"

DOTS = f"""
HloModule dots
ENTRY e {{
  x = {M} parameter(0)
  a = {M} parameter(1)
  b = {M} parameter(2)
  u = {M} dot(x, a), {DOT}
  v = {M} dot(u, b), {DOT}
  ROOT w = {M} dot(v, a), {DOT}
}}"""

LOOP = f"""
HloModule loop
body {{
  s = (s32[], {M}, {M}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = {M} get-tuple-element(s), index=1
  weights = {M} get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = {M} dot(x, weights), {DOT}
  ROOT t = (s32[], {M}, {M}) tuple(j, y, weights)
}}
cond {{
  c = (s32[], {M}, {M}) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT lt = pred[] compare(k, n), direction=LT
}}
ENTRY e {{
  x0 = {M} parameter(0)
  w0 = {M} parameter(1)
  zero = s32[] constant(0)
  init = (s32[], {M}, {M}) tuple(zero, x0, w0)
  loop = (s32[], {M}, {M}) while(init), condition=cond, body=body
  last = {M} get-tuple-element(loop), index=1
  ROOT out = {M} negate(last)
}}"""

BRANCHES = f"""
HloModule branches
yes {{ p = {M} parameter(0)
  ROOT n = {M} negate(p) }}
no {{ q = {M} parameter(0)
  m = {M} multiply(q, q)
  ROOT a = {M} add(m, q) }}
ENTRY e {{
  x = {M} parameter(0)
  which = pred[] parameter(1)
  y = {M} negate(x)
  c = {M} conditional(which, y, y), true_computation=yes, false_computation=no
  ROOT z = {M} add(c, y)
}}"""

RANKS = f"""
HloModule ranks, replica_count=4
sum {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }}
ENTRY e {{
  w = {M} parameter(0)
  x = {M} parameter(1)
  gradient = {M} dot(x, w), {DOT}
  total = {M} all-reduce(gradient), replica_groups={{{{0,1,2,3}}}}, to_apply=sum
  ROOT new = {M} subtract(w, total)
}}"""

OFFLOADED = f"""
HloModule offloaded
ENTRY e {{
  x = {M} parameter(0)
  a = {M} parameter(1)
  activation = {M} dot(x, a), {DOT}
  out = {M} custom-call(activation), custom_call_target="MoveToHost"
  u = {M} exponential(activation)
  v = {M} dot(u, a), {DOT}
  back = {M} custom-call(out), custom_call_target="MoveToDevice"
  ROOT w = {M} multiply(v, back)
}}"""

PROGRAMS = {
    "dots": DOTS,
    "loop": LOOP,
    "branches": BRANCHES,
    "ranks": RANKS,
    "offloaded": OFFLOADED,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_equal_and_checks_clean_MB16(name: str) -> None:
    module = msa.parse(PROGRAMS[name])
    before = module.to_text()
    result = run(module, TARGET)
    assert module.to_text() == before, "the input is not changed"
    assert result.violations == ()
    assert "outputs equal" in result.proof
    estimate = result.plan.estimate
    assert estimate.after_seconds <= estimate.before_seconds
    assert result.plan.alternate_peak_bytes <= TARGET.alternate_memory_bytes
    assert [r.name for r in result.records] == [
        "prepare",
        "offload",
        "rematerialize",
        "suggest",
        "bind",
        "place",
        "propagate",
        "audit",
        "buffers",
        "share",
        "prove",
    ]
    annotated = any(
        "MoveTo" in str(x.attributes.get("custom_call_target"))
        for x in result.module.entry.instructions
    )
    assert not annotated


LINES = [
    "mlp_train_adam",
    "llama_decode_while",
    "nested_while",
    "cond_switch",
    "collectives_zoo",
    "sharded_gspmd",
]


@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")
@pytest.mark.parametrize("platform", ["tpu", "gpu"])
@pytest.mark.parametrize("name", LINES)
def test_real_modules_keep_their_placement_MB16(name: str, platform: str) -> None:
    module = msa.load(Path(SHARED or ".") / "corpus" / f"{name}.opt.hlo")
    options = PipelineOptions(
        assignment=msa.Options(strategy="greedy"),
        binding=BindingOptions(coloring=GpuColoring(user_buffers=True)),
        prove=False,
    )
    once = run(module, TARGET, options, platform=platform)
    assert once.violations == ()
    once.buffers.verify()
    shared = any(once.shared.requests.values())
    expected = {"collectives_zoo", "sharded_gspmd"} if platform == "gpu" else set()
    assert shared == (name in expected)
    twice = run(once.module, TARGET, options, platform=platform)
    assert twice.plan.copies == ()
    assert twice.module == once.module
    assert twice.violations == ()


def test_an_element_of_a_loop_is_the_result_MB16() -> None:
    text = LOOP.replace("  last =", "  ROOT last =")
    text = text.replace(f"\n  ROOT out = {M} negate(last)", "")
    module = msa.parse(text)
    assert module.entry.root.name == "last"
    result = run(module, TARGET)
    assert result.violations == ()
    assert "outputs equal" in result.proof


def test_temporaries_in_a_space_of_their_own_MB8() -> None:
    # Nothing fits into fast memory. Of u and v, u is over before the result w begins
    # and takes its storage; v, which w reads, is a temporary, and the only one.
    small = TARGET.replace(alternate_memory_bytes=1024)
    together = run(msa.parse(DOTS), small, PipelineOptions(prove=False))
    apart = run(msa.parse(DOTS), small, PipelineOptions(prove=False, temporary_space=2))
    assert set(together.bytes_by_space) == {0}
    assert apart.bytes_by_space[2] == 128 * 128 * 4
    assert sum(apart.bytes_by_space.values()) == together.bytes_by_space[0]
    assert apart.address("v").space == 2
    assert apart.address("u").space == apart.address("w").space == 0
    assert apart.violations == ()


def test_host_values_have_host_storage_MB16() -> None:
    result = run(msa.parse(OFFLOADED), TARGET)
    assert result.bytes_by_space[5] == 128 * 128 * 4
    assert result.records[1].changed
    (host,) = [r for r in result.binding.rows if r.reason == "offload"]
    assert result.address(host.value).space == 5


def test_placed_values_have_addresses_MB16() -> None:
    result = run(msa.parse(DOTS), TARGET)
    assert result.address("x").space == 0
    fast = {p: a for p, a in result.places.items() if a.space == 1}
    assert fast
    for place, address in fast.items():
        assert result.address(place) == address
        assert address.offset < TARGET.alternate_memory_bytes
    with pytest.raises(HloError):
        result.address("nothing")


def test_limit_of_default_memory_MB16() -> None:
    size = 128 * 128 * 4
    text = f"""
HloModule wide, is_scheduled=true
ENTRY e {{
  p = f32[] parameter(0)
  wide = {M} broadcast(p), dimensions={{}}
  n = {M} negate(wide)
  both = f32[256,128]{{1,0}} concatenate(n, n), dimensions={{0}}
  part = {M} slice(both), slice={{[0:128], [0:128]}}
  ROOT out = {M} add(wide, part)
}}"""
    free = run(msa.parse(text), TARGET)
    limited = run(msa.parse(text), TARGET, PipelineOptions(memory_limit_bytes=4 * size))
    assert free.rematerialization is None
    assert limited.rematerialization is not None
    assert limited.rematerialization.fits
    assert limited.violations == ()
    with pytest.raises(PlanError, match="peak"):
        run(
            msa.parse(text),
            TARGET,
            PipelineOptions(memory_limit_bytes=size, fail_fast=True),
        )


@pytest.mark.parametrize("name", ["dots", "loop", "offloaded"])
def test_running_on_the_prepared_module_is_the_same_MB16(name: str) -> None:
    once = run(msa.parse(PROGRAMS[name]), TARGET)
    twice = run(once.prepared, TARGET)
    assert twice.prepared == once.prepared
    assert len(twice.plan.copies) == len(once.plan.copies)
    assert twice.module == once.module


@pytest.mark.parametrize("name", ["dots", "loop", "branches", "offloaded"])
def test_running_on_its_own_output_adds_no_copies_MB16(name: str) -> None:
    quick = PipelineOptions(prove=False)
    once = run(msa.parse(PROGRAMS[name]), TARGET, quick)
    twice = run(once.module, TARGET, quick)

    def copies(module: msa.Module) -> int:
        return sum(
            x.opcode in ("copy", "copy-start")
            for computation in module.computations
            for x in computation.instructions
        )

    assert copies(twice.module) == copies(once.module)
    assert twice.plan.copies == ()
