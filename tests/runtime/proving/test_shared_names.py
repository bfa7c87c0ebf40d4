"""Modules whose computations share names, planned, checked and executed."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import AnalysisManager
from msa.errors import ExecutionError
from msa.hlo.module import Module
from msa.runtime import Machine
from msa.testing import random_module
from msa.testing.random_modules.options import RandomModuleOptions

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="8KiB")
NESTED = RandomModuleOptions(nesting=1.0, vector=256)

BRANCHES = """HloModule m, is_scheduled=true
f { a = f32[512]{0} parameter(0)
  b = f32[512]{0} negate(a)
  ROOT c = f32[512]{0} add(a, b) }
g { a = f32[512]{0} parameter(0)
  b = f32[512]{0} tanh(a)
  ROOT c = f32[512]{0} multiply(a, b) }
ENTRY e {
  p = f32[512]{0} parameter(0)
  q = pred[] parameter(1)
  ROOT c = f32[512]{0} conditional(q, p, p), true_computation=f, false_computation=g }
"""
CALL = """HloModule m, is_scheduled=true
f { i = f32[8]{0:S(1)} parameter(0)
  a = f32[8]{0:S(1)} abs(i)
  ROOT t = f32[8] abs(a) }
ENTRY e { p = f32[8] parameter(0)
  o = f32[8]{0:S(1)} negate(p)
  ROOT v = f32[8] call(o), to_apply=f }
"""


def share_names(module: Module) -> None:
    """Number the instructions of every computation alike."""
    for computation in module.computations:
        for number, x in enumerate(computation.instructions):
            x.name = f"x.{number}" if number % 3 else f"x{number}"


def judge(module: Module, strategy: str) -> msa.Assignment:
    text = module.to_text()
    options = msa.Options(strategy=strategy, effort=8)
    plan = msa.assign(module, TARGET, options)
    plan.verify()
    plan.prove()
    assert module.to_text() == text
    of_plan = [x.name for c in plan.module.computations for x in c.instructions]
    assert len(set(of_plan)) == len(of_plan)
    for x in AnalysisManager(plan.original).schedule.instructions:
        assert plan.explain(x.name)
    return plan


@pytest.mark.parametrize("strategy", ["greedy", "search"])
@pytest.mark.parametrize("seed", range(8))
def test_plans_of_random_modules_hold(seed: int, strategy: str) -> None:
    module = random_module(seed, 40, options=NESTED)
    plain = judge(module.clone(), strategy)
    share_names(module)
    read = judge(msa.parse(module.to_text()), strategy)
    by_hand = judge(module, strategy)
    # Names decide nothing: the same places come out under other names.
    for plan in (read, by_hand):
        assert sorted(plan.chunks.values()) == sorted(plain.chunks.values())
        assert plan.estimate.after_seconds == plain.estimate.after_seconds


def test_both_branches_are_explained_under_their_names() -> None:
    plan = judge(msa.parse(BRANCHES), "search")
    for name in ("b", "b.1"):
        assert plan.explain(name).startswith(f"{name}{{}}: ")
        assert f"{name}{{}}" in plan.chunks


def test_places_under_a_shared_name_are_refused() -> None:
    module = msa.parse(CALL)
    machine, data = Machine(TARGET), [[1.0] * 8]
    inner, outer = module.computation("f").instructions[1], module.entry.instructions[1]
    places = {"a{}": (0, 32), "o{}": (32, 32)}
    assert machine.run(module, data, chunks=places).tolist() == [1.0] * 8
    outer.name = "r"
    module.computation("f").root.name = "r"
    places = {"a{}": (0, 32), "r{}": (32, 32)}
    with pytest.raises(ExecutionError, match="several instructions"):
        machine.run(module, data, chunks=places)
    module.make_names_unique()
    assert [inner.name, outer.name] == ["a", "r.1"]
    places = {"a{}": (0, 32), "r.1{}": (32, 32)}
    assert machine.run(module, data, chunks=places).tolist() == [1.0] * 8
