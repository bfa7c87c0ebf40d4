"""Digests of operations: equal for equal meaning, wherever data lies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.shape import Shape

_MEANINGLESS: Final = frozenset(
    {"sharding", "frontend_attributes", "statistics", "origin", "parameter_replication"}
)


def digest(*parts: int) -> int:
    """A 64-bit digest of 64-bit numbers.

    >>> digest(1, 2) == digest(1, 2), digest(1, 2) == digest(2, 1)
    (True, False)
    """
    data = b"".join([part.to_bytes(8, "little") for part in parts])
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def digest_bytes(data: bytes) -> int:
    """A 64-bit digest of bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def shape_text(shape: Shape) -> str:
    """A shape without layouts and memory spaces."""
    return shape.to_text(with_layout=False)


class OperationDigests:
    """Digests of instructions without their operands, computed once each.

    Names, layouts, memory spaces and metadata do not count; called computations
    count with their whole contents.
    """

    __slots__ = ("_computations", "_instructions", "_texts")

    def __init__(self) -> None:
        self._instructions: dict[Instruction, int] = {}
        self._computations: dict[Computation, int] = {}
        self._texts: dict[int, str] = {}

    def of(self, instruction: Instruction) -> int:
        """The digest of an instruction."""
        found = self._instructions.get(instruction)
        if found is None:
            for callee in _callees_first(instruction):
                if callee not in self._computations:
                    self._computations[callee] = self._of_computation(callee)
            found = self._of_instruction(instruction)
        return found

    def _of_instruction(self, instruction: Instruction) -> int:
        found = self._instructions.get(instruction)
        if found is not None:
            return found
        attributes = "".join(
            f"{name}={value.text if isinstance(value, Literal) else repr(value)};"
            for name, value in sorted(instruction.attributes.items())
            if name not in _MEANINGLESS
        )
        config = instruction.backend_config if _is_foreign(instruction) else ""
        text = f"{instruction.opcode} {shape_text(instruction.shape)} {attributes} {config}"
        parts = [digest_bytes(text.encode())]
        parts += [self._computations[c] for c in instruction.called_computations]
        found = self._instructions[instruction] = digest(*parts)
        return found

    def _of_computation(self, computation: Computation) -> int:
        place: dict[Instruction, int] = {}
        parts: list[int] = []
        for instruction in computation.post_order():
            place[instruction] = len(place)
            parts.append(self._of_instruction(instruction))
            parts += [place[x] for x in instruction.operands]
        parts.append(place[computation.root])
        return digest(*parts)


def _is_foreign(instruction: Instruction) -> bool:
    return instruction.opcode == "custom-call"


def _callees_first(instruction: Instruction) -> Iterable[Computation]:
    """Computations below an instruction, callees before callers."""
    order: list[Computation] = []
    seen: set[Computation] = set()
    stack: list[tuple[Computation, bool]] = [
        (c, False) for c in instruction.called_computations
    ]
    while stack:
        computation, done = stack.pop()
        if done:
            order.append(computation)
        elif computation not in seen:
            seen.add(computation)
            stack.append((computation, True))
            for inner in computation.instructions:
                stack.extend((c, False) for c in inner.called_computations)
    return order
