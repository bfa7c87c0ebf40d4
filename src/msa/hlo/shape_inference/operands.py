"""How many operands each opcode takes."""

from __future__ import annotations

from typing import Final


def _rows(
    counts: tuple[int, int | None], names: str
) -> dict[str, tuple[int, int | None]]:
    return dict.fromkeys(names.split(), counts)


OPERAND_COUNTS: Final[dict[str, tuple[int, int | None]]] = {
    **_rows(
        (0, 0),
        "parameter constant iota partition-id replica-id rng-get-and-update-state",
    ),
    **_rows(
        (1, 1),
        "abs acos acosh asin asinh atanh round-nearest-afz round-nearest-even ceil "
        "count-leading-zeros convert bitcast bitcast-convert copy cosine cosh erf "
        "exponential exponential-minus-one floor imag is-finite log log-plus-one not "
        "negate popcnt real reduce-precision rsqrt logistic sign sine sinh sqrt cbrt "
        "tan tanh opt-barrier get-tuple-element broadcast transpose reverse reshape "
        "slice topk fft cholesky get-dimension-size rng-bit-generator while copy-start "
        "copy-done all-gather-done all-reduce-done collective-permute-done async-done "
        "recv send-done recv-done infeed domain",
    ),
    **_rows(
        (2, 2),
        "add atan2 compare complex divide maximum minimum multiply mulhi power "
        "remainder subtract and or xor shift-left shift-right-arithmetic "
        "shift-right-logical stochastic-convert pad convolution triangular-solve "
        "gather set-dimension-size send outfeed add-dependency",
    ),
    **_rows((3, 3), "select clamp select-and-scatter batch-norm-training ragged-dot"),
    **_rows((4, 4), "scaled-dot"),
    **_rows((5, 5), "batch-norm-inference batch-norm-grad"),
    **_rows((6, 6), "ragged-all-to-all"),
    **_rows((0, None), "tuple after-all fusion call custom-call async-start rng scan"),
    **_rows(
        (1, None),
        "concatenate dynamic-slice dynamic-reshape map sort conditional all-gather "
        "all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all "
        "collective-broadcast collective-permute collective-permute-start "
        "async-update",
    ),
    **_rows((2, None), "dynamic-update-slice reduce reduce-window"),
    **_rows((3, None), "scatter"),
    "dot": (2, 4),  # legacy structured sparsity adds metadata operands
}
"""Least and greatest number of operands; None where there is no limit."""
