"""The choice of code for products and the tiling of matrix–vector products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.analysis.dot_strategy import (
    DotConfig,
    Kernel,
    Strategy,
    choose_for,
    choose_strategy,
    plan_gemv,
    recommend_layout,
    reuse,
    run_gemv,
    traffic,
)
from msa.analysis.dot_strategy.gemv import rows_per_task
from msa.errors import MsaError, OptionsError, UnsupportedError
from msa.hlo import parse_shape

SINGLE = DotConfig(multi_thread_eigen=False)
THREADS = DotConfig()
NO_CALLS = DotConfig(allow_runtime_calls=False)
FORCED = DotConfig(multi_thread_eigen=False, force_llvm_gemm=True)
N, V, M, L = (
    Strategy.NAIVE,
    Strategy.TILED_GEMV,
    Strategy.TILED_GEMM,
    Strategy.LIBRARY,
)

# lhs, rhs, result, contracted dimensions, config, strategy, rule
TABLE = [
    # The figures of the specification.
    ("f32[2,2]", "f32[2,2]", "f32[2,2]", (1, 0), THREADS, N, 2),
    ("f32[16,64]", "f32[64,100]", "f32[16,100]", (1, 0), SINGLE, M, 3),
    ("f32[16,64]", "f32[64,100]", "f32[16,100]", (1, 0), THREADS, L, 3),
    ("f32[512,512]", "f32[512,512]", "f32[512,512]", (1, 0), THREADS, L, 3),
    ("f32[512,512]", "f32[512,512]", "f32[512,512]", (1, 0), NO_CALLS, N, 4),
    ("f32[16,64]", "f32[64,1]", "f32[16,1]", (1, 0), THREADS, V, 1),
    ("f16[16,64]", "f16[64,100]", "f16[16,100]", (1, 0), SINGLE, L, 3),
    # Every branch.
    ("f32[64]", "f32[64]", "f32[]", (0, 0), THREADS, V, 1),
    ("s32[1,64]", "s32[64,9]", "s32[1,9]", (1, 0), THREADS, V, 1),
    ("c64[16,64]", "c64[64,1]", "c64[16,1]", (1, 0), THREADS, L, 3),
    ("c64[16,64]", "c64[64,1]", "c64[16,1]", (1, 0), NO_CALLS, N, 4),
    ("f32[9,3]", "f32[3,9]", "f32[9,9]", (1, 0), SINGLE, N, 2),
    ("f32[9,4]", "f32[4,9]", "f32[9,9]", (1, 0), SINGLE, M, 3),
    ("f32[0,8]", "f32[8,9]", "f32[0,9]", (1, 0), THREADS, N, 4),
    ("s8[16,64]", "s8[64,100]", "s8[16,100]", (1, 0), THREADS, N, 4),
    ("bf16[16,64]", "bf16[64,16]", "bf16[16,16]", (1, 0), SINGLE, N, 4),
    ("f32[32,128]", "f32[128,128]", "f32[32,128]", (1, 0), SINGLE, M, 3),
    ("f32[128,128]", "f32[128,32]", "f32[128,32]", (1, 0), SINGLE, M, 3),
    ("f32[33,128]", "f32[128,128]", "f32[33,128]", (1, 0), SINGLE, L, 3),
    ("f32[32,129]", "f32[129,128]", "f32[32,128]", (1, 0), SINGLE, L, 3),
    ("f32[512,512]", "f32[512,512]", "f32[512,512]", (1, 0), FORCED, M, 3),
    ("f32[64,16]", "f32[64,100]", "f32[16,100]", (0, 0), FORCED, L, 3),
    ("c128[64,64]", "c128[64,64]", "c128[64,64]", (1, 0), FORCED, L, 3),
    ("f64[16,64]", "f64[64,100]", "f64[16,100]", (1, 0), SINGLE, M, 3),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}x{row[1]}-{row[5]}")
def test_strategy_table_K12_PT6(row) -> None:
    lhs, rhs, result, (left, right), config, strategy, rule = row
    shapes = [parse_shape(text) for text in (lhs, rhs, result)]
    choice = choose_strategy(*shapes, [left], [right], config)
    assert (choice.strategy, choice.rule) == (strategy, rule)


def test_requirements_PT6() -> None:
    assert [s.accepts_transposed for s in (N, V, L, M)] == [True, True, True, False]
    assert [s.needs_row_major for s in (N, V, L, M)] == [False, False, True, True]


def test_scalars_need_no_loops_PT6() -> None:
    scalar = parse_shape("f32[]")
    assert choose_strategy(scalar, scalar, scalar, [], []).scalar


BATCH = """
ENTRY main {{
  a = f32[5,{m},64] parameter(0)
  b = f32[5,64,{n}] parameter(1)
  ROOT d = f32[5,{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}"""


def test_batches_are_judged_by_one_product_PT6() -> None:
    inner = choose_for(msa.parse(BATCH.format(m=16, n=100)).entry.root, SINGLE)
    assert (inner.strategy, inner.m, inner.k, inner.n, inner.batch) == (
        M,
        16,
        64,
        100,
        5,
    )
    assert inner.needs_row_major
    vector = choose_for(msa.parse(BATCH.format(m=16, n=1)).entry.root)
    assert vector.strategy is V
    assert vector.needs_row_major


def test_batches_are_parallel_when_products_are_large_PT7() -> None:
    # 512 × 64 = 32768 elements is not more than the limit; 513 × 64 is.
    small = choose_for(msa.parse(BATCH.format(m=512, n=8)).entry.root)
    large = choose_for(msa.parse(BATCH.format(m=513, n=8)).entry.root)
    assert (small.parallel_over_batch, large.parallel_over_batch) == (False, True)


def test_other_instructions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="not dot"):
        choose_for(msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }").entry.root)


# m, k, n, column major, canonical → kernel
KERNELS = [
    (64, 32, 1, False, True, Kernel.ROW),
    (64, 32, 1, True, True, Kernel.COLUMN),
    (64, 32, 1, False, False, Kernel.COLUMN),
    (64, 32, 1, True, False, Kernel.ROW),
    (1, 32, 64, False, True, Kernel.COLUMN),
    (1, 32, 64, True, True, Kernel.ROW),
    (1, 32, 64, False, False, Kernel.ROW),
    (1, 32, 64, True, False, Kernel.COLUMN),
]


@pytest.mark.parametrize(("m", "k", "n", "column", "canonical", "kernel"), KERNELS)
def test_kernels_PT7(m, k, n, column, canonical, kernel) -> None:
    plan = plan_gemv(m, k, n, column_major=column, canonical=canonical, vector_bytes=32)
    assert plan.kernel is kernel
    assert (plan.m, plan.k) == (64, 32)
    # 32-byte registers hold 8 floats, which is the tiling factor too; use doubles.
    plan = plan_gemv(
        m,
        k,
        n,
        column_major=column,
        canonical=canonical,
        element_bytes=8,
        vector_bytes=32,
    )
    tiles = (4, 8) if kernel is Kernel.COLUMN else (8, 4)
    assert (plan.tile_rows, plan.tile_columns) == tiles


def test_tasks_PT7() -> None:
    assert rows_per_task(4096) == 128
    assert plan_gemv(4096, 4096, 1).tasks == 8  # min(32, 8)
    assert plan_gemv(256, 4096, 1).tasks == 2
    assert rows_per_task(16) == 32768
    assert plan_gemv(1000, 16, 1).tasks == 1
    assert plan_gemv(4096, 4096, 1, parallel=False).tasks == 1
    assert plan_gemv(1000, 16, 1, debug=True).tasks == 4  # 256 rows a task
    assert plan_gemv(4, 4, 1).tile_rows == 8
    assert plan_gemv(4, 4, 1).tile_columns == 4  # the register is not known


def test_matrix_products_are_refused() -> None:
    with pytest.raises(OptionsError, match="one of m and n"):
        plan_gemv(4, 4, 4)


SIZES = [1, 3, 4, 7, 8, 9, 31, 64, 65]


@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("m", SIZES)
def test_execution_equals_numpy_and_formulas_K12_PT8(m: int, column: bool) -> None:
    rng = np.random.default_rng(m)
    for k in SIZES:
        for debug in (False, True):
            plan = plan_gemv(m, k, 1, column_major=column, vector_bytes=32, debug=debug)
            matrix = rng.standard_normal((m, k)).astype(np.float32)
            vector = rng.standard_normal(k).astype(np.float32)
            addend = rng.standard_normal(m).astype(np.float32)
            for extra in (None, addend):
                run = run_gemv(matrix, vector, extra, plan)
                want = matrix.astype(np.float64) @ vector.astype(np.float64)
                want += 0 if extra is None else extra
                np.testing.assert_allclose(run.result, want, rtol=1e-4, atol=1e-4)
                assert (run.loads == 1).all()
                assert run.traffic == traffic(plan, addend=extra is not None)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(0, 70),
    st.booleans(),
    st.integers(1, 9),
    st.sampled_from([0, 16, 32]),
)
def test_integers_are_exact_and_counted_PT8(m, k, column, factor, register) -> None:
    plan = plan_gemv(
        m,
        k,
        1,
        column_major=column,
        vector_bytes=register,
        tiling_factor=factor,
        debug=True,
    )
    matrix = np.arange(m * k, dtype=np.int32).reshape(m, k) % 11
    vector = np.arange(k, dtype=np.int32) % 7
    addend = np.arange(m, dtype=np.int32)
    run = run_gemv(matrix, vector, addend, plan)
    assert (run.result == matrix @ vector + addend).all()
    assert run.traffic == traffic(plan, addend=True)
    assert reuse(plan) <= 2 / plan.element_bytes


def test_counts_by_hand_PT8() -> None:
    # 16 × 24 floats; registers of 8 floats; 2 row tiles and 3 column tiles.
    row = traffic(plan_gemv(16, 24, 1, vector_bytes=32))
    column = traffic(plan_gemv(16, 24, 1, column_major=True, vector_bytes=32))
    assert row.matrix_read == column.matrix_read == 16 * 24 * 4
    assert row.vector_read == 2 * 24 * 4
    assert (row.result_read, row.result_written) == (0, 16 * 4)
    assert column.vector_read == 24 * 4
    assert (column.result_read, column.result_written) == (2 * 16 * 4, 3 * 16 * 4)


def test_layout_recommendation_PT8() -> None:
    # A vector of 8 floats is 32 bytes; of 7, less: then the bytes decide.
    assert recommend_layout(1, 8, 640).kernel is Kernel.ROW
    assert recommend_layout(1, 4, 640).kernel is Kernel.COLUMN
    for m, k in [(640, 8), (8, 640), (100, 100)]:
        best = traffic(recommend_layout(m, k, 1)).total
        both = [
            traffic(plan_gemv(m, k, 1, column_major=c)).total for c in (False, True)
        ]
        assert best == min(both)


A, B, C = (parse_shape(s) for s in ("f32[16,64]", "f32[64,16]", "f32[16,16]"))
T, S = parse_shape("(f32[2,2])"), parse_shape("f32[3]")


@pytest.mark.parametrize(
    ("shapes", "contracting", "batch", "message"),
    [
        ((None, B, C), ((1,), (0,)), ((), ()), "a Shape as lhs, not None"),
        (("f32[2]", B, C), ((1,), (0,)), ((), ()), "a Shape as lhs"),
        ((A, T, C), ((1,), (0,)), ((), ()), "rhs is .* no array"),
        ((A, B, parse_shape("token[]")), ((1,), (0,)), ((), ()), "no array"),
        ((A, B, C), ((5,), (0,)), ((), ()), "lhs_contracting is out of range"),
        ((A, B, C), ((1,), (-1,)), ((), ()), "rhs_contracting -1 is negative"),
        ((A, B, C), ((1, 1), (0, 0)), ((), ()), "does not fit"),
        ((A, B, C), ((1.0,), (0,)), ((), ()), "whole number, got 1.0"),
        ((A, B, C), ("1", (0,)), ((), ()), "sequence of numbers, not '1'"),
        ((A, B, C), (None, None), ((), ()), "sequence of numbers, not None"),
        ((A, B, C), ((1,), (1,)), ((), ()), r"contracting sizes differ: \[64\]"),
        ((A, B, S), ((1,), (0,)), ((), ()), r"sizes should be \[16, 16\]"),
        ((A, B, C), ((), ()), ((1,), (0,)), "sizes should be"),
        ((A, B, C), ((1,), (0,)), ((1,), (0,)), "both batch and contracting"),
        ((A, B, C), ((1,), (0,)), ((0,), ()), "batch sizes differ"),
        ((A, B, C), ((1,), (0,)), ((), (1,)), "batch sizes differ"),
        ((S, S, S), ((), ()), ((0, 1), (0, 1)), "out of range"),
    ],
)
def test_products_that_do_not_fit_PT6(shapes, contracting, batch, message) -> None:
    with pytest.raises(MsaError, match=message):
        choose_strategy(*shapes, *contracting, lhs_batch=batch[0], rhs_batch=batch[1])


@pytest.mark.parametrize(
    ("kind", "strategy", "rule"),
    [("s4", V, 1), ("u8", V, 1), ("pred", N, 4), ("c64", N, 4)],
)
def test_vectors_of_other_types_PT6(kind: str, strategy: Strategy, rule: int) -> None:
    shapes = (parse_shape(f"{kind}{s}") for s in ("[16,64]", "[64]", "[16]"))
    choice = choose_strategy(*shapes, [1], [0])
    assert (choice.strategy, choice.rule) == (strategy, rule)
    assert (choice.m, choice.k, choice.n) == (16, 64, 1)


@pytest.mark.parametrize(
    ("sizes", "strategy", "rule"),
    [((16, 0, 16), N, 2), ((0, 16, 16), N, 4), ((0, 0, 1), V, 1), ((5, 0, 1), V, 1)],
)
def test_empty_products_PT6(
    sizes: tuple[int, int, int], strategy: Strategy, rule: int
) -> None:
    m, k, n = sizes
    shapes = (parse_shape(f"f32[{a},{b}]") for a, b in ((m, k), (k, n), (m, n)))
    choice = choose_strategy(*shapes, [1], [0])
    assert (choice.strategy, choice.rule) == (strategy, rule)


def test_outer_products_and_huge_ones_PT6() -> None:
    outer = choose_strategy(A, B, parse_shape("f32[16,64,64,16]"), [], [])
    assert (outer.m, outer.k, outer.n, outer.rule) == (1024, 1, 1024, 4)
    big = 1 << 40
    shapes = (parse_shape(f"f32[{a},{b}]") for a, b in ((big, 8), (8, 4), (big, 4)))
    assert choose_strategy(*shapes, [1], [0], SINGLE).strategy is L


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"m": "a"}, "m must be a whole number"),
        ({"k": 1.5}, "k must be"),
        ({"n": True}, "n must be"),
        ({"m": -1}, "m -1 is negative"),
        ({"element_bytes": 0}, "element_bytes 0 is not positive"),
        ({"element_bytes": 0.5}, "element_bytes must be"),
        ({"vector_bytes": -5}, "vector_bytes -5 is negative"),
    ],
)
def test_wrong_sizes_PT7(settings: dict[str, object], message: str) -> None:
    arguments = {"m": 16, "k": 32, "n": 1, **settings}
    for plan in (plan_gemv, recommend_layout):
        with pytest.raises(OptionsError, match=message):
            plan(**arguments)
    for factor in (0, -3, 1.5, "8"):
        with pytest.raises(OptionsError, match="tiling_factor"):
            plan_gemv(16, 32, 1, tiling_factor=factor)


@pytest.mark.parametrize("column_major", [False, True])
def test_operands_of_several_types_PT8(column_major: bool) -> None:
    plan = plan_gemv(5, 9, 1, column_major=column_major)
    matrix = np.arange(45, dtype=np.int32).reshape(5, 9)
    vector, addend = np.full(9, 0.5), np.full(5, 0.25, np.float32)
    found = run_gemv(matrix, vector, addend, plan).result
    np.testing.assert_allclose(found, matrix @ vector + addend)
    listed = run_gemv(matrix.tolist(), vector.tolist(), None, plan).result
    np.testing.assert_allclose(listed, matrix @ vector)


def test_what_is_no_product_PT8() -> None:
    plan = plan_gemv(4, 4, 1)
    with pytest.raises(MsaError, match="a GemvPlan, not None"):
        run_gemv(np.eye(4), np.ones(4), None, None)
    for matrix in (None, np.full((4, 4), "a"), np.full((4, 4), None), [[1], [1, 2]]):
        with pytest.raises(OptionsError):
            run_gemv(matrix, np.ones(4), None, plan)
    for settings_ in ({"gemm_tiles": (0, 1, 1)}, {"force_llvm_gemm": "yes"}):
        with pytest.raises(OptionsError):
            DotConfig(**settings_)
    with pytest.raises(MsaError, match="a DotConfig"):
        choose_strategy(A, B, C, [1], [0], "fast")
    with pytest.raises(MsaError, match="an Instruction"):
        choose_for(None)
