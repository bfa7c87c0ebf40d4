"""New instructions: clones with bodies, channels and names of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msa.analysis.copy_insertion.flatten_calls import clone_computation
from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.module import Module
from msa.hlo.naming import NameUniquer
from msa.hlo.shape import Shape

SUFFIX: Final = ".remat"


class Cloner:
    """Makes instructions of a module whose names contain `.remat`.

    Attributes:
        made: everything made so far.
    """

    __slots__ = ("_channel", "_computations", "_module", "made")

    def __init__(self, module: Module) -> None:
        self._module = module
        self._computations = NameUniquer(c.name for c in module.computations)
        self._channel = 1 + max(
            (
                int(x.attributes["channel_id"])
                for c in module.computations
                for x in c.instructions
                if "channel_id" in x.attributes
            ),
            default=0,
        )
        self.made: set[Instruction] = set()

    def clone(self, original: Instruction) -> Instruction:
        """The same operation on the same operands, called computations included."""
        attributes = dict(original.attributes)
        if "channel_id" in attributes:
            attributes["channel_id"] = self._channel
            self._channel += 1
        copy = Instruction(
            self._name(original.name),
            original.opcode,
            original.shape,
            original.operands,
            attributes or NO_ATTRIBUTES,
            tuple(self._computation(c) for c in original.called_computations),
            original.control_predecessors,
            original.metadata_text,
            original.backend_config,
        )
        copy.line = original.line
        self._add(original.computation, copy)
        for successor in original.control_successors:
            copy.add_control_successor(successor)
        return copy

    def make(
        self,
        like: Instruction,
        suffix: str,
        opcode: str,
        shape: Shape,
        operands: Iterable[Instruction],
        attributes: dict[str, Any] | None = None,
    ) -> Instruction:
        """An instruction named after another one."""
        copy = Instruction(
            self._name(like.name, suffix),
            opcode,
            shape,
            tuple(operands),
            attributes or NO_ATTRIBUTES,
            metadata_text=like.metadata_text,
        )
        return self._add(like.computation, copy)

    def _add(self, computation: Computation, x: Instruction) -> Instruction:
        self.made.add(x)
        return computation.add(x)

    def _name(self, name: str, suffix: str = "") -> str:
        stem = name.partition(SUFFIX)[0]
        return self._module.unique_instruction_name(f"{stem}{SUFFIX}{suffix}")

    def _computation(self, source: Computation) -> Computation:
        """A copy of a computation and of all that it calls."""
        copy = self._copy(source)
        work = [copy]
        while work:
            for x in work.pop().instructions:
                if x.called_computations:
                    x.called_computations = tuple(
                        self._copy(c) for c in x.called_computations
                    )
                    work.extend(x.called_computations)
        return copy

    def _copy(self, source: Computation) -> Computation:
        stem = source.name.partition(SUFFIX)[0]
        name = self._computations.unique(f"{stem}{SUFFIX}")
        return clone_computation(self._module, source, name)
