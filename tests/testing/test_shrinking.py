"""The shrinker: failures planted by hand, planted rules, and what every result keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.soak import check

import msa
from msa.analysis.trip_counts import stated_trips
from msa.assignment.ledgers.free_space import FreeSpace
from msa.errors import HloError
from msa.heap.chunk import Chunk
from msa.hlo.literal import numpy_dtype
from msa.hlo.module import Alias
from msa.hlo.verifier import find_violations
from msa.testing import random_module, shrink
from msa.testing.shrinking.edit import weight
from msa.testing.shrinking.loops import bound, steering

Judge = Callable[[msa.Module], bool]


def opcodes(module: msa.Module) -> list[str]:
    """Of all instructions, the entry's last."""
    return [x.opcode for c in module.computations for x in c.instructions]


def having(*wanted: str) -> Judge:
    return lambda module: set(wanted) <= set(opcodes(module))


def in_entry(*wanted: str) -> Judge:
    return lambda m: set(wanted) <= {x.opcode for x in m.entry.instructions}


def scheduled(text: str) -> msa.Module:
    return msa.schedule(msa.parse(text))


LOOP = """
scale { p = f32[8] parameter(0) q = f32[8] parameter(1)
  ROOT m = f32[8] multiply(p, q) }
left { t = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(t), index=0 b = f32[8] get-tuple-element(t), index=1
  c = f32[8] call(a, b), to_apply=scale
  ROOT r = f32[8] power(c, b) }
right { t = (f32[8], f32[8]) parameter(0)
  ROOT a = f32[8] get-tuple-element(t), index=0 }
body { p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  y = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = s32[] constant(2)
  odd = pred[] compare(i, two), direction=GT
  t = (f32[8], f32[8]) tuple(x, y)
  z = f32[8] conditional(odd, t, t), true_computation=left, false_computation=right
  n = f32[8] negate(y)
  ROOT r = (s32[], f32[8], f32[8]) tuple(j, z, n) }
condition { p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  y = f32[8] get-tuple-element(p), index=2
  limit = s32[] constant(7)
  less = pred[] compare(i, limit), direction=LT
  zero = f32[] constant(0)
  s = f32[1] slice(y), slice={[0:1]}
  f = f32[] reshape(s)
  fine = pred[] compare(f, f), direction=EQ
  ROOT r = pred[] and(less, fine) }
ENTRY main { a = f32[8] parameter(0) start_y = f32[8] parameter(1) c = f32[4] parameter(2)
  w = f32[8] tanh(start_y)
  zero = s32[] constant(0)
  start = s32[] copy(zero)
  t = (s32[], f32[8], f32[8]) tuple(start, a, w)
  l = (s32[], f32[8], f32[8]) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"7"}}
  x = f32[8] get-tuple-element(l), index=1
  place = s32[] constant(3)
  u = f32[8] dynamic-update-slice(x, c, place)
  y = f32[8] get-tuple-element(l), index=2
  v = f32[8] add(u, y)
  ROOT r = (f32[8], f32[8], f32[4]) tuple(v, u, c) }
"""


@pytest.mark.parametrize("opcode", ["tanh", "negate"])
def test_an_operation_on_one_value_is_left_with_that_value(opcode: str) -> None:
    small = shrink(scheduled(LOOP), having(opcode))
    assert sorted(opcodes(small)) in (
        sorted(["parameter", opcode]),
        sorted(["iota", opcode]),
    )
    assert small.entry.root.opcode == opcode


@pytest.mark.parametrize("opcode", ["multiply", "power"])
def test_what_is_called_is_put_where_it_is_called(opcode: str) -> None:
    # Inside a call in a branch in a loop: none of them is needed.
    small = shrink(scheduled(LOOP), having(opcode))
    assert small.entry.root.opcode == opcode
    assert len(small.computations) == 1
    assert len(small.entry.instructions) == 2  # both operands may be one value


def test_an_update_keeps_target_update_and_place() -> None:
    small = shrink(scheduled(LOOP), having("dynamic-update-slice"))
    update = small.entry.root
    assert update.opcode == "dynamic-update-slice"
    assert len(small.entry.instructions) == 4
    assert {x.opcode for x in update.operands} <= {"parameter", "iota", "constant"}


def test_a_loop_keeps_its_counter_and_nothing_else() -> None:
    small = shrink(scheduled(LOOP), having("while"))
    loop = small.entry.root
    assert [str(child) for child in loop.shape.children] == ["s32[]"]
    assert stated_trips(loop) == 0
    assert [x.opcode for x in loop.while_body.instructions] == [
        "parameter",
        "get-tuple-element",
        "constant",
        "add",
        "tuple",
    ]
    condition = {x.opcode for x in loop.while_condition.instructions}
    assert condition == {"parameter", "get-tuple-element", "constant", "compare"}
    assert len(loop.while_condition.instructions) == 4


def test_state_that_a_loop_only_hands_on_goes() -> None:
    text = """
body { p = (s32[], (f32[8], f32[8]), f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = (f32[8], f32[8]) get-tuple-element(p), index=1
  b = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], (f32[8], f32[8]), f32[4]) tuple(j, a, b) }
condition { p = (s32[], (f32[8], f32[8]), f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(2)
  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[8] parameter(0) y = f32[4] parameter(1)
  zero = s32[] constant(0)
  a = (f32[8], f32[8]) tuple(x, x)
  t = (s32[], (f32[8], f32[8]), f32[4]) tuple(zero, a, y)
  ROOT w = (s32[], (f32[8], f32[8]), f32[4]) while(t), condition=condition, body=body }"""
    loop = shrink(scheduled(text), having("while")).entry.root
    assert loop.opcode == "while"
    assert [str(child) for child in loop.shape.children] == ["s32[]"]
    assert len(loop.while_body.instructions) == 5


@pytest.mark.parametrize("needed", [1, 2, 3, 6])
def test_a_loop_runs_as_often_as_the_failure_needs(needed: int) -> None:
    def runs(module: msa.Module) -> bool:
        return any(
            (stated_trips(x) or 0) >= needed
            for c in module.computations
            for x in c.instructions
            if x.opcode == "while"
        )

    loop = shrink(scheduled(LOOP), runs).entry.root
    assert stated_trips(loop) == needed
    limit = bound(loop)
    assert limit is not None  # the counter begins at 0 and grows by 1
    assert str(limit.attributes["literal"]) == str(needed)


def test_two_operations_keep_what_is_between_them_out() -> None:
    def chained(module: msa.Module) -> bool:
        """A sine of something that hangs on a cosine."""
        hanging = set()
        for x in module.entry.instructions:
            if x.opcode == "cosine" or any(o in hanging for o in x.operands):
                hanging.add(x)
                if x.opcode == "sine":
                    return True
        return False

    text = """
ENTRY e { p = f32[8] parameter(0) q = f32[8] parameter(1)
  a = f32[8] cosine(p) b = f32[8] add(a, q) c = f32[8] negate(b)
  d = f32[8] multiply(c, c) e = f32[8] sine(d) f = f32[8] subtract(e, q)
  ROOT t = (f32[8], f32[8]) tuple(f, b) }"""
    small = shrink(scheduled(text), chained)
    assert [x.opcode for x in small.entry.instructions] == [
        "parameter",
        "cosine",
        "sine",
    ] or [x.opcode for x in small.entry.instructions] == ["iota", "cosine", "sine"]


def test_aliases_follow_results_and_parameters() -> None:
    text = """
HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}, must-alias), {2}: (2, {}) }
ENTRY e { a = f32[8] parameter(0) b = f32[8] parameter(1) c = f32[8] parameter(2)
  x = f32[8] negate(a) y = f32[8] add(b, c) z = f32[8] abs(c)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(x, y, z) }"""

    def fails(module: msa.Module) -> bool:
        for alias in module.aliases:
            result = module.entry.root
            for index in alias.output_index:
                result = result.operands[index]
            parameter = module.entry.parameters[alias.parameter_number]
            if result.opcode == "add" and parameter in result.operands:
                return True
        return False

    small = shrink(scheduled(text), fails)
    assert [x.opcode for x in small.entry.instructions] == ["parameter", "add"]
    assert small.aliases == (Alias((), 0, (), must_alias=True),)


def test_dead_code_stays_if_it_is_the_failure() -> None:
    text = """
ENTRY e { p = f32[8] parameter(0) q = f32[8] parameter(1)
  a = f32[8] tanh(p) b = f32[8] sine(a) c = f32[8] cosine(q)
  ROOT d = f32[8] add(p, q) }"""
    small = shrink(
        scheduled(text),
        lambda m: any(x.is_dead for x in m.entry.instructions if x.opcode == "sine"),
    )
    assert sorted(x.opcode for x in small.entry.instructions) in (
        ["iota", "sine"],  # the result itself is what the sine reads
        ["parameter", "sine"],
    )
    assert small.entry.root.opcode != "sine"


def test_asynchronous_operations_become_plain_ones() -> None:
    text = """
HloModule m, is_scheduled=true
wrapped { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }
ENTRY e { p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(p), calls=wrapped
  a = f32[8] abs(p)
  u = ((f32[8]), f32[8], u32[]) async-update(s)
  d = f32[8] async-done(u)
  ROOT r = f32[8] add(a, d) }"""
    small = shrink(msa.parse(text), having("negate"))
    assert len(small.entry.instructions) == 2
    assert len(small.computations) == 1


# -- what every result keeps --------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_results_are_smaller_well_formed_and_fail(seed: int) -> None:
    module = random_module(seed, size=60)
    text = module.to_text()
    for wanted in (["while"], ["dynamic-update-slice"], ["fusion", "tuple"]):
        fails = having(*wanted)
        if not fails(module):
            continue
        small = shrink(module, fails)
        assert module.to_text() == text
        assert fails(small)
        assert weight(small) < weight(module)
        assert find_violations(small) == []
        assert small.schedule is not None
        assert small.schedule.check(small) == []
        assert msa.parse(small.to_text()) == small
        assert shrink(module, fails).to_text() == small.to_text()
        assert shrink(small, fails) == small  # nothing is left to do


@pytest.mark.parametrize("seed", range(8))
def test_everything_that_is_tried_runs_and_ends(seed: int) -> None:
    """The judge executes what it is asked about, loops included."""
    module = random_module(seed, size=40, vector=16)

    def fails(candidate: msa.Module) -> bool:
        arrays = [
            _value(p.shape, np.random.default_rng(seed))
            for p in candidate.entry.parameters
        ]
        msa.execute(candidate, arrays)
        return "while" in opcodes(candidate)

    if "while" in opcodes(module):
        assert having("while")(shrink(module, fails))


def _value(shape: Any, random: np.random.Generator) -> Any:
    if shape.is_tuple:
        return tuple(_value(child, random) for child in shape.children)
    numbers = random.integers(0, 4, shape.dimensions)
    return numbers.astype(numpy_dtype(shape.element_type))


def test_what_steers_a_loop_is_left_alone() -> None:
    module = scheduled(LOOP)
    names = {x.name for x in steering(module)}
    # The counter in the loop, its bound, and (the condition also looks at y) y's turn.
    assert {"i", "j", "one", "limit", "start", "n", "w", "start_y"} <= names
    assert not {"z", "odd", "t.1", "u", "v", "c"} & names


def test_the_judge_is_asked_no_more_often_than_allowed() -> None:
    asked = 0

    def fails(module: msa.Module) -> bool:
        nonlocal asked
        asked += 1
        return "power" in opcodes(module)

    small = shrink(scheduled(LOOP), fails, trials=5)
    assert asked <= 6
    assert fails(small)


def test_wrong_arguments_are_refused() -> None:
    module = scheduled(LOOP)
    with pytest.raises(HloError, match="does not fail"):
        shrink(module, lambda _: False)
    with pytest.raises(HloError, match="takes a Module"):
        shrink("text", lambda _: True)  # type: ignore[arg-type]
    with pytest.raises(HloError, match="takes a function"):
        shrink(module, None)  # type: ignore[arg-type]


# -- planted rules ------------------------------------------------------------------


def _early(self: FreeSpace, start: int, end: int, chunk: Chunk) -> None:
    _commit(self, start, max(start, end - 1), chunk)


def _short(self: FreeSpace, start: int, end: int, size: int) -> int | None:
    return _find(self, start, max(start, end - 2), size)


_commit = FreeSpace.commit
_find = FreeSpace.find


@pytest.mark.parametrize(
    ("rule", "bent"),
    [
        pytest.param("commit", _early, id="ends early"),
        pytest.param("find", _short, id="looks short", marks=pytest.mark.slow),
    ],
)
def test_plans_made_with_a_bent_rule_shrink_to_a_few_buffers(
    rule: str, bent: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two values that overlap are enough, whatever else the module did."""
    monkeypatch.setattr(FreeSpace, rule, bent)
    failures = []
    for seed in range(30):
        failures += check(seed, size=16, vector=256, counts=Counter())
        if failures:
            break
    failure = failures[0]
    small = failure.smallest(40)
    assert failure._fails(small)
    assert small.instruction_count <= 16
    assert small.instruction_count < failure.module.instruction_count
    monkeypatch.undo()
    failure.trial.run(small)  # the module is a good one


@pytest.mark.parametrize("trials", [-1, 1.5, True, None])
def test_trials_are_a_whole_number(trials: Any) -> None:
    with pytest.raises(HloError, match="shrink: trials"):
        shrink(random_module(1, 5), lambda _: True, trials=trials)
