"""The evaluator over symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msa.errors import ExecutionError, UnsupportedError
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.code import Step
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.interpreter import Interpreter
from msa.runtime.evaluator.values import Value, leaves_of, map_leaves
from msa.runtime.symbolic.digests import OperationDigests, digest
from msa.runtime.symbolic.symbols import SMALL, Symbol, SymbolTable

_TRANSPARENT: Final = frozenset(
    [
        "tuple",
        "get-tuple-element",
        "opt-barrier",
        "domain",
        "add-dependency",
        "copy",
        "after-all",
        "copy-start",
        "copy-done",
        "all-gather-done",
        "collective-permute-done",
        "all-reduce-done",
        "send",
        "send-done",
        "recv-done",
    ]
)
"""Operations that hand values on, whatever they are."""

_FOREIGN: Final = frozenset({"custom-call", "rng", "rng-get-and-update-state"})
_JOIN_TARGET: Final = "ConcatBitcast"


class SymbolicInterpreter(Interpreter):
    """Computes small arrays whose operands are known; all else becomes symbols.

    A symbol's token is a digest of the operation and its operands' tokens, so two
    runs agree exactly if the same operations met the same operands.
    """

    def __init__(
        self, context: Context, table: SymbolTable, digests: OperationDigests
    ) -> None:
        super().__init__(context)
        self.table = table
        self._digests = digests
        self._small: dict[Instruction, bool] = {}

    def scalar(self, value: Value) -> Any:
        """A number; predicates that nobody computed fall by their token."""
        if isinstance(value, Symbol):
            return np.bool_(value.token % 4 != 0)
        return super().scalar(value)

    def _branch(self, selector: Value, count: int) -> int:
        if isinstance(selector, Symbol):
            return selector.token % count
        return super()._branch(selector, count)

    def compute(self, step: Step, operands: Sequence[Value]) -> Value:
        """The value of an instruction that calls nothing."""
        return self.apply(step.instruction, operands)

    def apply(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """An array where it is small and known, else symbols."""
        opcode = instruction.opcode
        if opcode in _TRANSPARENT:
            return self.kernel(instruction)(*operands)
        known = not any(map(_holds_symbol, operands))
        if known and self._is_small(instruction):
            try:
                return self.kernel(instruction)(*operands)
            except (UnsupportedError, ExecutionError):
                self._small[instruction] = False
        if opcode == "bitcast" and isinstance(operands[0], Symbol):
            return operands[0]
        if opcode == "custom-call":
            target = instruction.attributes.get("custom_call_target")
            if target == _JOIN_TARGET:
                return self.join(instruction, operands)
        return self._symbols(instruction, operands)

    def _is_small(self, instruction: Instruction) -> bool:
        found = self._small.get(instruction)
        if found is None:
            shapes = [instruction.shape, *(x.shape for x in instruction.operands)]
            found = instruction.opcode not in _FOREIGN and all(
                math.prod(leaf.dimensions) <= SMALL
                for shape in shapes
                for _, leaf in shape.leaves()
            )
            if instruction.opcode == "constant":
                found = found and not instruction.attributes["literal"].is_elided
            self._small[instruction] = found
        return found

    def _symbols(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        parts = [self._digests.of(instruction)]
        if (
            instruction.opcode == "constant"
            and instruction.attributes["literal"].is_elided
        ):
            parts += instruction.name.encode()
        if instruction.opcode in ("partition-id", "replica-id", "rng"):
            parts.append(self.context.device)
        parts += self.tokens(instruction, operands)
        base = digest(*parts)
        is_slice = instruction.opcode == "slice"

        def leaf(index: ShapeIndex, shape: Shape) -> Value:
            if not shape.is_array:
                return None
            token = digest(base, *index) if index else base
            if is_slice and all(s == 1 for *_, s in instruction.attributes["slice"]):
                bounds = tuple((a, b) for a, b, _ in instruction.attributes["slice"])
                whole = self.table.token_of(instruction.operands[0].shape, operands[0])
                self.table.add_part(token, whole, bounds)
            return Symbol(token)

        return map_leaves(instruction.shape, leaf)

    def tokens(self, instruction: Instruction, operands: Sequence[Value]) -> list[int]:
        """Tokens of all arrays in some operands."""
        return [
            self.table.token_of(leaf, value)
            for operand, given in zip(instruction.operands, operands, strict=True)
            for _, leaf, value in leaves_of(operand.shape, given)
            if leaf.is_array
        ]

    def join(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """The whole of which the operands are slices."""
        tokens = self.tokens(instruction, operands)
        whole = self.table.join(tokens, instruction.shape.dimensions)
        if whole is None:
            return self._symbols(instruction, operands)
        return self.table.value_of(instruction.shape, whole)


def _holds_symbol(value: Value) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Symbol):
            return True
        if isinstance(item, tuple):
            stack.extend(item)
    return False
