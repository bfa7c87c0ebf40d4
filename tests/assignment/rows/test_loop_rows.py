"""Rows A3: loops, chained, nested, and what is carried through them."""

from __future__ import annotations

import pytest

from assignment.hlo_rows import (
    PAIR,
    TRIPLE,
    F,
    V,
    chain,
    count_options,
    invariant_loop,
    loop,
    module,
    p,
    plan,
    simple_loop,
)
from msa.assignment.allocation import PinnedAllocation, Use


def bodies(names: list[str], state: str, body: str, counter: int) -> str:
    """Bodies and conditions of loops that do the same."""
    text = ""
    for name in names:
        text += f"""
cond_{name} {{
  cp_{name} = {state} parameter(0)
  limit_{name} = f32[] constant(5)
  i_{name} = f32[] get-tuple-element(cp_{name}), index={counter}
  ROOT less_{name} = pred[] compare(i_{name}, limit_{name}), direction=LT
}}
body_{name} {{
  bp_{name} = {state} parameter(0)
{body.replace("@", name)}
}}
"""
    return text


COUNT = (
    "  bi_@ = f32[] get-tuple-element(bp_@), index={0}\n"
    "  one_@ = f32[] constant(1)\n  next_@ = f32[] add(bi_@, one_@)\n"
)


def runs(name: str, init: str, state: str) -> str:
    return (
        f"  {name} = {state} while({init}), condition=cond_{name}, body=body_{name}\n"
    )


@pytest.mark.parametrize("high", [5, 10, 50])
def test_consecutive_loops_a3_3(high) -> None:
    state = f"({F}, f32[], {F})"
    body = (
        COUNT.format(1)
        + f"  bx_@ = {F} get-tuple-element(bp_@), index=0\n"
        + f"  by_@ = {F} get-tuple-element(bp_@), index=2\n"
        + f"  bz_@ = {F} add(bx_@, by_@)\n"
        + f"  ROOT bt_@ = {state} tuple(bz_@, next_@, by_@)"
    )
    made = plan(
        module(
            f"{p('p0')}\n  zero = f32[] constant(0)\n  neg = {F} negate(p0)\n"
            f"  copy = {F} copy(neg)\n  init = {state} tuple(copy, zero, neg)\n"
            + runs("w1", "init", state)
            + f"  g0 = {F} get-tuple-element(w1), index=0\n"
            f"  g2 = {F} get-tuple-element(w1), index=2\n"
            f"  init2 = {state} tuple(g0, zero, g2)\n"
            + runs("w2", "init2", state).replace("  w2", "  ROOT w2"),
            bodies(["w1", "w2"], state, body, 1),
        ),
        count_options(2, high),
    )
    assert made.space("w2", (0,)) == made.space("w2", (2,)) == 0
    made.plan.prove()


def test_inputs_that_are_outputs_a3_7() -> None:
    body = f"  a = {F} multiply(bx, bx)\n  by = {F} add(a, bx)"
    text = simple_loop(
        body, f"  ROOT r = {PAIR} while(init), condition=cond, body=body"
    ).replace(
        "is_scheduled=true", "is_scheduled=true, input_output_alias={ {0}: (0, {}) }"
    )
    text = text.replace(
        f"  while = {PAIR} while(init), condition=cond, body=body\n", ""
    )
    text = text.replace(f"  copy = {F} copy(p0)\n", "").replace(
        "tuple(copy, zero)", "tuple(p0, zero)"
    )
    made = plan(text, count_options(2, 50))
    assert made.space("r", (0,)) == made.space("bt", (0,)) == 0
    assert made.space("bp", (0,)) == made.space("p0") == 0


def invariant_body(length: int) -> str:
    """As in A3.8: element 1 is read early and handed on."""
    return (
        COUNT.format(2)
        + f"  ba_@ = {V} get-tuple-element(bp_@), index=0\n"
        + f"  bc_@ = {V} get-tuple-element(bp_@), index=1\n"
        + f"  tanh_@ = {V} tanh(bc_@)\n{chain('b_@', length, 'ba_@', V)}\n"
        + f"  bs_@ = {V} add(b_@{length - 1}, tanh_@)\n"
        + f"  bz_@ = {V} get-tuple-element(bp_@), index=3\n"
        + f"  ROOT bt_@ = {TRIPLE} tuple(bs_@, bc_@, next_@, bz_@)"
    )


def test_redundant_evictions_in_nested_loops_a3_10() -> None:
    # The inner loop counts for both, so the outer one runs once.
    inner = (
        f"  bc_@ = {V} get-tuple-element(bp_@), index=1\n"
        f"  tanh_@ = {V} tanh(bc_@)\n"
        f"  ba_@ = {V} get-tuple-element(bp_@), index=0\n"
        + COUNT.format(2)
        + f"{chain('b_@', 15, 'ba_@', V)}\n  bs_@ = {V} add(b_@14, tanh_@)\n"
        + f"  bz_@ = {V} get-tuple-element(bp_@), index=3\n"
        + f"  ROOT bt_@ = {TRIPLE} tuple(bs_@, bc_@, next_@, bz_@)"
    )
    outer = (
        runs("inner", "bp_@", TRIPLE)
        + f"  ia_@ = {V} get-tuple-element(inner), index=0\n"
        + f"  ic_@ = {V} get-tuple-element(inner), index=1\n"
        + "  ii_@ = f32[] get-tuple-element(inner), index=2\n"
        + f"  iz_@ = {V} get-tuple-element(inner), index=3\n"
        + f"  ROOT bt_@ = {TRIPLE} tuple(ia_@, ic_@, ii_@, iz_@)"
    )
    made = plan(
        module(
            f"  p0 = {V} parameter(0)\n  p1 = {V} parameter(1)\n"
            f"  zero = f32[] constant(0)\n  copy0 = {V} copy(p0)\n"
            f"{chain('e', 7, 'p0', V)}\n  init = {TRIPLE} tuple(copy0, p1, zero, e6)\n"
            + runs("outer", "init", TRIPLE)
            + f"  w0 = {V} get-tuple-element(outer), index=0\n"
            f"  w1 = {V} get-tuple-element(outer), index=1\n"
            f"  ROOT s = {V} add(w0, w1)",
            bodies(["inner"], TRIPLE, inner, 2) + bodies(["outer"], TRIPLE, outer, 2),
        )
    )
    for name in ("inner", "outer"):
        assert made.space(name, (1,)) == 1
        assert len(made.by_name[name].shape.children) == 5
        body = made.by_name[name].while_body
        assert not [
            x
            for x in body.instructions
            if x.opcode == "copy-done" and x.shape.memory_space == 0
        ]
    inner_body = made.by_name["inner"].while_body
    back = inner_body.root.operands[1]
    assert back.opcode == "copy-done"
    # The source is an extra parameter in default memory.
    source = back.operands[0].operands[0]
    assert source.opcode == "get-tuple-element"
    assert source.tuple_index == 4
    made.plan.prove()


def chained(second: str, between: int = 0, after: int = 0, source: str = "p1") -> str:
    """A3.8's loop, then another that takes its element 1."""
    lines = (
        f"  p0 = {V} parameter(0)\n  p1 = {V} parameter(1)\n"
        f"  zero = f32[] constant(0)\n  copy0 = {V} copy(p0)\n"
        f"{chain('e', 7, 'p0', V)}\n  new = {V} tanh(p1)\n"
        f"  init = {TRIPLE} tuple(copy0, {source}, zero, e6)\n"
        + runs("w1", "init", TRIPLE)
        + f"  g0 = {V} get-tuple-element(w1), index=0\n"
        f"  g1 = {V} get-tuple-element(w1), index=1\n"
        f"  g3 = {V} get-tuple-element(w1), index=3\n"
    )
    last = "g0"
    if between:
        lines += chain("m", between, last, V) + "\n"
        last = f"m{between - 1}"
    lines += f"  init2 = {TRIPLE} tuple({last}, g1, zero, g3)\n" + runs(
        "w2", "init2", TRIPLE
    )
    lines += f"  h0 = {V} get-tuple-element(w2), index=0\n"
    last = "h0"
    if after:
        lines += chain("l", after, last, V) + "\n"
        last = f"l{after - 1}"
    lines += f"  h1 = {V} get-tuple-element(w2), index=1\n"
    lines += f"  ROOT s = {V} add({last}, {'g1' if after else 'h1'})"
    return module(
        lines,
        bodies(["w1"], TRIPLE, invariant_body(15 if not after else 3), 2)
        + bodies(["w2"], TRIPLE, second, 2),
    )


def test_first_of_two_chained_loops_a3_12() -> None:
    changed = invariant_body(15).replace(
        f"  ROOT bt_@ = {TRIPLE} tuple(bs_@, bc_@, next_@, bz_@)",
        f"  bn_@ = {V} negate(bc_@)\n"
        f"  ROOT bt_@ = {TRIPLE} tuple(bs_@, bn_@, next_@, bz_@)",
    )
    made = plan(chained(changed))
    elements = [len(made.by_name[w].shape.children) for w in ("w1", "w2")]
    assert elements == [5, 4]
    made.plan.prove()


def test_copy_in_default_memory_serves_after_a_loop_a3_13() -> None:
    made = plan(
        loop(
            PAIR,
            f"  bi = f32[] get-tuple-element(bp), index=1\n"
            f"  one = f32[] constant(1)\n  next = f32[] add(bi, one)\n"
            f"  bx = {F} get-tuple-element(bp), index=0\n  by = {F} negate(bx)\n"
            f"  ROOT bt = {PAIR} tuple(by, next)",
            f"{p('p0')}\n  zero = f32[] constant(0)\n  copy = {F} copy(p0)\n"
            f"{chain('n', 15, 'p0')}\n  early = {F} add(n14, copy)\n"
            f"  init = {PAIR} tuple(early, zero)\n"
            f"  while = {PAIR} while(init), condition=cond, body=body\n"
            f"  wx = {F} get-tuple-element(while), index=0\n{chain('m', 15, 'wx')}\n"
            f"  ROOT late = {F} add(m14, copy)",
        )
    )
    assert made.space("copy") == 0
    assert made.prefetched("early", 1, "copy")
    assert made.prefetched("late", 1, "copy")
    made.plan.prove()


def test_one_eviction_after_a_loop_a3_14() -> None:
    made = plan(chained(invariant_body(3), between=15, after=15, source="new"))
    assert made.space("w1", (1,)) == 1
    assert made.evicted_and_back("s", 1, "g1")
    evictions = [
        x
        for x in made.module.entry.instructions
        if x.opcode == "copy-done" and made.is_copy_of(x, "g1", 0)
    ]
    assert len(evictions) == 1
    made.plan.prove()


def test_a_stale_copy_is_not_used_after_a_loop_a3_15() -> None:
    # copy is evicted for `early`'s sake before the loop, which changes its buffer.
    text = loop(
        PAIR,
        f"  bi = f32[] get-tuple-element(bp), index=1\n"
        f"  one = f32[] constant(1)\n  next = f32[] add(bi, one)\n"
        f"  bx = {F} get-tuple-element(bp), index=0\n  by = {F} negate(bx)\n"
        f"  ROOT bt = {PAIR} tuple(by, next)",
        f"{p('p0')}\n  zero = f32[] constant(0)\n  copy = {F} negate(p0)\n"
        f"  near = {F} tanh(copy)\n{chain('n', 15, 'near')}\n"
        f"  early = {F} add(n14, copy)\n  init = {PAIR} tuple(copy, zero)\n"
        f"  while = {PAIR} while(init), condition=cond, body=body\n"
        f"  wx = {F} get-tuple-element(while), index=0\n{chain('m', 15, 'early')}\n"
        f"  ROOT late = {F} add(m14, wx)",
    )
    made = plan(text)
    assert made.evicted_and_back("early", 1, "copy")
    assert made.space("while", (0,)) == 1
    assert made.evicted_and_back("late", 1, "wx")
    made.plan.prove()


def test_hook_on_a_read_in_the_body_a3_16() -> None:
    text = invariant_loop(15)
    names = plan(text).plan.problem.names
    tanh = names.index("tanh")
    calls = []

    def flag(positions):
        """The read of the invariant in the body, whenever its value is decided."""
        calls.append(positions)
        flagged = any(names[x.step] == "bp" and x.index == (1,) for x in positions)
        return [Use(tanh, 0, ())] if flagged else []

    made = plan(text, count_options(get_inefficient_allocation_sites_fn=flag))
    assert made.operand_space("tanh", 0) == 0
    pinned = [
        (x.position, x.start, x.space)
        for x in made.plan.allocations
        if isinstance(x, PinnedAllocation)
    ]
    assert len(pinned) == len(set(pinned))
    assert len(calls) > 1
    made.plan.prove()
