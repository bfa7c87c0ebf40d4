"""`msa.simulate`: the modelled time of any module as it stands."""

from __future__ import annotations

from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation.engine import run
from msa.analysis.simulation.program import Program
from msa.analysis.simulation.result import Simulation
from msa.analysis.trip_counts import TripCounts
from msa.collection import collection_paused
from msa.errors import ScheduleError
from msa.hlo.module import Module
from msa.target import Target


def simulate(
    module: Module,
    target: Target,
    *,
    alternate_memory_space: int = 1,
    while_execution_count: int = 5,
    trip_counts: TripCounts | None = None,
    analyses: AnalysisManager | None = None,
) -> Simulation:
    """Time a scheduled module, its memory spaces and asynchronous copies as written.

    It does not matter who placed the values: this library, another compiler or a text
    editor. An instruction takes the larger of its arithmetic and its memory traffic;
    operands and results in alternate memory move at that memory's bandwidth. Copies
    between the memories use default memory's bandwidth while instructions leave it
    idle; the end of a copy waits until it has landed. Loops run as often as
    `trip_counts` says, `while_execution_count` times where it does not know; each
    branch of a conditional counts once. Other asynchronous operations, and copies within one
    memory or to a third one, take no time. Reference: spec of
    `xla/service/memory_space_assignment/simulator.cc`, with its quirks mended.

    Args:
        module: a scheduled module; not changed.
        target: the machine.
        alternate_memory_space: the fast memory's number in layouts.
        while_execution_count: trips of loops whose count is not known.
        trip_counts: trips of loops. The default knows those that XLA's planner
            recognises, so that figures compare with it; `TripCounts.run(module)`
            also believes what the compiler noted in the module.
        analyses: of the module, if at hand.

    Raises:
        ScheduleError: the module has no schedule.

    Linear in the size of the module but for loops whose first trips differ.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0:S(1)} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> result = simulate(module, msa.Target.preset("tpu_v5e"))
    >>> f"{result.elapsed_seconds * 1e6:.2f} us", result.copy_stall_seconds
    ('11.27 us', 0.0)
    """
    if not module.is_scheduled:
        raise ScheduleError(
            f"module {module.name!r} has no schedule",
            hint="msa.schedule(module) makes one",
        )
    with collection_paused():
        known = analyses or AnalysisManager(module)
        program = Program(
            known.schedule,
            known.costs,
            trip_counts or TripCounts.run(module, use_backend_config=False),
            target,
            alternate_memory_space=alternate_memory_space,
            while_execution_count=while_execution_count,
        )
        result = run(program.events, len(known.schedule), target.async_copy_bandwidth)
    return Simulation(
        module,
        target,
        result.seconds,
        result.stall,
        program,
        result,
        known,
        alternate_memory_space,
    )
