"""Who calls whom, and how: as a step of the program or once per element.

Source: `xla/service/call_graph.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import CONTROL_FLOW_OPCODES

Context = Literal["none", "control-flow", "embedded", "both"]

_ASYNC: Final = frozenset({"async-start", "async-update", "async-done"})
_CONTROL_FLOW: Final = 1
_EMBEDDED: Final = 2
_CONTEXTS: Final[tuple[Context, ...]] = ("none", "control-flow", "embedded", "both")


def call_context(opcode: str) -> Context:
    """How an instruction runs the computations that it calls."""
    return "control-flow" if opcode in CONTROL_FLOW_OPCODES else "embedded"


@dataclass(frozen=True, slots=True)
class CallSite:
    """An instruction that calls computations."""

    instruction: Instruction
    called_computations: tuple[Computation, ...]
    context: Context

    def __str__(self) -> str:
        callees = ", ".join(c.name for c in self.called_computations)
        return f"{self.instruction.name} calls {callees} ({self.context})"


class CallGraphNode:
    """What a computation calls and what calls it.

    Attributes:
        computation: the computation.
        context: how it is run: as part of the program (`control-flow`), by
            reductions, fusions and the like (`embedded`), or `both`.
        call_sites: instructions of it that call, in order of insertion.
        caller_call_sites: the sites that call it.
        callees, callers: distinct, in order of first call.
        depth: longest path from a computation that nothing calls.
    """

    __slots__ = (
        "call_sites",
        "callees",
        "caller_call_sites",
        "callers",
        "computation",
        "context",
        "depth",
    )

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.context: Context = "none"
        self.call_sites: tuple[CallSite, ...] = ()
        self.caller_call_sites: tuple[CallSite, ...] = ()
        self.callees: tuple[Computation, ...] = ()
        self.callers: tuple[Computation, ...] = ()
        self.depth = 0

    def __repr__(self) -> str:
        return f"<CallGraphNode {self.computation.name} {self.context}>"


class CallGraph:
    """The call graph of a module.

    Linear in instructions plus calls.

    >>> import msa
    >>> module = msa.parse('''
    ... double { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }
    ... ENTRY main { p = f32[4] parameter(0)  ROOT c = f32[4] call(p), to_apply=double }
    ... ''')
    >>> graph = CallGraph.run(module)
    >>> node = graph.node(module.computation("double"))
    >>> node.context, node.depth, [s.instruction.name for s in node.caller_call_sites]
    ('control-flow', 1, ['c'])
    """

    __slots__ = ("_nodes", "_order", "module")

    def __init__(self, module: Module, nodes: dict[Computation, CallGraphNode]) -> None:
        self.module = module
        self._nodes = nodes
        self._order = _callers_first(nodes)

    @classmethod
    def run(cls, module: Module) -> CallGraph:
        """Build the graph.

        Raises:
            HloError: computations call each other in a circle, or one that is not
                in the module is called.
        """
        nodes = {c: CallGraphNode(c) for c in module.computations}
        _connect(nodes)
        graph = cls(module, nodes)
        _set_contexts_and_depths(graph._order, nodes)
        return graph

    @property
    def nodes(self) -> tuple[CallGraphNode, ...]:
        """All nodes, in module order."""
        return tuple(self._nodes.values())

    def node(self, computation: Computation) -> CallGraphNode:
        """The node of a computation of the module."""
        try:
            return self._nodes[computation]
        except KeyError:
            raise HloError(f"{computation.name} is not in the module") from None

    def is_async(self, computation: Computation) -> bool:
        """Whether asynchronous operations run the computation."""
        sites = self.node(computation).caller_call_sites
        return bool(sites) and sites[0].instruction.opcode in _ASYNC

    def parent_call(self, computation: Computation) -> Instruction | None:
        """The one instruction that runs a computation, or None.

        Computations without callers or with several have none; a computation that
        an asynchronous chain runs belongs to the start.
        """
        sites = self.node(computation).caller_call_sites
        if len(sites) == 1 or (sites and sites[0].instruction.opcode in _ASYNC):
            return sites[0].instruction
        return None

    @property
    def is_flattened(self) -> bool:
        """Whether every part of the program is run by one place only."""
        return all(
            node.context != "both"
            and (
                node.context != "control-flow"
                or len(node.caller_call_sites) <= 1
                or self.is_async(node.computation)
            )
            for node in self._nodes.values()
        )

    def visit_order(self, *, from_entry_only: bool = False) -> list[CallGraphNode]:
        """Nodes with callees before callers, depth first in callee order."""
        starts: list[Computation] = (
            [self.module.entry]
            if from_entry_only
            else [c for c, node in self._nodes.items() if not node.callers]
        )
        done: set[Computation] = set()
        order: list[CallGraphNode] = []
        for start in starts:
            if start in done:
                continue
            done.add(start)
            stack = [(start, iter(self._nodes[start].callees))]
            while stack:
                computation, callees = stack[-1]
                callee = next(callees, None)
                if callee is None:
                    stack.pop()
                    order.append(self._nodes[computation])
                elif callee not in done:
                    done.add(callee)
                    stack.append((callee, iter(self._nodes[callee].callees)))
        return order

    def is_nested_in(self, instruction: Instruction, computation: Computation) -> bool:
        """Whether an instruction is part of a computation, through its callers."""
        work = [instruction.computation]
        seen = set(work)
        while work:
            here = work.pop()
            if here is computation:
                return True
            for caller in self.node(here).callers:
                if caller not in seen:
                    seen.add(caller)
                    work.append(caller)
        return False


def _connect(nodes: dict[Computation, CallGraphNode]) -> None:
    callers: dict[Computation, dict[Computation, None]] = {c: {} for c in nodes}
    called_at: dict[Computation, list[CallSite]] = {c: [] for c in nodes}
    for computation, node in nodes.items():
        sites = []
        callees: dict[Computation, None] = {}
        for instruction in computation.instructions:
            called = instruction.called_computations
            if not called:
                continue
            site = CallSite(instruction, called, call_context(instruction.opcode))
            sites.append(site)
            for callee in called:
                if callee not in nodes:
                    raise HloError(
                        f"{instruction.name} calls {callee.name}, which is not in the "
                        "module"
                    )
                callees[callee] = None
                callers[callee][computation] = None
            for callee in dict.fromkeys(called):
                called_at[callee].append(site)
        node.call_sites = tuple(sites)
        node.callees = tuple(callees)
    for computation, node in nodes.items():
        # A chain of asynchronous operations is led by its start, wherever it stands.
        node.caller_call_sites = tuple(
            sorted(
                called_at[computation],
                key=lambda site: (
                    site.instruction.opcode in ("async-update", "async-done")
                ),
            )
        )
        node.callers = tuple(callers[computation])


def _callers_first(nodes: dict[Computation, CallGraphNode]) -> list[Computation]:
    """Topological order; a circle of calls is an error."""
    waiting = {c: len(node.callers) for c, node in nodes.items()}
    order = [c for c, count in waiting.items() if not count]
    for computation in order:
        for callee in nodes[computation].callees:
            waiting[callee] -= 1
            if not waiting[callee]:
                order.append(callee)
    if len(order) < len(nodes):
        name = next(c.name for c, count in waiting.items() if count)
        raise HloError(f"computation {name} calls itself")
    return order


def _set_contexts_and_depths(
    order: list[Computation], nodes: dict[Computation, CallGraphNode]
) -> None:
    contexts = {c: 0 if nodes[c].callers else _CONTROL_FLOW for c in order}
    for computation in order:
        node = nodes[computation]
        mine = contexts[computation]
        node.context = _CONTEXTS[mine]
        for site in node.call_sites:
            gives = mine if site.context == "control-flow" else _EMBEDDED
            for callee in site.called_computations:
                contexts[callee] |= gives
                below = nodes[callee]
                below.depth = max(below.depth, node.depth + 1)
