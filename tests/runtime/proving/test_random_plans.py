"""Random modules planned by both strategies and executed: the soak, in little."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.soak import check

from msa.testing import RandomModuleOptions


@pytest.mark.parametrize("seed", range(24))
def test_random_plans_hold(seed: int) -> None:
    counts: Counter[str] = Counter()
    assert check(seed, size=32, vector=1024, counts=counts) == []
    assert counts["plans"] == 2


@pytest.mark.parametrize(
    ("seed", "size"),
    [
        (839, 48),
        (3449, 48),
        (7434, 48),
        (8518, 48),
        (11964, 48),
        (337, 20),
        (407, 20),
        (466, 20),
    ],
)
def test_plans_that_were_wrong_once(seed: int, size: int) -> None:
    """Found by the soak: inputs written back inside loops, results left in fast
    memory when the loop before them was dropped or when a view of them was read from
    a copy, operands read through the start of an asynchronous operation."""
    plain = RandomModuleOptions.plain()
    assert check(seed, size, 1024, Counter(), plain) == []
