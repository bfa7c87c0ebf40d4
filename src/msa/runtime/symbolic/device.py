"""A device whose memories hold symbols."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.values import Value
from msa.runtime.machine.blocks import Block, Extent, Life, Reference
from msa.runtime.machine.device import Device
from msa.runtime.machine.hazards import Output, reads_elementwise, references_in
from msa.runtime.machine.spaces import Spaces
from msa.runtime.symbolic.digests import OperationDigests
from msa.runtime.symbolic.interpreter import SymbolicInterpreter
from msa.runtime.symbolic.symbols import Symbol, SymbolTable


class SymbolicDevice(Device):
    """Executes instructions on memories of symbols.

    Addresses, lives and copies in flight are those of `Device`. Results are written
    whole; whether an in-place operation reads what it has overwritten is not checked
    (that needs elements).
    """

    def __init__(
        self,
        context: Context,
        spaces: Spaces,
        table: SymbolTable,
        *,
        chance: random.Random,
        timing: str | None,
        scratch: Mapping[str, tuple[int, int]],
    ) -> None:
        super().__init__(context, spaces, chance=chance, timing=timing, scratch=scratch)
        self._symbolic = SymbolicInterpreter(context, table, OperationDigests())
        self._inner = self._symbolic

    def scalar(self, value: Value) -> Any:
        """A number; predicates that nobody computed fall by their token."""
        return self._symbolic.scalar(self.spaces.load(value, "control flow"))

    def _branch(self, selector: Value, count: int) -> int:
        value = self.spaces.load(selector, "control flow")
        return self._symbolic._branch(value, count)

    def contents(self, value: Value) -> Value:
        """Symbols and small arrays of a value."""
        if isinstance(value, Reference):
            found = self.spaces.load(value, "result")
            return found if isinstance(found, Symbol) else np.array(found)
        if isinstance(value, tuple):
            return tuple(self.contents(x) for x in value)
        return value

    def _result(self, instruction: Instruction, arrays: Sequence[Value]) -> Value:
        if instruction.opcode == "fusion":
            return self.evaluate(instruction.fused_computation, arrays)
        return self._symbolic.apply(instruction, arrays)

    def joined_cells(
        self, instruction: Instruction, operands: Sequence[Reference], block: Block
    ) -> Array:
        """The cells of the value of which the operands are slices."""
        del block
        values = [self.spaces.load(x, instruction.name) for x in operands]
        whole = self._symbolic.join(instruction, values)
        return self.spaces.codec.encode(instruction.shape, whole)

    def may_replace(
        self, instruction: Instruction, life: Life, operands: Sequence[Value]
    ) -> bool:
        """Elements are not there to decide: the operation must be elementwise."""
        return all(
            reads_elementwise(instruction, number)
            for number, operand in enumerate(operands)
            if any(r.life is life for r in references_in([operand]))
        )

    def _check_in_place(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        outputs: Sequence[Output],
    ) -> None:
        """Elements are needed to see which are overwritten first."""

    def _update_in_place(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        scratch: Extent | None,
    ) -> Value | None:
        """Updates are written whole."""
        return None
