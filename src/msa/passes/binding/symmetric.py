"""Which collectives want their buffers in memory that others can reach.

Source: `xla/service/collective_ops_utils.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msa.errors import OptionsError
from msa.hlo.instruction import Instruction
from msa.hlo.primitive import PRIMITIVE_TYPES

COLLECTIVES: Final = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "collective-permute"}
    | {"all-to-all", "ragged-all-to-all"}
)
ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class SymmetricFilter:
    """Collectives whose buffers are to be symmetric.

    Attributes:
        kind: opcode, or `all`.
        element_type: of operand 0; empty for any.
        max_bytes: of the result; None for any.

    >>> SymmetricFilter("all-reduce", "f32", 4096).kind
    'all-reduce'
    """

    kind: str = ALL
    element_type: str = ""
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in COLLECTIVES | {ALL}:
            raise OptionsError(
                f"{self.kind!r} is no collective; known: "
                f"{', '.join(sorted(COLLECTIVES))}, or {ALL!r}"
            )
        named = self.element_type
        if not isinstance(named, str) or (named and named not in PRIMITIVE_TYPES):
            raise OptionsError(f"unknown element type {named!r}")
        if self.max_bytes is not None and not isinstance(self.max_bytes, int):
            raise OptionsError(
                f"max_bytes is a number of bytes, not {self.max_bytes!r}"
            )

    def matches(self, x: Instruction) -> bool:
        """Whether a collective (or either half of one) is meant."""
        kind = collective_kind(x)
        if not kind or self.kind not in (ALL, kind):
            return False
        if self.max_bytes is not None and result_bytes(x) > self.max_bytes:
            return False
        first = x.operands[0].shape if x.operands else x.shape
        leaves = [s for _, s in first.leaves() if s.is_array]
        return not self.element_type or (
            bool(leaves) and leaves[0].element_type.name == self.element_type
        )


def collective_kind(x: Instruction) -> str:
    """Opcode of the collective that an instruction is, starts or ends; or empty."""
    if x.opcode in ("async-start", "async-update", "async-done"):
        root = x.called_computations[0].root.opcode if x.called_computations else ""
        return root if root in COLLECTIVES else ""
    plain = x.opcode.removesuffix("-start").removesuffix("-done")
    return plain if plain in COLLECTIVES else ""


def result_bytes(x: Instruction) -> int:
    """Bytes of what a collective produces; of a start, its second part."""
    shape = x.shape
    if x.opcode.endswith("-start") and shape.is_tuple and len(shape.children) >= 2:
        shape = shape.children[1]
    return sum(s.byte_size() for _, s in shape.leaves() if s.is_array)
