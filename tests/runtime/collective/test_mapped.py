"""Sharded modules whose collectives run through mapped memory."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.runtime.collective.mapped import MappedExchange

ADD = "add { a = {T}[] parameter(0) b = {T}[] parameter(1) ROOT s = {T}[] add(a, b) }"
TEXT = """HloModule m, num_partitions=4

{ADD}
max { c = {T}[] parameter(0) d = {T}[] parameter(1) ROOT s = {T}[] maximum(c, d) }

ENTRY e {
  x = {T}[4,6] parameter(0)
  r = {T}[4,6] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  m = {T}[4,6] all-reduce(x), channel_id=2, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=max
  g = {T}[4,24] all-gather(x), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true
  s = {T}[1,6] reduce-scatter(x), channel_id=4, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, to_apply=add
  t = {T}[4,6] all-to-all(x), channel_id=5, replica_groups={{0,1,2,3}}, dimensions={0}
  p = {T}[4,6] collective-permute(x), channel_id=6, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT out = ({T}[4,6], {T}[4,6], {T}[4,24], {T}[1,6], {T}[4,6], {T}[4,6]) tuple(r, m, g, s, t, p)
}
"""


@pytest.mark.parametrize("peer", [False, True], ids=["multicast", "peer"])
@pytest.mark.parametrize("kind", ["f32", "s32", "f16", "bf16", "u64"])
def test_results_equal_plain_numpy(kind: str, peer: bool) -> None:
    text = TEXT.replace("{ADD}", ADD).replace("{T}", kind)
    module = msa.parse(text)
    rng = np.random.default_rng(5)
    # Small integers: every sum is exact, so the order of addition cannot matter.
    data = [[rng.integers(0, 20, (4, 6)).astype(np.float64)] for _ in range(4)]
    backend = MappedExchange(peer=peer)
    got = msa.execute(module, data, per_device=True, exchange=backend)
    x = np.stack([d[0] for d in data])
    for device in range(4):
        total, most, gathered, part, swapped, permuted = (
            np.asarray(v, np.float64) for v in got[device]
        )
        assert total.tolist() == x.sum(0).tolist()
        team = [0, 2] if device % 2 == 0 else [1, 3]
        assert most.tolist() == x[team].max(0).tolist()
        assert gathered.tolist() == np.concatenate(list(x), 1).tolist()
        assert part.tolist() == x.sum(0)[device : device + 1].tolist()
        assert swapped.tolist() == x[:, device].tolist()
        assert permuted.tolist() == x[(device - 1) % 4].tolist()
    assert backend.counts == {
        "all-reduce": 3,
        "all-gather": 1,
        "reduce-scatter": 1,
        "all-to-all": 1,
        "plain": 1,
    }
    assert backend.world is not None
    assert backend.world.leaks() == []
    assert backend.world.memory.mapped_ranges == 0
