"""Random modules planned by both strategies and executed: the soak, in little."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.soak import check


@pytest.mark.parametrize("seed", range(24))
def test_random_plans_hold(seed: int) -> None:
    counts: Counter[str] = Counter()
    assert check(seed, size=32, vector=1024, counts=counts) == []
    assert counts["plans"] == 2
