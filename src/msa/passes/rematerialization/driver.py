"""Rematerialization of a module."""

from __future__ import annotations

import time
from collections.abc import Callable

from msa.analysis.call_graph import CallGraph
from msa.analysis.costs import InstructionCosts
from msa.analysis.manager import AnalysisManager
from msa.errors import ScheduleError
from msa.hlo.computation import Computation
from msa.hlo.module import Module
from msa.passes.dead_code import EliminateDeadCode
from msa.passes.rematerialization.always import Always
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.costs import ComputeTimes
from msa.passes.rematerialization.floor import Blocker, Floor, floor_of
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.peak_priority import PeakPriority
from msa.passes.rematerialization.result import Rematerialization
from msa.passes.rematerialization.storage import total_bytes
from msa.passes.rematerialization.tracker import peak_of, timeline_of
from msa.passes.rematerialization.walk import Session
from msa.passes.rematerialization.work import work_of

Clock = Callable[[], float]


def run(
    module: Module,
    options: RematerializationOptions,
    clock: Clock = time.monotonic,
) -> Rematerialization:
    """See `rematerialize`; `clock` says when time is up."""
    if module.schedule is None:
        raise ScheduleError(
            "rematerialization follows a schedule and the module has none",
            hint="msa.schedule(module) makes one",
        )
    result = module.clone()
    driver = _Driver(result, options, clock)
    return driver.run()


class _Driver:
    def __init__(
        self, module: Module, options: RematerializationOptions, clock: Clock
    ) -> None:
        self.module = module
        self.options = options
        self.clock = clock
        self.started = clock()
        self.warnings: list[str] = []

    def run(self) -> Rematerialization:
        module, options = self.module, self.options
        host = options.host.space if options.host else 5
        before_work = work_of(module, options.costs, host)
        peaks, beside, output = self._measure()
        entry = module.entry
        before = peaks.get(entry, 0) + output + beside
        floor = self._floor(output, beside)
        timeline = self._timeline(peaks, output + beside)
        changed = False
        session = None
        if not options.does_nothing and entry in peaks:
            wanted = options.memory_limit_bytes
            if options.stop_at_floor:
                wanted = max(wanted, floor.bytes)
            limit = max(0, wanted - output - beside)
            session = Session(
                module,
                options,
                peaks,
                Cloner(module),
                self._times(),
                self._late,
                _bodies(module),
            )
            changed = self._algorithm(session, limit)
        if changed:
            _remove_dead_code(module)
        peaks, beside, output = self._measure()
        after = peaks.get(entry, 0) + output + beside
        if after > options.memory_limit_bytes:
            self.warnings.append(
                f"cannot reach {options.memory_limit_bytes} bytes: {before} before, "
                f"{after} after"
            )
        work = work_of(module, options.costs, host)
        return Rematerialization(
            module.clone() if changed else module,
            changed,
            options.memory_limit_bytes,
            before,
            after,
            floor,
            tuple(session.actions) if session else (),
            before_work,
            work - before_work,
            timeline,
            self._timeline(peaks, output + beside),
            (*(session.warnings if session else ()), *self.warnings),
        )

    def _algorithm(self, session: Session, limit: int) -> bool:
        if self.options.algorithm == "always":
            return Always(session).run(self.module.entry, limit)
        return PeakPriority(session).run(self.module.entry, limit)

    # -- measuring -----------------------------------------------------------

    def _scheduled(self, module: Module) -> list[Computation]:
        """Computations that run as steps, callees first, of the chosen threads."""
        schedule = module.schedule
        assert schedule is not None
        graph = CallGraph.run(module)
        return [
            c
            for c in module.computation_post_order()
            if c in schedule
            and graph.node(c).context in ("control-flow", "both")
            and self.options.covers(c.execution_thread)
        ]

    def _measure(self) -> tuple[dict[Computation, int], int, int]:
        """Peaks, bytes of what runs beside the program, bytes of the results."""
        options = self.options
        peaks: dict[Computation, int] = {}
        beside: dict[Computation, int] = {}
        for computation in self._scheduled(self.module):
            # What runs beside the program is counted whenever it runs, so its
            # callers do not count it again.
            of = beside if self._runs_beside(computation) else peaks
            of[computation] = peak_of(computation, options, of)[0]
        parallel = options.async_parallelism
        most = max(
            (p * parallel[c.execution_thread] for c, p in beside.items()), default=0
        )
        output = total_bytes(self.module.entry.root.shape, options.size_of)
        return peaks, most, output

    def _runs_beside(self, computation: Computation) -> bool:
        return computation.execution_thread in self.options.async_parallelism

    def _timeline(
        self, peaks: dict[Computation, int], constant: int
    ) -> tuple[int, ...]:
        steps = timeline_of(self.module.entry, self.options, peaks)
        return tuple(bytes_ + constant for bytes_ in steps)

    def _floor(self, output: int, beside: int) -> Floor:
        """The bound; what nothing reads goes in the end and is not counted."""
        module = self.module.clone()
        _see_through_tuples(module)
        _remove_dead_code(module)
        floors: dict[Computation, int] = {}
        floor = Floor(0, "", ())
        for computation in self._scheduled(module):
            if self._runs_beside(computation):
                continue
            floor = floor_of(computation, self.options, floors)
            floors[computation] = floor.bytes
        rows = list(floor.blockers)
        if output:
            rows.append(Blocker("results", output, "they are counted throughout"))
        if beside:
            rows.append(Blocker("threads", beside, "they run beside the program"))
        rows.sort(key=lambda row: -row.bytes)
        return Floor(floor.bytes + output + beside, floor.instruction, tuple(rows))

    def _times(self) -> ComputeTimes:
        host = self.options.host
        if host is None:
            return ComputeTimes({})
        from msa.analysis.costs import CostOptions

        options = CostOptions(per_second_rates=host.rates)
        costs = InstructionCosts.run(self.module, options=options)
        return ComputeTimes(
            {
                x: costs.optimal_seconds(x)
                for c in self.module.computations
                for x in c.instructions
            }
        )

    def _late(self) -> bool:
        return self.clock() - self.started > self.options.max_seconds


def _bodies(module: Module) -> frozenset[Computation]:
    """Bodies of loops."""
    return frozenset(
        x.while_body
        for c in module.computations
        for x in c.instructions
        if x.opcode == "while"
    )


def _see_through_tuples(module: Module) -> None:
    """Let readers of an element that was put into a tuple read it itself. Linear."""
    for computation in module.computations:
        for x in computation.post_order():
            if x.opcode == "get-tuple-element" and x.operands[0].opcode == "tuple":
                x.replace_all_uses_with(x.operands[0].operands[x.tuple_index])


def _remove_dead_code(module: Module) -> None:
    """Remove what nothing reads, until there is no more, with its place in the
    schedule; callees come before callers again."""
    analyses = AnalysisManager(module)
    while EliminateDeadCode().apply(module, analyses):
        pass
    module.computations[:] = module.computation_post_order()
