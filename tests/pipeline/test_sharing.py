"""Buffers that devices share, from their colour to their addresses (MB-14, MB-16)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import msa
from msa.analysis import AliasAnalysis
from msa.errors import HloError, PlanError
from msa.passes.binding import (
    BindingError,
    BindingOptions,
    GpuColoring,
    Kind,
    MemoryDomain,
    Platform,
)
from msa.pipeline import PipelineOptions, PipelineResult, run
from msa.pipeline.sharing import GRANULARITY
from msa.pipeline.spaces import (
    colors_of,
    is_placed,
    mark_placed,
    with_fast_memory,
)
from msa.runtime.collective import BufferAllocations, Stage
from msa.runtime.collective import Kind as Mapping
from msa.runtime.collective.bridge import find_request, mapping_requests
from msa.runtime.collective.kernels import (
    RankContext,
    all_reduce_multimem,
    all_reduce_peer,
)
from msa.runtime.status import InvalidArgument, Unimplemented

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="256KiB")
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
M = "f32[64,64]{1,0}"
BYTES = 64 * 64 * 4

STEP = f"""
HloModule step, replica_count=4
sum {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }}
ENTRY e {{
  w = {M} parameter(0)
  x = {M} parameter(1)
  gradient = {M} dot(x, w), {DOT}
  total = {M} all-reduce(gradient), replica_groups={{{{0,1,2,3}}}}, to_apply=sum
  half = {M} negate(total)
  twice = {M} multiply(half, half)
  ROOT new = {M} subtract(w, twice)
}}"""

KERNEL = f"""
HloModule kernel, replica_count=4
ENTRY e {{
  x = {M} parameter(0)
  y = {M} negate(x)
  k = {M} custom-call(y), custom_call_target="fast_reduce"
  ROOT z = {M} exponential(k)
}}"""

RAGGED = """
HloModule ragged, replica_count=2
ENTRY e {
  data = f32[8]{0} parameter(0)
  out = f32[8]{0} parameter(1)
  given = f32[8]{0} negate(out)
  a = s32[2]{0} parameter(2)
  b = s32[2]{0} parameter(3)
  c = s32[2]{0} parameter(4)
  d = s32[2]{0} parameter(5)
  ROOT r = f32[8]{0} ragged-all-to-all(data, given, a, b, c, d), replica_groups={{0,1}}
}"""


def flow(
    text: str,
    coloring: GpuColoring,
    processes: tuple[int, ...] = (),
    prove: bool = False,
) -> PipelineResult:
    options = PipelineOptions(
        binding=BindingOptions(coloring=coloring), processes=processes, prove=prove
    )
    result = run(msa.parse(text), TARGET, options, platform="gpu")
    assert result.violations == ()
    result.buffers.verify()
    return result


USER = GpuColoring(user_buffers=True)


def test_colours_reach_the_buffers_MB16() -> None:
    result = flow(STEP, USER, prove=True)
    assert "outputs equal" in result.proof
    for name in ("gradient", "total"):
        assert result.address(name).space == 1, name
        assert result.binding.of(name).domain.kind is Kind.COLLECTIVE
    # Both are needed at once only while the sum runs, and cannot share.
    assert result.bytes_by_space[1] == 2 * BYTES
    fast = {p for p, a in result.places.items() if a.space == 3}
    assert fast, "something is placed in fast memory"
    assert not fast & {"gradient{}", "total{}"}
    assert all(
        shape.memory_space != 1
        for x in result.module.entry.instructions
        for _, shape in x.shape.leaves()
        if shape.is_array
    ), "layouts say nothing of colours"


def test_without_the_exclusion_a_reader_would_be_placed_MB16() -> None:
    # The same program without collective memory: the sum and its operand are fast.
    plain = flow(STEP, GpuColoring())
    assert plain.address("total").space == 3
    assert plain.shared.requests == dict.fromkeys(range(4), ())


def test_requests_are_symmetric_for_the_library_MB14() -> None:
    result = flow(STEP, USER)
    for device in range(4):
        rows = result.shared.requests[device]
        assert [(r.operand, r.kind, r.reason) for r in rows] == [
            ("gradient{}", Mapping.SYMMETRIC, ""),
            ("total{}", Mapping.SYMMETRIC, ""),
        ]
        assert rows[0].clique.devices == (0, 1, 2, 3)


def test_addresses_of_every_rank_MB16() -> None:
    result = flow(STEP, USER)
    addresses = [result.address("gradient", rank) for rank in range(4)]
    assert len({a.opaque for a in addresses}) == 4, "each device has its own memory"
    assert {a.size for a in addresses} == {BYTES}
    offsets = {result.shared.find("gradient", r).window_offset for r in range(4)}
    assert len(offsets) == 1, "the same offset on every rank"
    place = result.address("gradient")
    assert all(a.opaque % GRANULARITY == place.offset % GRANULARITY for a in addresses)
    with pytest.raises(HloError, match="no device 4"):
        result.address("gradient", 4)
    with pytest.raises(HloError, match=r"not shared.*gradient"):
        result.address("x", 0)
    with pytest.raises(HloError, match="symmetric memory, not in multicast"):
        result.multimem("gradient")
    with pytest.raises(HloError, match="does not reach 'gradient' of device 1"):
        result.peer("gradient", 1)


def test_multicast_for_its_kernels_MB14() -> None:
    result = flow(KERNEL, GpuColoring(multimem_targets=frozenset({"fast_reduce"})))
    kinds = {r.operand: r.kind for r in result.shared.requests[2]}
    assert kinds == {"y{}": Mapping.MULTICAST, "k{}": Mapping.MULTICAST}
    ranges = [result.multimem("y", rank) for rank in range(4)]
    assert {r.size for r in ranges} == {BYTES}
    assert all(r.opaque != result.address("y", n).opaque for n, r in enumerate(ranges))


def test_peer_for_one_shot_exchanges_MB14() -> None:
    result = flow(RAGGED, GpuColoring(one_shot_ragged=True))
    rows = result.shared.requests[0]
    assert {(r.operand, r.kind) for r in rows} == {
        ("given{}", Mapping.PEER),
        ("r{}", Mapping.PEER),
    }, "destination and result, and nothing else"
    for at in range(2):
        for rank in range(2):
            assert result.peer("given", rank, at=at) == result.address("given", rank)


def test_several_processes_fall_back_MB14() -> None:
    coloring = GpuColoring(multimem_targets=frozenset({"fast_reduce"}))
    result = flow(KERNEL, coloring, processes=(0, 0, 1, 1))
    row = find_request(list(result.shared.requests[0]), "y{}")
    assert (row.kind, row.clique.num_local_participants) == (Mapping.SYMMETRIC, 2)
    assert "does not span processes" in row.reason
    with pytest.raises(HloError, match="does not span processes"):
        result.multimem("y")


def test_a_device_alone_has_no_peers_MB14() -> None:
    alone = STEP.replace(
        "replica_groups={{0,1,2,3}}", "replica_groups={{0},{1},{2},{3}}"
    )
    module = msa.parse(colored(alone))
    rows = mapping_requests(module, 0, kind_of=lambda _: Mapping.MULTICAST)
    assert {r.kind for r in rows} == {Mapping.SYMMETRIC}
    assert "several devices" in rows[0].reason


def colored(text: str) -> str:
    """The program as a schedule whose sum is in collective memory by its layouts."""
    text = text.replace("HloModule step", "HloModule step, is_scheduled=true")
    for name in ("gradient", "total"):
        text = text.replace(f"{name} = {M}", f"{name} = f32[64,64]{{1,0:S(1)}}")
    return text


def test_nothing_that_can_be_mapped_MB14() -> None:
    module = msa.parse(colored(STEP))
    assert len(mapping_requests(module, 0)) == 2
    with pytest.raises(Unimplemented, match="total finds no memory"):
        mapping_requests(module, 0, supported={Mapping.PEER})
    rows = mapping_requests(
        module,
        0,
        kind_of=lambda _: Mapping.PEER,
        supported={Mapping.SYMMETRIC},
    )
    assert "no peer memory here" in rows[0].reason
    few = colored(STEP).replace("replica_count=4", "replica_count=2")
    missing = msa.parse(few, verify=False)
    with pytest.raises(InvalidArgument, match="device 3"):
        mapping_requests(missing, 0)


def test_wrapped_collectives_ask_too_MB14() -> None:
    text = """HloModule m, is_scheduled=true, replica_count=2
wrapped {
  p = f32[8]{0:S(1)} parameter(0)
  ROOT t = f32[16]{0:S(1)} all-gather(p), dimensions={0}, replica_groups={{0,1}}
}
ENTRY e {
  x = f32[8]{0} parameter(0)
  c = f32[8]{0:S(1)} copy(x)
  s = ((f32[8]{0:S(1)}), f32[16]{0:S(1)}, u32[]) async-start(c), calls=wrapped
  d = f32[16]{0:S(1)} async-done(s)
  ROOT y = f32[16]{0} negate(d)
}"""
    rows = mapping_requests(msa.parse(text), 1)
    start = [r for r in rows if r.instruction == "s"]
    assert {r.operand for r in start} == {"c{}", "s{0,0}", "s{1}"}
    inside = [r for r in rows if r.instruction != "s"]
    assert {r.slice for r in inside} <= {r.slice for r in start}, "the same buffers"
    assert {r.clique.devices for r in rows} == {(0, 1)}


@pytest.mark.parametrize("peer", [False, True], ids=["multicast", "peer"])
def test_data_moves_through_the_mapped_addresses_MB16(peer: bool) -> None:
    """A kernel at the places that the flow gives computes what the program computes."""
    result = flow(KERNEL, GpuColoring(multimem_targets=frozenset({"fast_reduce"})))
    if peer:
        result = flow(RAGGED, GpuColoring(one_shot_ragged=True))
    name = "given" if peer else "y"
    devices = len(result.shared.requests)
    rng = np.random.default_rng(3)
    count = 8 if peer else 64 * 64
    data = rng.integers(-9, 9, (devices, count)).astype(np.float32)

    def body(device: int, stage: Stage, buffers: BufferAllocations) -> np.ndarray:
        row = find_request(list(result.shared.requests[device]), f"{name}{{}}")
        rank = row.clique.rank(device)
        assert rank is not None
        context = RankContext(stage.cliques[row.clique], rank, stage.memory)
        context.write(buffers.address(row.slice), data[device])
        kernel = all_reduce_peer if peer else all_reduce_multimem
        kernel(context, row.slice, "f32")
        return context.read(buffers.address(row.slice), "f32", count)

    for found in result.shared.execute(body):
        np.testing.assert_array_equal(found, data.sum(axis=0))


def test_fast_memory_has_a_number_of_its_own_MB1() -> None:
    for name, number in (("tpu", 1), ("gpu", 3), ("cpu", 1)):
        platform, found = with_fast_memory(Platform.preset(name, TARGET), TARGET, 1)
        assert found == number
        assert platform.domain(found).kind is Kind.VMEM
        assert platform.domain(found).capacity == TARGET.alternate_memory_bytes
    gpu = Platform.preset("gpu").with_memory(MemoryDomain(Kind.CONSTANT, 3, 1.0, 1.0))
    assert with_fast_memory(gpu, TARGET, 1)[1] == 4
    assert with_fast_memory(gpu, TARGET, 7)[1] == 7


def test_a_collective_in_fast_memory_is_refused_MB4() -> None:
    module = msa.parse(STEP.replace(f"total = {M}", "total = f32[64,64]{1,0:S(3)}"))
    with pytest.raises(BindingError) as caught:
        colors_of(AliasAnalysis.run(module), USER)
    assert set(caught.value.colors) == {1, 3}


def test_placed_modules_are_marked_MB16() -> None:
    module = msa.parse('HloModule m, frontend_attributes={a="b"}\n' + PLAIN)
    assert not is_placed(module, 1)
    mark_placed(module, 1)
    again = msa.parse(module.to_text())
    assert again == module
    assert is_placed(again, 1)
    assert not is_placed(again, 3)
    assert dict(again.attributes["frontend_attributes"])["a"] == "b"


def test_limits_of_spaces_MB10() -> None:
    def limited(space: int) -> int:
        return {1: BYTES}.get(space, 0)

    options = PipelineOptions(
        binding=BindingOptions(coloring=USER), prove=False, space_limit=limited
    )
    result = run(msa.parse(STEP), TARGET, options, platform="gpu")
    (problem,) = result.violations
    assert "collective memory: step: needs 32.0KiB" in problem
    assert "limit 16.0KiB" in problem
    assert "try:" in problem
    use = result.buffers.by_color()[1]
    assert (use.total, use.peak) == (2 * BYTES, 2 * BYTES)
    with pytest.raises(PlanError, match="limit 16.0KiB"):
        run(msa.parse(STEP), TARGET, replace(options, fail_fast=True), platform="gpu")
    # Without a positive answer the platform decides, and it has no limit there.
    free = replace(options, space_limit=lambda space: 0)
    assert run(msa.parse(STEP), TARGET, free, platform="gpu").violations == ()


PLAIN = "ENTRY e { ROOT x = f32[4]{0} parameter(0) }"
