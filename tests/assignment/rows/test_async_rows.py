"""Rows A5: in-place operations, asynchronous operations, and contiguity."""

from __future__ import annotations

import pytest

from assignment.hlo_rows import (
    CHAIN,
    F,
    chain,
    cost_options,
    count_options,
    module,
    p,
    plan,
)

S = "bf16[4]{0}"
PERMUTE = "source_target_pairs={{0,1},{1,0}}"
TWO = ", num_partitions=2"


def permute(name: str, operand: str, shape: str = S) -> str:
    return (
        f"  {name} = ({shape}, {shape}, u32[], u32[]) "
        f"collective-permute-start({operand}), {PERMUTE}\n"
    )


UPDATE = """
update {
  up = f32[2,3]{1,0} parameter(0)
  uq = f32[1,3]{1,0} parameter(1)
  k = s32[] constant(0)
  ROOT dus = f32[2,3]{1,0} dynamic-update-slice(up, uq, k, k)
}
"""


def updates(ahead: str, middle: str) -> str:
    """Two in-place operations on an input, around something that takes long."""
    return module(
        f"{p('p0')}\n  row = f32[1,3]{{1,0}} parameter(1)\n"
        f"  long = f32[2,3]{{1,0}} parameter(2)\n{ahead}\n"
        f"  f0 = {F} fusion(p0, row), kind=kLoop, calls=update\n{middle}\n"
        f"  late = f32[1,3]{{1,0}} slice(b2), slice={{[0:1], [0:3]}}\n"
        f"  ROOT f1 = {F} fusion(f0, late), kind=kLoop, calls=update1",
        UPDATE
        + UPDATE.replace("update {", "update1 {")
        .replace("up", "vp")
        .replace("vpdate", "update")
        .replace("uq", "vq")
        .replace("k =", "k1 =")
        .replace("k, k", "k1, k1")
        .replace("dus", "dus1"),
        header=", input_output_alias={ {}: (0, {}) }",
    )


def test_two_updates_around_a_long_operation_a5_4() -> None:
    text = updates(
        f"{chain('a', 3, 'long')}", f"  long1 = {F} tanh(a2)\n{chain('b', 3, 'long1')}"
    )
    made = plan(
        text,
        cost_options(inefficient_use_to_copy_ratio=0.5),
        transcendentals_per_second=0.4,
    )
    assert made.operand_space("f1", 0) == 0


def test_operand_that_a_branch_does_not_read_a5_5() -> None:
    pair = f"({F}, {F})"
    text = updates(
        f"  q = pred[] parameter(3)\n{chain('a', 3, 'long')}",
        f"  t = {pair} tuple(a2, a1)\n"
        f"  cnd = {F} conditional(q, t, t), true_computation=yes, "
        f"false_computation=no\n  long1 = {F} tanh(cnd)\n{chain('b', 3, 'long1')}",
    ).replace(
        "ENTRY main",
        f"""yes {{
  yp = {pair} parameter(0)
  ROOT y0 = {F} get-tuple-element(yp), index=0
}}
no {{
  np = {pair} parameter(0)
  n0 = {F} get-tuple-element(np), index=0
  ROOT nr = {F} tanh(n0)
}}
ENTRY main""",
    )
    made = plan(
        text,
        cost_options(inefficient_use_to_copy_ratio=0.5),
        transcendentals_per_second=0.4,
    )
    assert made.operand_space("f1", 0) == 0


def test_permute_whose_source_is_read_after_it_a5_8() -> None:
    text = module(
        f"  p0 = {S} parameter(0)\n  neg = {S} negate(p0)\n"
        f"{permute('start', 'neg')}{chain('n', 13, 'p0', S)}\n"
        f"  done = {S} collective-permute-done(start)\n"
        f"  last = {S} add(n12, done)\n  ROOT r = {S} add(last, neg)",
        header=TWO,
    )
    made = plan(text)
    assert made.space("start", (0,)) == made.space("start", (1,)) == 0


def test_permutes_in_a_row_a5_9() -> None:
    text = module(
        f"  p0 = {S} parameter(0)\n  neg = {S} negate(p0)\n"
        f"{permute('perm0', 'neg')}{chain('n', 3, 'p0', S)}\n"
        f"  d0 = {S} collective-permute-done(perm0)\n"
        f"{permute('perm1', 'd0')}{chain('m', 3, 'n2', S)}\n"
        f"  d1 = {S} collective-permute-done(perm1)\n  last = {S} add(m2, d1)\n"
        f"  ROOT r = {S} negate(last)",
        header=TWO,
    )
    made = plan(text)
    for name in ("perm0", "perm1"):
        assert made.space(name, (0,)) == made.space(name, (1,)) == 1
    assert made.by_name["d0"].operands[0].name == "perm0"
    assert made.by_name["d1"].operands[0].name == "perm1"


def test_results_of_permutes_in_the_root_a5_9() -> None:
    text = module(
        f"  p0 = {S} parameter(0)\n  neg = {S} negate(p0)\n"
        f"{permute('perm0', 'neg')}{chain('n', 3, 'p0', S)}\n"
        f"  d0 = {S} collective-permute-done(perm0)\n"
        f"  ROOT t = ({S}, {S}) tuple(d0, n2)",
        header=TWO,
    )
    made = plan(text)
    assert made.space("t", (0,)) == made.space("t", (1,)) == 0
    assert all(o.shape.memory_space == 0 for o in made.module.entry.root.operands)


LARGE = "f32[10000]{0}"


@pytest.mark.parametrize(
    ("lines", "capacity", "fast"),
    [
        # The start's operand is read while the operation runs.
        ((["add = {L} add(neg, p1)"], []), 100_000, "neg"),
        # Also the permute's result is read with it.
        ((["add = {L} add(neg, p1)"], ["both = {L} add(neg, done)"]), 140_000, "neg"),
        # The operand's own life ends before the operation does.
        ((["add = {L} add(neg, p1)", "v2 = {L} negate(add)"], []), 140_000, "neg"),
        # Room for one of them, and v2 is asked first.
        ((["v2 = {L} negate(p1)"], ["use = {L} add(v2, done)"]), 40_000, "v2"),
    ],
    ids=["base", "both", "first outlives", "not enough"],
)
def test_operand_of_a_start_is_read_twice_a5_10(lines, capacity, fast) -> None:
    between, after = (
        "\n".join("  " + x.format(L=LARGE) for x in part) for part in lines
    )
    last = (after or between).strip().splitlines()[-1].split(" = ")[0].strip()
    text = module(
        f"  p0 = {LARGE} parameter(0)\n  p1 = {LARGE} parameter(1)\n"
        f"  neg = {LARGE} negate(p0)\n{permute('start', 'neg', LARGE)}{between}\n"
        f"  done = {LARGE} collective-permute-done(start)\n{after}\n"
        f"  tail = {LARGE} add(done, p1)\n"
        f"  ROOT r = ({LARGE}, {LARGE}) tuple(tail, {last})",
        header=TWO,
    )
    value = 2 if fast == "neg" else None

    def key(interval):
        if value is not None:
            return (interval.value != value, interval.value)
        return (-interval.value,)

    made = plan(
        text,
        count_options(1, 10, buffer_interval_comparator=key),
        alternate_memory_bytes=capacity,
    )
    assert made.space(fast) == 1
    if fast == "v2":
        assert made.space("neg") == 0


ASYNC = """
inside {
  ip = f32[2,3]{1,0} parameter(0)
  ia = f32[2,3]{1,0} negate(ip)
  ROOT ib = f32[2,3]{1,0} tanh(ia)
}
"""
STARTED = "((f32[2,3]{1,0}), f32[2,3]{1,0}, s32[])"


def test_asynchronous_call_that_may_not_use_alternate_memory_a5_11() -> None:
    text = module(
        f"{p('p0', 'p1')}\n  neg = {F} negate(p0)\n  near = {F} tanh(neg)\n"
        f"{chain('a', 5, 'near')}\n"
        f"  start = {STARTED} async-start(neg), calls=inside\n"
        f"{chain('b', 5, 'p1')}\n  done = {F} async-done(start)\n"
        f"{chain('c', 5, 'b4')}\n  x = {F} add(c4, a4)\n  ROOT r = {F} add(x, done)",
        ASYNC,
    )

    def outside(place):
        instruction = place.instruction
        return not (
            instruction.opcode.startswith("async-")
            or instruction.computation.name == "inside"
        )

    made = plan(
        text,
        count_options(
            is_use_allowed_in_alternate_mem_fn=outside,
            is_position_allowed_in_alternate_mem_fn=outside,
        ),
    )
    for name, index in (("start", (1,)), ("ia", ()), ("ib", ()), ("ip", ())):
        assert made.space(name, index) == 0
    assert made.operand_space("start", 0) == 0
    assert made.space("neg") == 1
    assert made.is_copy_of(made.operand("start", 0), "neg", 0)
    assert made.prefetched("r", 1, "done")


def custom(name: str, operand: str) -> str:
    """An operation that writes in place and wants one chunk for all of its chain."""
    return (
        f'  {name} = {F} custom-call({operand}), custom_call_target="link", '
        "output_to_operand_aliasing={{}: (0, {})}\n"
    )


def linked(place) -> bool:
    return place.instruction.attributes.get("custom_call_target") == "link"


@pytest.mark.parametrize(
    ("between", "space"), [pytest.param(2, 1, id="A5.12"), (14, 0)]
)
def test_contiguous_chains_a5_13(between, space) -> None:
    text = module(
        f"{p('p0', 'p1')}\n  neg = {F} negate(p0)\n{custom('l0', 'neg')}"
        f"{chain('n', between, 'p1')}\n{custom('l1', 'l0')}"
        f"  last = {F} add(l1, n{between - 1})\n  ROOT r = {F} negate(last)"
    )
    made = plan(
        text, count_options(2, 10, position_requires_contiguous_allocation_fn=linked)
    )
    assert made.space("l0") == made.space("l1") == space
    if space:
        assert made.by_name["l0"].operands[0].name == "neg"
        assert made.by_name["l1"].operands[0].name == "l0"
    assert made.space("n0") == 1


def test_two_aliased_operands_of_one_instruction_a5_14() -> None:
    pair = f"({F}, {F})"
    text = module(
        f"{p('p0')}\n  a = {F} negate(p0)\n  b = {F} tanh(p0)\n"
        f'  call = {pair} custom-call(a, b), custom_call_target="both", '
        "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}\n"
        f"  g0 = {F} get-tuple-element(call), index=0\n"
        f"  g1 = {F} get-tuple-element(call), index=1\n  x = {F} add(g0, g1)\n"
        f"  ROOT r = {F} negate(x)"
    )
    for order in (lambda x: (x.value,), lambda x: (-x.value,)):
        made = plan(text, count_options(buffer_interval_comparator=order))
        assert made.space("a") == made.space("call", (0,)) == 1
        assert made.space("b") == made.space("call", (1,)) == 1
        assert made.plan.chunks["a{}"] != made.plan.chunks["b{}"]


def test_asynchronous_operations_take_no_time_a5_15() -> None:
    text = module(
        f"  p0 = {F} parameter(0)\n  neg0 = {F} negate(p0)\n"
        f"  p1 = {F} parameter(1)\n{permute('start', 'neg0', F)}"
        f"  done = {F} collective-permute-done(start)\n  neg1 = {F} negate(p1)\n"
        f"  ROOT add = {F} add(done, neg1)",
        header=TWO,
    )
    made = plan(text, cost_options())
    # The start has all the time in the world, but nobody works meanwhile.
    assert made.operand("neg1", 0).name == "p1"


LATE = """
late {
  x = f32[2,3]{1,0} parameter(0)
  y = f32[2,3]{1,0} parameter(1)
  ROOT z = f32[2,3]{1,0} add(x, y)
}
"""
BOUND = f"(({F}, {F}), {F}, s32[])"
HALF = f"(({F}, ()), (), s32[])"


def bound_late(first: str = "a", second: str = "b", updates: int = 1) -> str:
    """The second operand, and the result, come with the first update."""
    more = "".join(
        f"  upd{n} = {BOUND} async-update(upd{n - 1})\n" for n in range(1, updates)
    )
    return module(
        f"{p('p0', 'p1')}\n  a = {F} negate(p0)\n"
        f"  start = {HALF} async-start({first}), calls=late\n"
        f"  b = {F} tanh(p1)\n  c = {F} negate(b)\n"
        f"  upd0 = {BOUND} async-update(start, {second})\n{more}"
        f"  d = {F} negate(c)\n  done = {F} async-done(upd{updates - 1})\n"
        f"  e = {F} add(done, d)\n  ROOT r = {F} negate(e)",
        LATE,
    )


@pytest.mark.parametrize("second", ["b", "c", "a", "p1"])
def test_operands_bound_late_a5_16(second) -> None:
    made = plan(bound_late(second=second), count_options(verify=True))
    assert made.space("upd0", (1,)) == made.space("z") == made.space("done") == 1
    assert made.by_name["done"].operands[0].name == "upd0"
    made.plan.prove()


@pytest.mark.parametrize("second", ["b", "c", "a"])
def test_operands_bound_late_are_in_alternate_memory_a5_16(second) -> None:
    # Room for five vectors; at most a, the second operand, z, d and b or c live at once.
    made = plan(bound_late(second=second), count_options(faithful=False))
    assert made.operand_space("start", 0) == made.operand_space("upd0", 1) == 1
    assert made.space("upd0", (0, 0)) == made.space("upd0", (0, 1)) == 1
    assert made.space("x") == made.space("y") == 1
    assert made.space("upd0", (1,)) == made.space("z") == made.space("done") == 1
    assert made.copies() == []
    # Nothing moves: operands and parameters are one place each.
    assert len({made.plan.chunks[name] for name in ("a{}", "upd0{1}")}) == 2
    made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_chains_of_operations_bound_late_a5_16(faithful) -> None:
    again = LATE.replace("late", "again").replace("x", "x1").replace("y", "y1")
    text = bound_late().replace(
        f"  e = {F} add(done, d)",
        f"  start1 = {HALF} async-start(done), calls=again\n"
        f"  f = {F} tanh(d)\n"
        f"  upd1 = {BOUND} async-update(start1, f)\n"
        f"  done1 = {F} async-done(upd1)\n  e = {F} add(done1, f)",
    )
    made = plan(
        text.replace("ENTRY", again.replace("z =", "z1 =") + "ENTRY"),
        count_options(faithful=faithful),
    )
    # XLA keeps in default memory what a start takes before it is bound in full: its
    # storage is held throughout, so the parameter inside cannot have it again.
    assert made.space("upd0", (1,)) == made.space("done") == (0 if faithful else 1)
    assert made.space("upd1", (1,)) == made.space("done1") == 1
    made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_operand_bound_late_that_is_not_allowed_a5_17(faithful) -> None:
    made = plan(
        bound_late(),
        count_options(
            faithful=faithful,
            is_use_allowed_in_alternate_mem_fn=lambda use: (
                use.instruction.opcode != "async-update" or use.operand_number == 0
            ),
        ),
    )
    assert made.operand_space("upd0", 1) == made.space("y") == 0
    assert made.operand_space("start", 0) == (0 if faithful else 1)
    assert made.space("upd0", (1,)) == 1
    made.plan.prove()


def test_several_parameters_bound_late_a5_17() -> None:
    text = (
        bound_late()
        .replace(HALF, "(((), ()), (), s32[])")
        .replace("async-start(a)", "async-start()")
    )
    text = text.replace("async-update(start, b)", "async-update(start, a, b)")
    for faithful in (False, True):
        made = plan(text, count_options(faithful=faithful))
        assert made.space("upd0", (1,)) == 1
        assert made.operand_space("upd0", 1) == (0 if faithful else 1)
        made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_several_updates_a5_18(faithful) -> None:
    made = plan(bound_late(updates=3), count_options(2, 100, faithful=faithful))
    # XLA leaves the result in default memory, a limitation that it notes itself.
    for name, index in (("upd0", (1,)), ("upd2", (1,)), ("done", ())):
        assert made.space(name, index) == (0 if faithful else 1)
    made.plan.prove()


@pytest.mark.parametrize("faithful", [False, True])
def test_operands_bound_by_several_updates_a5_18(faithful) -> None:
    # a comes with the start, b with the first update; the second brings the result.
    text = (
        bound_late()
        .replace("  y = f32[2,3]{1,0} parameter(1)\n", "")
        .replace("add(x, y)", "add(xy, w)")
        .replace(
            "  ROOT z",
            "  y = f32[2,3]{1,0} parameter(1)\n"
            "  w = f32[2,3]{1,0} parameter(2)\n  xy = f32[2,3]{1,0} add(x, y)\n"
            "  ROOT z",
        )
        .replace(HALF, f"(({F}, (), ()), (), s32[])")
        .replace(
            f"  upd0 = {BOUND} async-update(start, b)\n",
            f"  upd0 = (({F}, {F}, ()), (), s32[]) async-update(start, b)\n"
            f"  upd1 = (({F}, {F}, {F}), {F}, s32[]) async-update(upd0, c)\n",
        )
        .replace("async-done(upd0)", "async-done(upd1)")
    )
    made = plan(
        text, count_options(2, 100, faithful=faithful), alternate_memory_bytes=256
    )
    assert made.space("upd1", (1,)) == made.space("done") == (0 if faithful else 1)
    if not faithful:
        assert made.operand_space("upd0", 1) == made.operand_space("upd1", 1) == 1
        assert made.space("x") == made.space("y") == made.space("w") == 1
    made.plan.prove()


def test_repacking_with_operands_bound_late_a5_19() -> None:
    made = plan(
        bound_late(),
        count_options(max_repacks=10, repack_after_every_allocation=True),
        alternate_memory_bytes=24,
    )
    assert made.space("b") == 0
    assert made.prefetched("b", 0, "p1")
    assert made.space("upd0", (1,)) == made.space("done") == 1
    made.plan.prove()


@pytest.mark.parametrize("color_result", [False, True])
def test_inputs_and_outputs_of_the_caller_a5_23(color_result) -> None:
    text = CHAIN.replace(
        "p1 = f32[2,3]{1,0} parameter", "p1 = f32[2,3]{1,0:S(1)} parameter"
    )
    shape = "f32[2,3]{1,0:S(1)}" if color_result else F
    text = text.replace(
        f"ROOT add = {F} add(n6, p1)",
        f"add = {shape} add(n6, p1)\n  ROOT t = ({shape}, {F}) tuple(add, n5)",
    )
    made = plan(
        text,
        count_options(
            enable_cross_program_prefetch=True,
            is_allowed_in_alternate_mem_fn=lambda value: True,
            post_module_scoped_alternate_memory_size_in_bytes=32,
        ),
    )
    assert made.space("p1") == 0
    assert made.prefetched("add", 1, "p1")
    assert made.space("add") == (1 if color_result else 0)
    assert "p1{}" not in made.plan.chunks
    assert "add{}" not in made.plan.chunks
    post = made.plan.lowered.post_module
    assert post is not None
    assert post.size == 32
