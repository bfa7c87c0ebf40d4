"""Executions do not map and unmap memory over and over."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = '''
import resource
import numpy as np
import msa

module = msa.parse("""HloModule m
body {
  p = (s32[], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[512,512] get-tuple-element(p), index=1
  row = f32[1,512] slice(x), slice={[511:512], [0:512]}
  zero = f32[] constant(0)
  column = f32[514,1] broadcast(zero), dimensions={}
  high = f32[514,512] concatenate(row, x, row), dimensions={0}
  a = f32[514,513] concatenate(high, column), dimensions={1}
  b = f32[514,513] concatenate(column, high), dimensions={1}
  c = f32[512,512] slice(a), slice={[1:513], [0:512]}
  d = f32[512,512] slice(b), slice={[1:513], [1:513]}
  s = f32[512,512] add(c, d)
  v = f32[512,512] subtract(s, x)
  ROOT t = (s32[], f32[512,512]) tuple(next, v)
}
again {
  p = (s32[], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(200)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[512,512] parameter(0)
  t = (s32[], f32[512,512]) tuple(i, x)
  ROOT w = (s32[], f32[512,512]) while(t), condition=again, body=body
}""")
x = np.ones((512, 512), dtype=np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
_, result = msa.execute(module, [x])
after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
assert (result == 1).all()
print(after - before)
'''
PAGES_OF_AN_ARRAY = 256


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="glibc maps every large array at first"
)
def test_arrays_of_a_loop_take_over_the_pages_of_the_last_turn() -> None:
    """1,000 arrays are made, on the pages of a few; a process begins afresh."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 30 * PAGES_OF_AN_ARRAY
