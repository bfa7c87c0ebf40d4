"""Rows B3: inputs that are fetched before the program begins."""

from __future__ import annotations

from typing import Any

import pytest

import msa
from assignment.hlo_rows import (
    SMALL,
    Planned,
    chain,
    cost_options,
    count_options,
    loop,
    module,
    plan,
)
from msa.assignment.algorithm import run_greedy
from msa.assignment.build import build_problem
from msa.assignment.filters import HloPositionMatcher, MsaSortOrderOverride

A = "f32[8,8]{1,0}"
B = "f32[8,2]{1,0}"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def fetch(text: str, capacity: int = 128, low: int = 2, high: int = 10, **changes: Any):
    options = count_options(low, high, enable_cross_program_prefetch=True, **changes)
    return plan(text, options, alternate_memory_bytes=capacity)


def fetched(made: Planned) -> list[tuple[str, tuple[int, ...]]]:
    """Inputs that are fetched ahead, in order of their numbers."""
    problem = made.plan.problem
    return [
        (problem.names[v.position.step], v.position.index)
        for v in (
            problem.values[x.value] for x in made.plan.result.cross_program_prefetches
        )
    ]


def starts(made: Planned) -> list[Any]:
    return [
        x
        for x in made.by_name.values()
        if x.attributes.get("cross_program_prefetch_index") is not None
    ]


def dot(name: str, left: str, right: str, shape: str = B, root: str = "ROOT ") -> str:
    return f"  {root}{name} = {shape} dot({left}, {right}), {DOT}"


TWO = f"  p0 = {A} parameter(0)\n  p1 = {B} parameter(1)\n"


def test_an_element_of_a_tuple_b3_3() -> None:
    made = fetch(
        module(
            f"  t = ({A}, {B}) parameter(0)\n"
            f"  p0 = {A} get-tuple-element(t), index=0\n"
            f"  p1 = {B} get-tuple-element(t), index=1\n{dot('d', 'p0', 'p1')}"
        )
    )
    assert fetched(made) == [("t", (1,))]
    assert made.prefetched("d", 1, "p1")
    made.plan.prove()


@pytest.mark.parametrize("in_tuple", [False, True])
def test_through_a_renaming_b3_4(in_tuple) -> None:
    flat = "f32[2,8]{1,0}"
    made = fetch(
        module(
            (
                f"  t = ({A}, {flat}) parameter(0)\n"
                f"  p0 = {A} get-tuple-element(t), index=0\n"
                f"  raw = {flat} get-tuple-element(t), index=1\n"
                if in_tuple
                else f"  p0 = {A} parameter(0)\n  raw = {flat} parameter(1)\n"
            )
            + f"  b = {B} bitcast(raw)\n{dot('d', 'p0', 'b')}"
        )
    )
    assert fetched(made) == [("t", (1,)) if in_tuple else ("raw", ())]
    assert made.operand_space("d", 1) == 1


@pytest.mark.parametrize(
    "text",
    [
        module(
            f"  t = ({A}, ({B}, {B})) parameter(0)\n"
            f"  p0 = {A} get-tuple-element(t), index=0\n"
            f"  u = ({B}, {B}) get-tuple-element(t), index=1\n"
            f"  p1 = {B} get-tuple-element(u), index=1\n{dot('d', 'p0', 'p1')}"
        ),
        module(f"{TWO}  ROOT n = {A} negate(p0)"),
        module(
            f"  p0 = {A} parameter(0)\n  p1 = {A} parameter(1)\n"
            f"{dot('d', 'p0', 'p1', A)}"
        ),
        module(
            f"  t = ({A}, {A}) parameter(0)\n"
            f"  p0 = {A} get-tuple-element(t), index=0\n"
            f"  p1 = {A} get-tuple-element(t), index=1\n{dot('d', 'p0', 'p1', A)}"
        ),
    ],
    ids=["nested", "unused", "too large", "too large in a tuple"],
)
def test_what_is_not_fetched_b3_5(text) -> None:
    assert fetched(fetch(text)) == []


def test_fusions_without_inputs_b3_6() -> None:
    text = module(
        f"  p0 = {A} parameter(0)\n"
        f"  f = {B} fusion(), kind=kLoop, calls=make\n{dot('d', 'p0', 'f')}",
        f"""
make {{
  one = f32[] constant(1)
  ROOT ones = {B} broadcast(one), dimensions={{}}
}}
""",
    )
    assert fetched(fetch(text)) == []


def test_custom_fusion_of_a_tuple_b3_6() -> None:
    pair = f"({B}, {B})"
    text = module(
        f"  t = {pair} parameter(0)\n"
        f"  ROOT f = {B} fusion(t), kind=kCustom, calls=body",
        f"""
body {{
  ft = {pair} parameter(0)
  x = {B} get-tuple-element(ft), index=0
  y = {B} get-tuple-element(ft), index=1
  ROOT s = {B} add(x, y)
}}
""",
    )
    assert fetched(fetch(text)) == []


@pytest.mark.parametrize("in_tuple", [False, True])
def test_input_that_the_caller_wants_fast_b3_7(in_tuple) -> None:
    fast = "f32[8,2]{1,0:S(1)}"
    text = module(
        (
            f"  t = ({A}, {fast}) parameter(0)\n"
            f"  p0 = {A} get-tuple-element(t), index=0\n"
            f"  p1 = {fast} get-tuple-element(t), index=1\n"
            if in_tuple
            else f"  p0 = {A} parameter(0)\n  p1 = {fast} parameter(1)\n"
        )
        + dot("d", "p0", "p1")
    )
    made = fetch(text, 512, is_allowed_in_alternate_mem_fn=lambda value: True)
    assert ("t", (1,)) in fetched(made) or ("p1", ()) in fetched(made)
    assert made.operand_space("d", 1) == 1


UPDATE = "  u = f32[1,8]{1,0} constant({{1,2,3,4,5,6,7,8}})\n  k = s32[] constant(0)\n"


@pytest.mark.parametrize("aliased", [False, True])
def test_input_that_is_updated_into_the_result_b3_8(aliased) -> None:
    text = module(
        f"  p0 = {A} parameter(0)\n{UPDATE}"
        f"  ROOT dus = {A} dynamic-update-slice(p0, u, k, k)",
        header=", input_output_alias={ {}: (0, {}, may-alias) }" if aliased else "",
    )
    made = fetch(text, 512, 2, 5)
    assert fetched(made) == []
    if aliased:  # else the input is copied, as its caller keeps it
        assert made.operand("dus", 0).name == "p0"


def test_update_then_product_b3_9() -> None:
    # As it stands, without the copy that protects the caller's input.
    text = module(
        f"  p0 = {A} parameter(0)\n  x = {A} parameter(1)\n{UPDATE}"
        f"  dus = {A} dynamic-update-slice(p0, u, k, k)\n{dot('d', 'x', 'dus', A)}"
    )
    options = count_options(2, 5, enable_cross_program_prefetch=True)
    target = SMALL.replace(alternate_memory_bytes=512)
    problem = build_problem(msa.parse(text), target, options)
    (made,) = run_greedy(problem, options).cross_program_prefetches
    assert problem.describe(problem.values[made.value].position) == "p0{}"
    served = [
        problem.describe_use(use)
        for x in run_greedy(problem, options).allocations.copies()
        if x.cross_program_index is not None
        for use in x.uses
    ]
    assert served == ["dus:0{}"]


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (
            f"{TWO}{dot('d', 'p0', 'p1')}",
            ", input_output_alias={ {}: (1, {}, may-alias) }",
        ),
        (
            f"{TWO}  dd = {B} dot(p0, p1), {DOT}\n  ROOT t = ({B}, {B}) tuple(dd, p1)",
            "",
        ),
        ("  ROOT p0 = f32[8,2]{1,0} parameter(0)", ""),
    ],
    ids=["may alias", "lives out", "root"],
)
def test_inputs_that_live_out_b3_10(body, header) -> None:
    assert fetched(fetch(module(body, header=header))) == []


def freeing(inputs: str = TWO) -> str:
    return module(
        f"{inputs}  d = {B} dot(p0, p1), {DOT}\n{chain('n', 9, 'd', B)}".replace(
            "n8 =", "n8 ="
        )
        + f"\n  ROOT last = {B} negate(n8)"
    )


def test_override_picks_the_input_b3_12() -> None:
    small = "f32[4,4]{1,0}"
    text = module(
        f"  p0 = {small} parameter(0)\n  p1 = {small} parameter(1)\n"
        f"  d = {small} dot(p0, p1), {DOT}\n{chain('n', 9, 'd', small)}\n"
        f"  ROOT last = {small} negate(n8)"
    )
    override = MsaSortOrderOverride(
        HloPositionMatcher(instruction_name_regex="p0"),
        assign_first=True,
        apply_to_cross_program_prefetches=True,
    )
    assert fetched(fetch(text, 96, 2, 5)) == [("p1", ())]
    made = fetch(text, 96, 2, 5, msa_sort_order_overrides=(override,))
    assert fetched(made) == [("p0", ())]
    assert made.plan.result.cross_program_prefetches[0].freed
    assert made.order()[-1] != made.module.entry.root.name
    assert made.by_name[made.order()[-1]].opcode == "copy-done"
    made.plan.prove()


@pytest.mark.parametrize("on_instruction", [False, True])
def test_annotated_input_b3_13(on_instruction) -> None:
    small, fast = "f32[4,4]{1,0}", "f32[4,4]{1,0:S(1)}"
    text = module(
        f"  p0 = {fast if on_instruction else small} parameter(0)\n"
        f"  p1 = {small} parameter(1)\n"
        f"  d = {small} dot(p0, p1), {DOT}\n{chain('n', 9, 'd', small)}\n"
        f"  ROOT last = {small} negate(n8)",
        header=f", entry_computation_layout={{({fast}, {small})->{small}}}",
    )
    made = fetch(text, 96, 2, 5)
    assert fetched(made) == [("p0", ())]
    assert made.plan.result.cross_program_prefetches[0].freed
    assert made.space("p0") == 0
    layout = made.module.entry_layout
    assert layout is not None
    assert layout.parameters[0].memory_space == 0
    assert made.prefetched("d", 0, "p0")
    made.plan.prove()


def test_freed_element_of_a_tuple_b3_14() -> None:
    small = "f32[4,4]{1,0}"
    text = module(
        f"  t = ({small}, {small}) parameter(0)\n"
        f"  p0 = {small} get-tuple-element(t), index=0\n"
        f"  p1 = {small} get-tuple-element(t), index=1\n"
        f"  d = {small} dot(p0, p1), {DOT}\n{chain('n', 9, 'd', small)}\n"
        f"  ROOT last = {small} negate(n8)"
    )
    made = fetch(text, 96, 2, 5)
    assert fetched(made) == [("t", (1,))]
    assert made.plan.result.cross_program_prefetches[0].freed
    assert made.by_name[made.order()[-1]].opcode == "copy-done"
    made.plan.prove()


def test_freed_before_a_loop_b3_14() -> None:
    small = "f32[4,4]{1,0}"
    state = f"({small}, f32[])"
    text = loop(
        state,
        f"  bi = f32[] get-tuple-element(bp), index=1\n  one = f32[] constant(1)\n"
        f"  next = f32[] add(bi, one)\n  bx = {small} get-tuple-element(bp), index=0\n"
        f"{chain('b', 4, 'bx', small)}\n  ROOT bt = {state} tuple(b3, next)",
        f"  p0 = {small} parameter(0)\n  p1 = {small} parameter(1)\n"
        f"  zero = f32[] constant(0)\n  d = {small} dot(p0, p1), {DOT}\n"
        f"  init = {state} tuple(d, zero)\n"
        f"  while = {state} while(init), condition=cond, body=body\n"
        f"  w = {small} get-tuple-element(while), index=0\n"
        f"{chain('n', 6, 'w', small)}\n  ROOT last = {small} negate(n5)",
    )
    made = plan(
        text,
        cost_options(enable_cross_program_prefetch=True),
        alternate_memory_bytes=96,
    )
    assert fetched(made) == [("p1", ())]
    assert made.plan.result.cross_program_prefetches[0].freed
    made.plan.prove()


@pytest.mark.parametrize("in_tuple", [False, True])
def test_read_again_near_the_end_b3_15(in_tuple) -> None:
    small = "f32[4,4]{1,0}"
    inputs = (
        f"  t = ({small}, {small}) parameter(0)\n"
        f"  p0 = {small} get-tuple-element(t), index=0\n"
        f"  p1 = {small} get-tuple-element(t), index=1\n"
        if in_tuple
        else f"  p0 = {small} parameter(0)\n  p1 = {small} parameter(1)\n"
    )
    text = module(
        f"{inputs}  d = {small} dot(p0, p1), {DOT}\n{chain('n', 9, 'd', small)}\n"
        f"{dot('last', 'n8', 'p1', small)}"
    )
    made = fetch(text, 96, 2, 5)
    assert len(fetched(made)) == 1
    assert not made.plan.result.cross_program_prefetches[0].freed
    assert len([x for x in made.by_name.values() if made.is_copy_of(x, "p1", 1)]) == 1
    made.plan.prove()


def test_result_that_nobody_else_reads_b3_16() -> None:
    small = "f32[2]{0}"
    text = module(
        f"  p0 = {small} parameter(0)\n"
        f"  g = {small} fusion(), kind=kLoop, calls=make\n"
        f"  ROOT f = {small} fusion(p0, g), kind=kLoop, calls=body",
        f"""
make {{
  one = f32[] constant(1)
  ROOT ones = {small} broadcast(one), dimensions={{}}
}}
body {{
  x = {small} parameter(0)
  y = {small} parameter(1)
  ROOT s = {small} dynamic-slice(x, k), dynamic_slice_sizes={{2}}
}}
""".replace("  ROOT s =", "  k = s32[] constant(0)\n  ROOT s ="),
    )
    made = fetch(text)
    assert made.prefetched("f", 0, "p0")


@pytest.mark.parametrize("permissive", [False, True])
def test_readers_that_cannot_tell_b3_17(permissive) -> None:
    text = module(
        f"  p0 = f32[2]{{0}} parameter(0)\n  x = {B} parameter(1)\n"
        f"  ROOT f = {B} fusion(p0, x), kind=kLoop, calls=body",
        f"""
body {{
  a = f32[2]{{0}} parameter(0)
  b = {B} parameter(1)
  wide = {B} broadcast(a), dimensions={{1}}
  ROOT s = {B} multiply(wide, b)
}}
""",
    )
    made = fetch(text, cross_program_prefetch_permissive_mode=permissive)
    assert bool(fetched(made)) is permissive


def test_first_in_the_schedule_b3_18() -> None:
    text = module(
        f"  t = ({A}, {B}) parameter(0)\n"
        f"  p1 = {B} get-tuple-element(t), index=1\n"
        f"  p0 = {A} get-tuple-element(t), index=0\n{chain('n', 3, 'p0', A)}\n"
        f"{dot('d', 'n2', 'p1')}"
    )
    made = fetch(text, post_module_scoped_alternate_memory_size_in_bytes=64)
    (start,) = starts(made)
    assert start.attributes["cross_program_prefetch_index"] == 0
    order = made.order()
    before = {made.by_name[n].opcode for n in order[: order.index(start.name)]}
    assert before <= {"parameter", "get-tuple-element"}
    post = made.plan.lowered.post_module
    assert post is not None
    assert post.size == 64


def test_operands_stay_in_step_b3_19() -> None:
    # The same input is read by two operations, one of which also reads a copy of it.
    made = fetch(
        module(
            f"{TWO}  c = {B} copy(p1)\n  d0 = {B} dot(p0, p1), {DOT}\n"
            f"  s = {B} add(c, d0)\n  d1 = {B} dot(p0, p1), {DOT}\n"
            f"  ROOT r = {B} add(s, d1)"
        ),
        256,
        max_cross_program_prefetches=-1,
        verify=True,
    )
    for name in ("d0", "d1"):
        assert made.operand_space(name, 1) in (0, 1)
    made.plan.prove()
