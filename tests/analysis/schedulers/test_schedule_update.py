"""Schedules after edits."""

from __future__ import annotations

import pytest

import msa
from msa.analysis.schedulers import update_schedule
from msa.errors import ScheduleError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

TEXT = """
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  c = f32[] constant(42)
  sum = f32[] add(x, c)
  neg = f32[] negate(y)
  ROOT out = f32[] multiply(sum, neg)
}"""


def module():
    return msa.parse(TEXT)


def order(schedule, computation):
    return [x.name for x in schedule.sequence(computation)]


def by_name(computation, name):
    return next(x for x in computation.instructions if x.name == name)


def updated(m):
    schedule = update_schedule(m)
    assert not schedule.check(m)
    return schedule


def test_unchanged_module_keeps_its_sequence():
    m = module()
    assert order(updated(m), m.entry) == order(m.schedule, m.entry)


def test_new_instructions_are_inserted_after_what_they_need():
    m = module()
    entry = m.entry
    shape = entry.root.shape
    constant = entry.create("k", "constant", shape, (), {})
    entry.create("sub", "subtract", shape, (constant, by_name(entry, "sum")))
    result = order(updated(m), entry)
    assert result == ["k", "x", "y", "c", "sum", "sub", "neg", "out"]


def test_added_and_deleted_together():
    m = module()
    entry = m.entry
    out, neg, y = (by_name(entry, n) for n in ("out", "neg", "y"))
    new = entry.create("exp", "exponential", y.shape, (y,))
    out.replace_operand(1, new)
    entry.remove([neg])
    assert order(updated(m), entry) == ["x", "y", "exp", "c", "sum", "out"]


def test_completely_replaced():
    m = module()
    entry = m.entry
    x, y = entry.parameters
    new = entry.create("new", "subtract", x.shape, (y, x))
    entry.root = new
    entry.remove([by_name(entry, n) for n in ("c", "sum", "neg", "out")])
    assert order(updated(m), entry) == ["x", "y", "new"]


def test_computation_added_and_removed():
    m = module()
    added = Computation("extra")
    m.add(added)
    added.create("q", "parameter", m.entry.root.shape, (), {"parameter_number": 0})
    schedule = updated(m)
    assert order(schedule, added) == ["q"]
    m.schedule = schedule
    m.computations.remove(added)
    assert list(updated(m)) == [m.entry]


def test_control_edge_reverses_the_order():
    m = module()
    entry = m.entry
    by_name(entry, "neg").add_control_successor(by_name(entry, "c"))
    result = order(updated(m), entry)
    assert result.index("neg") < result.index("c")


def test_control_edges_make_an_instruction_first():
    m = module()
    entry = m.entry
    neg, y = by_name(entry, "neg"), by_name(entry, "y")
    for x in entry.instructions:
        if x not in (neg, y, entry.root):
            neg.add_control_successor(x)
    assert order(updated(m), entry)[:2] == ["y", "neg"]


def test_old_instruction_that_needs_a_later_one():
    m = module()
    entry = m.entry
    by_name(entry, "sum").replace_operand(1, by_name(entry, "neg"))
    result = order(updated(m), entry)
    assert result.index("neg") < result.index("sum")


def test_cycle_is_an_error():
    m = module()
    entry = m.entry
    a, b = by_name(entry, "sum"), by_name(entry, "neg")
    a.add_control_successor(b)
    b.add_control_successor(a)
    with pytest.raises(ScheduleError, match="not scheduled"):
        update_schedule(m)


def test_no_schedule():
    m = module()
    m.schedule = None
    with pytest.raises(ScheduleError, match="no schedule"):
        update_schedule(m)


def test_instruction_read_through_constructor_is_placed():
    m = module()
    entry = m.entry
    entry.add(Instruction("dead", "negate", entry.root.shape, (entry.root,)))
    assert order(updated(m), entry)[-1] == "dead"
