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


@pytest.mark.parametrize("seed", [839, 3449, 7434, 8518, 11964])
def test_plans_that_were_wrong_once(seed: int) -> None:
    """Found by the soak: inputs written back inside loops, results left in fast
    memory when the loop before them was dropped."""
    assert check(seed, size=48, vector=1024, counts=Counter()) == []
