"""Analyses kept with a module, so that planning it again does not repeat them.

A module may be edited between two plans; what is kept is only used while everything
that analyses read is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.analysis.call_graph import CallGraph
from msa.analysis.copy_insertion import prepare
from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.analysis.copy_insertion.inline_calls import inline_calls
from msa.analysis.costs import CostOptions
from msa.analysis.manager import AnalysisManager
from msa.analysis.trip_counts import TripCounts
from msa.hlo.module import Module

_NOTE = "msa.assignment"


@dataclass(frozen=True, slots=True)
class KeptAnalyses:
    """Analyses of a module that is ready for planning.

    Attributes:
        analyses: of the module itself, or of its prepared copy.
        trip_counts: those that XLA's planner recognises.
        fingerprint: of the module that was given.
    """

    analyses: AnalysisManager
    trip_counts: TripCounts
    fingerprint: int

    @property
    def module(self) -> Module:
        """The module to plan."""
        return self.analyses.module


def analyses_of(
    module: Module, cost_options: CostOptions | None = None
) -> KeptAnalyses:
    """Analyses for planning `module`, made anew only if it has changed.

    A module that is not ready (no schedule, shared computations, missing copies) is
    prepared, its calls inlined; the analyses are then of the copy, as they are when
    names of a module made by hand are not unique. With settings of the
    cost analysis, nothing is kept. Linear, plus the cost of what is not there yet.
    """
    module = _with_unique_names(module)
    fingerprint = _fingerprint(module)
    kept = module._notes.get(_NOTE) if cost_options is None else None
    if isinstance(kept, KeptAnalyses) and kept.fingerprint == fingerprint:
        return kept
    analyses = AnalysisManager(module, cost_options=cost_options)
    if not _is_ready(module, analyses):
        inlined = module.clone()
        inline_calls(inlined)
        analyses = AnalysisManager(prepare(inlined), cost_options=cost_options)
    strict = TripCounts.run(analyses.module, use_backend_config=False)
    kept = KeptAnalyses(analyses, strict, fingerprint)
    if cost_options is None:
        module._notes[_NOTE] = kept
    return kept


def _with_unique_names(module: Module) -> Module:
    """The module, or a copy in which no two instructions have the same name."""
    instructions = (x for c in module.computations for x in c.instructions)
    if len({x.name for x in instructions}) == module.instruction_count:
        return module
    copy = module.clone()
    copy.make_names_unique()
    return copy


def _is_ready(module: Module, analyses: AnalysisManager) -> bool:
    if not module.is_scheduled:
        return False
    graph: CallGraph = analyses.call_graph
    if not graph.is_flattened:
        return False
    return not find_conflicts(analyses.dataflow, analyses.schedule, analyses.in_place)


def _fingerprint(module: Module) -> int:
    """A number that changes with what analyses read. Linear, no strings are made."""
    parts: list[object] = [module.id_limit, module.aliases, module.buffer_donors]
    for computation in module.computations:
        parts.append(computation.root.id)
        for x in computation.instructions:
            parts.append(x.opcode)
            parts.append(hash(x.shape))
            parts.append(id(x.attributes))
            parts += [o.id for o in x.operands]
    schedule = module.schedule
    if schedule is not None:
        for computation in schedule:
            parts += [x.id for x in schedule.sequence(computation)]
    return hash(tuple(parts))


__all__ = ["KeptAnalyses", "analyses_of"]
