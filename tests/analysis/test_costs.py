"""Costs per opcode, row by row; expected figures are worked out by hand."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import CostOptions, InstructionCosts
from msa.analysis.costs import CustomCallCost, Properties
from msa.errors import HloError

ADD = "sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"
LESS = "lt { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = pred[] compare(x, y), direction=LT }"


def entry(*lines: str, outer: str = "") -> str:
    return outer + "\nENTRY main {\n  " + "\n  ".join(lines) + "\n}"


def cost(text: str, **options) -> dict[str, float]:
    """Non-zero properties of the entry's root."""
    module = msa.parse(text, verify=False)
    costs = InstructionCosts.run(module, options=CostOptions(**options))
    found = dict(costs.properties(module.entry.root).items())
    return {
        key.replace("bytes accessed", "bytes"): value for key, value in found.items()
    }


def dot(lhs: str, rhs: str, out: str, dims: str) -> str:
    return entry(
        f"a = f32[{lhs}] parameter(0)",
        f"b = f32[{rhs}] parameter(1)",
        f"ROOT d = f32[{out}] dot(a, b){dims}",
    )


def conv(
    lhs: str,
    rhs: str,
    out: str,
    window: str,
    extra: str = "",
    labels: str = "bf01_oi01->bf01",
) -> str:
    return entry(
        f"a = f32[{lhs}] parameter(0)",
        f"b = f32[{rhs}] parameter(1)",
        f"ROOT c = f32[{out}] convolution(a, b), window={{{window}}}, dim_labels={labels}{extra}",
    )


FUSED_2X2 = """
fused {
  a = f32[2,2] parameter(0)
  b = f32[2,2] parameter(1)
  c = f32[2,2] parameter(2)
  add = f32[2,2] add(a, b)
  clamp = f32[2,2] clamp(a, add, b)
  exp = f32[2,2] exponential(add)
  mul = f32[2,2] multiply(exp, c)
  ROOT sub = f32[2,2] subtract(mul, clamp)
}
ENTRY main {
  x = f32[2,2] parameter(0)
  y = f32[2,2] parameter(1)
  z = f32[2,2] parameter(2)
  ROOT f = f32[2,2] fusion(x, y, z), kind=kLoop, calls=fused
}"""

DUS_WITH_SLICE = """
fused {
  i = s32[] parameter(0)
  whole = f32[8] parameter(1)
  ds = f32[2] dynamic-slice(whole, i), dynamic_slice_sizes={2}
  up = f32[2] negate(ds)
  d = f32[8] dynamic-update-slice(whole, up, i)
  ROOT t = (f32[8]) tuple(d)
}
ENTRY main {
  i = s32[] parameter(0)
  x = f32[8] parameter(1)
  ROOT f = (f32[8]) fusion(i, x), kind=kLoop, calls=fused
}"""

NESTED_COPY = """
copy_it { p = f32[8,64] parameter(0)  ROOT c = f32[8,64] copy(p) }
fused {
  x = f32[8,64] parameter(0)
  i = s32[] parameter(1)
  n = f32[8,64] fusion(x), kind=kLoop, calls=copy_it
  ROOT d = f32[1,64] dynamic-slice(n, i, i), dynamic_slice_sizes={1,64}
}
ENTRY main {
  x = f32[8,64] parameter(0)
  i = s32[] parameter(1)
  ROOT f = f32[1,64] fusion(x, i), kind=kLoop, calls=fused
}"""

NESTED_ADD = """
add_it { p = bf16[64,16,512,512] parameter(0)  ROOT a = bf16[64,16,512,512] add(p, p) }
top { x = bf16[] parameter(0)  y = bf16[] parameter(1)  ROOT m = bf16[] maximum(x, y) }
fused {
  x = bf16[64,16,512,512] parameter(0)
  n = bf16[64,16,512,512] fusion(x), kind=kLoop, calls=add_it
  z = bf16[] constant(0)
  w = bf16[64,16,512,512] reduce-window(n, z), window={size=1x1x1x1}, to_apply=top
  ROOT d = bf16[64,16,512,512] divide(n, %s)
}
ENTRY main {
  x = bf16[64,16,512,512] parameter(0)
  ROOT f = bf16[64,16,512,512] fusion(x), kind=kLoop, calls=fused
}"""

TUPLE_FUSION = """
fused {
  p = (f32[3,2], f32[3,2]) parameter(0)
  a = f32[3,2] get-tuple-element(p), index=0
  b = f32[3,2] get-tuple-element(p), index=1
  ROOT s = f32[3,2] add(a, b)
}
ENTRY main {
  p = (f32[3,2], f32[3,2]) parameter(0)
  ROOT f = f32[3,2] fusion(p), kind=kLoop, calls=fused
}"""

TUPLE_OUTPUT = """
fused {
  p = (f32[2,2], f32[2,2]) parameter(0)
  a = f32[2,2] get-tuple-element(p), index=0
  b = f32[2,2] get-tuple-element(p), index=1
  s = f32[2,2] add(a, b)
  d = f32[2,2] subtract(a, b)
  ROOT t = (f32[2,2], f32[2,2]) tuple(s, d)
}
ENTRY main {
  p = (f32[2,2], f32[2,2]) parameter(0)
  ROOT f = (f32[2,2], f32[2,2]) fusion(p), kind=kLoop, calls=fused
}"""

UNUSED_LEAF = """
fused {
  p = (s8[3], s8[100]) parameter(0)
  a = s8[3] get-tuple-element(p), index=0
  c = s8[3] constant({1, 2, 3})
  ROOT s = s8[3] add(a, c)
}
ENTRY main {
  p = (s8[3], s8[100]) parameter(0)
  ROOT f = s8[3] fusion(p), kind=kLoop, calls=fused
}"""

MAP = """
both { x = f32[] parameter(0)  e = f32[] exponential(x)  ROOT a = f32[] add(x, e) }
ENTRY main { x = f32[10] parameter(0)  ROOT m = f32[10] map(x), dimensions={0}, to_apply=both }"""

MIN2 = """
min2 { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)
  m = f32[] minimum(a, c)  n = f32[] minimum(b, d)  ROOT t = (f32[], f32[]) tuple(m, n) }"""

SCATTER2 = entry(
    "a = f32[3,3] parameter(0)",
    "b = s32[3,3] parameter(1)",
    "i = s32[2] parameter(2)",
    "u = f32[2,3] parameter(3)",
    "v = s32[2,3] parameter(4)",
    "ROOT s = (f32[3,3], s32[3,3]) scatter(a, b, i, u, v), to_apply=two, update_window_dims={1}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    outer="two { x = f32[] parameter(0)  y = s32[] parameter(1)  z = f32[] parameter(2)\n"
    "  w = s32[] parameter(3)  ROOT t = (f32[], s32[]) tuple(z, w) }",
)

ROWS = [
    (
        "9-dot",
        dot(
            "10,5",
            "5,30",
            "10,30",
            ", lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
        {
            "flops": 3000,
            "bytes": 4 * (50 + 150 + 300),
            "bytes0{}": 200,
            "bytes1{}": 600,
            "bytesout{}": 1200,
        },
    ),
    (
        "9-dot-two-dims",
        dot(
            "10,5,5",
            "5,5,30",
            "10,30",
            ", lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
        ),
        {"flops": 2 * 10 * 30 * 25},
    ),
    (
        "9-dot-batch",
        dot(
            "5,10,5",
            "5,5,30",
            "5,10,30",
            ", lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        {"flops": 2 * 10 * 30 * 25, "bytesout{}": 4 * 5 * 10 * 30},
    ),
    (
        "9-dot-without-contracting",
        dot("10,5", "5,30", "10,5,5,30", ""),
        {"flops": 2 * 10 * 30 * 25, "bytesout{}": 4 * 7500},
    ),
    ("9-map", MAP, {"flops": 10, "transcendentals": 10, "bytes": 80}),
    (
        "9-conv-valid",
        conv("1,1,10,20", "1,1,3,3", "1,1,8,18", "size=3x3"),
        {
            "flops": 8 * 18 * 2 * 9,
            "bytes": 4 * (10 * 20 + 3 * 3 + 8 * 18),
            "bytes0{}": 800,
            "bytes1{}": 36,
            "bytesout{}": 4 * 8 * 18,
        },
    ),
    (
        "9-conv-same",
        conv("1,1,3,3", "1,1,3,3", "1,1,3,3", "size=3x3 pad=1_1x1_1"),
        {"flops": 2 * (4 + 6 + 4 + 6 + 9 + 6 + 4 + 6 + 4)},
    ),
    (
        "9-conv-extreme-dilation",
        conv(
            "1,1,524288",
            "1,1,524288",
            "1,1,524288",
            "size=524288 stride=524287 lhs_dilate=524288",
            labels="bf0_oi0->bf0",
        ),
        {"flops": 2 * 524288},
    ),
    (
        "9-conv-extreme-padding",
        conv(
            "1,1,1",
            "1,1,524288",
            "1,1,524288",
            "size=524288 pad=524287_524287",
            labels="bf0_oi0->bf0",
        ),
        {"flops": 2 * 524288},
    ),
    (
        "9-conv-feature-groups",
        conv(
            "1,120,10,20",
            "120,1,3,3",
            "1,120,8,18",
            "size=3x3",
            ", feature_group_count=120",
        ),
        {"flops": 120 * 8 * 18 * 2 * 9},
    ),
    (
        "9-conv-base-dilated",
        conv(
            "1,1,10,20",
            "1,1,3,3",
            "1,1,16,76",
            "size=3x3 pad=1_1x1_1 lhs_dilate=3x5 rhs_dilate=7x11",
        ),
        {"flops": 1472},
    ),
    (
        "9-conv-as-dot",
        conv("64,64,1,1", "64,64,1,1", "64,64,1,1", "size=1x1"),
        {"flops": 2 * 64 * 64 * 64},
    ),
    (
        "9-conv-without-window",
        conv("8,4", "4,16", "8,16", "", labels="bf_io->bf"),
        {"flops": 2 * 8 * 4 * 16},
    ),
    (
        "9-reduce",
        entry(
            "x = f32[10,20] parameter(0)",
            "z = f32[] constant(0)",
            "ROOT r = f32[10] reduce(x, z), dimensions={1}, to_apply=sum",
            outer=ADD,
        ),
        {"flops": 190, "bytes": 4 * (200 + 1 + 10)},
    ),
    (
        "9-reduce-window",
        entry(
            "x = f32[10,20] parameter(0)",
            "z = f32[] constant(0)",
            "ROOT r = f32[2,4] reduce-window(x, z), window={size=4x5 stride=4x5}, to_apply=sum",
            outer=ADD,
        ),
        {"flops": 8 * 19, "bytes": 4 * (200 + 1 + 8)},
    ),
    (
        "9-reduce-window-overlap",
        entry(
            "x = f32[8,8] parameter(0)",
            "z = f32[] constant(0)",
            "ROOT r = f32[3,4] reduce-window(x, z), window={size=4x5 stride=2x1}, to_apply=sum",
            outer=ADD,
        ),
        {"flops": 12 * 19},
    ),
    (
        "9-reduce-window-variadic",
        entry(
            "x = f32[10,20] parameter(0)",
            "y = f32[10,20] parameter(1)",
            "z = f32[] constant(0)",
            "ROOT r = (f32[2,4], f32[2,4]) reduce-window(x, y, z, z), "
            "window={size=4x5 stride=4x5}, to_apply=min2",
            outer=MIN2,
        ),
        {"flops": 2 * 8 * 19},
    ),
    (
        "9-reduce-window-as-broadcast",
        entry(
            "x = f32[2,3,1024,1024] parameter(0)",
            "z = f32[] constant(0)",
            "ROOT r = f32[2,3,1024,1024] reduce-window(x, z), "
            "window={size=1x1x1x2047 pad=0_0x0_0x0_0x1023_1023}, to_apply=sum",
            outer=ADD,
        ),
        {"flops": 2 * 3 * 1024 + 1023},
    ),
    (
        "9-select-and-scatter",
        entry(
            "x = f32[10,20] parameter(0)",
            "u = f32[2,4] parameter(1)",
            "z = f32[] constant(0)",
            "ROOT s = f32[10,20] select-and-scatter(x, u, z), "
            "window={size=4x5 stride=4x5}, select=lt, scatter=sum",
            outer=ADD + "\n" + LESS,
        ),
        {"flops": 8 * (19 + 1), "bytes": 4 * (200 + 8 + 1 + 200)},
    ),
    (
        "9-broadcast",
        entry(
            "x = f32[] constant(1)", "ROOT b = f32[10,7] broadcast(x), dimensions={}"
        ),
        {"bytes": 4 * 71, "bytes0{}": 4},
    ),
    (
        "9-fusion",
        FUSED_2X2,
        {
            "flops": 16,
            "transcendentals": 4,
            "bytes": 64,
            "bytes0{}": 16,
            "bytes1{}": 16,
            "bytes2{}": 16,
            "bytesout{}": 16,
        },
    ),
    (
        "9-fusion-dus-with-slice",
        DUS_WITH_SLICE,
        # The slice reads 2 elements of the operand, the update writes 2.
        {
            "bytes": 4 + 8 + 8,
            "bytes0{}": 4,
            "bytes1{}": 8,
            "bytesout{0}": 8,
            "bytesout{}": 8,
        },
    ),
    ("9-fusion-nested-copy", NESTED_COPY, {"bytes": 256 + 256 + 4, "bytes0{}": 256}),
    ("9-fusion-nested-add", NESTED_ADD % "w", {"bytes": 1073741824}),
    ("9-fusion-nested-add-and-direct", NESTED_ADD % "x", {"bytes": 1610612736}),
    (
        "9-fusion-without-layout",
        """
fused {
  a = f32[5,3,8] parameter(0)
  b = f32[3] parameter(1)
  c = f32[5,3,8] broadcast(b), dimensions={1}
  ROOT s = f32[5,3,8] add(a, c)
}
ENTRY main {
  a = f32[5,3,8] parameter(0)
  b = f32[3] parameter(1)
  ROOT f = f32[5,3,8] fusion(a, b), kind=kLoop, calls=fused
}""",
        {"flops": 120, "bytes": 4 * (120 + 3 + 120)},
    ),
    (
        "9-fusion-tuple-parameter",
        TUPLE_FUSION,
        {"bytes": 72, "bytes0{}": 48, "bytesout{}": 24},
    ),
    (
        "9-fusion-tuple-output",
        TUPLE_OUTPUT,
        {"bytes": 64, "bytes0{}": 32, "bytesout{}": 32},
    ),
    (
        "9-fusion-unused-leaf",
        UNUSED_LEAF,
        {"bytes": 16 + 3 + 3 + 3, "bytes0{}": 2 * 8 + 3, "bytesout{}": 3},
    ),
    (
        "9-all-reduce",
        entry(
            "a = f32[2,2] parameter(0)",
            "b = f32[2,2] parameter(1)",
            "ROOT r = (f32[2,2], f32[2,2]) all-reduce(a, b), replica_groups={}, to_apply=sum",
            outer=ADD,
        ),
        {"bytes": 64, "bytes0{}": 16, "bytes1{}": 16, "bytesout{}": 32, "flops": 8},
    ),
    (
        "9-tuple",
        entry(
            "a = f32[] constant(123)",
            "b = f32[] constant(42)",
            "ROOT t = (f32[], f32[]) tuple(a, b)",
        ),
        {"bytes": 16, "bytesout{}": 16, "bytes0{}": 0, "bytes1{}": 0},
    ),
    (
        "9-domain",
        entry(
            "a = f32[123] parameter(0)",
            'ROOT d = f32[123] domain(a), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}',
        ),
        {"bytes": 0, "bytes0{}": 0, "bytesout{}": 0},
    ),
    (
        "9-slice",
        entry("a = f32[2] parameter(0)", "ROOT s = f32[1] slice(a), slice={[0:1]}"),
        {"bytes": 8, "bytes0{}": 4, "bytesout{}": 4, "utilization0{}": 0.5},
    ),
    (
        "9-dynamic-slice",
        entry(
            "a = f32[2] parameter(0)",
            "i = s32[] parameter(1)",
            "ROOT s = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}",
        ),
        {"bytes": 12, "bytes0{}": 4, "bytes1{}": 4, "bytesout{}": 4},
    ),
    (
        "9-dynamic-update-slice",
        entry(
            "a = f32[2] parameter(0)",
            "u = f32[1] parameter(1)",
            "i = s32[] parameter(2)",
            "ROOT s = f32[2] dynamic-update-slice(a, u, i)",
        ),
        {"bytes": 12, "bytes0{}": 0, "bytes1{}": 4, "bytes2{}": 4, "bytesout{}": 4},
    ),
    (
        "9-gather",
        entry(
            "a = s32[3,3] parameter(0)",
            "i = s32[2] parameter(1)",
            "ROOT g = s32[2,3] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
        ),
        {"bytes": 56, "bytes0{}": 24, "bytes1{}": 8, "bytesout{}": 24},
    ),
    (
        "9-gather-batching",
        entry(
            "a = s32[5,3,3] parameter(0)",
            "i = s32[5] parameter(1)",
            "ROOT g = s32[5,3] gather(a, i), offset_dims={1}, collapsed_slice_dims={1}, "
            "start_index_map={1}, index_vector_dim=1, slice_sizes={1,1,3}, "
            "operand_batching_dims={0}, start_indices_batching_dims={0}",
        ),
        {"bytes": 140, "bytes0{}": 60, "bytes1{}": 20, "bytesout{}": 60},
    ),
    (
        "9-scatter",
        entry(
            "a = f32[3,3] parameter(0)",
            "i = s32[2] parameter(1)",
            "u = f32[2,3] parameter(2)",
            "ROOT s = f32[3,3] scatter(a, i, u), to_apply=sum, update_window_dims={1}, "
            "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
            outer=ADD,
        ),
        {
            "bytes": 80,
            "bytes0{}": 24,
            "bytes1{}": 8,
            "bytes2{}": 24,
            "bytesout{}": 24,
            "flops": 6,
        },
    ),
    (
        "9-scatter-batching",
        entry(
            "a = f32[5,3,3] parameter(0)",
            "i = s32[5] parameter(1)",
            "u = f32[5,3] parameter(2)",
            "ROOT s = f32[5,3,3] scatter(a, i, u), to_apply=sum, update_window_dims={1}, "
            "inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, "
            "input_batching_dims={0}, scatter_indices_batching_dims={0}",
            outer=ADD,
        ),
        {"bytes": 4 * (5 + 3 * 15)},
    ),
    (
        "9-scatter-two-outputs",
        SCATTER2,
        {
            "bytes": 152,
            "bytes0{}": 24,
            "bytes1{}": 24,
            "bytes2{}": 8,
            "bytes3{}": 24,
            "bytes4{}": 24,
            "bytesout{}": 48,
        },
    ),
    (
        "3-bitcast",
        entry("a = f32[8] parameter(0)", "ROOT b = f32[2,4] bitcast(a)"),
        {"bytes": 0, "bytesout{}": 0},
    ),
    (
        "3-transpose-bitcast",
        entry(
            "a = f32[4,8]{1,0} parameter(0)",
            "ROOT t = f32[8,4]{0,1} transpose(a), dimensions={1,0}",
        ),
        {"bytes": 0},
    ),
    (
        "3-transpose",
        entry(
            "a = f32[4,8]{1,0} parameter(0)",
            "ROOT t = f32[8,4]{1,0} transpose(a), dimensions={1,0}",
        ),
        {"bytes": 256},
    ),
    (
        "3-sort",
        entry(
            "a = f32[10] parameter(0)",
            "ROOT s = f32[10] sort(a), dimensions={0}, to_apply=lt",
            outer=LESS,
        ),
        {"flops": 10 * 4, "bytes": 80},
    ),
    (
        "3-fft",
        entry(
            "a = c64[6,16] parameter(0)",
            "ROOT s = c64[6,16] fft(a), fft_type=FFT, fft_length={16}",
        ),
        {"flops": 2 * 4 * 4 * 96},
    ),
    (
        "3-cholesky",
        entry("a = f32[5,5] parameter(0)", "ROOT s = f32[5,5] cholesky(a), lower=true"),
        {"flops": 5 * 25 // 3, "bytes": 100, "bytes0{}": 50, "bytesout{}": 50},
    ),
    (
        "3-triangular-solve",
        entry(
            "a = f32[5,5] parameter(0)",
            "b = f32[5,7] parameter(1)",
            "ROOT s = f32[5,7] triangular-solve(a, b), left_side=true, transpose_a=NO_TRANSPOSE",
        ),
        {
            "flops": 2 * 5 * 35,
            "bytes": 140 + 50 + 140,
            "bytes0{}": 140,
            "bytes1{}": 140,
        },
    ),
    (
        "3-rng",
        entry(
            "a = f32[] constant(0)",
            "b = f32[] constant(1)",
            "ROOT r = f32[10] rng(a, b), distribution=rng_uniform",
        ),
        {"transcendentals": 10},
    ),
    (
        "3-rng-bits",
        entry(
            "a = u64[2] parameter(0)",
            "ROOT r = (u64[2], u32[10]) rng-bit-generator(a), algorithm=rng_philox",
        ),
        {"transcendentals": 12},
    ),
    (
        "3-custom-call",
        entry(
            "a = f32[4] parameter(0)",
            'ROOT c = f32[4] custom-call(a), custom_call_target="t"',
        ),
        {
            "flops": -1,
            "bytes": -1,
            "bytes0{}": -1,
            "bytesout{}": -1,
            "optimal_seconds": -1,
        },
    ),
    (
        "3-ragged-dot",
        entry(
            "a = f32[16,8] parameter(0)",
            "b = f32[4,8,32] parameter(1)",
            "g = s32[4] parameter(2)",
            "ROOT r = f32[16,32] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
        ),
        {"flops": 2 * 32 * 8},
    ),
    (
        "3-logistic",
        entry("a = f32[9] parameter(0)", "ROOT l = f32[9] logistic(a)"),
        {"transcendentals": 9, "flops": 0, "bytes": 72},
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_costs(text, expected) -> None:
    found = cost(text)
    assert {key: found.get(key, 0.0) for key in expected} == expected


def test_reading_inputs_more_than_once() -> None:
    """9-broadcast, counting multiple accesses"""
    text = entry(
        "x = f32[] constant(1)", "ROOT b = f32[10,7] broadcast(x), dimensions={}"
    )
    found = cost(text, count_multiple_input_accesses=True)
    assert (found["bytes"], found["bytes0{}"], found["utilization0{}"]) == (
        284,
        280,
        70,
    )


def test_fully_connected_layer() -> None:
    """9-fully-connected"""
    module = msa.parse("""
sigmoid { x = f32[] parameter(0)  n = f32[] negate(x)  e = f32[] exponential(n)
  one = f32[] constant(1)  a = f32[] add(one, e)  ROOT d = f32[] divide(one, a) }
ENTRY main {
  x = f32[10,5] parameter(0)
  w = f32[5,20] parameter(1)
  b = f32[20] parameter(2)
  d = f32[10,20] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[10,20] broadcast(b), dimensions={1}
  s = f32[10,20] add(d, bb)
  ROOT m = f32[10,20] map(s), dimensions={0,1}, to_apply=sigmoid
}""")
    total = InstructionCosts.run(module).totals(module.entry)
    assert (total.flops, total.transcendentals) == (2 * 1000 + 200 + 600, 200)


def test_latencies_bound_times_from_below() -> None:
    """9-latency"""
    text = entry("a = f32[1,1] parameter(0)", "ROOT s = f32[1,1] add(a, a)")
    found = cost(
        text,
        per_second_rates={"flops": 1024.0, "bytes accessed": 1024.0},
        min_latencies_seconds={"flops": 10.0},
    )
    assert found["optimal_seconds"] == 10


@pytest.mark.parametrize(
    ("rates", "seconds"),
    [
        ({"flops": 16.0, "transcendentals": 4.0, "bytes accessed": 64.0}, 1),
        ({"flops": 8.0, "transcendentals": 4.0, "bytes accessed": 64.0}, 2),
        ({"flops": 16.0, "transcendentals": 1.0, "bytes accessed": 64.0}, 4),
        ({"flops": 16.0, "transcendentals": 4.0, "bytes accessed": 8.0}, 8),
    ],
    ids=["9-fusion-time-balanced", "flops", "transcendentals", "bytes"],
)
def test_time_is_that_of_the_slowest_resource(rates, seconds) -> None:
    assert cost(FUSED_2X2, per_second_rates=rates)["optimal_seconds"] == seconds


def test_infeed_and_outfeed() -> None:
    """9-infeed-outfeed"""
    module = msa.parse("""
ENTRY main {
  tok = token[] after-all()
  in = ((f32[2,3]), token[]) infeed(tok)
  data = (f32[2,3]) get-tuple-element(in), index=0
  ROOT out = token[] outfeed(data, tok), outfeed_shape=(f32[2,3])
}""")
    costs = InstructionCosts.run(module)
    by_name = {x.name: x for x in module.entry.instructions}
    for name in ("in", "out"):
        assert costs.bytes_accessed(by_name[name]) == 24
    assert costs.operand_bytes(by_name["in"], 0) == 0
    assert costs.output_bytes(by_name["in"], (0, 0)) == 24
    assert costs.operand_bytes(by_name["out"], 0) == 24
    assert costs.output_bytes(by_name["out"]) == 0


def test_loops_count_one_trip_and_conditionals_the_larger_branch() -> None:
    module = msa.parse("""
body { bp = (f32[8]) parameter(0)  g = f32[8] get-tuple-element(bp), index=0
  n = f32[8] negate(g)  ROOT br = (f32[8]) tuple(n) }
cond { cp = (f32[8]) parameter(0)  a = f32[4] constant({1,2,3,4})
  b = f32[4] negate(a)  ROOT f = pred[] constant(false) }
yes { yp = f32[8] parameter(0)  ROOT ya = f32[8] add(yp, yp) }
no { np = f32[8] parameter(0)  ne = f32[8] exponential(np)  ROOT nn = f32[8] copy(ne) }
ENTRY main {
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no
  t = (f32[8]) tuple(c)
  ROOT w = (f32[8]) while(t), condition=cond, body=body
}""")
    costs = InstructionCosts.run(module)
    by_name = {x.name: x for x in module.entry.instructions}
    assert costs.flops(by_name["w"]) == 8 + 4
    branch = costs.properties(by_name["c"])
    assert (branch.flops, branch.transcendentals) == (8, 8)
    assert branch.bytes_accessed == max(96, 64 + 64)


def test_users_state_costs_of_custom_calls() -> None:
    text = entry(
        "a = f32[4] parameter(0)",
        "b = f32[8] parameter(1)",
        'ROOT c = f32[4] custom-call(a, b), custom_call_target="matmul"',
    )
    found = cost(
        text,
        custom_call=lambda x: CustomCallCost(flops=100.0, operand_bytes=(4.0, 8.0)),
    )
    assert (found["flops"], found["bytes"]) == (100, 4 + 8 + 16)
    assert (found["bytes0{}"], found["bytes1{}"]) == (4, 8)
    assert cost(text, custom_call=lambda x: CustomCallCost())["bytes"] == 16 + 32 + 16
    assert cost(text, custom_call=lambda x: None)["flops"] == -1


def test_bytes_by_memory_space() -> None:
    module = msa.parse(
        entry(
            "a = f32[4]{0:S(1)} parameter(0)",
            "b = f32[4]{0} parameter(1)",
            "ROOT c = f32[4]{0:S(1)} add(a, b)",
        )
    )
    costs = InstructionCosts.run(module)
    root = module.entry.root
    assert [costs.bytes_read(root, s) for s in (None, 0, 1)] == [32, 16, 16]
    assert [costs.bytes_written(root, s) for s in (None, 0, 1)] == [16, 0, 16]


def test_revisiting_after_an_edit() -> None:
    """9-revisit"""
    text = entry("a = f32[10] parameter(0)", "ROOT s = f32[1] slice(a), slice={[0:1]}")
    module = msa.parse(text)
    costs = InstructionCosts.run(module)
    parameter, root = module.entry.instructions
    assert costs.operand_utilization(root, 0) == pytest.approx(0.1)
    from msa.hlo import parse_shape

    parameter.shape = parse_shape("f32[5]{0}")
    costs.revisit_instruction(parameter)
    costs.revisit_instruction(root)
    fresh = InstructionCosts.run(module)
    assert costs.operand_utilization(root, 0) == pytest.approx(0.2)
    assert dict(costs.totals(module.entry).items()) == dict(
        fresh.totals(module.entry).items()
    )


def test_properties_are_zero_when_absent() -> None:
    """9-properties"""
    p = Properties()
    assert p[("operand", 3, (1,))] == 0
    assert list(p.items()) == []
    p.flops = 2.0
    p.keyed[("operand", 2, (1, 0))] = 4.0
    p.keyed[("out", -1, ())] = 8.0
    p.keyed[("utilization", 0, ())] = 0.5
    assert dict(p.items()) == {
        "flops": 2.0,
        "bytes accessed2{1,0}": 4.0,
        "bytes accessedout{}": 8.0,
        "utilization0{}": 0.5,
    }


def test_new_instructions_are_not_known() -> None:
    module = msa.parse(entry("ROOT a = f32[4] parameter(0)"))
    costs = InstructionCosts.run(module)
    new = module.entry.create(
        "n", "negate", module.entry.root.shape, [module.entry.root]
    )
    with pytest.raises(HloError, match="not been analysed"):
        costs.flops(new)
