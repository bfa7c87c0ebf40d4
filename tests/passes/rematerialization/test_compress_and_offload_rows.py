"""Compact layouts and the host: rows I23-I28 of the outcomes."""

from __future__ import annotations

import math

import pytest

import msa
from msa.errors import OptionsError
from msa.hlo import verify
from msa.hlo.layout import Layout
from msa.hlo.shape import Shape
from msa.passes import Rematerialization, rematerialize
from msa.passes.rematerialization import HostMemory
from passes.rematerialization.remat_modules import (
    HEAD,
    KIB,
    count,
    find,
    names,
    oracle_total,
)


def padded(shape: Shape) -> int:
    """Bytes when the minor dimension is filled up to a multiple of 64."""
    if shape.is_tuple:
        return 8 * len(shape.children)
    sizes = list(shape.dimensions)
    if sizes and shape.layout is not None:
        minor = shape.layout.minor_to_major[0]
        sizes[minor] = -(-sizes[minor] // 64) * 64
    return math.prod(sizes) * shape.element_type.bits // 8


def compact(shape: Shape) -> Shape:
    """The transposed layout where it needs less."""
    if shape.rank != 2:
        return shape
    other = shape.with_layout(Layout((0, 1)))
    return other if padded(other) < padded(shape) else shape


def run_compress(text: str, limit: int, **settings: object) -> Rematerialization:
    module = msa.parse(text)
    result = rematerialize(
        module,
        limit,
        recompute=False,
        compress=True,
        compact_shape=compact,
        size_of=padded,
        **settings,
    )
    verify(result.module)
    inputs = [1.5]
    before, after = msa.execute(module, inputs), msa.execute(result.module, inputs)
    assert (before == after).all()
    return result


def reduces(early: str = "", late: str = "", root: str = "reduce.1") -> str:
    return f"""{HEAD}
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT a = f32[] add(x, y)
}}
ENTRY e {{
  param = f32[] parameter(0)
  zero = f32[] constant(0)
  wide = f32[64,2]{{1,0}} broadcast(param), dimensions={{}}
  {early}
  negate = f32[64,2]{{1,0}} negate(wide)
  reduce.0 = f32[] reduce(negate, zero), dimensions={{1,0}}, to_apply=sum
  reduce.1 = f32[] reduce(wide, zero), dimensions={{1,0}}, to_apply=sum
  {late}
  ROOT out = f32[] add(reduce.0, {root})
}}"""


def test_waits_transposed_I23() -> None:
    result = run_compress(reduces(), 30 * KIB)
    read = find(result.module, "reduce.1").operands[0]
    assert (read.opcode, read.operands[0].opcode) == ("copy", "copy")
    assert read.operands[0].shape == compact(read.shape) != read.shape
    assert read.operands[0].operands[0].opcode == "broadcast"
    order = names(result.module)
    assert order[order.index("wide") + 1] == "wide.remat_compressed"
    assert order[order.index("reduce.1") - 1] == "wide.remat_uncompressed"
    assert [a.strategy for a in result.actions] == ["compress"]


def test_only_the_big_one_I24() -> None:
    text = reduces(
        "little = f32[10,2]{1,0} broadcast(param), dimensions={}",
        """reduce.2 = f32[] reduce(little, zero), dimensions={1,0}, to_apply=sum
  both = f32[] add(reduce.1, reduce.2)""",
        "both",
    )
    result = run_compress(text, 20 * KIB, min_remat_bytes=10 * KIB)
    assert find(result.module, "reduce.2").operands[0].opcode == "broadcast"
    assert find(result.module, "reduce.1").operands[0].opcode == "copy"


def test_no_room_for_both_I25() -> None:
    text = reduces(
        "little = f32[10,2]{1,0} broadcast(param), dimensions={}",
        """reduce.2 = f32[] reduce(little, zero), dimensions={1,0}, to_apply=sum
  both = f32[] add(reduce.1, reduce.2)""",
        "both",
    )
    text = text.replace("negate = f32[64,2]{1,0} negate(wide)", "")
    text = text.replace("reduce(negate", "reduce(little").replace("64,2", "63,60")
    # Padded, [63,60] needs 15.75 KiB and transposed 15 KiB: the two together are more
    # than the 18.27 KiB of the peak.
    result = run_compress(text, 16 * KIB, min_remat_bytes=10 * KIB)
    assert 16 * KIB < result.before_bytes < 4 * (63 * 64 + 60 * 64)
    assert not result.changed


def test_readers_share_the_copy_back_I26() -> None:
    text = reduces(
        late="""reduce.2 = f32[] reduce(wide, zero), dimensions={1,0}, to_apply=sum
  both = f32[] add(reduce.1, reduce.2)""",
        root="both",
    )
    module = run_compress(text, 30 * KIB).module
    read = [find(module, f"reduce.{k}").operands[0] for k in (1, 2)]
    assert read[0] is read[1]
    assert count(module, "copy") == 2


def test_readers_through_names_share_one_name() -> None:
    text = reduces(
        early="view = f32[2,64]{1,0} bitcast(wide)",
        late="""reduce.2 = f32[] reduce(view, zero), dimensions={1,0}, to_apply=sum
  both = f32[] add(reduce.1, reduce.2)""",
        root="both",
    )
    module = run_compress(text, 30 * KIB).module
    view = find(module, "reduce.2").operands[0]
    assert view.opcode == "bitcast"
    assert view.operands[0] is find(module, "reduce.1").operands[0]


CHAIN = f"""{HEAD}
ENTRY e {{
  p0 = f32[1024]{{0}} parameter(0)
  p1 = f32[1024]{{0}} parameter(1)
  res_3 = f32[1024]{{0}} add(p0, p1)
  EARLY
  res_4 = f32[1024]{{0}} tanh(res_3)
  res_5 = f32[1024]{{0}} tanh(res_4)
  res_6 = f32[1024]{{0}} tanh(res_5)
  res_7 = f32[1024]{{0}} add(res_6, res_6)
  res_8 = f32[1024]{{0}} add(res_7, res_5)
  res_9 = f32[1024]{{0}} add(res_8, res_4)
  res_10 = f32[1024]{{0}} add(res_9, res_3)
  ROOT res_11 = f32[1024]{{0}} tanh(res_10)
}}"""
HOST = HostMemory(
    4 * KIB, 4 * KIB, rates={"flops": 2 * KIB, "transcendentals": 2 * KIB}
)


def run_offload(text: str, host: HostMemory = HOST) -> Rematerialization:
    module = msa.parse(text)
    result = rematerialize(module, 10 * KIB, recompute=False, host=host)
    verify(result.module)
    assert result.before_bytes == oracle_total(module, host.space)
    assert result.after_bytes == oracle_total(result.module, host.space)
    schedule = result.module.schedule
    assert schedule is not None
    assert not schedule.check(result.module)
    return result


def offloaded(result: Rematerialization) -> list[str]:
    """Values that went to the host and came back, by name."""
    out = [
        x.operands[0].name
        for x in result.module.entry.instructions
        if x.opcode == "copy-start" and x.shape.children[0].memory_space == 5
    ]
    back = [
        x.operands[0].operands[0].operands[0].name
        for x in result.module.entry.instructions
        if x.opcode == "copy-start" and x.shape.children[0].memory_space == 0
    ]
    assert sorted(out) == sorted(back)
    return sorted(out)


def test_two_values_wait_on_the_host_I27() -> None:
    result = run_offload(CHAIN.replace("EARLY", ""))
    assert offloaded(result) == ["res_3", "res_4"]
    assert result.added.host_bytes == 4 * 4096
    for action in result.actions:
        assert action.usage_before - action.usage_after == action.saved_bytes == 4096


def test_what_a_bitcast_names_stays_I28() -> None:
    text = CHAIN.replace("EARLY", "view = f32[1024]{0} bitcast(res_3)")
    text = text.replace("add(res_9, res_3)", "add(res_9, view)")
    assert offloaded(run_offload(text)) == ["res_4"]


def test_copies_that_cannot_hide_are_not_made() -> None:
    # 8 KiB over the link at 1 byte/s take longer than everything between.
    slow = HostMemory(1, 1, rates=HOST.rates)
    assert not run_offload(CHAIN.replace("EARLY", ""), slow).changed
    with pytest.raises(OptionsError):
        HostMemory(0, 1)
