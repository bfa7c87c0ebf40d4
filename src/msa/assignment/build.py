"""From a scheduled module, a machine and options to a `Problem`.

This is the door between the IR and the algorithm: everything that the algorithm may
know is asked here, the functions of the options included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.analysis.memory_boundedness import EXCLUDED
from msa.assignment.build_values import ValueFacts, build_values
from msa.assignment.inputs import eligible_uses, fusions_by_body, is_suitable
from msa.assignment.modelled import modelled
from msa.assignment.moves import sync_moves
from msa.assignment.option_types import bytes_from
from msa.assignment.options import Options
from msa.assignment.problem import (
    TRIVIAL_OPCODES,
    CrossProgramCandidate,
    Machine,
    Problem,
    Region,
    Value,
)
from msa.errors import OptionsError, ScheduleError

if TYPE_CHECKING:
    from msa.analysis.manager import AnalysisManager
    from msa.analysis.trip_counts import TripCounts
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module
    from msa.target import Target

_RUNS_REGIONS = frozenset({"while", "conditional", "call", "async-start"})


def build_problem(
    module: Module,
    target: Target,
    options: Options | None = None,
    *,
    analyses: AnalysisManager | None = None,
) -> Problem:
    """State the problem of a scheduled module. O(n log n).

    Args:
        module: not changed.
        target: the machine.
        options: as for the algorithm; limits are its business, but what is allowed
            where is asked here.
        analyses: of the module, if they are already there.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> list(problem.names), len(problem.values)
    (['p', 'n', 'a'], 3)
    """
    from msa.analysis.manager import AnalysisManager
    from msa.analysis.trip_counts import TripCounts

    if not module.is_scheduled:
        raise ScheduleError(
            f"module {module.name!r} has no schedule",
            hint="msa.schedule(module) makes one",
        )
    options = options or Options()
    return _Builder(
        module,
        target,
        options,
        analyses or AnalysisManager(module),
        # As `msa.simulate` counts: what the compiler noted is not believed.
        TripCounts.run(module, use_backend_config=False),
    ).build()


@dataclass(slots=True)
class _Builder:
    module: Module
    target: Target
    options: Options
    analyses: AnalysisManager
    trip_counts: TripCounts

    def build(self) -> Problem:
        schedule = self.analyses.schedule
        steps = schedule.instructions
        time = schedule.time.tolist()
        regions, numbers = self._regions(time)
        model = self.analyses.cost_model(self.target)
        facts = ValueFacts(self.module, self.options, self.analyses, model, time)
        values, buffers = build_values(facts)
        candidates, elements = self._cross_program(values, buffers, time)
        return Problem(
            name=self.module.name,
            machine=self._machine(),
            opcodes=[x.opcode for x in steps],
            names=[x.name for x in steps],
            operands=[tuple([time[o.id] for o in x.operands]) for x in steps],
            region_of=[numbers[x.computation] for x in steps],
            called=_called(steps, numbers),
            regions=regions,
            values=values,
            buffers=buffers,
            compute_seconds=[
                0.0 if x.opcode in EXCLUDED else model.compute(x) for x in steps
            ],
            total_bytes=[
                0.0 if x.opcode in EXCLUDED else model.total_bytes(x) for x in steps
            ],
            scratch_bytes=self._scratch(steps),
            cross_program=candidates,
            result_elements=elements,
            copy_factors=self._copy_factors(steps, time),
            sync_moves=sync_moves(steps, time, self.options),
            views=self._views(steps),
            modelled=modelled(steps, self.analyses.costs, self.target),
            keys=steps,
        )

    def _machine(self) -> Machine:
        target = self.target
        return Machine(
            target.alternate_memory_bytes,
            target.alignment_bytes,
            target.default_memory_bandwidth,
            target.alternate_read_bandwidth,
            target.alternate_write_bandwidth,
            target.async_copy_bandwidth_scaling_factor,
        )

    def _regions(self, time: list[int]) -> tuple[list[Region], dict[Computation, int]]:
        """Regions of the schedule, the entry first."""
        schedule, graph = self.analyses.schedule, self.analyses.call_graph
        entry = self.module.entry
        order = [entry, *(c for c in schedule.spans if c is not entry)]
        regions = []
        for computation in order:
            caller = None if computation is entry else graph.parent_call(computation)
            start, end = schedule.spans[computation]
            regions.append(
                Region(
                    name=computation.name,
                    kind=_kind(computation, caller),
                    caller=-1 if caller is None else time[caller.id],
                    start=start,
                    end=end,
                    root=time[computation.root.id],
                    parameters=tuple(time[p.id] for p in computation.parameters),
                    trip_count=self._trips(computation, caller),
                )
            )
        return regions, {c: number for number, c in enumerate(order)}

    def _trips(self, computation: Computation, caller: Instruction | None) -> float:
        if caller is None or caller.opcode != "while":
            return 1.0
        known = self.trip_counts.of(caller)
        return float(self.options.while_execution_count if known is None else known)

    def _scratch(self, steps: Sequence[Instruction]) -> dict[int, int]:
        """What steps ask for. What only renames does not run, and so needs none.

        Faithful plans keep room for that, too, as XLA does.
        """
        reserve = self.options.reserved_scoped_memory_fn
        if reserve is None:
            return {}
        sizes = (
            (step, _reserved(reserve(x, frozenset(), frozenset()), x))
            for step, x in enumerate(steps)
            if self.options.faithful or x.opcode not in TRIVIAL_OPCODES
        )
        return {step: size for step, size in sizes if size > 0}

    def _views(self, steps: Sequence[Instruction]) -> frozenset[int]:
        color = self.options.dus_view_color
        if color is None:
            return frozenset()
        return frozenset(
            step
            for step, x in enumerate(steps)
            if x.shape.is_array and x.shape.memory_space == color
        )

    def _copy_factors(
        self, steps: Sequence[Instruction], time: list[int]
    ) -> dict[int, tuple[float, int]]:
        adjust = self.options.async_instruction_bw_adjustment_factor_fn
        factors: dict[int, tuple[float, int]] = {}
        for step, x in enumerate(steps) if adjust is not None else ():
            assert adjust is not None
            factor = adjust(x)
            if factor is None:
                continue
            if x.user_count != 1:
                raise OptionsError(
                    f"async_instruction_bw_adjustment_factor_fn gives a factor for "
                    f"{x.name}, which has {x.user_count} users instead of one"
                )
            factors[step] = (float(factor), time[x.users[0].id])
        return factors

    def _cross_program(
        self, values: list[Value], buffers: list[tuple[int, ...]], time: list[int]
    ) -> tuple[list[CrossProgramCandidate], dict[int, int]]:
        """Program inputs that may be fetched ahead, and what their readers produce."""
        module, dataflow = self.module, self.analyses.dataflow
        pairs = self.analyses.in_place
        root = module.entry.root
        fusions = None
        candidates: list[CrossProgramCandidate] = []
        elements: dict[int, int] = {}

        def uses_at(instruction: Instruction, index: tuple[int, ...]) -> list[Any]:
            return [u for v in dataflow.values_at(instruction, index) for u in v.uses]

        for members in buffers:
            value = values[members[0]]
            key = value.key
            defining: Instruction = key.instruction
            if defining.opcode != "parameter" or not defining.computation.is_entry:
                continue
            annotated = self._is_annotated(defining)
            if value.is_tuple or not key.shape.is_array:
                continue
            lives_out = any(
                p.step == time[root.id] for m in members for p in values[m].positions
            )
            uses = eligible_uses(key.uses, root, pairs, uses_at)
            if not uses or any(self._is_in_a_call(u.instruction) for u in uses):
                continue
            fusions = fusions_by_body(module) if fusions is None else fusions
            suitable = not lives_out and is_suitable(
                defining,
                key.index,
                uses,
                fusions,
                permissive=self.options.cross_program_prefetch_permissive_mode,
            )
            if not (suitable or annotated or self.options.msa_sort_order_overrides):
                continue
            chosen = {
                (time[u.instruction.id], u.operand_number, u.operand_index)
                for u in uses
            }
            candidates.append(
                CrossProgramCandidate(
                    value.id,
                    tuple(u for u in value.uses if tuple(u) in chosen),
                    annotated,
                    suitable,
                )
            )
            for use in key.uses:
                step = time[use.instruction.id]
                elements[step] = _elements(use.instruction)
        return candidates, elements

    def _is_in_a_call(self, instruction: Instruction) -> bool:
        """Whether a call hands the value to the reader, so that a copy cannot.

        A branch whose parameter is an array is handed it as by a call.
        """
        graph, computation = self.analyses.call_graph, instruction.computation
        while not computation.is_entry:
            caller = graph.parent_call(computation)
            if caller is None or caller.opcode == "call":
                return True
            if caller.opcode == "conditional" and not _takes_tuple(computation):
                return True
            computation = caller.computation
        return False

    def _is_annotated(self, parameter: Instruction) -> bool:
        """Whether the entry's layout puts the whole input into alternate memory."""
        layout = self.module.entry_layout
        if layout is None:
            shape = parameter.shape
        else:
            shape = layout.parameters[parameter.parameter_number]
        return (
            shape.is_array and shape.memory_space == self.options.alternate_memory_space
        )


def _reserved(answer: Any, instruction: Instruction) -> int:
    return bytes_from("reserved_scoped_memory_fn", answer, instruction.name)


def _takes_tuple(computation: Computation) -> bool:
    return any(p.shape.is_tuple for p in computation.parameters)


def _kind(computation: Computation, caller: Instruction | None) -> str:
    if caller is None:
        return "entry"
    if caller.opcode == "while":
        return "body" if caller.while_body is computation else "condition"
    return {"conditional": "branch", "call": "call"}.get(caller.opcode, "async")


def _called(
    steps: Sequence[Instruction], numbers: dict[Computation, int]
) -> dict[int, tuple[int, ...]]:
    return {
        step: tuple(numbers[c] for c in x.called_computations)
        for step, x in enumerate(steps)
        if x.called_computations
        and x.opcode in _RUNS_REGIONS
        and all(c in numbers for c in x.called_computations)
    }


def _elements(instruction: Instruction) -> int:
    return sum(shape.element_count for _, shape in instruction.shape.leaves())
