"""Rows A8: synchronous copies and slices that become asynchronous ones."""

from __future__ import annotations

from typing import Any

import pytest

from assignment.hlo_rows import F, Planned, chain, count_options, module, p, plan

LONG = "f32[10,2,3]{2,1,0}"
PART = "f32[1,2,3]{2,1,0}"
FLAT = "f32[6]{0}"


def moves(text: str, capacity: int = 128, low: int = 2, **changes: Any) -> Planned:
    options = count_options(
        low,
        10,
        **{
            "enable_sync_copy_replacement": True,
            "enable_sync_slice_replacement": True,
            "is_async_slice_implemented_fn": lambda instruction: True,
            **changes,
        },
    )
    return plan(module(text), options, alternate_memory_bytes=capacity)


def sliced(name: str, source: str, start: int = 0) -> str:
    return (
        f"  {name} = {PART} slice({source}), "
        f"slice={{[{start}:{start + 1}], [0:2], [0:3]}}\n"
    )


def asynchronous(made: Planned, name: str, operand: int) -> Any:
    """The start of the asynchronous operation whose end an operand is."""
    done = made.operand(name, operand)
    assert done.opcode == "async-done"
    assert done.shape.memory_space == 1
    return done.operands[0]


def opcodes(made: Planned) -> list[str]:
    return [x.opcode for x in made.by_name.values()]


def test_copy_of_an_input_that_is_read_around_it_a8_4() -> None:
    made = moves(
        f"{p('p0', 'p1')}\n{chain('n', 6, 'p1')}\n  early = {F} add(n5, p0)\n"
        f"{chain('m', 4, 'early')}\n  copy = {F} copy(p0)\n"
        f"{chain('k', 4, 'm3')}\n  mid = {F} add(k3, copy)\n"
        f"  ROOT late = {F} add(mid, p0)"
    )
    assert "copy" not in made.by_name
    early, mid, late = (made.operand(n, 1) for n in ("early", "mid", "late"))
    assert made.prefetched("early", 1, "p0")
    assert made.prefetched("mid", 1, "p0")
    assert made.prefetched("late", 1, "p0")
    assert early is not mid
    assert late is not mid
    made.plan.prove()


def test_copy_that_a_conditional_reads_a8_5() -> None:
    made = plan(
        module(
            f"{p('p0', 'p1')}\n  q = pred[] parameter(2)\n{chain('n', 6, 'p1')}\n"
            f"  copy = {F} copy(p0)\n"
            f"  cond = {F} conditional(q, copy, copy), true_computation=yes, "
            f"false_computation=no\n  ROOT r = {F} add(cond, n5)",
            f"""
yes {{
  yp = {F} parameter(0)
  ROOT yr = {F} negate(yp)
}}
no {{
  np = {F} parameter(0)
  ROOT nr = {F} tanh(np)
}}
""",
        ),
        count_options(enable_sync_copy_replacement=True),
    )
    assert "copy" not in made.by_name
    assert made.prefetched("cond", 1, "p0")
    made.plan.prove()


def test_dynamic_slice_a8_7() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  i = s32[] parameter(1)\n"
        f"  zero = s32[] constant(0)\n  p1 = {PART} parameter(2)\n"
        f"{chain('n', 6, 'p1', PART)}\n"
        f"  ds = {PART} dynamic-slice(p0, i, zero, zero), "
        f"dynamic_slice_sizes={{1,2,3}}\n  ROOT add = {PART} add(n5, ds)",
        512,
    )
    start = asynchronous(made, "add", 1)
    assert start.called_computations[0].root.opcode == "dynamic-slice"
    assert [o.name for o in start.operands[:2]] == ["p0", "i"]
    assert "dynamic-slice" not in [x.opcode for x in made.module.entry.instructions]
    made.plan.prove()


def test_renaming_after_a_slice_a8_9() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {FLAT} parameter(1)\n"
        f"{chain('n', 6, 'p1', FLAT)}\n{sliced('s', 'p0')}"
        f"  b = {FLAT} bitcast(s)\n  ROOT add = {FLAT} add(n5, b)",
        512,
    )
    rename = made.by_name["add"].operands[1]
    assert rename.opcode == "bitcast"
    assert rename.operands[0].opcode == "async-done"
    made.plan.prove()


def test_slice_of_what_was_made_in_alternate_memory_a8_10() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {PART} parameter(1)\n"
        f"  neg = {LONG} negate(p0)\n  near = {LONG} tanh(neg)\n"
        f"{chain('n', 6, 'p1', PART)}\n{sliced('s', 'neg')}"
        f"{chain('m', 6, 'n5', PART)}\n  add = {PART} add(m5, s)\n"
        f"  ROOT r = ({PART}, {LONG}) tuple(add, near)",
        400,
    )
    start = asynchronous(made, "add", 1)
    # Made in alternate memory; the slice reads what was evicted.
    assert made.space("neg") == 1
    assert made.is_copy_of(start.operands[0], "neg", 0)
    made.plan.prove()


def test_dynamic_slice_of_what_was_made_a8_10() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  i = s32[] parameter(1)\n"
        f"  zero = s32[] constant(0)\n  p1 = {PART} parameter(2)\n"
        f"{chain('k', 4, 'p1', PART)}\n  neg = {LONG} negate(p0)\n"
        f"{chain('n', 8, 'k3', PART)}\n"
        f"  ds = {PART} dynamic-slice(neg, i, zero, zero), "
        f"dynamic_slice_sizes={{1,2,3}}\n  ROOT add = {PART} add(n7, ds)",
        400,
    )
    assert made.prefetched("neg", 0, "p0")
    assert made.by_name["add"].operands[1].shape.memory_space == 1
    made.plan.prove()


def test_two_slices_of_one_operand_a8_11() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {PART} parameter(1)\n"
        f"{chain('n', 6, 'p1', PART)}\n{sliced('s0', 'p0')}{sliced('s1', 'p0', 4)}"
        f"  add0 = {PART} add(n5, s0)\n  ROOT add1 = {PART} add(add0, s1)".replace(
            "s1 =", "sl1 ="
        )
        .replace("add0, s1", "add0, sl1")
        .replace("s0 =", "sl0 =")
        .replace("n5, s0", "n5, sl0"),
        512,
    )
    one, two = asynchronous(made, "add0", 1), asynchronous(made, "add1", 1)
    assert one is not two
    bounds = [x.called_computations[0].root.attributes["slice"][0] for x in (one, two)]
    assert bounds == [(0, 1, 1), (4, 5, 1)]
    made.plan.prove()


def test_slice_of_a_copy_a8_15() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {PART} parameter(1)\n"
        f"{chain('n', 6, 'p1', PART)}\n  copy = {LONG} copy(p0)\n"
        f"{sliced('s', 'copy')}  ROOT add = {PART} add(n5, s)",
        512,
    )
    assert made.prefetched("s", 0, "p0")
    assert made.by_name["s"].opcode == "slice"
    made.plan.prove()


def test_one_operation_that_reads_two_copies_of_one_input_a8_16() -> None:
    made = moves(
        f"{p('p0', 'p1')}\n{chain('n', 6, 'p1')}\n  copy0 = {F} copy(p0)\n"
        f"  copy1 = {F} copy(p1)\n  add = {F} add(copy0, copy1)\n"
        f"  ROOT r = {F} add(add, n5)",
        1024,
    )
    assert made.prefetched("add", 0, "p0")
    assert made.prefetched("add", 1, "p1")
    made.plan.prove()


@pytest.mark.parametrize("capacity", [64, 512])
def test_source_that_is_too_large_a8_17(capacity) -> None:
    def refuse(request, outcome, retry):
        from msa.assignment.outcomes import REQUIRES_UNCOMMIT

        return REQUIRES_UNCOMMIT if request.require_copy else outcome

    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {PART} parameter(1)\n"
        f"{chain('n', 6, 'p1', PART)}\n{sliced('s', 'p0')}"
        f"  ROOT add = {PART} add(n5, s)",
        capacity,
        max_retries=2,
        inefficient_use_to_copy_ratio=1.0,
        allocation_result_modifier_testing_fn=refuse,
    )
    assert made.by_name["s"].opcode == "slice"
    assert "async-start" not in opcodes(made)
    made.plan.prove()


def test_source_lasts_until_the_start_a8_18() -> None:
    made = moves(
        f"  p0 = {LONG} parameter(0)\n  p1 = {PART} parameter(1)\n"
        f"  copy = {LONG} copy(p0)\n{chain('n', 8, 'p1', PART)}\n{sliced('s', 'copy')}"
        f"  neg = {PART} negate(s)\n  ROOT add = {PART} add(n7, neg)",
        96,
        enable_sync_copy_replacement=False,
        verify=True,
    )
    start = asynchronous(made, "neg", 0)
    assert start.operands[0].name == "copy"
    made.plan.prove()
