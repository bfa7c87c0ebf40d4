"""Options of random modules."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        weights: how often each kind of step is chosen; 0 switches it off.

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

    @staticmethod
    def plain() -> RandomModuleOptions:
        """Usual forms only.

        >>> RandomModuleOptions.plain().variety
        0.0
        """
        return RandomModuleOptions(
            variety=0.0, nesting=0.0, sharing=0.0, weights=dict(PLAIN_WEIGHTS)
        )
