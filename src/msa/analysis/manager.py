"""Analyses of one module, each computed when first asked for and then kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msa.analysis.alias import AliasAnalysis
from msa.analysis.call_graph import CallGraph
from msa.analysis.costs import CostOptions, InstructionCosts
from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.in_place import InPlacePairs, PairsHook
from msa.analysis.live_ranges import LiveRanges
from msa.analysis.memory_boundedness import CostModel
from msa.analysis.trip_counts import TripCounts
from msa.hlo.module import Module
from msa.target import Target

T = TypeVar("T")


class AnalysisManager:
    """Lazily computed analyses of a module.

    A pass that edits the module calls `invalidate`; results handed out before stay
    as they were and describe the module as it was.

    Args:
        module: the module.
        cost_options: settings of the cost analysis.
        in_place_hook: a machine's own in-place operations.

    >>> import msa
    >>> module = msa.parse('ENTRY main { ROOT p = f32[4] parameter(0) }')
    >>> manager = AnalysisManager(module)
    >>> manager.alias is manager.alias, manager.alias.dataflow is manager.dataflow
    (True, True)
    >>> before = manager.alias
    >>> manager.invalidate()
    >>> manager.alias is before
    False
    """

    __slots__ = ("_cost_options", "_in_place_hook", "_results", "module")

    def __init__(
        self,
        module: Module,
        *,
        cost_options: CostOptions | None = None,
        in_place_hook: PairsHook | None = None,
    ) -> None:
        self.module = module
        self._cost_options = cost_options
        self._in_place_hook = in_place_hook
        self._results: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Results are made again when asked for.
        return _manager, (self.module, self._cost_options, self._in_place_hook)

    def get(self, analysis: type[T]) -> T:
        """The result of an analysis class; computed once."""
        makers: dict[type[Any], Callable[[], Any]] = {
            AliasAnalysis: lambda: self.alias,
            CallGraph: lambda: self.call_graph,
            DataflowAnalysis: lambda: self.dataflow,
            FlattenedSchedule: lambda: self.schedule,
            InPlacePairs: lambda: self.in_place,
            InstructionCosts: lambda: self.costs,
            LiveRanges: lambda: self.live_ranges,
            TripCounts: lambda: self.trip_counts,
        }
        maker = makers.get(analysis)
        if maker is None:
            run: Callable[[Module], T] = getattr(analysis, "run")  # noqa: B009  # any class with the protocol
            return self._once(analysis, lambda: run(self.module))
        result: T = maker()
        return result

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self._results:
            self._results[key] = make()
        result: T = self._results[key]
        return result

    @property
    def call_graph(self) -> CallGraph:
        """Who calls whom."""
        return self._once(CallGraph, lambda: CallGraph.run(self.module))

    @property
    def dataflow(self) -> DataflowAnalysis:
        """Values, in static single assignment form."""
        return self._once(
            DataflowAnalysis,
            lambda: DataflowAnalysis.run(self.module, call_graph=self.call_graph),
        )

    @property
    def in_place(self) -> InPlacePairs:
        """Operations that write into an operand."""
        return self._once(InPlacePairs, lambda: InPlacePairs(self._in_place_hook))

    @property
    def alias(self) -> AliasAnalysis:
        """Values that share storage."""
        return self._once(
            AliasAnalysis,
            lambda: AliasAnalysis.run(
                self.module, dataflow=self.dataflow, pairs=self.in_place
            ),
        )

    @property
    def schedule(self) -> FlattenedSchedule:
        """The time axis."""
        return self._once(FlattenedSchedule, lambda: FlattenedSchedule.run(self.module))

    @property
    def live_ranges(self) -> LiveRanges:
        """When values are live."""
        return self._once(
            LiveRanges,
            lambda: LiveRanges.run(
                self.module, alias=self.alias, schedule=self.schedule
            ),
        )

    @property
    def costs(self) -> InstructionCosts:
        """Operations and bytes."""
        return self._once(
            InstructionCosts,
            lambda: InstructionCosts.run(self.module, options=self._cost_options),
        )

    @property
    def trip_counts(self) -> TripCounts:
        """Trips of loops."""
        return self._once(TripCounts, lambda: TripCounts.run(self.module))

    def cost_model(self, target: Target, **settings: Any) -> CostModel:
        """Seconds on a machine; one model is kept per target and settings."""
        key = (CostModel, target, tuple(sorted(settings.items())))
        return self._once(
            key,
            lambda: CostModel.run(
                self.module,
                target,
                costs=self.costs,
                alias=self.alias,
                trip_counts=self.trip_counts,
                **settings,
            ),
        )

    def invalidate(self, *analyses: type[Any]) -> None:
        """Forget the given analyses and all built on them; without any, all.

        `InstructionCosts` alone is built on nothing but the module.
        """
        if not analyses:
            self._results.clear()
            return
        doomed: set[Any] = set(analyses)
        for analysis, sources in _BUILT_ON:
            if doomed & sources:
                doomed.add(analysis)
        self._results = {
            key: result
            for key, result in self._results.items()
            if key not in doomed and not (isinstance(key, tuple) and key[0] in doomed)
        }


def _manager(
    module: Module, cost_options: CostOptions | None, in_place_hook: PairsHook | None
) -> AnalysisManager:
    return AnalysisManager(
        module, cost_options=cost_options, in_place_hook=in_place_hook
    )


_BUILT_ON: tuple[tuple[type[Any], frozenset[type[Any]]], ...] = (
    (DataflowAnalysis, frozenset({CallGraph})),
    (AliasAnalysis, frozenset({DataflowAnalysis, InPlacePairs})),
    (LiveRanges, frozenset({AliasAnalysis, FlattenedSchedule})),
    (CostModel, frozenset({AliasAnalysis, InstructionCosts, TripCounts})),
)
"""What each analysis is built on, sources before the analyses built on them."""
