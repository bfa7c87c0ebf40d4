"""Whether a result may be written over an operand, or an operand is not read at all.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`, `xla/hlo/analysis/alias_info.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.in_place import InPlacePairs
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import is_elementwise
from msa.hlo.shape import ShapeIndex

MayAliasHint = Callable[[Instruction, ShapeIndex, Instruction, ShapeIndex], bool | None]
"""A machine's own answer, or None for the usual one."""

_LOOP_LIKE: Final = frozenset({"kLoop", "kInput"})


class OperandSharing:
    """Answers for the instructions of one module.

    Args:
        dataflow: the module's values.
        pairs: operations that work in place.
        hint: may allow or forbid sharing where no operation demands it.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[8] parameter(0)
    ...   b = f32[8] negate(a)
    ...   ROOT c = f32[8] reverse(b), dimensions={0}
    ... }''')
    >>> a, b, c = module.entry.instructions
    >>> sharing = OperandSharing(DataflowAnalysis.run(module))
    >>> sharing.can_share(a, (), b, ()), sharing.can_share(b, (), c, ())
    (True, False)
    """

    __slots__ = ("_dataflow", "_hint", "_pairs")

    def __init__(
        self,
        dataflow: DataflowAnalysis,
        *,
        pairs: InPlacePairs | None = None,
        hint: MayAliasHint | None = None,
    ) -> None:
        self._dataflow = dataflow
        self._pairs = pairs or InPlacePairs()
        self._hint = hint

    def can_share(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
    ) -> bool:
        """Whether `user` may write the node `user_index` over that of its operand.

        The operand's value must not be needed later; that is for the caller to see.
        """
        if operand.opcode == "constant":
            return False
        if self.is_change_tiling_copy(user) or self.is_change_tiling_copy(operand):
            return True
        equal = operand.shape.subshape(operand_index) == user.shape.subshape(user_index)
        if equal and self._works_in_place(operand, operand_index, user, user_index):
            return True
        if self._hint is not None:
            allowed = self._hint(operand, operand_index, user, user_index)
            if allowed is not None:
                return allowed
        if not equal:
            return False
        if user.opcode == "fusion":
            verdict = self._fusion_shares(operand, operand_index, user)
            if verdict is not None:
                return verdict
        return self._opcode_shares(operand, operand_index, user, user_index)

    def does_not_use(
        self, operand: Instruction, index: ShapeIndex, user: Instruction
    ) -> bool:
        """Whether `user` provably does not touch a node of its operand."""
        for value in self._dataflow.values_at(operand, index):
            for use in value.uses:
                if use.instruction is not user:
                    continue
                if user.opcode != "fusion" or user.attributes.get("kind") != "kLoop":
                    return False
                parameter = user.fused_computation.parameters[use.operand_number]
                inner = self._dataflow.values_at(parameter, use.operand_index)
                if any(v.uses for v in inner):
                    return False
        return True

    def is_change_tiling_copy(self, instruction: Instruction) -> bool:
        """Whether this is a nested fusion that only copies to other tiles."""
        if instruction.opcode != "fusion" or len(instruction.operands) != 1:
            return False
        caller = self._dataflow.call_graph.parent_call(instruction.computation)
        if caller is None or caller.opcode != "fusion":
            return False
        root = instruction.fused_computation.root
        if root.opcode != "copy":
            return False
        before, after = root.operands[0].shape.layout, root.shape.layout
        if before is None or after is None or before.tiles == after.tiles:
            return False
        plain = replace(before, tiles=after.tiles, memory_space=after.memory_space)
        return plain == after

    # -- rules ---------------------------------------------------------------

    def _works_in_place(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
    ) -> bool:
        slots = {slot for slot, output in self._pairs(user) if output == user_index}
        if not slots:
            return False
        return any(
            use.instruction is user and (use.operand_number, use.operand_index) in slots
            for value in self._dataflow.values_at(operand, operand_index)
            for use in value.uses
        )

    def _fusion_shares(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction
    ) -> bool | None:
        body = user.fused_computation
        parameter = body.parameters[user.operand_indices(operand)[0]]
        kind = user.attributes.get("kind")
        if kind in _LOOP_LIKE:
            return _only_elementwise_uses(parameter)
        root = body.root
        if kind == "kOutput" and root.opcode == "add":
            for slot, x in enumerate(root.operands):
                if x.opcode in ("convolution", "dot"):
                    uses = [
                        use
                        for value in self._dataflow.values_at(parameter, operand_index)
                        for use in value.uses
                    ]
                    return (
                        len(uses) == 1
                        and uses[0].instruction is root
                        and uses[0].operand_number == 1 - slot
                    )
        return None

    def _opcode_shares(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
    ) -> bool:
        opcode = user.opcode
        slots = user.operand_indices(operand)
        if opcode in ("while", "conditional"):
            return True
        if opcode in ("dynamic-update-slice", "set-dimension-size"):
            return slots == (0,)
        if opcode == "scatter":
            return slots == (user_index[0] if user_index else 0,)
        if opcode == "triangular-solve":
            return slots == (1,)
        if opcode == "sort":
            if operand.user_count != 1:
                return False
            if len(user.operands) == 1:
                return True
            return bool(user_index) and slots == (user_index[0],)
        if opcode == "call":
            return self._call_shares(operand, operand_index, user)
        return bool(slots) and is_elementwise(user, slots[0])

    def _call_shares(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction
    ) -> bool:
        """The callee's root must be the only reader, element by element."""
        root = user.called_computations[0].root
        uses = [
            use
            for value in self._dataflow.values_at(operand, operand_index)
            for use in value.uses
        ]
        if len(uses) != 2:
            return False
        inner = [use for use in uses if use.instruction is root]
        return (
            len(inner) == 1
            and any(use.instruction is user for use in uses)
            and is_elementwise(root, inner[0].operand_number)
        )


def _only_elementwise_uses(parameter: Instruction) -> bool:
    """Whether everything reached from a fused parameter keeps elements in place."""
    reached = {parameter}
    queue = [parameter]
    for value in queue:
        for user in value._users:
            if user.opcode != "tuple" and not all(
                is_elementwise(user, slot) for slot in user.operand_indices(value)
            ):
                return False
            if user not in reached:
                reached.add(user)
                queue.append(user)
    return True


def can_share_operand_buffer_with_user(
    dataflow: DataflowAnalysis,
    operand: Instruction,
    operand_index: ShapeIndex,
    user: Instruction,
    user_index: ShapeIndex,
) -> bool:
    """`OperandSharing.can_share` without hints."""
    sharing = OperandSharing(dataflow)
    return sharing.can_share(operand, operand_index, user, user_index)


def does_not_use_operand_buffer(
    dataflow: DataflowAnalysis,
    operand: Instruction,
    index: ShapeIndex,
    user: Instruction,
) -> bool:
    """`OperandSharing.does_not_use` without hints."""
    return OperandSharing(dataflow).does_not_use(operand, index, user)
