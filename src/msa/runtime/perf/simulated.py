"""Events of a module's modelled run, as a profiler would have recorded them."""

from __future__ import annotations

from dataclasses import dataclass

from msa.analysis.costs import InstructionCosts
from msa.analysis.simulation import Simulation
from msa.analysis.simulation.program import moved_shapes
from msa.hlo.instruction import Instruction
from msa.runtime.perf.device import DeviceDescription
from msa.runtime.perf.events import ProfilerSim
from msa.runtime.perf.kernels import launch_for

COMPUTE_STREAM = 0
COPY_STREAM = 1


@dataclass(frozen=True, slots=True)
class _Traffic:
    read: float
    written: float
    fast: float


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a copy: when, how often, and whether the program waited for it."""

    done: Instruction
    time: float
    trips: float
    waited: bool


def record_simulation(
    simulation: Simulation,
    device: DeviceDescription | None = None,
    *,
    alternate_memory_space: int = 1,
    max_events: int = 1 << 20,
) -> ProfilerSim:
    """Replay a simulation into a profiler.

    Every instruction is one kernel with the time and traffic of all its runs, one
    after another; copies between the memories lie on a stream of their own, from
    their start to the moment at which their end is waited for. Bytes of default
    memory are counted as read and written, those of fast memory apart.

    Args:
        simulation: of a scheduled module.
        device: for the figures that a target does not have; made from it by default.
        alternate_memory_space: the fast memory's number in layouts.
        max_events: see `ProfilerSim`.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0:S(1)} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> events = record_simulation(msa.simulate(module, msa.Target.preset("tpu_v5e"))).events
    >>> [(e.name, e.bytes_read, e.bytes_written, e.fast_bytes) for e in events]
    [('b', 4194304.0, 0.0, 4194304.0), ('c', 0.0, 4194304.0, 4194304.0)]
    """
    description = device or DeviceDescription.of_target(simulation.target)
    profiler = ProfilerSim([description], max_events)
    analyses = simulation.analyses
    starts: dict[Instruction, float] = {}
    now = 0.0
    waiting = (
        analyses.schedule.async_context
    )  # what runs there takes no time of its own
    for x, step in zip(analyses.schedule.instructions, simulation.steps, strict=True):
        waited = step.stall * step.trip_count
        if x.opcode in ("copy-start", "async-start"):
            starts[x] = now
        elif x.opcode in ("copy-done", "async-done"):
            now += waited
            end = _End(x, now, step.trip_count, waited > 0)
            _record_copy(profiler, end, starts, alternate_memory_space)
            continue
        if x.computation in waiting:
            continue
        work = max(step.compute, step.memory) * step.trip_count
        if work > 0:
            traffic = _traffic(x, analyses.costs, alternate_memory_space)
            launch = launch_for(_elements(x), description)
            profiler.kernel(
                x.name,
                now,
                now + work,
                stream=COMPUTE_STREAM,
                bytes_read=traffic.read * step.trip_count,
                bytes_written=traffic.written * step.trip_count,
                fast_bytes=traffic.fast * step.trip_count,
                flops=max(0.0, analyses.costs.flops(x)) * step.trip_count,
                blocks=launch.blocks,
                threads=launch.threads,
                runs=step.trip_count,
            )
        now += work
    return profiler


def _record_copy(
    profiler: ProfilerSim,
    end: _End,
    starts: dict[Instruction, float],
    space: int,
) -> None:
    start = end.done.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    moved = moved_shapes(start)
    if moved is None or start not in starts:
        return
    source, result = moved
    size = result.byte_size() * max(1.0, end.trips)
    into = result.memory_space == space and source.memory_space == 0
    out = source.memory_space == space and result.memory_space == 0
    if not into and not out:
        return
    profiler.copy(
        "DefaultToAlternate" if into else "AlternateToDefault",
        starts[start],
        max(end.time, starts[start]),
        int(size),
        name=start.name,
        stream=COPY_STREAM,
        bytes_read=size if into else 0.0,
        bytes_written=size if out else 0.0,
        fast_bytes=size,
        runs=end.trips,
        waited=end.waited,
    )


def _traffic(x: Instruction, costs: InstructionCosts, space: int) -> _Traffic:
    read = written = fast = 0.0
    for number, operand in enumerate(x.operands):
        for index, leaf in operand.shape.leaves():
            size = max(0.0, costs.operand_bytes(x, number, index))
            if leaf.is_array and leaf.memory_space == space:
                fast += size
            else:
                read += size
    for index, leaf in x.shape.leaves():
        size = max(0.0, costs.output_bytes(x, index))
        if leaf.is_array and leaf.memory_space == space:
            fast += size
        else:
            written += size
    return _Traffic(read, written, fast)


def _elements(x: Instruction) -> int:
    return max(
        (leaf.element_count for _, leaf in x.shape.leaves() if leaf.is_array), default=1
    )
