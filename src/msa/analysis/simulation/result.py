"""What a simulation says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation.engine import Run
from msa.analysis.simulation.occupancy import alternate_bytes
from msa.analysis.simulation.program import Program
from msa.hlo.module import Module
from msa.target import Target


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """One instruction of the flattened schedule; times in seconds.

    Attributes:
        name, opcode: of the instruction.
        start: when it first ran.
        compute, memory: arithmetic and memory traffic of one run; they overlap.
        stall: waiting for a copy, in one run (the mean over its runs).
        trip_count: how often it runs.
    """

    name: str
    opcode: str
    start: float
    compute: float
    memory: float
    stall: float
    trip_count: float

    @property
    def elapsed(self) -> float:
        """Seconds of one run."""
        return max(self.compute, self.memory) + self.stall


@dataclass(frozen=True)
class Simulation:
    """Modelled time of a module.

    Attributes:
        module: what was simulated.
        target: the machine.
        elapsed_seconds: of the whole program.
        copy_stall_seconds: part of it spent waiting for copies.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> result = msa.simulate(module, msa.Target.preset("tpu_v5e"))
    >>> [step.name for step in result.steps], result.copy_stall_seconds
    (['p', 'n', 'a'], 0.0)
    """

    module: Module
    target: Target
    elapsed_seconds: float
    copy_stall_seconds: float
    _program: Program = field(repr=False)
    _run: Run = field(repr=False)
    _analyses: AnalysisManager = field(repr=False)
    _space: int = field(repr=False)

    @property
    def trip_counts(self) -> list[float]:
        """How often each instruction of the flattened schedule runs."""
        return self._program.trips

    @property
    def analyses(self) -> AnalysisManager:
        """Analyses of the module that the times rest on."""
        return self._analyses

    @cached_property
    def steps(self) -> tuple[SimulatedStep, ...]:
        """One row per instruction of the flattened schedule."""
        run, program = self._run, self._program
        return tuple(
            SimulatedStep(
                x.name,
                x.opcode,
                run.starts[i] if run.starts[i] == run.starts[i] else 0.0,
                program.costs[i].compute,
                program.costs[i].memory,
                run.stalls.get(i, 0.0) / max(1.0, program.trips[i]),
                program.trips[i],
            )
            for i, x in enumerate(self._analyses.schedule.instructions)
        )

    @cached_property
    def alternate_bytes(self) -> NDArray[np.int64]:
        """Bytes of alternate memory that hold needed values, per step.

        A result that may be written over an operand that nothing reads later counts
        once with it.
        """
        return alternate_bytes(self._analyses, self._space)
