"""The JAX bridge; skipped where JAX is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msa
from msa.errors import FileFormatError, UnsupportedError

WITHOUT = importlib.util.find_spec("jax") is None
needs_jax = pytest.mark.skipif(WITHOUT, reason="jax is not installed")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.oracle]


def function() -> Any:
    import jax.numpy as jnp

    return lambda x, w: jnp.tanh(x @ w) @ w


def arguments() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 32)).astype(np.float32)
    w = generator.normal(size=(32, 32)).astype(np.float32)
    return x, w


@needs_jax
def test_a_function_becomes_a_scheduled_module_that_computes_the_same() -> None:
    x, w = arguments()
    module = msa.from_jax(function(), x, w)
    assert module.is_scheduled
    got = msa.execute(module, [x, w])
    expected = np.tanh(x @ w) @ w
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-4, atol=1e-4)


@needs_jax
def test_a_function_is_planned() -> None:
    module = msa.from_jax(function(), *arguments())
    plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    plan.verify()


@needs_jax
def test_before_optimization_there_is_no_schedule() -> None:
    import jax

    lowered = jax.jit(function()).lower(*arguments())
    module = msa.from_lowered(lowered)
    assert not module.is_scheduled
    assert module == msa.from_jax(function(), *arguments(), optimized=False)
    assert "dot" in {x.opcode for x in module.entry.instructions}


@needs_jax
def test_shapes_are_enough() -> None:
    import jax

    x = jax.ShapeDtypeStruct((64, 32), "float32")
    w = jax.ShapeDtypeStruct((32, 32), "float32")
    assert msa.from_jax(function(), x, w).entry.root.shape.dimensions == (64, 32)


@needs_jax
def test_large_constants_are_kept() -> None:
    import jax.numpy as jnp

    table = np.arange(100, dtype=np.float32)
    module = msa.from_jax(lambda x: x + jnp.asarray(table), np.ones(100, np.float32))
    got = msa.execute(module, [np.ones(100, np.float32)])
    np.testing.assert_array_equal(np.asarray(got), table + 1)


@needs_jax
def test_memory_side_by_side() -> None:
    import jax

    from msa.integrations.jax import compare_memory

    compiled = jax.jit(function()).lower(*arguments()).compile()
    comparison = compare_memory(compiled)
    rows = {name: (xla, ours) for name, xla, ours in comparison.rows}
    assert rows["arguments"] == (64 * 32 * 4 + 32 * 32 * 4,) * 2
    assert rows["outputs"] == (64 * 32 * 4,) * 2
    assert "XLA" in str(comparison)


@needs_jax
def test_a_serialized_module_is_read(tmp_path: Path) -> None:
    import jax

    from msa.integrations.jax import from_proto

    lowered = jax.jit(function()).lower(*arguments())
    data = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    module = from_proto(data)
    assert [x.opcode for x in module.entry.instructions] == [
        x.opcode for x in msa.from_lowered(lowered).entry.instructions
    ]
    path = tmp_path / "module.pb"
    path.write_bytes(data)
    assert msa.load(path) == module
    with pytest.raises(FileFormatError):
        from_proto(b"something else")


@needs_jax
def test_every_compilation_is_reported_until_closed() -> None:
    import jax

    from msa.integrations.jax import register

    seen: list[msa.Module] = []
    with register(seen.append, name="test-report") as registration:
        jax.jit(lambda x: x * 3 + 1)(np.ones(7, np.float32))
    count = len(seen)
    assert count >= 1
    assert not registration.errors
    assert registration.modules == [module.name for module in seen]
    jax.jit(lambda x: x * 5 + 1)(np.ones(9, np.float32))
    assert len(seen) == count
    registration.close()


@needs_jax
def test_a_failing_report_does_not_break_the_compilation() -> None:
    import jax

    from msa.integrations.jax import register

    def fails(_: msa.Module) -> None:
        raise ValueError("no")

    with register(fails, name="test-failure") as registration:
        got = jax.jit(lambda x: x * 7 + 1)(np.ones(5, np.float32))
    np.testing.assert_array_equal(np.asarray(got), np.full(5, 8, np.float32))
    assert registration.errors
    assert all(isinstance(error, ValueError) for error in registration.errors)


def test_without_jax_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(UnsupportedError, match=r"msa\[jax\]"):
        msa.from_jax(lambda x: x, 1.0)
