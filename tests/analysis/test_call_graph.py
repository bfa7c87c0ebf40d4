"""The call graph."""

from __future__ import annotations

import pytest

import msa
from analysis import flow_modules as modules
from msa.analysis import CallGraph
from msa.errors import HloError

NESTED = """
inner { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
element { e = f32[] parameter(0)  ROOT ec = f32[] call(e), to_apply=inner }
yes { yp = f32[8] parameter(0)  ROOT ym = f32[8] map(yp), dimensions={0}, to_apply=element }
no { ROOT np = f32[8] parameter(0) }
ENTRY main {
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no
}"""


def graph(text: str) -> CallGraph:
    return CallGraph.run(msa.parse(text, verify=False))


def test_contexts_and_depths() -> None:
    found = graph(NESTED)
    rows = {n.computation.name: (n.context, n.depth) for n in found.nodes}
    assert rows == {
        "main": ("control-flow", 0),
        "yes": ("control-flow", 1),
        "no": ("control-flow", 1),
        "element": ("embedded", 2),
        # A call within a mapped computation runs once per element, too.
        "inner": ("embedded", 3),
    }
    assert found.is_flattened


def test_sites() -> None:
    found = graph(NESTED)
    main = found.node(found.module.entry)
    (site,) = main.call_sites
    assert [c.name for c in site.called_computations] == ["yes", "no"]
    assert str(site) == "c calls yes, no (control-flow)"
    yes = found.module.computation("yes")
    assert found.parent_call(yes) is found.module.entry.root
    assert [c.name for c in found.node(yes).callers] == ["main"]


def test_callees_are_visited_first() -> None:
    order = [n.computation.name for n in graph(NESTED).visit_order()]
    assert order == ["inner", "element", "yes", "no", "main"]
    unreached = "lonely { ROOT x = f32[] parameter(0) }\n" + NESTED
    assert len(graph(unreached).visit_order()) == 6
    assert len(graph(unreached).visit_order(from_entry_only=True)) == 5


def test_both_contexts() -> None:
    found = graph(modules.MIXED_CONTEXTS)
    callee = found.node(found.module.computation("callee"))
    assert callee.context == "both"
    assert not found.is_flattened


def test_a_computation_called_twice_is_not_flat() -> None:
    assert not graph(modules.PASSING_WHILE_CALLED_TWICE).is_flattened
    assert graph(modules.NESTED_WHILE).is_flattened


def test_asynchronous_chains_are_led_by_their_start() -> None:
    found = graph(modules.CUSTOM_CALL_ASYNC)
    wrapped = found.module.computation("wrapped")
    opcodes = [s.instruction.opcode for s in found.node(wrapped).caller_call_sites]
    assert opcodes == ["async-start", "async-update", "async-done"]
    caller = found.parent_call(wrapped)
    assert caller is not None
    assert caller.name == "start"
    assert found.is_async(wrapped)
    assert found.is_flattened


def test_nesting() -> None:
    found = graph(NESTED)
    inner = found.module.computation("inner").root
    assert found.is_nested_in(inner, found.module.entry)
    assert found.is_nested_in(inner, found.module.computation("yes"))
    assert not found.is_nested_in(inner, found.module.computation("no"))


def test_circles_are_refused() -> None:
    module = msa.parse(NESTED)
    inner, element = module.computations[:2]
    inner.root.opcode = "call"
    inner.root.called_computations = (element,)
    with pytest.raises(HloError, match="calls itself"):
        CallGraph.run(module)


def test_foreign_computations_are_refused() -> None:
    module, other = msa.parse(NESTED), msa.parse(NESTED)
    with pytest.raises(HloError, match="not in the module"):
        CallGraph.run(module).node(other.entry)
    module.entry.root.called_computations = tuple(other.computations[2:4])
    with pytest.raises(HloError, match="not in the module"):
        CallGraph.run(module)
