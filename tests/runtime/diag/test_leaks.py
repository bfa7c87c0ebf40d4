"""Leaks, fragmentation, lifetimes of buffers, and collective diagnoses."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.dealloc import check, parse_function, place_in_function
from msa.dealloc.flow import ValueFlow
from msa.dealloc.interpreter import Misuse
from msa.runtime.collective import (
    BufferAllocations,
    CliqueKey,
    CollectiveMemoryRequests,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Rendezvous,
)
from msa.runtime.collective.acquire import AcquireTrace
from msa.runtime.collective.allocations import AllocationSlice
from msa.runtime.diag import (
    Leak,
    LeakWatch,
    buffer_leaks,
    diagnose,
    explain_lookup,
    explain_refusal,
    explain_timeouts,
    leak_report,
    packing_fragmentation,
    pool_fragmentation,
    pool_leaks,
    value_pool_leaks,
    world_leaks,
)
from msa.runtime.diag.leaks import UNGRACEFUL
from msa.runtime.diag.lifetimes import Cause
from msa.runtime.host import (
    BFCAllocator,
    BFCOptions,
    HostMemoryPool,
    HostValuePool,
    SimSubAllocator,
    allocation_scope,
)
from msa.runtime.status import RendezvousTimeout

# -- leaks (DX-7) ----------------------------------------------------------------------


def test_a_pool_closed_with_two_blocks_DX7() -> None:
    pool = HostMemoryPool(1 << 20, name="staging")
    with allocation_scope("execute", module="m"):
        blocks = [pool.allocate(n) for n in (100, 300)]
    report = leak_report(pool_leaks(pool))
    [group] = report.groups
    assert group.count == 2
    assert group.bytes == 256 + 512
    assert group.annotation == "execute{module=m}"
    assert "test_leaks.py" in group.stack[0]
    assert (report.count, report.bytes, report.failed) == (2, 768, True)
    assert "in execute{module=m}" in report.to_text()
    assert group.stack[0] in report.to_text()
    for block in blocks:
        block.release()
    assert not leak_report(pool_leaks(pool)).failed
    pool.close()


def test_blocks_of_different_scopes_are_apart_DX7() -> None:
    pool = BFCAllocator(SimSubAllocator(), 1 << 20)
    for name, size in (("small", 256), ("large", 4096), ("small", 256)):
        with allocation_scope(name):
            pool.allocate(size)
    groups = leak_report(pool_leaks(pool)).groups
    assert [(g.annotation, g.count, g.bytes) for g in groups] == [
        ("large{}", 1, 4096),
        ("small{}", 2, 512),
    ]
    later = pool.next_allocation_id
    assert pool_leaks(pool, since=later) == []


def leak(size: int = 256, note: str = "a{}", kind: str = "pool block") -> Leak:
    return Leak(kind, "1", size, size, "p", annotation=note)


def test_owners_are_named_once_each_DX7() -> None:
    leaks = [
        Leak("pool block", str(n), 64, 64, "p", owner=f"pool {n % 2}") for n in range(4)
    ]
    (group,) = leak_report(leaks).groups
    assert group.owners == ("pool 0", "pool 1")
    assert "held by pool 0, pool 1" in leak_report(leaks).to_text()


def test_suppressions_DX7() -> None:
    report = leak_report(
        [leak(), leak(note="cache{}"), leak(kind="mapping")],
        suppressions=[("*", "cache*"), ("mapping", "*")],
    )
    assert report.count == 1
    assert (report.suppressed_count, report.suppressed_bytes) == (2, 512)
    assert "suppressed" in report.to_text()


def test_ungraceful_exits_DX7() -> None:
    report = leak_report([leak()], graceful=False)
    assert not report.failed
    assert UNGRACEFUL in report.to_text()
    assert leak_report([leak()], graceful=False, strict=True).failed
    assert not leak_report([], strict=True).failed


def test_growth_over_four_snapshots_DX7() -> None:
    watch = LeakWatch()
    for n in range(1, 5):
        watch.snapshot([*[leak()] * n, leak(note="still{}")])
    [group] = watch.growing()
    assert (group.annotation, group.snapshots, group.slope) == ("a{}", 3, 256.0)
    assert watch.growing(least=4) == []
    watch.snapshot([leak()] * 4)  # no growth any more
    assert watch.growing() == []


def test_other_sources_DX7() -> None:
    values = HostValuePool("int32")
    held = values.acquire()
    assert [r.kind for r in value_pool_leaks(values)] == ["host value"]
    held.release()
    assert value_pool_leaks(values) == []
    world = DeviceWorld(2, granularity=4096)
    address = world.allocate(1, 5000)
    [row] = [r for r in world_leaks(world) if r.kind == "device allocation"]
    assert (row.space, row.size) == ("device 1", 5000)
    world.free(address)
    assert world_leaks(world) == []


LEAKY = """
func @f(%c: i1) {
^entry:
  %a = alloc : buf<4xf32>
  use reads() writes(%a)
  cond_br %c, ^yes, ^no
^yes:
  dealloc %a
  br ^end
^no:
  br ^end
^end:
  return
}"""


def test_buffers_leak_on_a_path_DX7_DX8() -> None:
    function = parse_function(LEAKY)
    findings = check(function).findings
    report = leak_report(buffer_leaks(findings, "f"))
    [group] = report.groups
    assert group.kind == "buffer"
    assert group.stack == ("path 0",)
    placed, _ = place_in_function(parse_function(LEAKY.replace("  dealloc %a\n", "")))
    assert not leak_report(buffer_leaks(check(placed).findings)).failed


# -- lifetimes (DX-8) ------------------------------------------------------------------

TWICE = LEAKY.replace("^no:\n", "^no:\n  dealloc %a\n").replace(
    "  dealloc %a\n  br ^end\n^no", "  dealloc %a\n  dealloc %a\n  br ^end\n^no"
)


def test_a_double_free_on_one_of_two_paths_DX8() -> None:
    function = parse_function(TWICE)
    [finding] = check(function).findings
    assert finding.kind is Misuse.DOUBLE_FREE
    diagnosis = diagnose(function, finding)
    assert diagnosis.decisions == (1,)  # outcome 1 is the first successor
    assert [e.what for e in diagnosis.life] == ["alloc", "use", "dealloc", "dealloc"]
    assert [e.after for e in diagnosis.life] == [False, False, False, True]
    assert diagnosis.cause is Cause.BY_HAND
    assert "path 1" in diagnosis.to_text()
    assert diagnosis.missed is None


def test_a_leak_says_where_it_should_be_freed_DX8() -> None:
    function = parse_function(LEAKY)
    [finding] = check(function).findings
    diagnosis = diagnose(function, finding)
    assert diagnosis.misuse == "leak"
    assert diagnosis.decisions == (0,)
    assert "dealloc" in diagnosis.suggestion
    assert diagnosis.to_dict()["object"] == "a"


def test_an_unseen_alias_is_named_DX8() -> None:
    """A buffer that a loop hands on by hand-made branches moves along."""
    text = """
func @f(%c: i1) {
^entry:
  %a = alloc : buf<4xf32>
  use reads() writes(%a)
  br ^next(%a)
^next(%x: buf<4xf32>):
  use reads(%x) writes()
  dealloc %x
  use reads(%a) writes()
  return
}"""
    function = parse_function(text)
    [finding] = check(function).findings
    assert finding.kind is Misuse.USE_AFTER_FREE
    diagnosis = diagnose(function, finding)
    flows = [e.name for e in diagnosis.life if e.what == "flows into"]
    assert flows == ["x"]
    assert diagnosis.life[-1].after
    assert diagnosis.missed is None  # the value flow knows branches
    flow = ValueFlow.run(function)
    flow.remove([v for v in function.values() if v.name == "x"])
    blind = diagnose(function, finding, flow=flow)
    assert (blind.missed, blind.cause) == (("a", "x"), Cause.MISSED_ALIAS)
    assert "the value flow misses a → x" in blind.to_text()


# -- fragmentation (DX-6) --------------------------------------------------------------


def test_a_pool_by_hand_DX6() -> None:
    pool = BFCAllocator(SimSubAllocator(), 4096, BFCOptions(allow_growth=False))
    blocks = [pool.allocate(n) for n in (1024, 1000, 1024, 1024)]
    pool.deallocate(blocks[0])
    pool.deallocate(blocks[2])
    report = pool_fragmentation(pool)
    assert (report.in_use, report.waste, report.free_blocks) == (2048, 24, (1024, 1024))
    assert report.external == 0.5
    assert report.histogram == {1024: 2}
    assert not report.fits(2048)
    assert report.fits_if_compacted(2048)
    assert not report.fits_if_compacted(2049)
    assert "would fit if compacted" in report.to_text(2048)
    assert "does not fit at all" in report.to_text(4096)
    assert "fits" in report.to_text(512)
    assert len(report.occupancy) == 100


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(0, 18))
def test_a_packing_equals_brute_force_DX6(rows, time: int) -> None:
    plan = msa.pack([(i, s, s + n, size) for i, (s, n, size) in enumerate(rows)])
    report = packing_fragmentation(plan, time)
    cells = [False] * plan.height
    for b, offset in zip(plan.buffers, plan.offsets, strict=True):
        if b.start <= time < b.end:
            for cell in range(offset, offset + b.size):
                assert not cells[cell]
                cells[cell] = True
    runs, length = [], 0
    for used in [*cells, True]:
        if used and length:
            runs.append(length)
        length = 0 if used else length + 1
    assert list(report.free_blocks) == sorted(runs, reverse=True)
    assert report.in_use == sum(cells)


# -- collective memory (DX-9) ----------------------------------------------------------

K0, K1 = CliqueKey.local(0, 1), CliqueKey.local(2, 3)
BUFFERS = BufferAllocations([DeviceAddress(4096, 64), DeviceAddress(8192, 100)])


def asked() -> CollectiveMemoryRequests:
    requests = CollectiveMemoryRequests(BUFFERS)
    requests.request_all(Kind.PEER, K0, [0])
    return requests


def test_one_byte_past_the_end_DX9() -> None:
    found = explain_lookup(BUFFERS, asked(), Kind.PEER, K0, DeviceAddress(4160, 8))
    assert found.step == "address"
    assert str(found).startswith(
        "not inside any allocation; nearest: index 0, distance 1"
    )


def test_each_step_of_a_lookup_DX9() -> None:
    def step(what, clique=K0, **more):
        return explain_lookup(BUFFERS, asked(), Kind.PEER, clique, what, **more)

    assert step(0).step == "found"
    assert step(DeviceAddress(4100, 8)).offset == 4
    assert step(1).step == "request"
    assert "requested: [0]" in step(1).message
    other = step(0, K1)
    assert other.step == "clique"
    assert "devices is" in other.message
    leaving = step(AllocationSlice(0, 60, 8))
    assert (leaving.step, leaving.offset, leaving.size, leaving.bound) == (
        "offset",
        60,
        8,
        64,
    )
    assert step(0, expired=True).step == "expired"
    assert step(9).step == "address"


def test_refusals_list_devices_by_process_DX9() -> None:
    text = explain_refusal(CliqueKey.local(0, 1, 2), {0: 0, 1: 0, 2: 1})
    assert "process 0: devices [0, 1]; process 1: devices [2]" in text
    assert "symmetric" in text


def test_opposite_orders_deadlock_DX9() -> None:
    """Two ranks come to two meetings in opposite orders."""
    table = Rendezvous()
    errors: dict[str, RendezvousTimeout] = {}
    names = ("rank 0", "rank 1")

    def rank(name: str, meetings: list[str]) -> None:
        try:
            for meeting in meetings:
                table.barrier(
                    meeting,
                    meeting,
                    2,
                    participant=name,
                    participants=names,
                    warn_timeout=0.05,
                    terminate_timeout=0.15,
                )
        except RendezvousTimeout as error:
            errors[name] = error

    threads = [
        threading.Thread(target=rank, args=("rank 0", ["clique A", "clique B"])),
        threading.Thread(target=rank, args=("rank 1", ["clique B", "clique A"])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    trace = AcquireTrace([("peer", K0, (0,))])
    diagnosis = explain_timeouts(errors, {"rank 1": trace})
    assert diagnosis.cycle == ("rank 0", "rank 1")
    text = diagnosis.to_text()
    assert "ordering deadlock: rank 0 → rank 1 → rank 0" in text
    assert "rank 0 came to clique A first" in text
    assert "rank 1 came to clique B first" in text
    assert diagnosis.last_stages["rank 1"].startswith("peer of")


def test_a_rank_that_never_comes_is_no_cycle_DX9() -> None:
    error = RendezvousTimeout(
        "A",
        arrived=1,
        expected=2,
        arrived_names=("rank 0",),
        missing_names=("rank 1",),
        everyone_arrived=False,
    )
    assert explain_timeouts({"rank 0": error}).cycle == ()


@pytest.mark.parametrize("count", [3, 5])
def test_longer_cycles_DX9(count: int) -> None:
    errors = {
        f"rank {i}": RendezvousTimeout(
            f"meeting {i}",
            arrived=1,
            expected=2,
            arrived_names=(f"rank {i}",),
            missing_names=(f"rank {(i + 1) % count}",),
            everyone_arrived=False,
        )
        for i in range(count)
    }
    cycle = explain_timeouts(errors).cycle
    assert cycle == tuple(f"rank {i}" for i in range(count))
