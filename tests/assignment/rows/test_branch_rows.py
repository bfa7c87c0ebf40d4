"""Rows A4: conditionals, nested, in loops, and with results that share storage."""

from __future__ import annotations

import pytest

from assignment.hlo_rows import (
    COPIES,
    V,
    chain,
    conditional,
    count_options,
    loop,
    module,
    plan,
)

PAIR = f"({V}, {V})"
ONE = f"({V})"


def branches(yes: str, no: str, state: str = ONE) -> str:
    """Two branches; `@` is y or n in front of every name."""
    return "".join(
        f"""
{name} {{
  {letter}p = {state} parameter(0)
  {letter}0 = {V} get-tuple-element({letter}p), index=0
{body.replace("@", letter)}
}}
"""
        for name, letter, body in (("yes", "y", yes), ("no", "n", no))
    )


IN_PLACE = 'custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}'


def test_conditional_in_a_loop_a4_4() -> None:
    state = f"({V}, {V}, f32[])"
    inner = f"""
yes {{
  yp = {ONE} parameter(0)
  y0 = {V} get-tuple-element(yp), index=0
  ROOT ya = {V} negate(y0)
}}
no {{
  np = {ONE} parameter(0)
  n0 = {V} get-tuple-element(np), index=0
  ROOT na = {V} tanh(n0)
}}
"""
    text = loop(
        state,
        f"  b0 = {V} get-tuple-element(bp), index=0\n  bt = {ONE} tuple(b0)\n"
        f"  bi = f32[] get-tuple-element(bp), index=2\n  one = f32[] constant(1)\n"
        f"  less1 = pred[] compare(bi, one), direction=LT\n"
        f"  cnd = {V} conditional(less1, bt, bt), true_computation=yes, "
        f"false_computation=no\n  next = f32[] add(bi, one)\n"
        f"  g0 = {V} get-tuple-element(bp), index=0\n"
        f"  ROOT br = {state} tuple(g0, cnd, next)",
        f"  p0 = {V} parameter(0)\n  zero = f32[] constant(0)\n"
        f"  copy0 = {V} copy(p0)\n  copy1 = {V} copy(p0)\n"
        f"  init = {state} tuple(copy0, copy1, zero)\n"
        f"  while = {state} while(init), condition=cond, body=body\n"
        f"  w0 = {V} get-tuple-element(while), index=0\n"
        f"  w1 = {V} get-tuple-element(while), index=1\n"
        f"  ROOT r = {V} add(w0, w1)",
        counter=2,
    ).replace("cond {", inner + "cond {", 1)
    made = plan(text, count_options(2, 30))
    assert made.space("copy0") == 1
    assert made.space("yp", (0,)) == made.space("np", (0,)) == 1
    passed = made.module.computation("body").root.operands[0]
    assert passed.opcode == "get-tuple-element"
    assert passed.operands[0].name == "bp"
    made.plan.prove()


def nested(before: str = COPIES, after: str = "", inner_body: str = "") -> str:
    """A conditional in a branch of a conditional."""
    return module(
        f"  p0 = {V} parameter(0)\n  q = pred[] parameter(1)\n{before}\n"
        f"  t = ({V}, pred[]) tuple(copy0, q)\n"
        f"  cond = {V} conditional(q, t, t), true_computation=yes, "
        f"false_computation=no\n" + (after or f"  ROOT r = {V} add(cond, copy1)"),
        f"""
yes1 {{
  ap = {ONE} parameter(0)
  a0 = {V} get-tuple-element(ap), index=0
  ROOT ar = {V} negate(a0)
}}
no1 {{
  bp = {ONE} parameter(0)
  b0 = {V} get-tuple-element(bp), index=0
{inner_body or f"  ROOT br = {V} tanh(b0)"}
}}
yes {{
  yp = ({V}, pred[]) parameter(0)
  y0 = {V} get-tuple-element(yp), index=0
  yq = pred[] get-tuple-element(yp), index=1
  yt = {ONE} tuple(y0)
  ROOT inner = {V} conditional(yq, yt, yt), true_computation=yes1, false_computation=no1
}}
no {{
  np = ({V}, pred[]) parameter(0)
  n0 = {V} get-tuple-element(np), index=0
  ROOT nr = {V} negate(n0)
}}
""",
    )


def test_nested_conditionals_a4_5() -> None:
    made = plan(nested())
    assert made.space("copy0") == 1
    for name in ("ar", "br", "nr"):
        assert made.operand_space(name, 0) == 1
        assert made.by_name[name].operands[0].opcode == "get-tuple-element"
    assert not any(made.is_copy_of(x, "copy0", 1) for x in made.by_name.values())
    made.plan.prove()


@pytest.mark.parametrize("high", [3, 10, 50])
def test_buffers_inside_nested_conditionals_a4_6(high) -> None:
    body = f"{chain('m', 9, 'b0', V)}\n  ROOT br = {V} add(m8, b0)"
    made = plan(
        nested(inner_body=body), count_options(2, high), alternate_memory_bytes=48
    )
    made.plan.prove()


def test_loop_inside_a_nested_conditional_a4_6() -> None:
    state = f"({V}, f32[])"
    text = nested(
        inner_body=f"  zero = f32[] constant(0)\n  init = {state} tuple(b0, zero)\n"
        f"  while = {state} while(init), condition=cond1, body=body1\n"
        f"  ROOT br = {V} get-tuple-element(while), index=0"
    )
    loops = f"""
cond1 {{
  cp1 = {state} parameter(0)
  limit1 = f32[] constant(3)
  i1 = f32[] get-tuple-element(cp1), index=1
  ROOT less1 = pred[] compare(i1, limit1), direction=LT
}}
body1 {{
  bp1 = {state} parameter(0)
  x1 = {V} get-tuple-element(bp1), index=0
  k1 = f32[] get-tuple-element(bp1), index=1
  one1 = f32[] constant(1)
  next1 = f32[] add(k1, one1)
  z1 = {V} negate(x1)
  ROOT bt1 = {state} tuple(z1, next1)
}}
"""
    plan(text.replace("yes1 {", loops + "yes1 {", 1)).plan.prove()


def test_parameter_avoids_what_lives_before_it_a4_7() -> None:
    text = conditional(
        f"  ROOT yr = {V} add(y0, y1)",
        f"  copy0 = {V} copy(p0)\n  neg0 = {V} negate(p0)\n"
        f"  copy1 = {V} copy(neg0)\n  neg1 = {V} negate(neg0)",
        f"  ROOT r = {V} add(cond, neg1)",
    )
    made = plan(text)
    chunks = made.plan.chunks
    assert made.space("copy0") == made.space("neg0") == 1
    assert chunks["copy0{}"] != chunks["neg0{}"]
    made.plan.prove()


def test_in_place_operation_in_a_branch_a4_8() -> None:
    body = (
        "  u@ = f32[1]{0} constant({5})\n  k@ = s32[] constant(1)\n"
        f"  ROOT d@ = {V} dynamic-update-slice(@0, u@, k@)"
    )
    made = plan(
        module(
            f"  p0 = {V} parameter(0)\n  q = pred[] parameter(1)\n"
            f"  copy0 = {V} copy(p0)\n  t = {ONE} tuple(copy0)\n"
            f"  cond = {V} conditional(q, t, t), true_computation=yes, "
            f"false_computation=no\n  ROOT r = {V} negate(cond)",
            branches(body, f"  ROOT nr = {V} negate(n0)"),
        )
    )
    made.plan.prove()


def aliased(no: str) -> str:
    """The first branch hands its input on in place."""
    return module(
        f"  p0 = {V} parameter(0)\n  q = pred[] parameter(1)\n"
        f"  copy0 = {V} negate(p0)\n  t = {ONE} tuple(copy0)\n"
        f"  cond = {ONE} conditional(q, t, t), true_computation=yes, "
        f"false_computation=no\n  g = {V} get-tuple-element(cond), index=0\n"
        f"  ROOT r = {V} negate(g)",
        branches(
            f"  ya = {V} custom-call(y0), {IN_PLACE}\n  ROOT yr = {ONE} tuple(ya)", no
        ),
    )


def outputs_first(interval):
    """Large ids are late values: results before what they are made of."""
    return (-interval.value,)


@pytest.mark.parametrize("order", ["spatial", outputs_first])
def test_results_that_share_with_inputs_a4_9(order) -> None:
    # The rows of conditional results are of an XLA that is newer than the reference
    # plans, whose faithful reproduction keeps them in default memory.
    text = aliased(
        f"  na = {V} custom-call(n0), {IN_PLACE}\n  ROOT nr = {ONE} tuple(na)"
    )
    made = plan(
        text,
        count_options(0, 1000, faithful=False, buffer_interval_comparator=order),
        alternate_memory_bytes=40,
    )
    for name, index in (("copy0", ()), ("ya", ()), ("na", ()), ("cond", (0,))):
        assert made.space(name, index) == 1
    # One buffer for all of them.
    assert len(made.plan.chunks) == 1


def test_results_in_place_of_their_own_a4_10() -> None:
    text = aliased(
        f"  nn = {V} tanh(n0)\n  na = {V} custom-call(nn), {IN_PLACE}\n"
        f"  ROOT nr = {ONE} tuple(na)"
    )
    made = plan(
        text,
        count_options(0, 1000, faithful=False, max_outstanding_prefetches=0),
        alternate_memory_bytes=40,
    )
    for name, index in (("ya", ()), ("nn", ()), ("na", ()), ("cond", (0,))):
        assert made.space(name, index) == 1
    assert made.copies() == []


def test_one_branch_shares_with_its_input_a4_12() -> None:
    # 20 bytes hold one vector, so the second branch's result has to take the place
    # of its dead input.
    text = aliased(f"  na = {V} tanh(n0)\n  ROOT nr = {ONE} tuple(na)")
    made = plan(
        text,
        count_options(
            0, 1000, faithful=False, buffer_interval_comparator=outputs_first
        ),
        alternate_memory_bytes=20,
    )
    chosen = [made.space(n, i) for n, i in (("ya", ()), ("na", ()), ("cond", (0,)))]
    assert chosen == [1, 1, 1]
    assert made.space("copy0") == 1


def test_common_input_shared_with_the_result_a4_13() -> None:
    text = aliased(
        f"  na = {V} custom-call(n0), {IN_PLACE}\n  ROOT nr = {ONE} tuple(na)"
    )
    made = plan(
        text, count_options(0, 1000, faithful=False), alternate_memory_bytes=1000
    )
    for name, index in (
        ("copy0", ()),
        ("yp", (0,)),
        ("np", (0,)),
        ("ya", ()),
        ("na", ()),
        ("cond", (0,)),
    ):
        assert made.space(name, index) == 1


def read_inside_and_after(**changes):
    text = module(
        f"  p0 = {V} parameter(0)\n  q = pred[] parameter(1)\n"
        f"  neg0 = {V} negate(p0)\n  neg1 = {V} negate(neg0)\n  t = {ONE} tuple(neg0)\n"
        f"  cond = {V} conditional(q, t, t), true_computation=yes, "
        f"false_computation=no\n  late = {V} add(cond, neg1)\n"
        f"  ROOT r = {V} add(late, neg0)",
        branches(f"  ROOT yr = {V} negate(@0)", f"  ROOT nr = {V} tanh(@0)"),
    )
    return plan(
        text,
        count_options(2, 30, max_outstanding_prefetches=2, **changes),
        alternate_memory_bytes=24,
    )


def test_value_read_inside_and_after_a4_14() -> None:
    made = read_inside_and_after(
        buffer_interval_comparator=lambda x: (x.value != 2, x.value)
    )
    assert made.space("neg0") == 1
    assert made.operand_space("yr", 0) == made.operand_space("nr", 0) == 1
    assert made.by_name["r"].operands[1].name == "neg0"
    made.plan.prove()


def test_pinned_input_of_nested_conditionals_a4_15() -> None:
    pinned = COPIES.replace("copy0 = f32[3]{0} copy", "copy0 = f32[3]{0:S(1)} negate")
    made = plan(
        nested(pinned, f"  late = {V} negate(cond)\n  ROOT r = {V} add(late, copy0)"),
        count_options(2, 50, enable_sync_copy_replacement=True),
        alternate_memory_bytes=24,
    )
    for name, index in (
        ("copy0", ()),
        ("yp", (0,)),
        ("np", (0,)),
        ("ap", (0,)),
        ("bp", (0,)),
    ):
        assert made.space(name, index) == 1
    assert made.by_name["r"].operands[1].name == "copy0"
    made.plan.prove()


def test_required_offset_beats_the_preferred_one_a4_16() -> None:
    # Two values go into one loop body, which prefers one address for both.
    state = f"({V}, {V}, f32[])"
    text = loop(
        state,
        f"  b0 = {V} get-tuple-element(bp), index=0\n"
        f"  b1 = {V} get-tuple-element(bp), index=1\n"
        f"  bi = f32[] get-tuple-element(bp), index=2\n  one = f32[] constant(1)\n"
        f"  next = f32[] add(bi, one)\n  bs = {V} add(b0, b1)\n"
        f"  u = f32[1]{{0}} constant({{7}})\n  k = s32[] constant(0)\n"
        f"  bd = {V} dynamic-update-slice(b1, u, k)\n"
        f"  ROOT bt = {state} tuple(bs, bd, next)",
        f"  p0 = {V} parameter(0)\n  zero = f32[] constant(0)\n"
        f"  copy0 = {V} copy(p0)\n  copy1 = {V} negate(p0)\n"
        f"  init = {state} tuple(copy0, copy1, zero)\n"
        f"  while = {state} while(init), condition=cond, body=body\n"
        f"  w0 = {V} get-tuple-element(while), index=0\n"
        f"  w1 = {V} get-tuple-element(while), index=1\n"
        f"  ROOT r = {V} add(w0, w1)",
        counter=2,
    )
    made = plan(text, count_options(2, 50), alternate_memory_bytes=1000)
    assert made.space("copy0") == made.space("copy1") == made.space("bd") == 1
    made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_repacking_keeps_results_of_conditionals_a4_17(faithful) -> None:
    text = conditional(
        f"  ROOT yr = {V} add(y0, y1)", COPIES, f"  ROOT r = {V} add(cond, copy1)"
    )
    made = plan(
        text,
        count_options(
            max_repacks=10, repack_after_every_allocation=True, faithful=faithful
        ),
    )
    assert made.space("cond") == made.space("yr") == made.space("nr") == 0
    made.plan.prove()
