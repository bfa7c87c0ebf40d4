"""The result of planning: a module with its values placed, and all that led to it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation import Simulation
from msa.assignment.algorithm import AllocationResult
from msa.assignment.allocation import Allocation
from msa.assignment.judge import Judge
from msa.assignment.lowering.lower import Lowered
from msa.assignment.lowering.state import Place
from msa.assignment.options import Options
from msa.assignment.plan_copies import PlanCopy, plan_copies
from msa.assignment.plan_decisions import PlanDecision, plan_decisions
from msa.assignment.plan_estimate import Estimate
from msa.assignment.problem import Problem
from msa.collection import collection_paused
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from msa.assignment.explanation import Explanation


class Assignment:
    """A plan: what lives in fast memory, when and where.

    Attributes:
        module: the planned module, with copies and memory spaces; text of it can be
            given to any reader of HLO.
        original: the scheduled module that was planned: the one given to `assign`, or
            its prepared copy if that was not ready.
        target, options: what was asked for.
        problem: what the algorithm was told.
        result: what it decided.
        lowered: the planned module with the tables that led to it.
        before, simulation: simulations of the original and of the planned module.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan.verify()
    >>> plan.copies, plan.alternate_peak_bytes
    ((), 4194304)
    """

    def __init__(
        self,
        *,
        original: Module,
        target: Target,
        options: Options,
        problem: Problem,
        result: AllocationResult,
        lowered: Lowered,
        before: Simulation,
        simulation: Simulation,
        dead: frozenset[int],
    ) -> None:
        self.original = original
        self.target = target
        self.options = options
        self.problem = problem
        self.result = result
        self.lowered = lowered
        self.before = before
        self.simulation = simulation
        self._dead = dead
        self.module = lowered.module
        self.chunks: dict[str, tuple[int, int]] = {
            place.text: (chunk.offset, chunk.size)
            for place, chunk in lowered.chunks.items()
        }
        self.scoped_chunks: dict[str, tuple[int, int]] = {
            x.name: (chunk.offset, chunk.size) for x, chunk in lowered.scoped.items()
        }

    # -- what was decided ------------------------------------------------------

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """Allocations in the order of decision; steps are the original's."""
        return tuple(self.result.allocations)

    @cached_property
    def estimate(self) -> Estimate:
        """Modelled seconds before and after, and a bound, which is found when asked."""
        from msa.assignment.bounds import lower_bound_seconds

        before, after = self.before, self.simulation
        return Estimate(
            before.elapsed_seconds,
            after.elapsed_seconds,
            lower_bound_seconds(self.problem, before.trip_counts, dead=self._dead),
            after.copy_stall_seconds,
        )

    @cached_property
    def copies(self) -> tuple[PlanCopy, ...]:
        """Copies between the memories, by start."""
        trips = dict(enumerate(self.simulation.trip_counts))
        return plan_copies(self.lowered, self.problem, self.times, trips)

    @cached_property
    def times(self) -> Mapping[Instruction, int]:
        """Step of each instruction of the planned module's flattened schedule."""
        return {x: i for i, x in enumerate(self.analyses.schedule.instructions)}

    @property
    def alternate_peak_bytes(self) -> int:
        """Highest address used in fast memory."""
        return self.lowered.peak_bytes

    @property
    def analyses(self) -> AnalysisManager:
        """Analyses of the planned module."""
        return self.lowered.analyses

    @property
    def places(self) -> Mapping[Allocation, Place]:
        """Where each allocation lives in the planned module."""
        return self.lowered.places

    @cached_property
    def decisions(self) -> tuple[PlanDecision, ...]:
        """What was decided for every use that was looked at, and why."""
        return plan_decisions(self.problem, self.result, self._judge)

    @cached_property
    def _judge(self) -> Judge:
        """Finds in the finished plan why uses read slow memory."""
        result = self.result
        return Judge(
            self.problem,
            result.allocations,
            self.options,
            result.decisions,
            result.buffer_decisions,
            {x.name for x in self.analyses.schedule.instructions},
        )

    def explain(self, name: str) -> Explanation:
        """Where a value lives and why: text with `to_dict`, `to_json` and `html`.

        Args:
            name: an instruction, or `name{index}` for a node of its result.

        Raises:
            PlanError: there is no such value; the nearest name is suggested.
        """
        from msa.assignment.explain import explain

        return explain(self, name)

    def why_not(self, name: str) -> Explanation:
        """What keeps a value (or some of its uses) out of fast memory.

        Text with `to_dict`, `to_json` and `html`: per use the reason, who has the room
        or the bandwidth, and what would have to change.

        Raises:
            PlanError: there is no such value; the nearest name is suggested.
        """
        from msa.assignment.explain import why_not

        return why_not(self, name)

    # -- is it right -----------------------------------------------------------

    def verify(self) -> None:
        """Check the planned module from scratch, without the algorithm's records.

        Raises:
            PlanError: it breaks a rule; place and numbers are in the error.
            HloVerifyError: it is not a valid module.
        """
        from msa.assignment.verification import verify_plan

        with collection_paused():
            verify_plan(
                self.original,
                self.module,
                self.chunks,
                self.target,
                scoped=self.scoped_chunks,
                capacity=self.problem.machine.capacity,
                alternate_memory_space=self.options.alternate_memory_space,
            )

    def prove(self, inputs: Any = None, seed: int = 0) -> Any:
        """Execute both modules on the simulated machine and compare the results.

        Copies land as late, early or torn as the machine allows; `seed` picks inputs
        (unless given) and timing.

        Raises:
            ExecutionError: the results differ, or an access is not allowed.
        """
        from msa.runtime import prove_plan

        return prove_plan(self, inputs, seed)

    # -- showing ---------------------------------------------------------------

    def summary(self) -> str:
        """A few lines: times, memory, copies."""
        from msa.assignment.plan_text import summary

        return summary(self)

    def table(self, limit: int | None = 40) -> str:
        """The buffers in fast memory as a text table, largest savings first."""
        from msa.assignment.plan_text import table

        return table(self, limit)

    def to_json(self, path: str | Path | None = None) -> str:
        """The plan as JSON; also written to `path` if one is given."""
        from msa.assignment.plan_files import plan_json

        return plan_json(self, path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The copies as CSV, one row each; also written to `path` if one is given."""
        from msa.assignment.plan_files import plan_csv

        return plan_csv(self, path)

    def ascii(self) -> str:
        """The offset × time map in characters."""
        from msa.report import plan_ascii

        return plan_ascii(self)

    def plot(self) -> Figure:
        """The offset × time map as a matplotlib figure (extra `viz`)."""
        from msa.report import plan_figure

        return plan_figure(self)

    def html(self, path: str | Path | None = None) -> str:
        """One self-contained page; also written to `path` if one is given."""
        from msa.report import plan_html

        return plan_html(self, path)

    def to_perfetto(self, path: str | Path | None = None) -> str:
        """A trace in the Chrome JSON format; also written to `path` if one is given."""
        from msa.report import plan_perfetto

        return plan_perfetto(self, path)

    def diff(self, other: Assignment) -> Any:
        """What another plan does differently; prints as text, false if nothing."""
        from msa.report import plan_diff

        return plan_diff(self, other)

    def _repr_html_(self) -> str:
        from msa.report import plan_notebook

        return plan_notebook(self)

    def __repr__(self) -> str:
        estimate = self.estimate
        return (
            f"<Assignment of {self.module.name} on {self.target.name}: "
            f"{estimate.speedup:.2f}x, {len(self.copies)} copies, "
            f"{self.alternate_peak_bytes} bytes>"
        )
