"""Options of random modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msa.errors import HloError, shown

PLAIN_WEIGHTS = {
    "unary": 8,
    "binary": 14,
    "rearrange": 6,
    "reduce": 4,
    "dot": 2,
    "slice": 4,
    "update": 9,
    "scatter": 2,
    "fusion": 8,
    "update_fusion": 6,
    "multi_output_fusion": 3,
    "copy": 3,
    "constant": 3,
    "barrier": 2,
    "bitcast": 3,
    "dead": 2,
    "while": 4,
    "conditional": 3,
    "call": 2,
    "async_start": 4,
    "async_done": 3,
}
"""Steps of plain modules."""

DEFAULT_WEIGHTS = {
    **PLAIN_WEIGHTS,
    "convert": 3,
    "update_chain": 3,
    "double_update": 2,
    "stated_alias": 3,
    "offload": 1,
    "async_span": 3,
    "scalar_loop": 1,
}
"""All steps."""


_HERE = "RandomModuleOptions"
_LEAST = {"parameters": 1, "max_depth": 0, "max_trips": 0, "vector": 1, "outputs": 1}


def whole(value: Any, what: str, least: int, where: str = _HERE) -> None:
    """Check that a value is a whole number of at least `least`.

    Raises:
        HloError: it is none, or less.

    >>> whole(3, "size", 0)
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise HloError(
            f"{what} is a whole number of at least {least}, not {shown(value)}",
            where=where,
        )


@dataclass(frozen=True, slots=True)
class RandomModuleOptions:
    """What random modules are made of.

    Attributes:
        parameters: largest number of entry parameters.
        max_depth: nesting of loops, branches and calls.
        max_trips: largest trip count of a loop.
        vector: elements of the longest vectors; matrices have about as many.
        outputs: largest number of results.
        variety: how often a less usual form is taken: results and arguments that are
            no tuples or tuples of tuples, arguments that branches and calls may
            overwrite, narrow types, programs that end in a loop.
        nesting: how often what a loop carries, or a program gives, lies in tuples of
            tuples.
        sharing: how often several elements of a result, or of what a loop reads, are
            one and the same value.
        weights: how often each kind of step is chosen; 0, or leaving it out, switches
            it off.

    Raises:
        HloError: a number is too small, a chance is none, or a step is unknown.

    >>> from msa.testing import random_module
    >>> random_module(1, options=RandomModuleOptions(max_depth=1)).is_scheduled
    True
    """

    parameters: int = 4
    max_depth: int = 3
    max_trips: int = 3
    vector: int = 64
    outputs: int = 4
    variety: float = 0.3
    nesting: float = 0.2
    sharing: float = 0.2
    weights: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            whole(getattr(self, name), name, least)
        for name in ("variety", "nesting", "sharing"):
            chance = getattr(self, name)
            if not isinstance(chance, int | float) or not 0 <= chance <= 1:
                raise HloError(
                    f"{name} is a chance from 0 to 1, not {shown(chance)}", where=_HERE
                )
        if not isinstance(self.weights, dict):
            raise HloError(
                f"weights are a dict, not {shown(self.weights)}", where=_HERE
            )
        for name, weight in self.weights.items():
            if name not in DEFAULT_WEIGHTS:
                raise HloError(
                    f"{shown(name)} is no kind of step",
                    where=_HERE,
                    hint=f"one of {', '.join(DEFAULT_WEIGHTS)}",
                )
            whole(weight, f"the weight of {name}", 0)

    @staticmethod
    def plain() -> RandomModuleOptions:
        """Usual forms only.

        >>> RandomModuleOptions.plain().variety
        0.0
        """
        return RandomModuleOptions(
            variety=0.0, nesting=0.0, sharing=0.0, weights=dict(PLAIN_WEIGHTS)
        )
