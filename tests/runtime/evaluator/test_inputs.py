"""Inputs that do not fit the parameters are refused, never changed in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msa
from evaluator_support import parse, run
from msa.errors import ExecutionError


def given(shape: str, value: Any) -> Any:
    """What a program reads when it is given the value."""
    return run(f"ROOT p = {shape} parameter(0)", value)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ("s32[2]", np.array([1.5, 2.0])),
        ("s32[2]", [1.5, 2]),
        ("s32[2]", [float("nan"), 2]),
        ("s64[]", 2.0**63),
        ("s32[2]", np.array([2**40, 1])),
        ("s32[2]", [2**31, 1]),
        ("u8[2]", np.array([-1, 1])),
        ("u64[2]", [2**64, 1]),
        ("s64[1]", np.array([2**63], dtype=np.uint64)),
        ("u4[2]", [16, 1]),
        ("s4[2]", np.array([8, 1], dtype=np.int8)),
        ("pred[2]", [0, 2]),
        ("pred[2]", np.array([0.0, np.nan])),
        ("s32[1]", np.array([1.5], dtype=object)),
        ("s32[1]", ["1"]),
        ("f32[1]", np.array(["1"])),
        ("f32[1]", np.array([1j])),
        ("s32[1]", np.array(["2020"], dtype="M8[Y]")),
        ("f32[1]", [None, 1]),
        ("(f32[1], s32[])", ([1.0], 2, 3)),
        ("(f32[1], s32[])", ([1.0],)),
        ("(f32[1], s32[])", np.zeros(2)),
    ],
)
def test_values_that_are_none_of_the_type_are_refused(shape: str, value: Any) -> None:
    with pytest.raises(ExecutionError) as caught:
        given(shape, value)
    assert str(caught.value).startswith("p: ")


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        ("u64[2]", [2**64 - 1, 1], [2**64 - 1, 1]),
        ("s64[2]", [2**62 + 1, -1], [2**62 + 1, -1]),
        ("s8[2]", np.array([-128, 127]), [-128, 127]),
        ("u8[2]", np.array([0, 255], dtype=np.int64), [0, 255]),
        ("pred[2]", [0, 1], [False, True]),
        ("s4[2]", [-8, 7], [-8, 7]),
        ("f32[2]", [1, 2**24 + 1], [1.0, 2.0**24]),
        ("f64[1]", np.array([True]), [1.0]),
        ("bf16[1]", [1.00390625], [1.0]),
        ("s32[0]", [], []),
        ("s32[2]", np.array([3.0, -4.0]), [3, -4]),
    ],
)
def test_values_of_the_type_are_taken(shape: str, value: Any, expected: Any) -> None:
    assert given(shape, value).tolist() == expected


@pytest.mark.parametrize("inputs", [None, 3, "ab", {"p": 1}, iter([[1, 2]])])
def test_inputs_are_a_list(inputs: Any) -> None:
    module = parse("ROOT p = s32[2] parameter(0)")
    machine = msa.runtime.Machine(msa.Target.preset("tpu_v5e"))
    for per_device in (False, True):
        with pytest.raises(ExecutionError, match="takes a list of inputs"):
            msa.execute(module, inputs, per_device=per_device)
    with pytest.raises(ExecutionError, match="takes a list of inputs"):
        machine.run(msa.schedule(module), inputs)


@pytest.mark.parametrize("module", [None, "ENTRY e {}", 3])
def test_only_modules_are_executed(module: Any) -> None:
    machine = msa.runtime.Machine(msa.Target.preset("tpu_v5e"))
    with pytest.raises(ExecutionError, match="Module"):
        msa.execute(module, [])
    with pytest.raises(ExecutionError, match="Module"):
        machine.run(module, [])


def test_inputs_are_left_alone_and_results_are_new() -> None:
    wide = np.arange(8, dtype=np.int32)
    strided = wide[::2]
    strided.setflags(write=False)
    body = """
      p = s32[4] parameter(0)
      u = s32[1] constant({9})
      at = s32[] constant(1)
      d = s32[4] dynamic-update-slice(p, u, at)
      ROOT t = (s32[4], s32[4]) tuple(p, d)"""
    same, updated = run(body, strided)
    assert updated.tolist() == [0, 9, 4, 6]
    same[0] = 77
    assert wide.tolist() == list(range(8))
