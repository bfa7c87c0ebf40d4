"""Operations of a module along its loops."""

from __future__ import annotations

from msa.analysis.costs import CostOptions, InstructionCosts
from msa.analysis.trip_counts import TripCounts
from msa.hlo.computation import Computation
from msa.hlo.module import Module
from msa.hlo.opcode import CONTROL_FLOW_OPCODES
from msa.passes.rematerialization.result import Work


def work_of(module: Module, costs: CostOptions | None, host_space: int) -> Work:
    """Operations of one run; a loop of unknown length counts once. Linear.

    Every branch of a conditional counts.
    """
    analysis = InstructionCosts.run(module, options=costs)
    trips = TripCounts.run(module)
    runs: dict[Computation, float] = {module.entry: 1.0}
    order = module.computation_post_order()[::-1]  # callers first
    flops = transcendentals = accessed = 0.0
    host_bytes = 0.0
    for computation in order:
        times = runs.get(computation, 0.0)
        if not times:
            continue
        for x in computation.instructions:
            if x.opcode in CONTROL_FLOW_OPCODES:
                inner = times * ((trips.of(x) or 1) if x.opcode == "while" else 1)
                if x.opcode not in ("async-update", "async-done"):
                    for callee in x.called_computations:
                        runs[callee] = runs.get(callee, 0.0) + inner
                continue
            flops += times * max(0.0, analysis.flops(x))
            transcendentals += times * max(0.0, analysis.transcendentals(x))
            accessed += times * max(0.0, analysis.bytes_accessed(x))
            if x.opcode == "copy-start":
                source, target = x.operands[0].shape, x.shape.children[0]
                spaces = (source.memory_space, target.memory_space)
                if (spaces[0] == host_space) != (spaces[1] == host_space):
                    host_bytes += times * source.byte_size()
    return Work(flops, transcendentals, accessed, round(host_bytes))
