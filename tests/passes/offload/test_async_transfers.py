"""Transfers as asynchronous pairs: row J32 of the outcomes."""

from __future__ import annotations

import pytest

import msa
from msa.errors import HloError
from msa.passes import Pipeline

CASES = [
    (opcode, source, target)
    for opcode in ("copy", "dynamic-slice", "dynamic-update-slice")
    for source in (0, 5)
    for target in (0, 5)
]


def layout(space: int) -> str:
    return "{1,0:S(5)}" if space else "{1,0}"


def module_of(opcode: str, source: int, target: int) -> msa.Module:
    """Moves `source` to `target`; an update moves its piece into a buffer."""
    a, b = layout(source), layout(target)
    if opcode == "copy":
        arguments = f"x = f32[4,8]{a} parameter(0)"
        operation = f"f32[4,8]{b} copy(x)"
    elif opcode == "dynamic-slice":
        arguments = f"x = f32[4,8]{a} parameter(0)"
        operation = f"f32[1,8]{b} dynamic-slice(x, k, k), dynamic_slice_sizes={{1,8}}"
    else:
        arguments = f"x = f32[1,8]{a} parameter(0)\n  to = f32[4,8]{b} parameter(1)"
        operation = f"f32[4,8]{b} dynamic-update-slice(to, x, k, k)"
    return msa.parse(f"""
HloModule m, is_scheduled=true
ENTRY e {{
  {arguments}
  k = s32[] constant(0)
  ROOT moved = {operation}
}}""")


@pytest.mark.parametrize(("opcode", "source", "target"), CASES)
def test_only_transfers_become_pairs_J32(opcode: str, source: int, target: int) -> None:
    module = module_of(opcode, source, target)
    pipeline = Pipeline("host-transfers-async,host-transfers-async")
    result = pipeline.run(module)
    crosses = source != target
    if opcode == "dynamic-slice":
        crosses = (source, target) == (5, 0)
    elif opcode == "dynamic-update-slice":
        crosses = (source, target) == (0, 5)
    assert [r.changed for r in pipeline.records] == [crosses, False]
    root = result.entry.root
    assert root.opcode == ("async-done" if crosses else opcode)
    assert root.shape == module.entry.root.shape
    if crosses:
        assert str(root.operands[0].shape.children[2]) == "u32[]"
    schedule = result.schedule
    assert schedule is not None
    assert not schedule.check(result)


def test_pairs_keep_the_place_and_the_order_J32() -> None:
    module = msa.parse("""
HloModule m, is_scheduled=true
ENTRY e {
  x = f32[8]{0} parameter(0)
  a = f32[8]{0} negate(x)
  out = f32[8]{0:S(5)} copy(a), control-predecessors={x}
  b = f32[8]{0} negate(a)
  c = f32[8]{0} negate(b), control-predecessors={out}
  back = f32[8]{0} copy(out)
  ROOT z = f32[8]{0} add(c, back)
}""")
    result = Pipeline("host-transfers-async").run(module)
    schedule = result.schedule
    assert schedule is not None
    assert not schedule.check(result)
    order = schedule.sequence(result.entry)
    assert [x.opcode for x in order] == [
        *("parameter", "negate", "async-start", "async-done", "negate", "negate"),
        *("async-start", "async-done", "add"),
    ]
    assert order[2].control_predecessors == (order[0],)
    assert order[5].control_predecessors == (order[3],)


def test_storage_in_two_spaces_is_refused() -> None:
    module = module_of("dynamic-update-slice", 0, 5)
    root = module.entry.root
    root.shape = root.shape.with_memory_space(0)
    with pytest.raises(HloError, match="writes into space 5"):
        Pipeline("host-transfers-async", verify_each=False).run(module)
