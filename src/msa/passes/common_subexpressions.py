"""Common-subexpression elimination: what is computed twice is computed once.

Source: `xla/service/hlo_cse.cc`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Final

from msa.analysis.manager import AnalysisManager
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.opcode import ASYNC_DONES, ASYNC_STARTS, has_side_effect

_COMMUTATIVE: Final = frozenset(
    {"add", "multiply", "mulhi", "maximum", "minimum", "and", "or", "xor"}
)
_KEPT: Final = (
    frozenset(
        {"parameter", "rng", "rng-get-and-update-state", "domain", "partition-id"}
        | {"replica-id", "custom-call", "while", "conditional", "copy"}
    )
    | ASYNC_STARTS
    | ASYNC_DONES
)


@dataclass(frozen=True, slots=True)
class EliminateCommonSubexpressions:
    """Replace an instruction by an equal earlier one. Linear.

    Attributes:
        layout_sensitive: equal results must have equal layouts (and memory spaces);
            needed once layouts are fixed.
        constants_only: only merge equal constants.

    Copies are left alone: they exist to give a value storage of its own.
    """

    layout_sensitive: bool = True
    constants_only: bool = False
    name: ClassVar[str] = "cse"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        changed = False
        for computation in module.computations:
            changed |= self._computation(module, computation)
        return changed

    def _computation(self, module: Module, computation: Computation) -> bool:
        schedule = module.schedule
        scheduled = schedule is not None and computation in schedule
        assert schedule is not None or not scheduled
        order = (
            list(schedule.sequence(computation))  # type: ignore[union-attr]
            if scheduled
            else computation.post_order()
        )
        seen: dict[Hashable, Instruction] = {}
        doomed: set[Instruction] = set()
        for instruction in order:
            key = self._key(instruction)
            if key is None:
                continue
            first = seen.setdefault(key, instruction)
            if first is not instruction and instruction is not computation.root:
                instruction.replace_all_uses_with(first)
                doomed.add(instruction)
        if not doomed:
            return False
        computation.remove(doomed)
        if scheduled:
            kept = (x for x in order if x not in doomed)
            schedule.set_sequence(computation, kept)  # type: ignore[union-attr]
        return True

    def _key(self, instruction: Instruction) -> Hashable | None:
        opcode = instruction.opcode
        if opcode in _KEPT or has_side_effect(instruction):
            return None
        if self.constants_only and opcode != "constant":
            return None
        if instruction.control_predecessors or instruction.control_successors:
            return None
        operands = [x.id for x in instruction.operands]
        if opcode in _COMMUTATIVE:
            operands.sort()
        shape = (
            str(instruction.shape)
            if self.layout_sensitive
            else instruction.shape.to_text(with_layout=False)
        )
        attributes = []
        for name, value in sorted(instruction.attributes.items()):
            if isinstance(value, Literal):
                if value.is_elided:
                    return None  # its contents are not known
                value = str(value)
            attributes.append((name, value))
        callees = tuple(c.name for c in instruction.called_computations)
        key = (
            opcode,
            shape,
            tuple(operands),
            tuple(attributes),
            callees,
            instruction.backend_config,
        )
        try:
            hash(key)
        except TypeError:
            return None
        return key
