"""Costs of transfers to the host (HO-10), by hand."""

from __future__ import annotations

import pytest

import msa
from msa.passes import Pipeline
from msa.passes.offload import offload_report
from msa.passes.rematerialization import HostMemory

# 1024 bytes out and back; 256 operations per step between.
TEXT = """
HloModule m, is_scheduled=true
ENTRY e {
  x = f32[256]{0} parameter(0)
  v = f32[256]{0} negate(x)
  out = f32[256]{0:S(5)} copy(v)
  a = f32[256]{0} negate(x)
  b = f32[256]{0} negate(a)
  c = f32[256]{0} negate(b)
  back = f32[256]{0} copy(out)
  ROOT z = f32[256]{0} add(c, back)
}"""


@pytest.mark.parametrize(
    ("bandwidth", "hidden", "exposed"), [(1024.0, 2.0, 0.0), (256.0, 3.0, 5.0)]
)
def test_transfers_against_computing_HO10(
    bandwidth: float, hidden: float, exposed: float
) -> None:
    host = HostMemory(bandwidth, bandwidth, rates={"flops": 256.0})
    (row,) = offload_report(msa.parse(TEXT), host)
    assert (row.value, row.bytes_out, row.bytes_in) == ("out{}", 1024, 1024)
    assert row.transfer_seconds == pytest.approx(2048 / bandwidth)
    assert row.compute_seconds == pytest.approx(3.0)  # a, b and c
    assert row.hidden_seconds == pytest.approx(hidden)
    assert row.exposed_seconds == pytest.approx(exposed)
    assert row.can_hide == (exposed == 0)


def test_peak_saved_HO10() -> None:
    # The peak is where z is made: x, c, back and z. With v kept on the device, the
    # step that makes c holds x, b, c and v, which is no more.
    host = HostMemory(1.0, 1.0)
    (row,) = offload_report(msa.parse(TEXT), host)
    assert row.peak_saved_bytes == 0
    # Where c reads a too, that step holds x, a, b, c and v: one array more.
    text = TEXT.replace("negate(b)", "add(a, b)")
    (row,) = offload_report(msa.parse(text), host)
    assert row.peak_saved_bytes == 1024


UPDATED = """
HloModule m, is_scheduled=true
ENTRY e {
  x = f32[1,64]{1,0} parameter(0)
  i = s32[] parameter(1)
  w = f32[4,64]{1,0:S(5)} custom-call(), custom_call_target="AllocateBuffer"
  u = f32[4,64]{1,0:S(5)} dynamic-update-slice(w, x, i, i)
  n = f32[1,64]{1,0} negate(x)
  s = f32[1,64]{1,0} dynamic-slice(u, i, i), dynamic_slice_sizes={1,64}
  ROOT z = f32[1,64]{1,0} add(n, s)
}"""


def test_updates_and_slices_HO10() -> None:
    module = msa.parse(UPDATED)
    (row,) = offload_report(module, HostMemory(64.0, 128.0, rates={"flops": 64.0}))
    assert (row.bytes_out, row.bytes_in) == (256, 256)
    assert row.transfer_seconds == pytest.approx(4 + 2)
    assert row.compute_seconds == pytest.approx(1.0)
    # The peak is at z: x, n, s, z (256 each) and i (4). With the buffer (1024) on the
    # device, x, n, s and i lie beside it at s.
    assert row.peak_saved_bytes == (3 * 256 + 4 + 1024) - (4 * 256 + 4)


def test_nothing_on_the_host_HO10() -> None:
    module = msa.schedule(msa.parse("ENTRY e { ROOT x = f32[8]{0} parameter(0) }"))
    assert offload_report(module, HostMemory(1.0, 1.0)) == ()


def test_loops_count_with_all_their_trips_HO10() -> None:
    """Ten turns of 256 operations hide the transfer; the loop itself adds nothing."""
    module = msa.parse("""
HloModule m, is_scheduled=true
body { p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[256]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = f32[256]{0} negate(v)
  ROOT t = (s32[], f32[256]) tuple(j, n) }
cond { q = (s32[], f32[256]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  m = s32[] constant(10)
  ROOT lt = pred[] compare(k, m), direction=LT }
ENTRY e {
  x = f32[256]{0} parameter(0)
  v0 = f32[256]{0} copy(x)
  zero = s32[] constant(0)
  s = (s32[], f32[256]) tuple(zero, v0)
  out = f32[256]{0:S(5)} copy(x)
  w = (s32[], f32[256]) while(s), condition=cond, body=body
  r = f32[256]{0} get-tuple-element(w), index=1
  back = f32[256]{0} copy(out)
  ROOT z = f32[256]{0} add(r, back)
}""")
    (row,) = offload_report(module, HostMemory(64.0, 64.0, rates={"flops": 256.0}))
    # Per turn 256 negations, one addition and one comparison.
    assert row.compute_seconds == pytest.approx(10 * (256 + 2) / 256)


IN_A_LOOP = """
HloModule m, is_scheduled=true
body { p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[256]{0} get-tuple-element(p), index=1
  out = f32[256]{0:S(5)} copy(v)
  n = f32[256]{0} negate(v)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  back = f32[256]{0} copy(out)
  a = f32[256]{0} add(n, back)
  ROOT t = (s32[], f32[256]) tuple(j, a) }
cond { q = (s32[], f32[256]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  m = s32[] constant(10)
  ROOT lt = pred[] compare(k, m), direction=LT }
ENTRY e {
  x = f32[256]{0} parameter(0)
  zero = s32[] constant(0)
  v0 = f32[256]{0} copy(x)
  s = (s32[], f32[256]) tuple(zero, v0)
  w = (s32[], f32[256]) while(s), condition=cond, body=body
  ROOT r = f32[256]{0} get-tuple-element(w), index=1
}"""


def test_transfers_in_a_loop_count_per_turn_HO10() -> None:
    module = msa.parse(IN_A_LOOP)
    (row,) = offload_report(module, HostMemory(512.0, 1024.0, rates={"flops": 256.0}))
    assert row.transfer_seconds == pytest.approx(2.0 + 1.0)
    assert row.compute_seconds == pytest.approx((256 + 1) / 256)
    assert (row.bytes_out, row.bytes_in) == (1024, 1024)


IN_FLIGHT = """
HloModule m, is_scheduled=true
to_host { p = f32[256]{0} parameter(0)
  ROOT out = f32[256]{0:S(5)} copy(p) }
from_host { q = f32[256]{0:S(5)} parameter(0)
  ROOT back = f32[256]{0} copy(q) }
ENTRY e {
  x = f32[256]{0} parameter(0)
  v = f32[256]{0} negate(x)
  s = ((f32[256]{0}), f32[256]{0:S(5)}, u32[]) async-start(v), calls=to_host
  a = f32[256]{0} negate(x)
  h = f32[256]{0:S(5)} async-done(s)
  b = f32[256]{0} negate(a)
  t = ((f32[256]{0:S(5)}), f32[256]{0}, u32[]) async-start(h), calls=from_host
  c = f32[256]{0} negate(b)
  d = f32[256]{0} async-done(t)
  ROOT z = f32[256]{0} add(c, d)
}"""
COPIES = (
    IN_FLIGHT.replace("s = ((f32[256]{0}), f32", "s = (f32")
    .replace(
        "S(5)}, u32[]) async-start(v), calls=to_host",
        "S(5)}, f32[256]{0}, u32[]) copy-start(v)",
    )
    .replace(
        "t = ((f32[256]{0:S(5)}), f32[256]{0}, u32[]) async-start(h), calls=from_host",
        "t = (f32[256]{0}, f32[256]{0:S(5)}, u32[]) copy-start(h)",
    )
    .replace("async-done", "copy-done")
)


@pytest.mark.parametrize("text", [IN_FLIGHT, COPIES], ids=["async", "copy-start"])
def test_what_runs_beside_transfers_in_flight_hides_them_HO10(text: str) -> None:
    host = HostMemory(1024.0, 512.0, rates={"flops": 256.0})
    (row,) = offload_report(msa.parse(text), host)
    assert (row.bytes_out, row.bytes_in) == (1024, 1024)
    assert row.transfer_seconds == pytest.approx(1.0 + 2.0)
    assert row.compute_seconds == pytest.approx(3.0)  # a, b and c
    assert row.can_hide


@pytest.mark.parametrize("bandwidth", [64.0, 1024.0])
def test_pairs_cost_what_they_wrap_HO10(bandwidth: float) -> None:
    """Wrapping transfers where they stand changes neither bytes nor times."""
    host = HostMemory(bandwidth, 2 * bandwidth, rates={"flops": 64.0})
    for text in (TEXT, UPDATED, IN_A_LOOP):
        module = msa.parse(text)
        wrapped = Pipeline("host-transfers-async").run(module)
        assert wrapped != module
        (row,) = offload_report(module, host)
        (other,) = offload_report(wrapped, host)
        assert (other.bytes_out, other.bytes_in) == (row.bytes_out, row.bytes_in)
        assert other.transfer_seconds == pytest.approx(row.transfer_seconds)
        assert other.compute_seconds == pytest.approx(row.compute_seconds)


def test_what_the_host_computes_hides_nothing_HO10() -> None:
    text = TEXT.replace(
        "b = f32[256]{0} negate(a)",
        """t = ((f32[256]{0}), f32[256]{0}, u32[]) async-start(a), calls=on_host, async_execution_thread="host"
  b = f32[256]{0} async-done(t)""",
    ).replace(
        "ENTRY",
        """on_host { q = f32[256]{0} parameter(0)
  ROOT n = f32[256]{0} negate(q) }, execution_thread="host"
ENTRY""",
    )
    (row,) = offload_report(msa.parse(text), HostMemory(1.0, 1.0, rates={"flops": 256}))
    assert row.compute_seconds == pytest.approx(2.0)  # a and c
