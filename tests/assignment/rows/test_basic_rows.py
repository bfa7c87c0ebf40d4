"""Rows A1 and A2 that need more than a line: reuse, dead code, hooks, renamings."""

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
from msa.assignment.outcomes import OUT_OF_MEMORY, REQUIRES_UNCOMMIT

BIG = "f32[4,3]{1,0}"


def test_one_offset_for_the_whole_life_a1_9() -> None:
    made = plan(
        module(
            f"{p('p0')}\n  p1 = {BIG} parameter(1)\n  add1 = {F} add(p0, p0)\n"
            f"  sub1 = {F} subtract(p0, add1)\n  mul1 = {BIG} multiply(p1, p1)\n"
            f"  add2 = {BIG} add(mul1, p1)\n  mul2 = {F} multiply(add1, sub1)\n"
            f"  neg = {BIG} negate(add2)\n  ROOT t = ({F}, {BIG}) tuple(mul2, neg)"
        )
    )
    assert made.space("add1") == 1
    assert made.by_name["sub1"].operands[1].name == "add1"
    assert made.by_name["mul2"].operands[0].name == "add1"
    assert not any(made.is_copy_of(x, "add1", 0) for x in made.by_name.values())


def test_chunks_that_are_not_committed_are_seen_a1_10() -> None:
    # a is fetched twice for reads that are far apart, and both copies are decided
    # before any of them is committed.
    small, tall = "f32[2,4]{1,0}", "f32[8,3]{1,0}"
    made = plan(
        module(
            f"  p0 = {tall} parameter(0)\n  p1 = {small} parameter(1)\n"
            f"  a = {tall} sine(p0)\n  b = {small} cosine(p1)\n  d = {tall} tanh(a)\n"
            f"{chain('x', 12, 'b', small)}\n  c = {tall} negate(a)\n"
            f"{chain('y', 12, 'x11', small)}\n  e = {tall} add(a, d)\n"
            f"  g = {small} add(y11, b)\n"
            f"  ROOT t = ({tall}, {tall}, {small}) tuple(c, e, g)"
        ),
        count_options(
            buffer_interval_comparator=lambda x: (x.value != 2, x.value),
            verify=True,
        ),
    )
    made.plan.prove()


def test_dead_operations_in_the_schedule_a1_15() -> None:
    # Copies are placed between operations that the plan removes.
    lines = [p("p0", "p1", shape=BIG), f"  tanh0 = {BIG} tanh(p0)"]
    value = "p1"
    for number in range(6):
        lines.append(f"  neg{number} = {BIG} negate({value})")
        lines.append(f"  dead{number} = {BIG} tanh(neg{number})")
        value = f"neg{number}"
    lines.append(f"  add = {BIG} add({value}, tanh0)")
    lines.append(f"  ROOT last = {BIG} add(add, p0)")
    made = plan(module("\n".join(lines)), cost_options())
    assert not any(name.startswith("dead") for name in made.by_name)
    assert made.plan.simulation.alternate_bytes.max() <= 2 * 48
    made.plan.prove()


def test_result_modifier_a1_20() -> None:
    def refuse(request, outcome, retry):
        reads_p1 = request.use.use.operand == 1
        return OUT_OF_MEMORY | REQUIRES_UNCOMMIT if reads_p1 else outcome

    made = plan(CHAIN, count_options(allocation_result_modifier_testing_fn=refuse))
    assert made.operand("add", 1).name == "p1"
    assert made.copies() == []


def test_request_modifier_a1_20() -> None:
    def earlier(request):
        if request.use.use.operand == 1:
            request.latest_prefetch = 6

    made = plan(CHAIN, count_options(allocation_request_modifier_testing_fn=earlier))
    assert made.prefetched("add", 1, "p1")
    order = made.order()
    done = order.index(made.operand("add", 1).name)
    # p0, p1 and n0 are the steps 0, 1 and 2, so step 6 is n4.
    assert order[done + 1] == "n4"


def test_a_renaming_does_not_pull_a_copy_early_a2_5() -> None:
    flat = "f32[6]{0}"
    made = plan(
        module(
            f"{p('p0', 'p1')}\n  b = {flat} bitcast(p1)\n{chain('n', 7, 'p0')}\n"
            f"  f = {flat} bitcast(n6)\n  ROOT add = {flat} add(f, b)"
        ),
        count_options(4, 5),
    )
    assert made.prefetched("add", 1, "p1")
    done = made.operand("add", 1)
    order = [n for n in made.order() if made.by_name[n].opcode != "bitcast"]
    start, end = order.index(done.operands[0].name), order.index(done.name)
    opcode = [made.by_name[n].opcode for n in order]
    assert opcode[start - 1] == opcode[start + 1] == opcode[end - 1] == "negate"


@pytest.mark.parametrize("high", [5, 10, 50])
def test_fusions_with_several_results_and_tuples_a2_9(high) -> None:
    pair, nested = f"({F}, {F})", f"({F}, ({F}, {F}))"
    made = plan(
        module(
            f"{p('p0', 'p1')}\n  t0 = {pair} tuple(p0, p1)\n"
            f"  t1 = {nested} tuple(p1, t0)\n"
            f"  fusion0 = {nested} fusion(t1), kind=kCustom, calls=turn\n"
            f"{chain('n', 7, 'p0')}\n"
            f"  fusion1 = {nested} fusion(fusion0), kind=kCustom, calls=back\n"
            f"  g = {F} get-tuple-element(fusion1), index=0\n"
            f"  ROOT mul = {F} multiply(n6, g)",
            "".join(
                f"""
{name} {{
  a{name} = {nested} parameter(0)
  b{name} = {F} get-tuple-element(a{name}), index=0
  c{name} = {pair} get-tuple-element(a{name}), index=1
  d{name} = {F} get-tuple-element(c{name}), index=0
  e{name} = {F} get-tuple-element(c{name}), index=1
  f{name} = {pair} tuple(e{name}, b{name})
  ROOT g{name} = {nested} tuple(d{name}, f{name})
}}
"""
                for name in ("turn", "back")
            ),
        ),
        count_options(2, high),
        alternate_memory_bytes=512,
    )
    made.plan.prove()


def test_scratch_of_operations_that_are_removed_b1_8() -> None:
    text = module(
        f"{p('p0')}\n  a = {F} negate(p0)\n  t = ({F}, {F}) tuple(a, p0)\n"
        f"  g = {F} get-tuple-element(t), index=0\n  dead = {F} tanh(a)\n"
        f"  ROOT b = {F} negate(g)"
    )
    made = plan(
        text, count_options(reserved_scoped_memory_fn=lambda x, operands, results: 16)
    )
    assert set(made.plan.scoped_chunks) <= set(made.by_name)
    assert "dead" not in made.by_name
    assert {"a", "b"} <= set(made.plan.scoped_chunks)
    assert all(size == 16 for _, size in made.plan.scoped_chunks.values())
