"""Seconds and benefits on a machine; figures are worked out by hand."""

from __future__ import annotations

import math

import pytest

import msa
from msa.analysis import AnalysisManager, CostModel
from msa.errors import HloError

# A machine with round figures: 100 bytes/s, ten times that in fast memory.
TARGET = msa.Target(
    "round",
    alternate_memory_bytes=1024,
    alignment_bytes=8,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=500.0,
    flops_per_second=1000.0,
    transcendentals_per_second=10.0,
)

LOOP = """
body {
  bp = (f32[25], f32[25]) parameter(0)
  b0 = f32[25] get-tuple-element(bp), index=0
  b1 = f32[25] get-tuple-element(bp), index=1
  add = f32[25] add(b0, b1)
  ROOT br = (f32[25], f32[25]) tuple(b0, add)
}
cond { cp = (f32[25], f32[25]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  x = f32[25] parameter(0)
  y = f32[25] parameter(1)
  n = f32[25] negate(x)
  e = f32[25] tanh(y)
  t = (f32[25], f32[25]) tuple(n, e)
  w = (f32[25], f32[25]) while(t), condition=cond, body=body
  ROOT r = f32[25] get-tuple-element(w), index=1
}"""


class Case:
    def __init__(self, text: str = LOOP, **settings) -> None:
        module = msa.parse(text, verify=False)
        self.model = CostModel.run(module, TARGET, **settings)
        self.by_name = {x.name: x for c in module.computations for x in c.instructions}

    def __getitem__(self, name: str):
        return self.by_name[name]

    def value(self, name: str, index=()):
        return self.model.alias.dataflow.unique_value_at(self[name], index)


def test_seconds() -> None:
    case = Case()
    model, n, e = case.model, case["n"], case["e"]
    assert model.compute(n) == pytest.approx(25 / 1000)
    assert model.compute(e) == pytest.approx(25 / 10)
    assert model.memory(n) == pytest.approx(200 / 100)
    assert model.memory(n, [(0, ())]) == pytest.approx(100 / 1000 + 100 / 100)
    assert model.memory(n, (), [()]) == pytest.approx(100 / 500 + 100 / 100)
    assert model.memory(n, [(0, ())], [()]) == pytest.approx(0.1 + 0.2)
    assert model.elapsed(n) == pytest.approx(2.0)
    assert model.elapsed(e) == pytest.approx(2.5)
    assert model.elapsed_alt(e, [(0, ())], [()]) == pytest.approx(2.5)
    # Default memory is free while arithmetic goes on.
    idle = model.idle_default_bandwidth_time
    assert idle(n, (), ()) == pytest.approx(0.0)
    assert idle(e, (), ()) == pytest.approx(2.5 - 2.0)
    assert idle(e, [(0, ())], [()]) == pytest.approx(2.5)


def test_copies() -> None:
    assert Case().model.async_copy_elapsed(300) == pytest.approx(3.0)
    half = Case(async_copy_scaling=0.5).model
    assert half.async_copy_elapsed(300) == pytest.approx(6.0)


def test_pipeline_overhead() -> None:
    # A window of 100 bytes; half of 200 bytes of traffic delays half the arithmetic.
    case = Case(pipeline_overhead_window_mib=100 / 2**20)
    assert case.model.elapsed(case["e"]) == pytest.approx(max(2.5, 2.0 + 0.5 * 2.5))
    fast = case.model.elapsed_alt(case["e"], [(0, ())], [()])
    assert fast == pytest.approx(2.5)  # nothing of it in default memory
    assert case.model.elapsed_alt(case["e"], [(0, ())], []) == pytest.approx(
        max(2.5, 0.1 + 1.0 + 0.5 * 2.5)
    )


STARTS = """
ENTRY main {
  x = f32[25] parameter(0)
  s = (f32[25], f32[25], u32[]) copy-start(x)
  ROOT d = f32[25] copy-done(s)
}"""


def test_asynchronous_operations_take_no_time() -> None:
    case = Case(STARTS)
    for name in ("s", "d"):
        assert case.model.elapsed(case[name]) == 0
        assert case.model.memory(case[name]) == 0
        assert case.model.compute(case[name]) == 0


def test_nesting() -> None:
    case = Case()
    model = case.model
    assert [model.nest_level(case[x]) for x in ("n", "add", "f")] == [0, 1, 1]
    assert model.nest_level(case["add"], while_only=True) == 1
    assert [model.while_multiplier(level) for level in (0, 1, 3)] == [1, 5, 125]
    assert model.nest_trip_count(case["add"]) == 5
    seven = Case(while_execution_count=7)
    assert seven.model.nest_trip_count(seven["add"]) == 7
    with pytest.raises(HloError, match="not in the module"):
        seven.model.nest_trip_count(case["add"])


def test_a_computation_with_two_callers_has_no_level() -> None:
    case = Case("""
callee { p1 = f32[] parameter(0)  ROOT n1 = f32[] negate(p1) }
ENTRY main {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=callee
  ROOT b = f32[] call(a), to_apply=callee
}""")
    with pytest.raises(HloError, match="several instructions"):
        case.model.nest_level(case["n1"])


def test_benefits() -> None:
    case = Case()
    model = case.model
    n, e, add = case["n"], case["e"], case["add"]
    # Memory bound: seconds saved, per assumed run.
    assert model.position_benefit(case.value("n").position) == pytest.approx(2.0 - 1.2)
    assert model.benefit(add, 1.0) == pytest.approx((3.0 - 1.0) * 5)
    # Compute bound: how far it is from being memory bound.
    assert model.benefit(e, 0.0) == pytest.approx(2.0 - 2.5)
    assert model.benefit(n, 0.0) == pytest.approx(2.0)


def test_memory_boundedness() -> None:
    case = Case()
    n = case.value("n")
    # Written by n, read on every trip by add; the loop itself does not count.
    total = (2.0 - 1.2) + 5 * (3.0 - 2.1)
    assert case.model.memory_boundedness(n) == pytest.approx(total / math.sqrt(100))
    plain = Case(benefit_scaling="NO_SCALE")
    assert plain.model.memory_boundedness(plain.value("n")) == pytest.approx(total)
    sized = Case()
    assert sized.model.memory_boundedness(sized.value("n"), 400) == pytest.approx(
        total / math.sqrt(400)
    )


def test_mixed_signs_take_the_larger() -> None:
    case = Case(benefit_scaling="NO_SCALE")
    # e is compute bound (-0.5 written); the buffer is read by add: 5 * 0.9.
    found = case.model.memory_boundedness(case.value("e"))
    assert found == pytest.approx(5 * 0.9)


def test_the_manager_keeps_results_until_invalidated() -> None:
    module = msa.parse(LOOP)
    manager = AnalysisManager(module)
    assert manager.get(type(manager.alias)) is manager.alias
    model = manager.cost_model(TARGET)
    assert manager.cost_model(TARGET) is model
    assert manager.cost_model(TARGET, while_execution_count=3) is not model
    costs, flow = manager.costs, manager.dataflow
    manager.invalidate(type(flow))
    assert manager.dataflow is not flow
    assert manager.costs is costs
    assert manager.cost_model(TARGET) is not model
    manager.invalidate()
    assert manager.costs is not costs


def test_the_manager_runs_any_analysis() -> None:
    class Count:
        @classmethod
        def run(cls, module):
            return module.instruction_count

    manager = AnalysisManager(msa.parse(LOOP))
    assert manager.get(Count) == manager.module.instruction_count
