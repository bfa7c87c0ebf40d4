"""The Hypothesis strategy: sound modules, small examples, and no import before use."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, find, given, settings

import msa
from msa.errors import HloError, UnsupportedError
from msa.hlo.verifier import find_violations
from msa.testing import modules
from msa.testing.strategies import _weights

QUICK = settings(
    max_examples=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@QUICK
@given(modules())
def test_modules_are_well_formed(module: msa.Module) -> None:
    assert find_violations(module) == []
    assert module.schedule is not None
    assert module.schedule.check(module) == []


@QUICK
@given(modules(max_size=12, max_vector=16, max_depth=0))
def test_limits_are_kept(module: msa.Module) -> None:
    for x in module.entry.instructions:
        assert x.opcode not in ("call", "conditional")
        for _, leaf in x.shape.leaves():
            assert leaf.element_count <= 4 * 16


def test_examples_shrink() -> None:
    """A fusion takes few instructions beside it: parameters, fusion, result."""

    def fused(module: msa.Module) -> bool:
        return any(x.opcode == "fusion" for x in module.entry.instructions)

    found = find(
        modules(max_size=10, max_vector=4),
        fused,
        settings=settings(QUICK, max_examples=500),
    )
    assert fused(found)
    assert found.instruction_count <= 30
    assert not any(x.opcode == "while" for x in found.entry.instructions)


def test_weights_keep_their_order() -> None:
    assert list(_weights({"while", "unary", "call"})) == ["unary", "while", "call"]


def test_hypothesis_is_imported_on_use_only() -> None:
    script = "import sys, msa.testing; print('hypothesis' in sys.modules)"
    script += "; msa.testing.modules; print('hypothesis' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_without_hypothesis_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis.strategies", None)
    with pytest.raises(UnsupportedError, match="pip install hypothesis"):
        modules()


@pytest.mark.parametrize(
    "sizes", [{"max_size": 0}, {"max_vector": 3}, {"max_depth": -1}], ids=str
)
def test_sizes_of_the_strategy_are_large_enough(sizes: dict[str, int]) -> None:
    with pytest.raises(HloError, match="modules: "):
        modules(**sizes)
