"""Costs against the cost analysis of an installed jaxlib, property by property."""

from __future__ import annotations

import random

import pytest

import msa
from analysis.test_costs import ROWS, entry
from msa.analysis import InstructionCosts
from msa.testing import random_module

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def check(text: str) -> None:
    """Totals of the entry, every key of them, in single precision."""
    jax = pytest.importorskip("jax")
    from jaxlib._hlo import hlo_module_from_text
    from jaxlib._jax import hlo_module_cost_analysis

    client = jax.devices("cpu")[0].client
    want = hlo_module_cost_analysis(client, hlo_module_from_text(text))
    module = msa.parse(text, verify=False)
    got = dict(InstructionCosts.run(module).totals(module.entry).items())
    for key in {*want, *got} - {"optimal_seconds"}:
        assert got.get(key, 0.0) == want.get(key, 0.0), key


@pytest.mark.parametrize("text", [r[1] for r in ROWS], ids=[r[0] for r in ROWS])
def test_rows(text) -> None:
    check(text)


@pytest.mark.parametrize("seed", range(40))
def test_random_modules(seed) -> None:
    check(random_module(seed, size=60).to_text())


def spatial(rng: random.Random) -> tuple[int, int, int, str, str, str, str, str]:
    """Input, kernel and output size of one dimension, and its window's fields."""
    while True:
        size, kernel, stride = rng.randint(1, 7), rng.randint(1, 5), rng.randint(1, 3)
        low, high = rng.randint(-1, 4), rng.randint(-1, 4)
        base, dilation = rng.randint(1, 4), rng.randint(1, 3)
        span = (size - 1) * base + 1 + low + high
        reach = (kernel - 1) * dilation + 1
        if span >= reach:
            break
    out = (span - reach) // stride + 1
    fields = (str(kernel), str(stride), f"{low}_{high}", str(base), str(dilation))
    return (size, kernel, out, *fields)


@pytest.mark.parametrize("seed", range(60))
def test_random_convolutions(seed) -> None:
    rng = random.Random(seed)
    a, b = spatial(rng), spatial(rng)
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate")
    window = " ".join(
        f"{name}={x}x{y}" for name, x, y in zip(names, a[3:], b[3:], strict=True)
    )
    groups = rng.choice((1, 2))
    check(
        entry(
            f"a = f32[2,{a[0]},{b[0]},{2 * groups}] parameter(0)",
            f"b = f32[{a[1]},{b[1]},2,4] parameter(1)",
            f"ROOT c = f32[2,{a[2]},{b[2]},4] convolution(a, b), window={{{window}}}, "
            f"dim_labels=b01f_01io->b01f, feature_group_count={groups}",
        )
    )
