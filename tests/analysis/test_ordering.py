"""Execution order and interference of values, row by row."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import DataflowAnalysis, DependencyOrdering, SequentialOrdering
from msa.analysis.ordering import Constraint
from msa.errors import ScheduleError


class Case:
    def __init__(self, text: str, *, scheduled: bool = False) -> None:
        header = "HloModule m, is_scheduled=true\n" if scheduled else ""
        self.module = msa.parse(header + text, verify=False)
        self.flow = DataflowAnalysis.run(self.module)
        kind = SequentialOrdering if scheduled else DependencyOrdering
        self.order = kind(self.module)

    def __getitem__(self, name: str):
        return next(
            x
            for c in self.module.computations
            for x in c.instructions
            if x.name == name
        )

    def value(self, position: str):
        return next(v for v in self.flow.values if str(v.position) == position)

    def before(self, a: str, b: str) -> bool:
        return self.order.executes_before(self[a], self[b])

    def interfere(self, a: str, b: str) -> bool:
        return self.order.may_interfere(self.value(a), self.value(b), self.flow)

    def defined_before(self, a: str, b: str) -> bool:
        return self.order.is_defined_before(self.value(a), self.value(b))


UNRELATED = """
first { p1 = f32[] parameter(0)  ROOT n1 = f32[] negate(p1) }
second { p2 = f32[] parameter(0)  ROOT n2 = f32[] negate(p2) }
ENTRY main {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=first
  b = f32[] call(%s), to_apply=second
  ROOT add = f32[] add(a, b)
}"""


def test_callees_are_ordered_through_their_callers() -> None:
    """6-called-computations"""
    ordered = Case(UNRELATED % "a")
    assert ordered.before("n1", "n2")
    assert not ordered.before("n2", "n1")
    assert ordered.before("p", "n2")
    assert ordered.before("n2", "add")
    unordered = Case(UNRELATED % "p")
    assert not unordered.before("n1", "n2")
    assert not unordered.before("n2", "n1")
    assert unordered.order.constraint(unordered["n1"], unordered["n2"]) is (
        Constraint.UNORDERED
    )


def test_a_computation_with_two_callers_is_unordered() -> None:
    case = Case("""
callee { p1 = f32[] parameter(0)  ROOT n1 = f32[] negate(p1) }
ENTRY main {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=callee
  ROOT b = f32[] call(a), to_apply=callee
}""")
    assert not case.before("p", "n1")


LOOP = """
body { bp = (f32[]) parameter(0)  bg = f32[] get-tuple-element(bp), index=0
  bn = f32[] negate(bg)  ROOT br = (f32[]) tuple(bn) }
cond { cp = (f32[]) parameter(0)  cg = f32[] get-tuple-element(cp), index=0
  ROOT lt = pred[] compare(cg, cg), direction=LT }
ENTRY main {
  p = f32[] parameter(0)
  init = (f32[]) tuple(p)
  w = (f32[]) while(init), condition=cond, body=body
  ROOT after = f32[] get-tuple-element(w), index=0
}"""


def test_conditions_run_before_bodies_end() -> None:
    """6-while"""
    case = Case(LOOP)
    assert case.order.constraint(case["lt"], case["bn"]) is Constraint.BEFORE_END
    assert case.before("lt", "bn")
    assert not case.before("bn", "lt")
    for inside in ("lt", "bn"):
        assert case.before("init", inside)
        assert case.before(inside, "after")


def test_entry_parameters_are_defined_first() -> None:
    """6-entry-parameters"""
    case = Case(LOOP)
    assert case.defined_before("p{}", "bn{}")
    assert not case.defined_before("bn{}", "p{}")


BRANCHES = """
yes { yp = f32[] parameter(0)  ROOT yn = f32[] negate(yp) }
no { np = f32[] parameter(0)  ROOT ne = f32[] exponential(np) }
ENTRY main {
  p = pred[] parameter(0)
  x = f32[] parameter(1)
  x2 = f32[] add(x, x)
  c = f32[] conditional(p, x2, x2), true_computation=yes, false_computation=no
  ROOT after = f32[] negate(c)
}"""


def test_branches() -> None:
    """6-conditional"""
    case = Case(BRANCHES)
    constraint = case.order.constraint
    assert constraint(case["yn"], case["ne"]) is Constraint.EXCLUSIVE_BEFORE
    assert constraint(case["ne"], case["yn"]) is Constraint.EXCLUSIVE_AFTER
    assert constraint(case["yn"], case["c"]) is Constraint.BEFORE_END
    assert constraint(case["c"], case["yn"]) is Constraint.AFTER
    assert constraint(case["yn"], case["x2"]) is Constraint.AFTER
    assert constraint(case["yn"], case["yp"]) is Constraint.AFTER
    assert case.before("x2", "ne")
    assert case.before("ne", "after")


ASYNC = """
wrapped { wp = f32[8] parameter(0)  ROOT op = f32[8] negate(wp) }
ENTRY main {
  p = f32[8] parameter(0)
  n = f32[8] exponential(p)
  start = ((f32[8]), f32[8], s32[]) async-start(n), calls=wrapped
  update = ((f32[8]), f32[8], s32[]) async-update(start)
  ROOT done = f32[8] async-done(update)
}"""


def test_asynchronous_operations_run_their_operation() -> None:
    """6-async"""
    case = Case(ASYNC)
    for name in ("start", "update", "done"):
        assert case.order.constraint(case[name], case["op"]) is Constraint.SAME
    value = case.value("n{}")
    assert [str(u) for u in value.uses] == [
        "start:0{}",
        "op:0{}",
        "update:0{0,0}",
        "done:0{0,0}",
    ]
    assert case.order.uses_before_definition(value.uses, case.value("op{}"), case.flow)


def test_a_root_keeps_its_value_to_the_end() -> None:
    """6-live-out"""
    case = Case(
        """
ENTRY main {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
  dead = f32[8] exponential(p)
}""",
        scheduled=True,
    )
    assert case.interfere("n{}", "dead{}")


def test_values_of_a_chain_do_not_interfere() -> None:
    """3-interference-chain"""
    case = Case("""
ENTRY main {
  p = f32[8] parameter(0)
  negate = f32[8] negate(p)
  exp = f32[8] exponential(negate)
  ROOT log = f32[8] log(exp)
}""")
    names = ["p{}", "negate{}", "exp{}", "log{}"]
    for a in names:
        for b in names:
            assert case.interfere(a, b) is (a == b), (a, b)


def test_reversing_interferes() -> None:
    """3-interference-reverse"""
    case = Case("""
ENTRY main {
  p = f32[8] parameter(0)
  negate = f32[8] negate(p)
  ROOT reverse = f32[8] reverse(negate), dimensions={0}
}""")
    assert not case.interfere("p{}", "negate{}")
    assert case.interfere("negate{}", "reverse{}")


def test_a_value_with_two_readers() -> None:
    """3-interference-two-readers"""
    case = Case("""
ENTRY main {
  p = f32[8] parameter(0)
  n1 = f32[8] negate(p)
  n2 = f32[8] negate(p)
  ROOT add = f32[8] add(n1, n2)
}""")
    assert case.interfere("p{}", "n1{}")
    assert case.interfere("p{}", "n2{}")
    assert not case.interfere("p{}", "add{}")
    assert case.interfere("n1{}", "n2{}")


def test_interference_under_a_schedule() -> None:
    """3-interference-sequential"""
    case = Case(
        """
ENTRY main {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  negate = f32[8] negate(p0)
  exp = f32[8] exponential(p1)
  ROOT add = f32[8] add(negate, exp)
}""",
        scheduled=True,
    )
    schedule = case.module.schedule
    order = [case[x] for x in ("p0", "negate", "p1", "exp", "add")]
    schedule.set_sequence(case.module.entry, order)
    case.order = SequentialOrdering(case.module)
    assert case.interfere("p0{}", "p1{}")
    assert not case.interfere("p0{}", "exp{}")
    assert case.interfere("p1{}", "negate{}")
    assert case.interfere("negate{}", "exp{}")
    assert not case.interfere("exp{}", "add{}")


def test_a_root_in_the_middle_of_a_body() -> None:
    """3-interference-body, 6-root-not-last"""
    case = Case(
        """
body {
  bp = f32[8] parameter(0)
  c = f32[8] constant({...})
  exp = f32[8] exponential(c)
  ROOT add = f32[8] add(exp, bp)
  dead_constant = f32[8] constant({...})
  dead_negate = f32[8] negate(dead_constant)
}
cond { cp = f32[8] parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  init = f32[8] parameter(0)
  ROOT w = f32[8] while(init), condition=cond, body=body
}""",
        scheduled=True,
    )
    body = case.module.computation("body")
    names = ("c", "exp", "bp", "add", "dead_constant", "dead_negate")
    case.module.schedule.set_sequence(body, [case[x] for x in names])
    case.order = SequentialOrdering(case.module)
    assert case.interfere("add{}", "dead_constant{}")
    assert case.interfere("add{}", "dead_negate{}")
    assert case.interfere("bp{}", "c{}")
    assert case.interfere("bp{}", "exp{}")
    state = ["init{}", "cp{}", "bp{}", "add{}", "w{}"]
    for i, a in enumerate(state):
        for b in state[i + 1 :]:
            assert not case.interfere(a, b), (a, b)


def test_a_value_across_a_call() -> None:
    """3-interference-call"""
    case = Case(
        """
callee { cp = f32[8] parameter(0)  ROOT log = f32[8] log(cp) }
ENTRY main {
  p = f32[8] parameter(0)
  negate = f32[8] negate(p)
  exp = f32[8] exponential(p)
  call = f32[8] call(exp), to_apply=callee
  ROOT add = f32[8] add(negate, call)
}""",
        scheduled=True,
    )
    assert not case.interfere("exp{}", "log{}")
    assert case.interfere("negate{}", "log{}")


def test_sequential_order_needs_a_schedule() -> None:
    module = msa.parse("ENTRY main { ROOT p = f32[] parameter(0) }")
    with pytest.raises(ScheduleError):
        SequentialOrdering(module)
