"""Tuples name the arrays in them: what takes a tuple out of a tuple reads no array.

An array that is carried through a barrier, a call, a loop or a branch and is only
named afterwards, by an element that is a tuple itself, is not needed any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from analysis.storage_oracle import storage_problems
from msa.analysis import AliasAnalysis, FlattenedSchedule, missing_copies
from msa.analysis.buffer_assignment import BufferAssignment
from msa.analysis.residency import Residency, Span, merged
from msa.assignment.verification import verify_plan
from msa.errors import PlanError

INNER = "(f32[256]{0:S(1)}, f32[256]{0})"
WHOLE = f"({INNER}, f32[256]{{0}})"


@dataclass(frozen=True)
class Carrier:
    """What the tuple goes through, and until when the array in it is needed for that.

    Steps are of the flattened schedule, in which called computations come before
    their caller; `outer`, which goes in, is step 7. `out` is the step of the carrier.
    """

    operation: str
    computations: str
    needed: int
    out: int


CARRIERS = {
    # o8
    "barrier": Carrier("opt-barrier(outer)", "", 9, 8),
    # p8 q9 o10: the caller's value until the callee starts, then the callee's result
    "call": Carrier(
        "call(outer), to_apply=same",
        f"same {{ p = {WHOLE} parameter(0) ROOT q = {WHOLE} opt-barrier(p) }}",
        10,
        10,
    ),
    # cp8 no9 p10 q11 o12: what a loop hands on unchanged is needed until it ends
    "loop": Carrier(
        "while(outer), condition=cond, body=body",
        f"cond {{ cp = {WHOLE} parameter(0) ROOT no = pred[] constant(false) }}\n"
        f"body {{ p = {WHOLE} parameter(0) ROOT q = {WHOLE} opt-barrier(p) }}",
        13,
        12,
    ),
    # p8 q9 s10 u11 o12: in either branch, until it ends
    "branches": Carrier(
        "conditional(t, outer, outer), true_computation=left, false_computation=right",
        f"left {{ p = {WHOLE} parameter(0) ROOT q = {WHOLE} opt-barrier(p) }}\n"
        f"right {{ s = {WHOLE} parameter(0) ROOT u = {WHOLE} opt-barrier(s) }}",
        12,
        12,
    ),
    # p8 no9, q10 r11, s12 u13, k14 end15 o16: the callee's result, until it ends
    "branches in a call": Carrier(
        "call(outer), to_apply=chosen",
        f"left {{ ql = {WHOLE} parameter(0) ROOT rl = {WHOLE} opt-barrier(ql) }}\n"
        f"right {{ s = {WHOLE} parameter(0) ROOT u = {WHOLE} opt-barrier(s) }}\n"
        f"chosen {{ p = {WHOLE} parameter(0) no = pred[] constant(false)\n"
        f"  k = {WHOLE} conditional(no, p, p), true_computation=left, "
        f"false_computation=right\n"
        f"  ROOT last = {WHOLE} opt-barrier(k) }}",
        16,
        16,
    ),
}


def program(carrier: Carrier, steps: str, element: int) -> str:
    """`a` goes through the carrier beside `w`; `element` 0 of `g` is `a`, 1 is `w`."""
    return f"""
HloModule naming, is_scheduled=true
{carrier.computations}
ENTRY main {{
  x = f32[256]{{0}} parameter(0)
  y = f32[256]{{0}} parameter(1)
  t = pred[] parameter(2)
  a = f32[256]{{0:S(1)}} negate(x)
  w = f32[256]{{0}} sine(y)
  v = f32[256]{{0}} tanh(y)
  inner = {INNER} tuple(a, w)
  outer = {WHOLE} tuple(inner, v)
  o = {WHOLE} {carrier.operation}
  {steps}
  g = {INNER} get-tuple-element(o), index=0
  e = f32[256]{{0{":S(1)" if element == 0 else ""}}} get-tuple-element(g), index={element}
  ROOT r = f32[256]{{0}} add(e, c)
}}
"""


AFTERWARDS = """f = f32[256]{0} get-tuple-element(o), index=1
  b = f32[256]{0:S(1)} cosine(f)
  c = f32[256]{0} tanh(b)"""
"""Four steps before `e`, six before the end: f b c g e r."""


@pytest.mark.parametrize("name", CARRIERS)
def test_a_tuple_taken_out_of_a_tuple_does_not_read_its_arrays(name: str) -> None:
    carrier = CARRIERS[name]
    assert needed(program(carrier, AFTERWARDS, 1))["a{}"] == [(3, carrier.needed)]
    # The last step reads it.
    end = carrier.out + 1 + 6
    assert needed(program(carrier, AFTERWARDS, 0))["a{}"] == [(3, end)]


@pytest.mark.parametrize("name", CARRIERS)
def test_room_of_an_array_that_is_only_named_is_free(name: str) -> None:
    verified(program(CARRIERS[name], AFTERWARDS, 1))
    with pytest.raises(PlanError) as caught:
        verified(program(CARRIERS[name], AFTERWARDS, 0))
    assert caught.value.rule == "overlap"
    assert caught.value.numbers["bytes"] == 1024


@pytest.mark.parametrize("name", CARRIERS)
def test_an_array_that_is_only_named_may_be_overwritten(name: str) -> None:
    update = f"""inner2 = {INNER} get-tuple-element(o), index=0
  a2 = f32[256]{{0:S(1)}} get-tuple-element(inner2), index=0
  new = f32[1]{{0}} constant({{1}})
  at = s32[] constant(0)
  d = f32[256]{{0:S(1)}} dynamic-update-slice(a2, new, at)
  c = f32[256]{{0}} tanh(d)"""
    read, named = (
        msa.parse(program(CARRIERS[name], update, element).replace(":S(1)", ""))
        for element in (0, 1)
    )
    assert [(m.instruction, m.operand) for m in missing_copies(read)] == [("d", 0)]
    assert missing_copies(named) == []
    # The program that needs no copy runs in shared storage as it is.
    assert storage_problems(BufferAssignment.run(named)) == []


def needed(text: str) -> dict[str, list[Span]]:
    module = msa.parse(text)
    alias = AliasAnalysis.run(module)
    residency = Residency(alias, FlattenedSchedule.run(module))
    return {
        str(value.position): merged(residency.spans(value))
        for value in alias.dataflow.values
        if value.shape.is_array
    }


def verified(text: str) -> None:
    """`a` and `b`, which is made after the carrier, in the same room."""
    verify_plan(
        msa.parse(text.replace(":S(1)", "")),
        msa.parse(text),
        {"a{}": (0, 1024), "b{}": (0, 1024)},
        msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=1024),
    )


# -- any tuples of tuples ------------------------------------------------------------

Tree = "str | tuple[Tree, ...]"
"""The array that is made by an instruction of this name, or a tuple of such."""


@dataclass
class Straight:
    """A program without calls that is written step by step, and what it reads."""

    lines: list[str] = field(default_factory=list)
    results: list[tuple[str, Tree]] = field(default_factory=list)
    made: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)

    def add(self, opcode: str, operands: list[int], choice: int) -> None:
        step = len(self.lines)
        name = f"i{step}"
        sources = [self.results[k] for k in operands]
        trees = [tree for _, tree in sources]
        attributes = ""
        result: Tree
        if opcode in ("parameter", "negate", "add"):
            result = name
            self.made[name] = step
            self.read(trees, step)
        elif opcode == "tuple":
            result = tuple(trees)
        elif opcode == "get-tuple-element":
            index = choice % len(trees[0])
            result, attributes = trees[0][index], f", index={index}"
        else:
            result = trees[0]
            if opcode == "opt-barrier":
                self.read(trees, step)
        arguments = "0" if opcode == "parameter" else ", ".join(n for n, _ in sources)
        self.lines.append(f"{name} = {shape(result)} {opcode}({arguments}){attributes}")
        self.results.append((name, result))

    def read(self, trees: list[Tree], step: int) -> None:
        for array in arrays(tuple(trees)):
            self.ends[array] = step + 1

    def finish(self) -> tuple[str, dict[str, list[Span]]]:
        end = len(self.lines)
        for array in (*arrays(self.results[-1][1]), "i0"):  # the caller's input
            self.ends[array] = end
        *body, root = self.lines
        text = "\n  ".join([*body, f"ROOT {root}"])
        return (
            f"HloModule straight, is_scheduled=true\nENTRY main {{\n  {text}\n}}\n",
            {
                f"{name}{{}}": [(start, max(start + 1, self.ends.get(name, 0)))]
                for name, start in self.made.items()
            },
        )


def shape(tree: Tree) -> str:
    if isinstance(tree, str):
        return "f32[8]{0}"
    return f"({', '.join(shape(part) for part in tree)})"


def arrays(tree: Tree) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    return [name for part in tree for name in arrays(part)]


@st.composite
def straight_programs(draw: st.DrawFn) -> tuple[str, dict[str, list[Span]]]:
    program = Straight()
    program.add("parameter", [], 0)
    for _ in range(draw(st.integers(1, 24))):
        single = [k for k, (_, t) in enumerate(program.results) if isinstance(t, str)]
        tuples = [k for k in range(len(program.results)) if k not in single]
        opcodes = ["negate", "add", "tuple"]
        opcodes += ["get-tuple-element", "opt-barrier", "copy"] * bool(tuples)
        opcode = draw(st.sampled_from(opcodes))
        if opcode == "tuple":
            # Small enough that copies of copies do not grow without bounds.
            small = [
                k for k, (_, t) in enumerate(program.results) if len(arrays(t)) < 8
            ]
            operands = draw(st.lists(st.sampled_from(small), min_size=1, max_size=3))
        elif opcode in ("negate", "add"):
            count = 1 if opcode == "negate" else 2
            operands = [draw(st.sampled_from(single)) for _ in range(count)]
        else:
            operands = [draw(st.sampled_from(tuples))]
        program.add(opcode, operands, draw(st.integers(0, 2)))
    return program.finish()


@settings(max_examples=60, deadline=None)
@given(straight_programs())
def test_arrays_are_needed_until_their_last_reader(
    case: tuple[str, dict[str, list[Span]]],
) -> None:
    text, expected = case
    assert needed(text) == expected
