"""A planned module's collective values become mappings that its kernels find."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.analysis import BufferAssignment
from msa.runtime.collective import (
    AcquireParams,
    CliqueKey,
    CliqueTable,
    DeviceWorld,
    Kind,
    Stage,
    execute_stages,
    launch,
)
from msa.runtime.collective.bridge import (
    allocate_buffers,
    collect_requests,
    find_request,
    mapping_requests,
)
from msa.runtime.collective.kernels import RankContext, all_reduce_multimem
from msa.runtime.status import NotFound

TEXT = """HloModule m, is_scheduled=true, num_partitions=4

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

ENTRY e {
  x = f32[64]{0} parameter(0)
  c = f32[64]{0:S(1)} copy(x)
  r = f32[64]{0:S(1)} all-reduce(c), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  n = f32[64]{0} negate(x)
  p = f32[64]{0} all-reduce(n), channel_id=2, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  ROOT y = f32[64]{0} add(r, p)
}
"""
ALL = CliqueKey.local(0, 1, 2, 3)


def test_coloured_values_ask_and_others_do_not() -> None:
    module = msa.parse(TEXT)
    for device in range(4):
        requests = mapping_requests(module, device)
        assert [(r.operand, r.kind, r.clique) for r in requests] == [
            ("c{}", Kind.SYMMETRIC, ALL),
            ("r{}", Kind.SYMMETRIC, ALL),
        ]
    with pytest.raises(NotFound):
        find_request(requests, "n{}")


def test_multicast_falls_back_across_processes() -> None:
    module = msa.parse(TEXT)
    near = mapping_requests(module, 0, kind_of=lambda _: Kind.MULTICAST)
    assert {r.kind for r in near} == {Kind.MULTICAST}
    far = mapping_requests(
        module, 0, processes=(0, 0, 1, 1), kind_of=lambda _: Kind.MULTICAST
    )
    assert {r.kind for r in far} == {Kind.SYMMETRIC}
    assert "span processes" in far[0].reason
    assert far[0].clique.num_local_participants == 2


def test_kernels_find_what_the_plan_asked_for() -> None:
    module = msa.parse(TEXT)
    assignment = BufferAssignment.run(module)
    world = DeviceWorld(4, granularity=4096)
    table = CliqueTable(world)
    data = np.arange(64, dtype=np.float32)

    def rank(device: int) -> list[float]:
        asked = mapping_requests(
            module, device, assignment, kind_of=lambda _: Kind.MULTICAST
        )
        buffers = allocate_buffers(world, device, assignment)
        where = find_request(asked, "c{}").slice

        def body(stage: Stage) -> list[float]:
            context = RankContext(stage.cliques[ALL], device, stage.memory)
            mine = buffers.address(where)
            context.write(mine, data * (device + 1))
            all_reduce_multimem(context, where, "f32")
            return context.read(mine, "f32", 64).tolist()

        return execute_stages(
            table,
            AcquireParams(world, device),
            collect_requests(asked, buffers),
            body,
        )

    for outcome in launch(range(4), rank):
        assert outcome.unwrap() == (data * 10).tolist()
