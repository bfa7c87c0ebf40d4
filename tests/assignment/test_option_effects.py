"""Options, each by what it changes."""

from __future__ import annotations

from typing import Any

import pytest

import msa
from assignment.hlo_rows import (
    CHAIN,
    F,
    chain,
    count_options,
    invariant_loop,
    module,
    p,
    plan,
)
from msa.assignment.post_allocation import PostAllocationUpdate
from msa.errors import OptionsError

# -- the hook after everything is placed ------------------------------------------------

WITH_COPY = module(
    f"{p('p0')}\n  a = {F} negate(p0)\n  copy = {F} copy(a)\n  b = {F} tanh(copy)\n"
    f"  ROOT c = {F} add(b, b)"
)


def bypass(asked: list[str]) -> Any:
    """Let readers of copies read what is copied."""

    def hook(instruction: Any) -> PostAllocationUpdate | None:
        asked.append(instruction.name)
        if instruction.opcode != "copy":
            return None
        (reader,) = instruction.users
        return PostAllocationUpdate(
            (instruction,), {(instruction, 0, ()): (reader, 0, ())}
        )

    return hook


def test_post_allocation_hook() -> None:
    asked: list[str] = []
    # Only what reads nothing from alternate memory is asked about.
    made = plan(
        WITH_COPY,
        count_options(
            post_allocation_transformation_fn=bypass(asked),
            is_use_allowed_in_alternate_mem_fn=lambda use: (
                use.instruction.name != "copy"
            ),
        ),
    )
    assert "copy" in asked
    assert "c" not in asked
    assert "copy" not in made.by_name
    assert made.operand("b", 0).opcode in ("copy-done", "negate")
    made.plan.prove()


def test_post_allocation_hook_that_names_a_stranger() -> None:
    stranger = msa.parse(WITH_COPY).entry.root
    with pytest.raises(OptionsError, match="post_allocation_transformation_fn"):
        plan(
            WITH_COPY,
            count_options(
                post_allocation_transformation_fn=lambda x: PostAllocationUpdate(
                    (stranger,)
                )
            ),
        )


# -- what is allowed where ----------------------------------------------------------------


def test_values_that_may_not_be_defined_in_alternate_memory() -> None:
    made = plan(
        CHAIN,
        count_options(
            is_allowed_in_alternate_mem_fn=lambda v: v.instruction.name != "n3"
        ),
    )
    spaces = {name: made.space(name) for name in ("n2", "n3", "n4")}
    assert spaces == {"n2": 1, "n3": 0, "n4": 1}


def test_positions_that_may_not_be_in_alternate_memory() -> None:
    made = plan(
        CHAIN,
        count_options(
            is_position_allowed_in_alternate_mem_fn=lambda position: (
                position.instruction.name != "n3"
            )
        ),
    )
    assert (made.space("n2"), made.space("n3"), made.space("n4")) == (1, 0, 1)


def test_sizes_of_values() -> None:
    made = plan(CHAIN, count_options(size_fn=lambda value: 2 * value.byte_size()))
    assert {size for _, size in made.plan.chunks.values()} == {48}


def test_alternate_memory_under_another_number() -> None:
    options = count_options(alternate_memory_space=3)
    made = msa.assign(msa.parse(CHAIN), msa.Target.preset("tpu_v5e"), options)
    made.verify()
    spaces = {
        x.shape.memory_space for x in made.module.entry.instructions if x.shape.is_array
    }
    assert spaces == {0, 3}


# -- loops ----------------------------------------------------------------------------------


@pytest.mark.parametrize("enabled", [False, True])
def test_redundant_evictions_are_eliminated_on_request(enabled) -> None:
    made = plan(
        invariant_loop(15),
        count_options(enable_while_redundant_eviction_elimination=enabled),
    )
    assert len(made.by_name["while"].shape.children) == (5 if enabled else 4)
    made.plan.prove()


@pytest.mark.parametrize(("extra", "copied"), [(0, False), (1, True)])
def test_more_prefetches_for_loops(extra, copied) -> None:
    made = plan(
        invariant_loop(3),
        count_options(
            max_outstanding_prefetches=0,
            while_use_extra_outstanding_prefetch_limit=extra,
        ),
    )
    into_loop = made.by_name["while"].operands[0].operands[1]
    assert (into_loop.opcode == "copy-done") is copied


@pytest.mark.parametrize(("extra", "replaced"), [(0, False), (1, True)])
def test_more_prefetches_for_replaced_copies(extra, replaced) -> None:
    made = plan(
        module(
            f"{p('p0', 'p1')}\n{chain('n', 6, 'p1')}\n  copy = {F} copy(p0)\n"
            f"  ROOT add = {F} add(n5, copy)"
        ),
        count_options(
            enable_sync_copy_replacement=True,
            max_outstanding_prefetches=0,
            extend_async_copies_limit_for_sync_mem_op_conversion=extra,
        ),
    )
    assert ("copy" not in made.by_name) is replaced


# -- views ------------------------------------------------------------------------------------

VIEW = module(
    f"{p('p0')}\n  a = {F} negate(p0)\n  v = f32[6]{{0:S(2)}} custom-call(a), "
    f'custom_call_target="view"\n{chain("n", 3, "p0")}\n'
    f'  w = f32[6]{{0}} custom-call(v), custom_call_target="read"\n'
    f"{chain('m', 3, 'n2')}\n  ROOT t = (f32[6]{{0}}, {F}) tuple(w, m2)"
)


@pytest.mark.parametrize("default_only", [False, True])
def test_views_extend_their_sources(default_only) -> None:
    made = plan(
        VIEW,
        count_options(dus_view_color=2, view_source_default_memory_only=default_only),
    )
    if default_only:
        assert made.operand_space("v", 0) == 0
        return
    (held,) = [
        x
        for x in made.plan.allocations
        if x.is_alternate and made.plan.problem.names[x.position.step] == "a"
    ]
    # The view is read by w, so the storage of a is held until then.
    assert held.end >= made.plan.problem.names.index("w")


# -- cross-program prefetch ---------------------------------------------------------------------


def test_order_of_cross_program_prefetches() -> None:
    small, large = "f32[4,4]{1,0}", "f32[4,8]{1,0}"
    text = module(
        f"  x = {small} parameter(0)\n  w0 = {small} parameter(1)\n"
        f"  w1 = {large} parameter(2)\n"
        f"  d0 = {small} dot(x, w0), lhs_contracting_dims={{1}}, "
        f"rhs_contracting_dims={{0}}\n"
        f"  ROOT d1 = {large} dot(d0, w1), lhs_contracting_dims={{1}}, "
        f"rhs_contracting_dims={{0}}"
    )

    def first(**changes: Any) -> str:
        made = plan(
            text,
            count_options(enable_cross_program_prefetch=True, **changes),
            alternate_memory_bytes=256,
        )
        (fetched,) = made.plan.result.cross_program_prefetches
        problem = made.plan.problem
        return problem.names[problem.values[fetched.value].position.step]

    assert first() == "w1"  # the largest
    smallest = {"buffer_interval_comparator": lambda x: (x.size, x.value)}
    assert first(**smallest) == "w1"
    assert first(**smallest, default_cross_program_prefetch_heuristic=True) == "w0"
