"""Random modules for property tests with Hypothesis."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from msa.errors import UnsupportedError
from msa.hlo.module import Module
from msa.testing.random_modules.generator import random_module
from msa.testing.random_modules.options import (
    DEFAULT_WEIGHTS,
    RandomModuleOptions,
    whole,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_VECTORS: Final = (4, 16, 64, 256, 1024, 4096)


def modules(
    *, max_size: int = 40, max_vector: int = 64, max_depth: int = 3
) -> SearchStrategy[Module]:
    """A Hypothesis strategy for well-formed, scheduled modules.

    Seed, size, the kinds of steps and the less usual forms are drawn apart, so that
    a failing example shrinks to few instructions of few kinds and names the call of
    `random_module` that makes it; `shrink` makes it smaller still.

    Args:
        max_size: instructions, roughly.
        max_vector: elements of the longest vectors, at least 4.
        max_depth: nesting of loops, branches and calls.

    Raises:
        UnsupportedError: Hypothesis is not installed.
        HloError: a number is too small.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, database=None, deadline=None)
    ... @given(modules(max_size=10))
    ... def test(module):
    ...     assert module.is_scheduled
    >>> test()
    """
    whole(max_size, "max_size", 1, "modules")
    whole(max_vector, "max_vector", _VECTORS[0], "modules")
    whole(max_depth, "max_depth", 0, "modules")
    st = _hypothesis()
    vectors = [n for n in _VECTORS if n <= max_vector]
    steps = st.sets(st.sampled_from(list(DEFAULT_WEIGHTS)), min_size=1)
    chances = st.sampled_from([0.0, 0.3, 1.0])
    options = st.builds(
        RandomModuleOptions,
        parameters=st.integers(1, 4),
        max_depth=st.integers(0, max_depth),
        max_trips=st.integers(0, 3),
        vector=st.sampled_from(vectors),
        outputs=st.integers(1, 4),
        variety=chances,
        nesting=chances,
        sharing=chances,
        weights=st.one_of(steps.map(_weights), st.just(dict(DEFAULT_WEIGHTS))),
    )
    strategy: SearchStrategy[Module] = st.builds(
        random_module,
        st.integers(0, 2**32 - 1),
        st.integers(1, max_size),
        options=options,
    )
    return strategy


def _weights(steps: set[str]) -> dict[str, int]:
    """Their usual weights, in the usual order."""
    return {name: n for name, n in DEFAULT_WEIGHTS.items() if name in steps}


def _hypothesis() -> Any:
    try:
        return importlib.import_module("hypothesis.strategies")
    except ImportError as error:
        raise UnsupportedError(
            "Hypothesis is not installed",
            subject="hypothesis",
            hint="pip install hypothesis",
        ) from error
