"""The checker sees through what only names or moves a value."""

from __future__ import annotations

import pytest
from benchmarks.wide_programs import loops_in_a_row

import msa
from msa.assignment.verification.tracing import Tracer


def test_barriers_and_copies_keep_the_value() -> None:
    module = msa.parse("""
ENTRY e { x = f32[4] parameter(0)
  t = (f32[4]) tuple(x)
  b = (f32[4]) opt-barrier(t)
  g = f32[4] get-tuple-element(b), index=0
  s = (f32[4]{0:S(1)}, f32[4], u32[]) copy-start(g)
  d = f32[4]{0:S(1)} copy-done(s)
  n = f32[4] negate(d)
  ROOT r = f32[4] add(d, n) }""")
    tracer = Tracer(module)
    by_name = {i.name: i for i in module.entry.instructions}
    assert tracer.origin(by_name["d"], ()) == tracer.origin(by_name["x"], ())
    assert tracer.origin(by_name["n"], ()) != tracer.origin(by_name["x"], ())


NESTED = """
body { p = ((s32[], f32[4]), (f32[4], f32[4])) parameter(0)
  a = (s32[], f32[4]) get-tuple-element(p), index=0
  i = s32[] get-tuple-element(a), index=0
  x = f32[4] get-tuple-element(a), index=1
  b = (f32[4], f32[4]) get-tuple-element(p), index=1
  k = f32[4] get-tuple-element(b), index=0
  l = f32[4] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] add(x, k)
  c = (s32[], f32[4]) tuple(j, y)
  d = (f32[4], f32[4]) tuple(k, l)
  ROOT t = ((s32[], f32[4]), (f32[4], f32[4])) tuple(c, d) }
condition { p = ((s32[], f32[4]), (f32[4], f32[4])) parameter(0)
  a = (s32[], f32[4]) get-tuple-element(p), index=0
  i = s32[] get-tuple-element(a), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[4] parameter(0) k = f32[4] parameter(1)
  z = s32[] constant(0)
  a = (s32[], f32[4]) tuple(z, x)
  b = (f32[4], f32[4]) tuple(k, k)
  t = ((s32[], f32[4]), (f32[4], f32[4])) tuple(a, b)
  ROOT w = ((s32[], f32[4]), (f32[4], f32[4])) while(t), condition=condition, body=body }
"""


def test_nested_state_that_a_loop_hands_on_is_what_it_was_given() -> None:
    module = msa.parse(NESTED)
    tracer = Tracer(module)
    names = {i.name: i for c in module.computations for i in c.instructions}
    loop, given = names["w"], tracer.origin(names["k"], ())
    entry = module.entry.parameters
    assert tracer.origin(loop, (1, 0)) == tracer.origin(entry[1], ())
    assert tracer.origin(loop, (1, 1)) == tracer.origin(names["l"], ())
    assert given == tracer.origin(loop, (1, 0))
    assert tracer.origin(loop, (0, 1)) != tracer.origin(entry[0], ())
    assert tracer.hands_on(loop, 1)
    assert not tracer.hands_on(loop, 0)


def test_elements_that_a_loop_exchanges_are_not_handed_on() -> None:
    text = NESTED.replace("tuple(k, l)", "tuple(l, k)")
    module = msa.parse(text)
    # Both begin as k: exchanged or not, they are k.
    assert Tracer(module).hands_on(module.entry.root, 1)
    module = msa.parse(text.replace("tuple(k, k)", "tuple(k, x)"))
    assert not Tracer(module).hands_on(module.entry.root, 1)


CALLS = """
twice { p = f32[4] parameter(0) q = f32[4] parameter(1)
  n = f32[4] negate(p) m = f32[4] abs(q)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(n, m, n, q) }
ENTRY e { x = f32[4] parameter(0) y = f32[4] parameter(1)
  c = (f32[4], f32[4], f32[4], f32[4]) call(x, y), to_apply=twice
  d = (f32[4], f32[4], f32[4], f32[4]) call(y, x), to_apply=twice
  ROOT t = ((f32[4], f32[4], f32[4], f32[4]), (f32[4], f32[4], f32[4], f32[4])) tuple(c, d) }
"""


def test_results_of_a_call_that_are_one_value_or_an_argument() -> None:
    module = msa.parse(CALLS)
    tracer = Tracer(module)
    names = {i.name: i for i in module.entry.instructions}
    first = [tracer.origin(names["c"], (i,)) for i in range(4)]
    second = [tracer.origin(names["d"], (i,)) for i in range(4)]
    assert first[0] == first[2]
    assert len({*first, *second}) == 6  # two made by each call, and x and y
    assert first[3] == tracer.origin(names["y"], ())
    assert second[3] == tracer.origin(names["x"], ())


BRANCHES = """
left { p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0 b = f32[4] get-tuple-element(p), index=1
  n = f32[4] negate(a)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(n, n, b, a) }
right { p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0 b = f32[4] get-tuple-element(p), index=1
  n = f32[4] abs(a)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(n, n, b, b) }
ENTRY e { c = pred[] parameter(0) x = f32[4] parameter(1) y = f32[4] parameter(2)
  t = (f32[4], f32[4]) tuple(x, y)
  ROOT r = (f32[4], f32[4], f32[4], f32[4]) conditional(c, t, t), true_computation=left, false_computation=right }
"""


def test_results_of_branches_are_one_value_if_they_are_in_all() -> None:
    module = msa.parse(BRANCHES)
    tracer = Tracer(module)
    results = [tracer.origin(module.entry.root, (i,)) for i in range(4)]
    assert results[0] == results[1]
    assert results[2] == tracer.origin(module.entry.parameters[2], ())
    assert len(set(results)) == 3  # x in one branch and y in the other is neither


@pytest.mark.parametrize("backwards", [False, True])
def test_what_loops_in_a_row_hand_on(backwards: bool) -> None:
    module = msa.parse(loops_in_a_row(5))
    if backwards:  # an order in which the list does not follow the flow of values
        module.entry.instructions.reverse()
    names = {i.name: i for i in module.entry.instructions}
    tracer = Tracer(module)
    kept = tracer.origin(names["kept"], ())
    for k in range(5):
        loop = names[f"loop{k}"]
        assert tracer.origin(loop, (2,)) == kept
        assert tracer.origin(loop, (1,)) == ("main", loop.name, "[1]")
        assert tracer.hands_on(loop, 2)
        assert not tracer.hands_on(loop, 1)


def test_work_grows_with_loops_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [0]
    step = Tracer._step

    def counted(*arguments: object) -> object:
        taken[-1] += 1
        return step(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Tracer, "_step", counted)
    Tracer(msa.parse(loops_in_a_row(30)))
    taken.append(0)
    Tracer(msa.parse(loops_in_a_row(120)))
    assert taken[1] <= 4.2 * taken[0]
