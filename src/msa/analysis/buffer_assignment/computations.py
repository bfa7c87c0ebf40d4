"""Which computations run on the schedule, and which inside of one instruction.

Source: `xla/service/buffer_assignment.cc` (GatherComputationsByAllocationType).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msa.errors import HloError, InternalError
from msa.hlo.opcode import CONTROL_FLOW_OPCODES

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.module import Module

_EMBEDDING: Final = frozenset(
    {
        "all-reduce",
        "all-reduce-start",
        "custom-call",
        "fusion",
        "map",
        "reduce",
        "reduce-scatter",
        "reduce-window",
        "scan",
        "scatter",
        "select-and-scatter",
        "sort",
    }
)


class AllocationClasses(NamedTuple):
    """Reachable computations, callees first.

    Attributes:
        global_: their values have storage of the program.
        thread_local: their values live within one instruction.
    """

    global_: list[Computation]
    thread_local: list[Computation]


def allocation_classes(module: Module) -> AllocationClasses:
    """Sort the computations that the entry reaches. Linear.

    Raises:
        HloError: a computation is called in both ways.
    """
    is_local: dict[Computation, bool] = {module.entry: False}
    work = [module.entry]
    while work:
        caller = work.pop()
        for x in caller.instructions:
            for callee in x.called_computations:
                if x.opcode in CONTROL_FLOW_OPCODES:
                    local = is_local[caller]
                elif x.opcode in _EMBEDDING:
                    local = True
                else:
                    raise InternalError(f"{x.opcode} {x.name} calls {callee.name}")
                known = is_local.get(callee)
                if known is None:
                    is_local[callee] = local
                    work.append(callee)
                elif known != local:
                    raise HloError(
                        f"computation {callee.name!r} has conflicting allocation "
                        "requirements, global and thread-local",
                        where=x.name,
                        hint="clone it for one of its callers",
                    )
    order = [c for c in module.computation_post_order() if c in is_local]
    return AllocationClasses(
        [c for c in order if not is_local[c]], [c for c in order if is_local[c]]
    )
