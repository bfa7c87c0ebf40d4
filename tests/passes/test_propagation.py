"""Memory spaces into fusion bodies (rows P1–P6 of the outcomes)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import msa
from msa.passes import Pipeline, check_memory_spaces, propagate_memory_spaces


def shapes(module: msa.Module, computation: str) -> dict[str, str]:
    found = module.computation(computation)
    return {x.name: str(x.shape) for x in found.instructions}


def run(text: str) -> msa.Module:
    module = msa.parse(text)
    before = module.to_text()
    after = propagate_memory_spaces(module)
    assert module.to_text() == before, "the input is not changed"
    assert propagate_memory_spaces(after) == after, "a second run changes nothing"
    return after


def test_nothing_outside_default_memory_P1() -> None:
    text = """
b { p = f32[8]{0} parameter(0)
    ROOT n = f32[8]{0} negate(p) }
ENTRY e { x = f32[8]{0} parameter(0)
  ROOT f = f32[8]{0} fusion(x), kind=kLoop, calls=b }"""
    module = msa.parse(text)
    assert propagate_memory_spaces(module) == module
    pipeline = Pipeline("memory-space-propagation")
    pipeline.run(module)
    assert not pipeline.records[0].changed


def test_operands_and_result_P2() -> None:
    after = run("""
b { p0 = f32[6]{0} parameter(0)
    p1 = f32[6]{0} parameter(1)
    p2 = f32[6]{0} parameter(2)
    a = f32[6]{0} add(p0, p1)
    ROOT s = f32[6]{0} add(a, p2) }
ENTRY e { x = f32[6]{0:S(1)SC(0:3)} parameter(0)
  y = f32[6]{0} parameter(1)
  z = f32[6]{0:S(1)} parameter(2)
  ROOT f = f32[6]{0:S(1)} fusion(x, y, z), kind=kLoop, calls=b }""")
    assert shapes(after, "b") == {
        "p0": "f32[6]{0:S(1)SC(0:3)}",
        "p1": "f32[6]{0}",
        "p2": "f32[6]{0:S(1)}",
        "a": "f32[6]{0}",
        "s": "f32[6]{0:S(1)}",
    }


def test_one_element_of_a_tuple_result_P3() -> None:
    after = run("""
b { p = f32[6]{0} parameter(0)
    n = f32[6]{0} negate(p)
    m = f32[6]{0} exponential(p)
    ROOT t = (f32[6]{0}, f32[6]{0}) tuple(n, m) }
ENTRY e { x = f32[6]{0} parameter(0)
  ROOT f = (f32[6]{0:S(1)SC(0:2)}, f32[6]{0}) fusion(x), kind=kLoop, calls=b }""")
    found = shapes(after, "b")
    assert found["n"] == "f32[6]{0:S(1)SC(0:2)}"
    assert found["m"] == "f32[6]{0}"
    assert found["t"] == "(f32[6]{0:S(1)SC(0:2)}, f32[6]{0})"


NESTED_BITCAST = """
inner { q = f32[6]{0} parameter(0)
        ROOT c = f32[2,3]{1,0} bitcast(q) }
outer { p = f32[6]{0} parameter(0)
        ROOT i = f32[2,3]{1,0} fusion(p), kind=kLoop, calls=inner }
ENTRY e { x = f32[6]{0IN} parameter(0)
  ROOT f = f32[2,3]{1,0OUT} fusion(x), kind=kLoop, calls=outer }"""


def test_operand_of_a_nested_bitcast_P4() -> None:
    text = NESTED_BITCAST.replace("IN", ":S(1)SC(0:3)").replace("OUT", "")
    after = run(text)
    assert shapes(after, "outer")["p"] == "f32[6]{0:S(1)SC(0:3)}"
    assert shapes(after, "inner") == {
        "q": "f32[6]{0:S(1)SC(0:3)}",
        "c": "f32[2,3]{1,0}",
    }


def test_result_of_a_nested_bitcast_P5() -> None:
    after = run(NESTED_BITCAST.replace("IN", "").replace("OUT", ":S(1)"))
    assert shapes(after, "outer") == {
        "p": "f32[6]{0}",
        "i": "f32[2,3]{1,0:S(1)}",
    }
    assert shapes(after, "inner") == {"q": "f32[6]{0}", "c": "f32[2,3]{1,0:S(1)}"}


def test_parameter_to_a_bitcast_and_to_arithmetic_P6() -> None:
    after = run("""
b { p = f32[6]{0} parameter(0)
    c = f32[2,3]{1,0} bitcast(p)
    n = f32[6]{0} negate(p)
    ROOT t = (f32[2,3]{1,0}, f32[6]{0}) tuple(c, n) }
ENTRY e { x = f32[6]{0:S(1)} parameter(0)
  ROOT f = (f32[2,3]{1,0}, f32[6]{0}) fusion(x), kind=kLoop, calls=b }""")
    found = shapes(after, "b")
    assert found["p"] == "f32[6]{0:S(1)}"
    assert found["c"] == "f32[2,3]{1,0}"


SINGLE = """
inner { q = f32[6]{0} parameter(0)
        ROOT m = f32[6]{0} negate(q) }
b { p0 = f32[6]{0:S(1)} parameter(0)
    p1 = f32[6]{0} parameter(1)
    t = (f32[6]{0}, f32[6]{0}) tuple(p0, p1)
    g = f32[6]{0} get-tuple-element(t), index=0
    n = f32[6]{0} OP
    ROOT a = f32[6]{0} add(n, p1) }
ENTRY e { x = f32[6]{0} parameter(0)
  y = f32[6]{0:S(1)} parameter(1)
  ROOT f = f32[6]{0} fusion(x, y), kind=kLoop, calls=b }"""


def run_on(text: str, computation: str) -> msa.Module:
    module = msa.parse(text)
    after = propagate_memory_spaces(module, computation)
    assert propagate_memory_spaces(after, computation) == after
    return after


def test_one_computation_P7() -> None:
    after = run_on(SINGLE.replace("OP", "negate(g)"), "b")
    found = shapes(after, "b")
    assert found["t"] == "(f32[6]{0:S(1)}, f32[6]{0})"
    assert found["g"] == "f32[6]{0:S(1)}"
    assert found["n"] == found["p1"] == found["a"] == "f32[6]{0}"
    assert shapes(after, "e")["x"] == "f32[6]{0}"


def test_one_computation_with_a_nested_fusion_P8() -> None:
    text = SINGLE.replace("OP", "fusion(g), kind=kLoop, calls=inner")
    after = run_on(text, "b")
    assert shapes(after, "inner") == {"q": "f32[6]{0:S(1)}", "m": "f32[6]{0}"}
    assert shapes(after, "b")["n"] == "f32[6]{0}"


def test_one_computation_from_its_root_P9() -> None:
    after = run_on(
        """
b { p = f32[6]{0} parameter(0)
    n = f32[6]{0} negate(p)
    m = f32[6]{0} exponential(p)
    ROOT t = (f32[6]{0:S(1)}, f32[6]{0}) tuple(n, m) }
ENTRY e { x = f32[6]{0} parameter(0)
  ROOT f = (f32[6]{0}, f32[6]{0}) fusion(x), kind=kLoop, calls=b }""",
        "b",
    )
    found = shapes(after, "b")
    assert (found["n"], found["m"]) == ("f32[6]{0:S(1)}", "f32[6]{0}")


def test_nested_copy_into_an_update_P10() -> None:
    after = run("""
inner { q = f32[8,8]{1,0:T(8,128)} parameter(0)
        ROOT c = f32[8,8]{1,0:T(4,128)} copy(q) }
b { p = f32[8,8]{1,0:T(8,128)} parameter(0)
    u = f32[1,8]{1,0} parameter(1)
    i = s32[] parameter(2)
    k = f32[8,8]{1,0:T(4,128)} fusion(p), kind=kLoop, calls=inner
    ROOT d = f32[8,8]{1,0:T(4,128)} dynamic-update-slice(k, u, i, i) }
ENTRY e { x = f32[8,8]{1,0:T(8,128)S(1)} parameter(0)
  u = f32[1,8]{1,0} parameter(1)
  i = s32[] parameter(2)
  ROOT f = f32[8,8]{1,0:T(4,128)S(1)} fusion(x, u, i), kind=kLoop, calls=b }""")
    assert shapes(after, "b")["k"] == "f32[8,8]{1,0:T(4,128)S(1)}"
    assert shapes(after, "inner")["c"] == "f32[8,8]{1,0:T(4,128)S(1)}"


def test_a_second_run_changes_nothing_P11() -> None:
    module = msa.parse(NESTED_BITCAST.replace("IN", ":S(1)").replace("OUT", ":S(1)"))
    pipeline = Pipeline("memory-space-propagation,memory-space-propagation")
    pipeline.run(module)
    assert [record.changed for record in pipeline.records] == [True, False]


def test_in_place_updates_share_the_space() -> None:
    after = run("""
b { p = f32[8]{0} parameter(0)
    u = f32[2]{0} parameter(1)
    i = s32[] parameter(2)
    ROOT d = f32[8]{0} dynamic-update-slice(p, u, i) }
ENTRY e { x = f32[8]{0:S(1)} parameter(0)
  u = f32[2]{0} parameter(1)
  i = s32[] parameter(2)
  ROOT f = f32[8]{0:S(1)} fusion(x, u, i), kind=kLoop, calls=b }""")
    assert shapes(after, "b")["d"] == shapes(after, "b")["p"] == "f32[8]{0:S(1)}"


def test_inconsistent_modules_are_told() -> None:
    module = msa.parse("""
ENTRY e { x = f32[8]{0:S(1)} parameter(0)
  t = (f32[8]{0:S(1)}) tuple(x)
  ROOT g = f32[8]{0:S(1)} get-tuple-element(t), index=0 }""")
    assert check_memory_spaces(module) == []
    g = module.entry.root
    g.shape = g.shape.with_memory_space(0)
    (problem,) = check_memory_spaces(module)
    assert "x{} in 1" in problem


def test_bodies_that_disagree_are_told() -> None:
    module = msa.parse(NESTED_BITCAST.replace("IN", ":S(1)").replace("OUT", ""))
    assert check_memory_spaces(module) == []
    (problem,) = check_memory_spaces(module, inside_fusions=True)
    assert problem == ("x is in memory space 1 at f, and p inside is in 0")
    after = propagate_memory_spaces(module)
    assert check_memory_spaces(after, inside_fusions=True) == []


SHARED = os.environ.get("MSA_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")
@pytest.mark.parametrize(
    "path",
    sorted(CORPUS.glob("*.opt.hlo*")) if SHARED else [],
    ids=lambda p: p.name.split(".")[0],
)
def test_planned_modules_are_consistent_inside(path: Path) -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="4MiB")
    plan = msa.assign(msa.load(path), target, msa.Options(strategy="greedy"))
    after = propagate_memory_spaces(plan.module)
    assert check_memory_spaces(after, inside_fusions=True) == []
    assert propagate_memory_spaces(after) == after


@pytest.mark.parametrize(
    "text",
    ["ENTRY e { ROOT x = f32[8]{0:S(1)} parameter(0) }"],
)
def test_modules_without_fusions_stay(text: str) -> None:
    module = msa.parse(text)
    assert propagate_memory_spaces(module) == module
