"""The two ways to run a proof: on arrays, or on symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from msa.hlo.module import Module
from msa.hlo.shape import Shape
from msa.hlo.verifier import verify
from msa.runtime.evaluator.context import LoopTurns
from msa.runtime.evaluator.execute import execute
from msa.runtime.evaluator.values import Value
from msa.runtime.machine.assigned import assign_buffers
from msa.runtime.machine.machine import Machine
from msa.runtime.machine.memory import ALIGNMENT
from msa.runtime.machine.placement import Chunks, Placement
from msa.runtime.proving.compare import require_equal, require_equal_symbols
from msa.runtime.proving.inputs import elided_contents, random_inputs, stand_in

if TYPE_CHECKING:
    from msa.target import Target


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned module and where it runs.

    Attributes:
        module: lowered.
        target: with the capacity that was planned for.
        chunks, scratch: see `Machine.run`; no chunks lets the machine decide.
        alternate_space: number of the memory space that was planned.
    """

    module: Module
    target: Target
    chunks: Chunks | None
    scratch: Mapping[str, tuple[int, int]]
    alternate_space: int


class Runs(Protocol):
    """Reference and machine runs that can be compared."""

    def on_machine(self, seed: int, timing: str | None) -> Value:
        """The planned module's result."""

    def compare(self, got: Value, where: str) -> None:
        """Check a result against the original module's."""


class ArrayRuns:
    """All arrays are computed."""

    def __init__(
        self,
        original: Module,
        planned: Planned,
        inputs: Sequence[Any] | None,
        seed: int,
    ) -> None:
        self._shape: Shape = original.entry.root.shape
        self._planned = planned
        self._inputs = random_inputs(original, seed) if inputs is None else list(inputs)
        self._fill = elided_contents(seed)
        turns = LoopTurns()
        self._expected = execute(
            original, self._inputs, elided=self._fill, stand_in=stand_in, turns=turns
        )
        self._turns = turns.count
        verify(planned.module)
        space = planned.alternate_space if planned.chunks else None
        self._buffers = assign_buffers(planned.module, space, ALIGNMENT)

    def on_machine(self, seed: int, timing: str | None) -> Value:
        """The planned module's result."""
        planned = self._planned
        machine = Machine(
            planned.target,
            seed=seed,
            timing=timing,
            alternate_space=planned.alternate_space,
        )
        return machine.run(
            planned.module,
            self._inputs,
            chunks=planned.chunks,
            scratch=planned.scratch,
            buffers=self._buffers,
            elided=self._fill,
            stand_in=stand_in,
            turns=_allowed(self._turns),
        )

    def compare(self, got: Value, where: str) -> None:
        """Every bit must agree."""
        require_equal(self._shape, self._expected, got, where)


class SymbolRuns:
    """Symbols stand for all but small arrays."""

    def __init__(self, original: Module, planned: Planned, seed: int) -> None:
        from msa.runtime.symbolic.execute import (
            execute_symbolic,
            symbolic_inputs,
            unit_of,
        )

        self._shape: Shape = original.entry.root.shape
        self._planned = planned
        self._inputs = symbolic_inputs(original, seed)
        turns = LoopTurns()
        self._expected = execute_symbolic(original, self._inputs, turns)
        self._turns = turns.count
        self._placement = Placement(
            planned.module,
            planned.chunks,
            planned.target.alternate_memory_bytes,
            alternate_space=planned.alternate_space,
        )
        unit = unit_of(self._placement, planned.scratch)
        self._placement.assign(alignment=max(ALIGNMENT, unit))

    def on_machine(self, seed: int, timing: str | None) -> Value:
        """The planned module's result."""
        from msa.runtime.symbolic.execute import run_symbolic

        return run_symbolic(
            self._planned.module,
            self._inputs,
            self._placement,
            alternate_bytes=self._planned.target.alternate_memory_bytes,
            seed=seed,
            timing=timing,
            scratch=self._planned.scratch,
            turns=_allowed(self._turns),
        )

    def compare(self, got: Value, where: str) -> None:
        """Every array must have come about in the same way."""
        require_equal_symbols(self._shape, self._expected, got, where)


def _allowed(turns: int) -> LoopTurns:
    """A planned module must come to its end: loops may not turn much more often."""
    return LoopTurns(limit=2 * turns + 16)
