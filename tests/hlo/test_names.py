"""Names that computations share: the whole module tells its instructions apart."""

from __future__ import annotations

import pytest

import msa
from msa.errors import HloVerifyError
from msa.hlo.naming import NameUniquer

SHARED = """HloModule m, is_scheduled=true
f { a = f32[8] parameter(0)
  b = f32[8] negate(a)
  ROOT c = f32[8] add(a, b), control-predecessors={b} }
g { a = f32[8] parameter(0)
  b = f32[8] tanh(a)
  ROOT c = f32[8] multiply(a, b) }
ENTRY e {
  p = f32[8] parameter(0)
  q = pred[] parameter(1)
  ROOT c = f32[8] conditional(q, p, p), true_computation=f, false_computation=g }
"""


def names(module: msa.Module) -> dict[str, list[str]]:
    return {c.name: [x.name for x in c.instructions] for c in module.computations}


def test_the_first_keeps_the_name() -> None:
    module = msa.parse(SHARED)
    assert names(module) == {
        "f": ["a", "b", "c"],
        "g": ["a.1", "b.1", "c.1"],
        "e": ["p", "q", "c.2"],
    }
    tanh = module.computation("g").instructions[1]
    assert [x.name for x in tanh.operands] == ["a.1"]
    assert msa.parse(module.to_text()) == module


# The second computation's names, those of the first being x, x.2 and y.5.
@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["x"], ["x.1"]),
        (["x", "x.0"], ["x.1", "x.3"]),
        (["x.2"], ["x.1"]),
        (["x", "x.1"], ["x.1", "x.3"]),
        (["x.1", "x"], ["x.1", "x.3"]),
        (["y", "y.5"], ["y", "y.1"]),
        (["y.5", "y"], ["y.0", "y.1"]),
        (["x.a", "z.5"], ["x.a", "z.5"]),
    ],
)
def test_numbers_of_the_second(given: list[str], made: list[str]) -> None:
    lines = [f"{n} = f32[] parameter({i})" for i, n in enumerate([*given, "w", "x"])]
    body = " ".join(lines[: len(given)])
    module = msa.parse(f"""
f {{ x = f32[] parameter(0) x.2 = f32[] negate(x) ROOT y.5 = f32[] abs(x.2) }}
ENTRY e {{ {body} v = f32[] constant(0) ROOT w = f32[] call(v), to_apply=f }}""")
    assert names(module)["e"] == [*made, "v", "w"]


def test_unique_names_stay_as_they_are() -> None:
    module = msa.parse("ENTRY e { x = f32[] parameter(0) ROOT x.0 = f32[] abs(x) }")
    assert names(module) == {"e": ["x", "x.0"]}
    assert not module.make_names_unique()


def test_complaints_use_the_names_of_the_text() -> None:
    text = SHARED.replace("f32[8] multiply(a, b)", "f32[9] multiply(a, b)")
    with pytest.raises(HloVerifyError) as caught:
        msa.parse(text)
    assert caught.value.source_line == "  ROOT c = f32[9] multiply(a, b) }"
    assert caught.value.column == 8


def test_modules_made_by_hand() -> None:
    module = msa.parse(SHARED)
    module.entry.root.name = "a"
    assert module.make_names_unique()
    assert names(module)["e"] == ["p", "q", "a.2"]
    assert module.unique_instruction_name("a") == "a.3"


@pytest.mark.parametrize("digits", [19, 4300, 4301, 100_000])
def test_long_numbers_are_part_of_the_base(digits: int) -> None:
    name = "x." + "7" * digits
    uniquer = NameUniquer([name])
    assert uniquer.unique(name) == f"{name}.1"  # a bare base is number 0
    module = msa.parse(f"""
f {{ ROOT {name} = f32[] parameter(0) }}
ENTRY e {{ {name} = f32[] parameter(0) ROOT w = f32[] call({name}), to_apply=f }}""")
    assert names(module) == {"f": [name], "e": [f"{name}.1", "w"]}
