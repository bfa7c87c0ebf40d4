"""Which memory a value is bound to, and why (rules MB-1 to MB-15)."""

from __future__ import annotations

import itertools

import pytest

import msa
from msa.errors import HloError, OptionsError
from msa.passes import bind_memory_spaces
from msa.passes.binding import (
    Binding,
    BindingOptions,
    GpuColoring,
    KernelBudget,
    Kind,
    Platform,
    SymmetricFilter,
)
from msa.passes.binding.kernels import bind_kernel, shared_bytes


def bound(text: str, platform: str = "gpu", **options: object) -> Binding:
    module = msa.parse(text)
    before = module.to_text()
    binding = bind_memory_spaces(module, platform, BindingOptions(**options))
    assert module.to_text() == before
    again = bind_memory_spaces(module, platform, BindingOptions(**options))
    assert again.rows == binding.rows, "deterministic"
    return binding


def why(binding: Binding, value: str) -> tuple[str, str]:
    row = binding.of(value)
    return row.domain.kind.value, row.reason


KERNEL = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
body {
  p = f32[64,32]{1,0} parameter(0)
  n = f32[64,32]{1,0} negate(p)
  e = f32[64,32]{1,0} exponential(n)
  t = f32[32,64]{1,0} transpose(e), dimensions={1,0}
  ROOT r = f32[32,64]{1,0} negate(t)
}
ENTRY e {
  x = f32[64,32]{1,0} parameter(0)
  c = f32[] constant(2)
  big = f32[32,64]{1,0} constant({...})
  f = f32[32,64]{1,0} fusion(x), kind=kLoop, calls=body
  m = f32[32,64]{1,0} multiply(f, big)
  w = f32[32,64]{1,0} broadcast(c), dimensions={}
  ROOT y = f32[32,64]{1,0} multiply(m, w)
}"""


def test_rules_in_order_MB11_MB12() -> None:
    binding = bound(KERNEL, constant_limit=64)
    assert why(binding, "x") == ("hbm", "default")
    assert why(binding, "c") == ("constant", "constant")
    assert why(binding, "big") == ("hbm", "constant")
    assert why(binding, "n") == ("register", "fused-register")
    assert why(binding, "e") == ("shared", "fused-shared")
    assert why(binding, "t") == ("register", "fused-register")
    assert why(binding, "y") == ("hbm", "default")
    assert "transpose reads other elements" in binding.explain("e")
    assert binding.violations == ()


def test_what_does_not_fit_spills_MB12() -> None:
    tight = KernelBudget(shared_bytes=4096)  # e has 8192 bytes
    assert why(bound(KERNEL, kernel=tight), "e") == ("hbm", "spill")


@pytest.mark.parametrize("platform", ["tpu", "cpu"])
def test_kernel_memories_are_of_gpus_MB2(platform: str) -> None:
    binding = bound(KERNEL, platform)
    assert {row.domain.kind for row in binding.rows} == {Kind.HBM}


def test_layouts_placements_and_hosts_MB12() -> None:
    text = """ENTRY e {
  x = f32[8]{0:S(1)} parameter(0)
  y = f32[8]{0:S(1)} negate(x)
  h = f32[8]{0:S(5)} copy(y)
  d = f32[8]{0} copy(h)
  ROOT z = f32[8]{0} add(d, y)
}"""
    binding = bound(text, "tpu")
    assert why(binding, "x") == ("vmem", "layout")
    assert why(binding, "y") == ("vmem", "placement")
    assert why(binding, "h") == ("host-pinned", "offload")
    assert why(binding, "z") == ("hbm", "default")
    assert binding.violations == ()


def test_kernels_do_not_read_the_host_MB13() -> None:
    text = """ENTRY e {
  x = f32[8]{0} parameter(0)
  h = f32[8]{0:S(5)} copy(x)
  ROOT z = f32[8]{0} negate(h)
}"""
    assert bound(text, "tpu").violations == ("h{}: z cannot read host-pinned memory",)
    assert bound(text, "gpu").violations == ()
    cpu = bound(text, "cpu")
    assert why(cpu, "h") == ("hbm", "placement")
    assert "same memory here" in cpu.explain("h")


REDUCE = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(x), replica_groups={}, to_apply=add
}"""


def test_collectives_MB12() -> None:
    coloring = GpuColoring(filters=(SymmetricFilter(),))
    binding = bound(REDUCE, coloring=coloring)
    assert why(binding, "x") == why(binding, "r") == ("collective", "collective")
    assert binding.of("r").domain.physical_kind == 2
    assert binding.violations == ()
    assert why(bound(REDUCE), "x") == ("hbm", "default")


def test_scores_count_trips_MB15() -> None:
    text = """
body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = f32[8] negate(v)
  ROOT t = (s32[], f32[8]) tuple(j, n) }
cond { q = (s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  m = s32[] constant(10)
  ROOT lt = pred[] compare(k, m), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[8]) tuple(z, x)
  ROOT w = (s32[], f32[8]) while(s), condition=cond, body=body }"""
    binding = bound(text, "tpu")
    row = binding.of("n")
    # 32 bytes written once a trip and read by the tuple once a trip, 10 trips; the
    # value of the next trip is another one.
    assert row.score == pytest.approx(32 * 20 / row.domain.read_bandwidth)
    gains = dict(binding.by_gain())
    assert gains["n{}"] > 0
    assert list(gains.values()) == sorted(gains.values(), reverse=True)


def test_names_and_kinds_MB1() -> None:
    gpu, tpu = Platform.preset("gpu"), Platform.preset("tpu")
    assert gpu.space_name(1) == "collective"
    assert gpu.space_name(1, legacy=True) == "vmem"
    assert gpu.space_name(9, legacy=True) == "color_9"
    assert [gpu.domain(s).physical_kind for s in (0, 1, 2, 5)] == [0, 2, 0, 5]
    with pytest.raises(OptionsError):
        tpu.domain(2)
    with pytest.raises(OptionsError):
        Platform.preset("abacus")
    with pytest.raises(HloError):
        bound(REDUCE).of("nothing")


def test_registers_overflow_to_shared_memory() -> None:
    # Nine values wait for their reader one after another; a thread holds four.
    lines = [f"  n{k} = f32[16] negate(p)" for k in range(9)]
    total = "n8"
    for k in reversed(range(8)):
        lines.append(f"  sum{k} = f32[16] add(n{k}, {total})")
        total = f"sum{k}"
    body = "\n".join(lines)
    module = msa.parse(
        f"b {{\n  p = f32[16] parameter(0)\n{body}\n  ROOT r = f32[16] negate(sum0)\n}}\n"
        "ENTRY e { x = f32[16] parameter(0)\n"
        "  ROOT f = f32[16] fusion(x), kind=kLoop, calls=b }"
    )
    computation = module.computation("b")
    budget = KernelBudget(registers_per_thread=4, register_reserve=0)
    places = bind_kernel(computation, budget)
    step = {x: t for t, x in enumerate(computation.post_order())}
    for t in step.values():
        live = [
            x
            for x, place in places.items()
            if place.kind is Kind.REGISTER
            and step[x] <= t <= max(step[u] for u in x.users)
        ]
        assert 4 * len(live) <= budget.register_bytes
    shared = {x: p for x, p in places.items() if p.kind is Kind.SHARED}
    assert shared
    for (x, p), (y, q) in itertools.combinations(shared.items(), 2):
        apart = max(step[u] for u in x.users) < step[y]
        apart |= max(step[u] for u in y.users) < step[x]
        below = p.offset + 64 <= q.offset or q.offset + 64 <= p.offset
        assert apart or below, "values live together do not overlap"


def test_bank_padding() -> None:
    module = msa.parse(
        "ENTRY e { x = f32[4,32] parameter(0)\n  ROOT y = f32[4,31] slice(x), "
        "slice={[0:4],[0:31]} }"
    )
    x, y = module.entry.instructions
    padded = KernelBudget(bank_padding=True)
    assert shared_bytes(x, padded) == 4 * 33 * 4
    assert shared_bytes(y, padded) == shared_bytes(y, KernelBudget()) == 4 * 31 * 4
