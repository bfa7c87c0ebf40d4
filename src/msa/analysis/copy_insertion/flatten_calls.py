"""Flattening the call graph: one call site for every computation that is scheduled.

Alias analysis and live ranges speak of a computation's values as one set of
buffers, which is only true when the computation is called from one place.

Source: `xla/hlo/transforms/simplifiers/flatten_call_graph.cc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msa.errors import UnsupportedError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.naming import NameUniquer
from msa.hlo.opcode import CONTROL_FLOW_OPCODES

if TYPE_CHECKING:
    from msa.hlo.module import Module

MAX_INSTRUCTIONS: Final = 5_000_000
"""Flattening stops with an error when a module would grow beyond this."""

_CHAIN: Final = frozenset({"async-update", "async-done"})


def flatten_call_graph(module: Module) -> int:
    """Give every call, loop, conditional and async operation callees of its own.

    Changes the module in place (clone it first); a schedule is kept and extended.
    The result can be exponentially larger than the input where calls nest.

    Returns:
        the number of computations that were added.

    Raises:
        UnsupportedError: the module would exceed `MAX_INSTRUCTIONS`.
    """
    flattener = _Flattener(module)
    flattener.run()
    return flattener.added


class _Flattener:
    """Walks from callers to callees; the first call site keeps the original."""

    __slots__ = ("_after", "_claimed", "_module", "_size", "_uniquer", "added")

    def __init__(self, module: Module) -> None:
        self._uniquer = NameUniquer(c.name for c in module.computations)
        self._module = module
        self._claimed: set[Computation] = {module.entry}
        self._after: dict[Computation, list[Computation]] = {}
        self._size = module.instruction_count
        self.added = 0
        for computation in module.computations:
            for x in computation.instructions:
                if x.opcode not in CONTROL_FLOW_OPCODES:
                    # Embedded callers share; a control-flow call needs its own.
                    self._claimed.update(x.called_computations)

    def run(self) -> None:
        work = [self._module.entry]
        seen = {self._module.entry}
        while work:
            for x in work.pop().instructions:
                if x.opcode not in CONTROL_FLOW_OPCODES or x.opcode in _CHAIN:
                    continue
                callees = tuple(self._claim(c) for c in x.called_computations)
                if callees != x.called_computations:
                    _set_callees(x, callees)
                for callee in callees:
                    if callee not in seen:
                        seen.add(callee)
                        work.append(callee)
        if self.added:
            self._place()

    def _claim(self, computation: Computation) -> Computation:
        if computation not in self._claimed:
            self._claimed.add(computation)
            return computation
        self._size += len(computation.instructions)
        if self._size > MAX_INSTRUCTIONS:
            raise UnsupportedError(
                f"flattening the calls of {self._module.name!r} needs more than "
                f"{MAX_INSTRUCTIONS} instructions",
                subject="call graph",
                hint="inline or outline the computations that are called repeatedly",
            )
        name = self._uniquer.unique(f"{computation.name}.clone")
        copy = clone_computation(self._module, computation, name)
        self._claimed.add(copy)
        self._after.setdefault(computation, []).append(copy)
        self.added += 1
        return copy

    def _place(self) -> None:
        """Put clones right after their originals: callees stay before callers."""
        module = self._module
        added = {c for copies in self._after.values() for c in copies}
        order: list[Computation] = []
        stack = [c for c in reversed(module.computations) if c not in added]
        while stack:
            computation = stack.pop()
            order.append(computation)
            stack.extend(reversed(self._after.get(computation, ())))
        module.computations[:] = order


def _set_callees(x: Instruction, callees: tuple[Computation, ...]) -> None:
    """Change what an instruction calls, along its whole async chain."""
    old = x.called_computations
    work = [x]
    while work:
        y = work.pop()
        y.called_computations = callees
        if x.opcode == "async-start":
            work.extend(
                user
                for user in y._users
                if user.opcode in _CHAIN and user.called_computations == old
            )


def clone_computation(module: Module, source: Computation, name: str) -> Computation:
    """A copy of a computation under new names, added to the same module. Linear."""
    copy = Computation(name, source.execution_thread)
    module.add(copy)
    twins: dict[Instruction, Instruction] = {}
    for x in source.instructions:
        twin = Instruction(
            module.unique_instruction_name(x.name),
            x.opcode,
            x.shape,
            (),
            x.attributes,
            x.called_computations,
            metadata_text=x.metadata_text,
            backend_config=x.backend_config,
        )
        twin.line = x.line
        twins[x] = copy.add(twin, root=x is source.root)
    for x, twin in twins.items():
        twin.set_operands(tuple(twins[o] for o in x.operands))
        for successor in x.control_successors:
            twin.add_control_successor(twins[successor])
    for x, twin in twins.items():
        # Users keep their order: schedulers break ties by it.
        twin._users = {twins[u]: None for u in x._users}
    schedule = module.schedule
    if schedule is not None and source in schedule:
        sequence = tuple(twins[x] for x in schedule.sequence(source))
        schedule.set_sequence(copy, sequence)
    return copy
