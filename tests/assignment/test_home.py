"""Values that lie in default memory already are not written back over themselves."""

from __future__ import annotations

import pytest

import msa
from assignment.hlo_rows import (
    PAIR,
    F,
    chain,
    count_options,
    loop,
    module,
    p,
    plan,
)
from msa.assignment.segments import segment
from msa.errors import PlanError

# The slice reads the input until it is done; behind the barrier the input has
# another name, under which it goes to alternate memory and back.
READ_LATE = """
HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  p = f32[256] parameter(0)
  q = f32[4,64] parameter(1)
  s = ((f32[256]), f32[128], u32[]) slice-start(p), slice={[128:256]}
  b = f32[4,64] bitcast(p)
  h = f32[4,64] tanh(b)
  t = (f32[4,64], f32[4,64]) tuple(b, h)
  o = (f32[4,64], f32[4,64]) opt-barrier(t)
  g = f32[4,64] get-tuple-element(o), index=0
  k = f32[4,64] get-tuple-element(o), index=1
  n = f32[4,64] negate(k)
  m = f32[4,64] add(n, q)
  d = f32[128] slice-done(s)
  ROOT r = (f32[256], f32[4,64], f32[128]) tuple(p, m, d)
}
"""


def plan_read_late() -> msa.Assignment:
    options = msa.Options(
        prefetch_interval_picker=msa.assignment.options.InstructionCountPicker(1, 1000),
        buffer_interval_comparator="spatial",
        always_spill_to_default_memory=True,
        is_use_allowed_in_alternate_mem_fn=lambda u: (
            u.instruction.name not in ("s", "d")
        ),
    )
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4096)
    return msa.assign(msa.parse(READ_LATE), target, options)


def test_an_input_that_is_still_read_stays_in_place() -> None:
    made = plan_read_late()
    made.verify()
    made.prove()


def test_the_eviction_would_break_the_plan(monkeypatch) -> None:
    monkeypatch.setattr(segment, "home", lambda state, request: None)
    with pytest.raises(PlanError, match="still needed"):
        plan_read_late().verify()


@pytest.mark.parametrize("faithful", [False, True])
def test_what_a_loop_hands_on_is_read_where_it_lies(faithful) -> None:
    text = loop(
        PAIR,
        "  bi = f32[] get-tuple-element(bp), index=1\n  one = f32[] constant(1)\n"
        "  next = f32[] add(bi, one)\n"
        f"  bx = {F} get-tuple-element(bp), index=0\n  by = {F} negate(bx)\n"
        f"  ROOT bt = {PAIR} tuple(bx, next)",
        f"{p('p0')}\n  zero = f32[] constant(0)\n{chain('n', 5, 'p0')}\n"
        f"  init = {PAIR} tuple(p0, zero)\n"
        f"  while = {PAIR} while(init), condition=cond, body=body\n"
        f"  wx = {F} get-tuple-element(while), index=0\n"
        f"  near = {F} add(n4, wx)\n{chain('m', 15, 'near')}\n"
        f"  ROOT late = {F} add(m14, wx)",
    )
    made = plan(
        text,
        count_options(
            faithful=faithful, enable_while_redundant_eviction_elimination=False
        ),
    )
    assert made.space("while", (0,)) == 1
    # XLA copies the loop's result back, though the input still has the same bytes.
    evicted = [c.source for c in made.plan.copies if c.kind == "eviction"]
    assert evicted == (["wx"] if faithful else [])
    made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_nothing_moves_inside_an_asynchronous_operation(faithful) -> None:
    # What `w` reads last could be fetched while the operation's other steps run, if
    # they were the steps at which they stand in the schedule.
    started = f"(({F}, {F}), {F}, s32[])"
    text = module(
        f"{p('p0', 'p1')}\n  s = {started} async-start(p0, p1), calls=inside\n"
        f"{chain('n', 8, 'p1')}\n  d = {F} async-done(s)\n  ROOT r = {F} add(d, n7)",
        f"""
inside {{
  x = {F} parameter(0)
  y = {F} parameter(1)
{chain("i", 8, "x")}
  ROOT w = {F} add(i7, y)
}}
""",
    )
    made = plan(
        text,
        count_options(
            faithful=faithful,
            is_use_allowed_in_alternate_mem_fn=lambda use: use.instruction.name != "s",
        ),
    )
    inside = made.module.computation("inside")
    assert {i.opcode for i in inside.instructions} == {"parameter", "negate", "add"}
    made.plan.prove()
