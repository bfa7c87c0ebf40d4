"""Transfers to and from the host that run beside the program.

Source: `xla/hlo/transforms/host_memory_transfer_asyncifier.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.analysis.schedulers import update_schedule
from msa.assignment.lowering.async_wrap import wrap_asynchronously
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.offload.vocabulary import DEVICE, HOST, HostOffloadError


@dataclass(frozen=True, slots=True)
class AsyncHostTransfers:
    """Wrap transfers between host and device in asynchronous pairs.

    Copies between the two, slices of host values that end on the device, and updates
    of host buffers from the device. Everything else stays. Linear.
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
        changed = False
        for computation in list(module.computations):
            if computation in fused:
                continue
            for x in list(computation.instructions):
                if _is_transfer(x):
                    _, done = wrap_asynchronously(x)
                    x.replace_all_uses_with(done)
                    computation.remove([x])
                    changed = True
        if changed:
            module.computations[:] = module.computation_post_order()
            if module.schedule is not None:
                module.schedule = update_schedule(module)
        return changed


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
