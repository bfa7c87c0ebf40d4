"""Copies to and from host memory of a module run as transfers."""

from __future__ import annotations

import numpy as np

import msa
from msa.runtime.host.offload import HostCopies

TEXT = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[256]{0} parameter(0)
  a = f32[256]{0} exponential(x)
  out = (f32[256]{0:S(5)}, f32[256]{0}, u32[]) copy-start(a)
  b = f32[256]{0} negate(x)
  away = f32[256]{0:S(5)} copy-done(out)
  fast = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(b)
  near = f32[256]{0:S(1)} copy-done(fast)
  back = (f32[256]{0}, f32[256]{0:S(5)}, u32[]) copy-start(away)
  c = f32[256]{0} multiply(near, near)
  here = f32[256]{0} copy-done(back)
  ROOT r = f32[256]{0} add(c, here)
}
"""


def test_offloaded_data_makes_the_round_trip() -> None:
    module = msa.parse(TEXT)
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    mover = HostCopies()
    plain = msa.execute(module, [x])
    moved = msa.execute(module, [x], mover=mover)
    assert moved.tolist() == plain.tolist()
    assert [(t.kind, t.size) for t in mover.transfers] == [("d2h", 1024), ("h2d", 1024)]
    stats = mover.queue.statistics()
    assert (stats.bytes, stats.pinned) == (2048, 2)
    assert mover.pool.stats().bytes_in_use == 1024
    assert mover.close() == []
    assert mover.pool.stats().bytes_in_use == 0
    assert mover.pool.close() == []


def test_data_arrives_only_when_the_copy_is_done() -> None:
    module = msa.parse(TEXT)
    mover = HostCopies()
    start = next(i for i in module.entry.instructions if i.name == "out")
    done = next(i for i in module.entry.instructions if i.name == "away")
    value = np.arange(256, dtype=np.float32)
    there = mover.start(start, value)
    assert there.tolist() != value.tolist()
    mover.finish(done, there)
    assert there.tolist() == value.tolist()


def test_a_copy_never_waited_for_is_told() -> None:
    module = msa.parse(TEXT)
    mover = HostCopies()
    start = next(i for i in module.entry.instructions if i.name == "out")
    mover.start(start, np.zeros(256, np.float32))
    (lost,) = mover.close()
    assert "d2h of 1024 B" in lost
