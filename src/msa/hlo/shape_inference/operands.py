"""How many operands each opcode takes."""

from __future__ import annotations

from typing import Final

from msa.hlo.opcode import OPCODES, VARIADIC

_AT_LEAST_ONE: Final = (
    "concatenate dynamic-slice dynamic-reshape map sort conditional all-gather "
    "all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all "
    "collective-broadcast collective-permute collective-permute-start async-update"
)
_LEAST: Final = {
    **dict.fromkeys(_AT_LEAST_ONE.split(), 1),
    "dynamic-update-slice": 2,
    "reduce": 2,
    "reduce-window": 2,
    "scatter": 3,
    "ragged-all-to-all": 6,
}

OPERAND_COUNTS: Final[dict[str, tuple[int, int | None]]] = {
    name: (_LEAST.get(name, 0), None)
    if info.arity == VARIADIC
    else (info.arity, info.arity)
    for name, info in OPCODES.items()
}
"""Least and greatest number of operands; None where there is no limit."""
