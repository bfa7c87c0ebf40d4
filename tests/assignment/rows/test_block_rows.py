"""Rows B6 beyond the plain stream: fusions, aliases, branches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.hlo_rows import F, chain, count_options, module, plan
from assignment.sketch import SMALL, Sketch
from assignment.test_blocks import BLOCKS, blocks
from msa.assignment.algorithm import run_greedy
from msa.assignment.existing_prefetches import CustomCallPrefetch
from msa.assignment.problem import SyncMove
from msa.errors import CapacityError, OptionsError

INPUTS = "\n".join(f"  p{i} = {F} parameter({i})" for i in range(6))


def streamed(text: str, capacity: int = 48, positions=None, **changes):
    fields = {
        "max_outstanding_prefetches": 0,
        "max_outstanding_block_prefetches": 10,
        "reserved_bytes_for_block_prefetches": 48,
        "block_prefetched_positions": positions
        or tuple((f"p{i}", ()) for i in range(6)),
        **changes,
    }
    return plan(text, count_options(**fields), alternate_memory_bytes=capacity)


def reads() -> str:
    lines = [INPUTS, f"  x = {F} parameter(6)"]
    value = "x"
    for i in range(6):
        lines.append(chain(f"n{i}_", 2, value))
        lines.append(f"  add{i} = {F} add(n{i}_1, p{i})")
        value = f"add{i}"
    lines.append(f"  ROOT r = {F} negate({value})")
    return module("\n".join(lines))


def test_every_input_is_fetched_b6_3_b6_4() -> None:
    for reserved in (24, 48):
        made = streamed(reads(), reserved, reserved_bytes_for_block_prefetches=reserved)
        for i in range(6):
            assert made.prefetched(f"add{i}", 1, f"p{i}")
        made.plan.prove()


def test_custom_fusions_b6_10() -> None:
    large = "f32[20,3]{1,0}"
    lines = [f"  p{i} = {large} parameter({i})" for i in range(6)]
    lines.append(f"  x = {F} parameter(6)")
    bodies, value = "", "x"
    for i in range(6):
        lines.append(chain(f"n{i}_", 2, value))
        lines.append(f"  take{i} = {F} fusion(x, p{i}), kind=kCustom, calls=part{i}")
        lines.append(f"  add{i} = {F} add(n{i}_1, take{i})")
        value = f"add{i}"
        bodies += f"""
part{i} {{
  fx{i} = {F} parameter(0)
  fp{i} = {large} parameter(1)
  ROOT s{i}_ = {F} slice(fp{i}), slice={{[0:2], [0:3]}}
}}
"""
    lines.append(f"  ROOT r = {F} negate({value})")
    made = streamed(
        module("\n".join(lines), bodies),
        positions=tuple((f"take{i}", ()) for i in range(6)),
        enable_sync_custom_fusion_replacement=True,
        custom_fusion_block_prefetch_operand_index_fn=lambda fusion: 1,
    )
    for i in range(6):
        done = made.operand(f"add{i}", 1)
        assert done.opcode == "async-done"
        assert done.operands[0].called_computations[0].root.opcode == "fusion"
        assert done.shape.memory_space == 1
    starts = [x for x in made.by_name.values() if x.opcode == "async-start"]
    assert len(starts) == 6
    made.plan.prove()


ALIAS = 'custom_call_target="link", output_to_operand_aliasing={{}: (0, {})}'


def test_aliases_of_a_source_stay_b6_12() -> None:
    sketch = Sketch(replace(SMALL, capacity=48))
    p0 = sketch.parameter("p0", 240)
    x = sketch.parameter("x", 8)
    left = sketch.op("left", (p0,), 240, in_place=True)
    x = sketch.op("a", (x,), 1000)
    x = sketch.op("b", (x, left), 1000)
    part = sketch.op("part", (p0,), 24, opcode="slice")
    x = sketch.op("c", (x, part), 1000)
    sketch.op("d", (x,), 1000)
    problem = replace(sketch.problem(), sync_moves={part: SyncMove("slice")})
    result = run_greedy(
        problem,
        BLOCKS.replace(
            enable_sync_slice_replacement=True,
            block_prefetched_positions=(("part", ()),),
            buffer_interval_comparator=lambda i: (i.value != p0, i.value),
        ),
    )
    (copy,) = [c for c in result.allocations.copies() if c.is_alternate]
    assert copy.replaces == part
    # Nothing of the source's buffer is in alternate memory, though it comes first.
    members = problem.buffers[problem.values[p0].buffer]
    assert not [
        a
        for a in result.allocations
        if a.is_alternate and a.value in members and a is not copy
    ]


def test_slice_is_fetched_and_its_parent_is_not_b6_13() -> None:
    sketch = Sketch(replace(SMALL, capacity=24))
    p0 = sketch.parameter("p0", 240)
    x = sketch.parameter("x", 8)
    x = sketch.op("a", (x,), 1000)
    x = sketch.op("b", (x,), 1000)
    part = sketch.op("part", (p0,), 24, opcode="slice")
    x = sketch.op("c", (x, part), 1000)
    sketch.op("d", (x, p0), 1000)
    problem = replace(sketch.problem(), sync_moves={part: SyncMove("slice")})
    result = run_greedy(
        problem,
        BLOCKS.replace(
            enable_sync_slice_replacement=True,
            block_prefetched_positions=(("p0", ()), ("part", ())),
        ),
    )
    (copy,) = [c for c in result.allocations.copies() if c.is_alternate]
    assert copy.replaces == part
    pinned = [
        a for a in result.allocations if a.kind == "pinned" and a.position.step == p0
    ]
    assert len(pinned) == 1
    assert blocks(problem, result) == {"p0": (1, 5, 5)} or copy.done_before == 5


@pytest.mark.parametrize("double", [False, True])
def test_reads_inside_conditionals_b6_14(double) -> None:
    lines = [f"  p{i} = {F} parameter({i})" for i in range(2)]
    lines.append(f"  x = {F} parameter(2)\n  q = pred[] parameter(3)")
    value, bodies = "x", ""
    for i in range(2):
        lines.append(chain(f"n{i}_", 3, value))
        lines.append(f"  t{i} = ({F}, {F}) tuple(n{i}_2, p{i})")
        lines.append(
            f"  cond{i} = {F} conditional(q, t{i}, t{i}), true_computation=yes{i}, "
            f"false_computation=no{i}"
        )
        value = f"cond{i}"
        for name, opcode in (("yes", "add"), ("no", "multiply")):
            bodies += f"""
{name}{i} {{
  {name}p{i} = ({F}, {F}) parameter(0)
  {name}a{i} = {F} get-tuple-element({name}p{i}), index=0
  {name}b{i} = {F} get-tuple-element({name}p{i}), index=1
  ROOT {name}r{i} = {F} {opcode}({name}a{i}, {name}b{i})
}}
"""
    lines.append(f"  ROOT r = {F} negate({value})")
    reserved = 48 if double else 24
    made = streamed(
        module("\n".join(lines), bodies),
        reserved,
        (("p0", ()), ("p1", ())),
        reserved_bytes_for_block_prefetches=reserved,
    )
    for name in ("yesr0", "nor0", "yesr1", "nor1"):
        assert made.operand_space(name, 1) == 1
    made.plan.prove()


def existing(name: str, source: str) -> str:
    """A copy that the program makes itself."""
    return (
        f"  {name}_start = ({F}, u32[]) custom-call({source}), "
        f'custom_call_target="copy-ahead"\n'
        f"  {name}_done = {F} custom-call({name}_start), "
        f'custom_call_target="wait", output_to_operand_aliasing={{{{}}: (0, {{0}})}}\n'
    )


def test_prefetches_of_the_program_itself_b6_11() -> None:
    text = module(
        f"  p0 = {F} parameter(0)\n  p1 = {F} parameter(1)\n  x = {F} parameter(2)\n"
        f"{chain('n', 3, 'x')}\n{existing('c0', 'p0')}  a = {F} add(n2, c0_done)\n"
        f"{existing('c1', 'p1')}  b = {F} add(a, c1_done)\n  d = {F} add(b, p0)\n"
        f"  e = {F} add(d, c1_done)\n  ROOT r = {F} negate(e)"
    )
    details = {
        (f"p{i}", ()): CustomCallPrefetch(f"c{i}_start", f"c{i}_done") for i in (0, 1)
    }
    made = plan(
        text,
        count_options(
            reserved_bytes_for_block_prefetches=100,
            hlo_position_to_custom_call_prefetch_details=details,
            verify=True,
        ),
        alternate_memory_bytes=200,
    )
    for name, operand in (("a", 1), ("b", 1), ("e", 1)):
        assert made.operand_space(name, operand) == 1
    assert made.by_name["d"].operands[1].name == "p0"
    assert made.space("c0_start", (0,)) == made.space("c0_done") == 1


def test_prefetches_of_the_program_that_do_not_fit_b6_11() -> None:
    text = module(
        f"  p0 = {F} parameter(0)\n{existing('c0', 'p0')}  ROOT r = {F} negate(c0_done)"
    )
    details = {("p0", ()): CustomCallPrefetch("c0_start", "c0_done")}
    options = count_options(
        reserved_bytes_for_block_prefetches=23,
        hlo_position_to_custom_call_prefetch_details=details,
    )
    with pytest.raises(CapacityError, match="c0_start"):
        plan(text, options)
    with pytest.raises(OptionsError, match="nobody"):
        plan(
            text,
            options.replace(
                hlo_position_to_custom_call_prefetch_details={
                    ("p0", ()): CustomCallPrefetch("nobody", "c0_done")
                }
            ),
        )
