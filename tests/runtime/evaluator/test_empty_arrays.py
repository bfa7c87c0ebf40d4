"""Arrays without elements, and arrays of rank 0, in opcodes that index or reduce."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_support import ADD, run

LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT p = pred[] compare(a, b), direction=LT }"


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "s32", "u8", "s4"])
@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
def test_reduction_of_nothing_is_the_initial_value(kind: str, opcode: str) -> None:
    callee = f"f {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT c = {kind}[] {opcode}(a, b) }}"
    types = {"f16": np.float16, "s32": np.int32, "u8": np.uint8, "s4": np.int8}
    body = f"""
      p = {kind}[0,3] parameter(0)
      i = {kind}[] constant(3)
      ROOT r = {kind}[3] reduce(p, i), dimensions={{0}}, to_apply=f"""
    empty = np.zeros((0, 3), types.get(kind, np.float32))
    assert run(body, empty, before=callee).tolist() == [3, 3, 3]


@pytest.mark.parametrize("sizes", [(0,), (3, 0), (0, 3)])
def test_sort_of_nothing(sizes: tuple[int, ...]) -> None:
    shape = f"f32[{','.join(map(str, sizes))}]"
    body = f"""
      p = {shape} parameter(0)
      ROOT s = {shape} sort(p), dimensions={{{len(sizes) - 1}}}, to_apply=less"""
    assert run(body, np.zeros(sizes, np.float32), before=LESS).shape == sizes


def test_gather_and_scatter_on_a_scalar() -> None:
    three = np.zeros((3, 0), np.int32)
    gathered = run(
        """p = f32[] parameter(0)
        i = s32[3,0] parameter(1)
        ROOT g = f32[3] gather(p, i), offset_dims={}, collapsed_slice_dims={},
          start_index_map={}, index_vector_dim=1, slice_sizes={}""",
        np.float32(5),
        three,
    )
    assert gathered.tolist() == [5, 5, 5]
    scattered = run(
        """p = f32[] parameter(0)
        i = s32[3,0] parameter(1)
        u = f32[3] parameter(2)
        ROOT s = f32[] scatter(p, i, u), update_window_dims={},
          inserted_window_dims={}, scatter_dims_to_operand_dims={},
          index_vector_dim=1, to_apply=add""",
        np.float32(5),
        three,
        np.float32([1, 2, 4]),
        before=ADD,
    )
    assert scattered.tolist() == 12


@pytest.mark.parametrize(("updates", "width"), [(0, 2), (3, 0)])
def test_scatter_of_nothing_changes_nothing(updates: int, width: int) -> None:
    body = f"""
      p = f32[4,5] parameter(0)
      i = s32[{updates},2] parameter(1)
      u = f32[{updates},{width},2] parameter(2)
      ROOT s = f32[4,5] scatter(p, i, u), update_window_dims={{1,2}},
        inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0,1}},
        index_vector_dim=1, to_apply=add"""
    operand = np.arange(20, dtype=np.float32).reshape(4, 5)
    indices = np.zeros((updates, 2), np.int32)
    update = np.ones((updates, width, 2), np.float32)
    assert np.array_equal(run(body, operand, indices, update, before=ADD), operand)


@pytest.mark.parametrize(
    ("lhs", "kernel", "result", "rest"),
    [
        ((2, 2, 1), (4, 2, 3), (2, 4, 0), "window={size=3 stride=2}"),
        ((0, 2, 5), (4, 2, 2), (0, 4, 4), "window={size=2}"),
        ((0, 2, 5), (4, 1, 2), (0, 4, 4), "window={size=2}, feature_group_count=2"),
        ((2, 2, 5), (0, 2, 2), (2, 0, 4), "window={size=2}"),
        ((2, 0, 5), (4, 0, 2), (2, 4, 4), "window={size=2}"),
        ((2, 2, 0), (4, 2, 3), (2, 4, 2), "window={size=3 pad=2_2}"),
    ],
)
def test_convolution_of_nothing(
    lhs: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...], rest: str
) -> None:
    def text(sizes: tuple[int, ...]) -> str:
        return f"f32[{','.join(map(str, sizes))}]"

    body = f"""
      p = {text(lhs)} parameter(0)
      k = {text(kernel)} parameter(1)
      ROOT c = {text(result)} convolution(p, k), dim_labels=bf0_oi0->bf0, {rest}"""
    got = run(body, np.ones(lhs, np.float32), np.ones(kernel, np.float32))
    assert got.dtype == np.float32
    assert np.array_equal(got, np.zeros(result))
