"""Transfers to and from the host that run beside the program.

Source: `xla/hlo/transforms/host_memory_transfer_asyncifier.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from msa.analysis.manager import AnalysisManager
from msa.assignment.lowering.async_wrap import wrap_asynchronously
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.naming import NameUniquer
from msa.hlo.shape import Shape
from msa.passes.offload.vocabulary import DEVICE, HOST, HostOffloadError

_CONTEXT: Final = Shape.array("u32", ())


@dataclass(frozen=True, slots=True)
class AsyncHostTransfers:
    """Wrap transfers between host and device in asynchronous pairs.

    Copies between the two, slices of host values that end on the device, and updates
    of host buffers from the device. Everything else stays. In a schedule, a pair takes
    the place of what it wraps. Linear.
    """

    name: ClassVar[str] = "host-transfers-async"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`.

        Raises:
            HostOffloadError: an update and its target lie in different spaces.
        """
        del analyses
        fused = {
            c
            for computation in module.computations
            for x in computation.instructions
            if x.opcode in ("fusion", "async-start")
            for c in x.called_computations
        }
        names = NameUniquer(c.name for c in module.computations)
        changed = False
        for computation in list(module.computations):
            if computation not in fused:
                changed |= _wrap_transfers(computation, names)
        if changed:
            module.computations[:] = module.computation_post_order()
        return changed


def _wrap_transfers(computation: Computation, names: NameUniquer) -> bool:
    """Wrap the transfers of one computation; whether there are any. Linear."""
    pairs: dict[Instruction, tuple[Instruction, Instruction]] = {}
    for x in list(computation.instructions):
        if _is_transfer(x):
            start, done = wrap_asynchronously(x, context=_CONTEXT, names=names)
            for before in x.control_predecessors:
                before.add_control_successor(start)
            for after in x.control_successors:
                done.add_control_successor(after)
            x.replace_all_uses_with(done)
            pairs[x] = (start, done)
    if not pairs:
        return False
    computation.remove(pairs)
    schedule = computation.module.schedule
    if schedule is not None and computation in schedule:
        order = schedule.sequence(computation)
        schedule.set_sequence(
            computation, tuple(y for x in order for y in pairs.get(x, (x,)))
        )
    return True


def _is_transfer(x: Instruction) -> bool:
    if x.opcode not in ("copy", "dynamic-slice", "dynamic-update-slice"):
        return False
    if not x.shape.is_array:
        return False
    source, target = x.operands[0].shape.memory_space, x.shape.memory_space
    if x.opcode == "dynamic-update-slice":
        if source != target:
            raise HostOffloadError(
                f"{x.name} writes into space {source} but lies in space {target}",
                where=x.name,
                hint="both are the same storage",
            )
        return target == HOST and x.operands[1].shape.memory_space == DEVICE
    if x.opcode == "dynamic-slice":
        return (source, target) == (HOST, DEVICE)
    return {source, target} == {HOST, DEVICE}
