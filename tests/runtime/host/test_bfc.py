from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.errors import OptionsError
from msa.runtime.host.annotations import allocation_scope
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.errors import DoubleFree, InvalidPointer, LeakError
from msa.runtime.host.pool_options import BFCOptions
from msa.runtime.host.reports import (
    memory_map,
    out_of_memory_report,
    render_occupancy,
)
from msa.runtime.host.suballocator import SimSubAllocator

MIB = 1 << 20
BASE = 1 << 20


def growing(limit: int = 1 << 30, **options: object) -> BFCAllocator:
    return BFCAllocator(SimSubAllocator(BASE), limit, BFCOptions(**options))  # type: ignore[arg-type]


def split_pool(limit: int) -> BFCAllocator:
    """A partitioned pool whose addresses start at 0."""
    options = BFCOptions(allow_growth=False, enable_spatial_partitioning=True)
    return BFCAllocator(SimSubAllocator(0), limit, options)


def take(pool: BFCAllocator, size: int, **options: object) -> int:
    address = pool.allocate(size, **options)  # type: ignore[arg-type]
    assert address is not None
    pool.check()
    return address


def give(pool: BFCAllocator, address: int) -> None:
    pool.deallocate(address)
    pool.check()


# -- worked figures ----------------------------------------------------------------


def test_growth_and_the_split_rule() -> None:
    pool = growing()
    take(pool, MIB)
    assert pool.stats().pool_bytes == 2 * MIB
    assert pool.stats().largest_free_block_bytes == MIB
    take(pool, 3 * MIB)
    stats = pool.stats()
    assert stats.pool_bytes == 6 * MIB
    assert stats.largest_alloc_size == 4 * MIB
    assert stats.internal_waste == MIB
    assert pool.next_region_bytes == 8 * MIB


def test_a_small_fragmentation_fraction_splits_the_surplus_off() -> None:
    pool = growing(fragmentation_fraction=1 / 1024)
    take(pool, 3 * MIB)
    assert pool.stats().internal_waste == 0


def test_exact_fit_takes_the_lowest_address() -> None:
    pool = growing()
    a, _, c = (take(pool, size) for size in (256, 512, 256))
    take(pool, 256)
    give(pool, a)
    give(pool, c)
    assert take(pool, 256) == a


def test_best_fit_prefers_the_smallest_hole() -> None:
    pool = growing()
    blocks = [take(pool, size) for size in (1024, 256, 512, 256, 768, 256)]
    for i in (0, 2, 4):
        give(pool, blocks[i])
    assert take(pool, 600) == blocks[4]
    assert take(pool, 300) == blocks[2]


def test_three_neighbours_become_one_chunk() -> None:
    pool = growing()
    a, b, c, _ = (take(pool, 512) for _ in range(4))
    for address in (a, c, b):
        give(pool, address)
    assert next((x.address, x.size) for x in pool.walk() if not x.in_use) == (a, 1536)


# -- acceptance ----------------------------------------------------------------------


@pytest.mark.parametrize("alignment", [1 << k for k in range(13)], ids="F1-{}".format)
def test_alignments(alignment: int) -> None:
    pool = growing()
    take(pool, 256)
    for _ in range(8):
        assert take(pool, 100, alignment=alignment) % max(alignment, 256) == 0


def test_shuffled_sizes_and_alignments_F2() -> None:
    pool = growing(16 * MIB)
    rng = random.Random(0)
    work = [(1 << a, s) for a in range(6, 11) for s in
            (100, 256, 1000, 1024, 4096, 5000, 10000)] * 10  # fmt: skip
    for _ in range(20):
        rng.shuffle(work)
        live = []
        for alignment, size in work:
            address = pool.allocate(size, alignment)
            assert address is not None
            assert address % alignment == 0
            live.append(address)
        rng.shuffle(live)
        for address in live:
            pool.deallocate(address)
        pool.check()
    assert all(region.first is region.last for region in pool.regions)
    assert pool.stats().bytes_in_use == 0


def test_fixed_alignment_of_the_source_F3() -> None:
    pool = BFCAllocator(SimSubAllocator(256, hard_alignment=256), 1 << 24)
    for alignment in (256, 512, 1024, 2048, 4096):
        assert take(pool, 300, alignment=alignment) % alignment == 0


def test_out_of_memory_shows_the_frames_F4() -> None:
    pool = BFCAllocator(SimSubAllocator(0), 1024, BFCOptions(allow_growth=False))
    with allocation_scope("execute", module="m"), allocation_scope("dot", id=7):
        take(pool, 512)
    assert pool.allocate(2048) is None
    report = out_of_memory_report(pool, 2048, 2048, "lower")
    assert "execute{module=m} / dot{id=7}" in report
    assert "cannot allocate 2048 bytes" in report


def test_both_ends_F5_F6() -> None:
    pool = split_pool(4096)
    low, high = take(pool, 256), take(pool, 256, end="upper")
    assert high - low == 3840
    pool = split_pool(4096)
    take(pool, 256)
    take(pool, 1024)
    assert take(pool, 256, end="upper") == 3840


def test_the_other_ends_holes_are_not_used_F7() -> None:
    pool = split_pool(1024)
    first = take(pool, 256)
    take(pool, 256)
    take(pool, 512, end="upper")
    give(pool, first)
    assert pool.allocate(256, end="upper") is None


def test_a_freed_end_returns_to_the_gap_F8() -> None:
    pool = split_pool(2048)
    give(pool, take(pool, 1024, end="upper"))
    assert take(pool, 2048) == 0


def test_reuse_across_the_gap_F9() -> None:
    pool = split_pool(4096)
    take(pool, 1024)
    high = take(pool, 512, end="upper")
    give(pool, high)
    take(pool, 512)
    assert take(pool, 512, end="upper") == high
    give(pool, high)
    assert take(pool, 2560) == 1536
    assert pool.allocate(256, end="upper") is None


def test_aligned_upper_request_F10() -> None:
    pool = split_pool(4096)
    assert take(pool, 256, alignment=1024, end="upper") == 3072
    assert take(pool, 3072) == 0
    assert pool.allocate(768) is None


def test_aligned_lower_request_F11() -> None:
    pool = split_pool(4096)
    assert take(pool, 256) == 0
    assert take(pool, 256, alignment=1024) == 1024
    assert take(pool, 2816, end="upper") == 1280
    assert pool.allocate(768, end="upper") is None


def test_filled_from_below_then_emptied_F12() -> None:
    pool = split_pool(1 << 30)
    blocks = [take(pool, 32 * MIB) for _ in range(32)]
    for block in blocks:
        give(pool, block)
    assert take(pool, 18 * MIB, end="upper") + 18 * MIB == 1 << 30


def test_each_end_reuses_its_own_hole_F13() -> None:
    pool = split_pool(4096)
    low = [take(pool, 256) for _ in range(3)]
    high = [take(pool, 256, end="upper") for _ in range(3)]
    give(pool, low[1])
    give(pool, high[1])
    assert take(pool, 256) == 256
    assert take(pool, 256, end="upper") == high[1] == 3584


def test_upper_addresses_do_not_depend_on_lower_churn_F14() -> None:
    plan = random.Random(99)
    steps = [(plan.choice("ad"), plan.randrange(1, 4 * MIB)) for _ in range(60)]
    seen = set()
    for seed in range(32):
        rng = random.Random(seed)
        pool = split_pool(512 * MIB)
        low: list[int] = []
        high: list[int] = []
        trace = []
        for what, size in steps:
            for _ in range(rng.randrange(4)):
                if low and rng.random() < 0.5:
                    pool.deallocate(low.pop(rng.randrange(len(low))))
                elif (a := pool.allocate(rng.randrange(1, MIB))) is not None:
                    low.append(a)
            if what == "a" or not high:
                got = pool.allocate(size, end="upper")
                trace.append(got)
                if got is not None:
                    high.append(got)
            else:
                pool.deallocate(high.pop(len(high) // 2))
        pool.check()
        seen.add(tuple(trace))
    assert len(seen) == 1


def test_threads_F15() -> None:
    pool = split_pool(64 * MIB)
    failures: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(1000):
            a = pool.allocate(rng.randrange(1, 4096))
            b = pool.allocate(rng.randrange(1, 4096), end="upper")
            if a is None or b is None:
                failures.append(seed)
            pool.deallocate(a)
            pool.deallocate(b)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    assert failures == []
    pool.check()
    assert pool.stats().largest_free_block_bytes == 64 * MIB


def test_bad_frees_F16() -> None:
    pool = growing()
    a, b = take(pool, 1000), take(pool, 1000)
    with pytest.raises(InvalidPointer):
        pool.deallocate(a + 256)
    with pytest.raises(InvalidPointer):
        pool.deallocate(3)
    pool.deallocate(b)
    pool.deallocate(a)
    for address in (a, b):
        with pytest.raises(DoubleFree, match=r"test_bfc.py:\d+"):
            pool.deallocate(address)
    pool.deallocate(None)
    pool.check()


def test_leaks_are_listed_F17() -> None:
    source = SimSubAllocator(BASE)
    pool = BFCAllocator(source, 1 << 24)
    with allocation_scope("step", n=1):
        small = take(pool, 100)
    mark = pool.next_allocation_id
    big = take(pool, 5000)
    assert [r.address for r in pool.leaks(since=mark)] == [big]
    with pytest.raises(LeakError) as caught:
        pool.close()
    assert [r.address for r in caught.value.leaks] == [big, small]
    assert caught.value.leaks[1].annotation == "step{n=1}"
    assert "test_bfc.py" in caught.value.leaks[0].site
    assert source.outstanding == 0


# -- the rest ---------------------------------------------------------------------------


def test_zero_and_bad_arguments() -> None:
    pool = growing()
    assert pool.allocate(0) is None
    for size, alignment in ((1, 3), (1, 0), (-1, 256)):
        with pytest.raises(ValueError, match="powers of two"):
            pool.allocate(size, alignment)
    with pytest.raises(OptionsError):
        BFCOptions(enable_spatial_partitioning=True)


def test_limit_is_never_exceeded_and_regions_shrink_to_it() -> None:
    pool = growing(3 * MIB)
    take(pool, 2 * MIB)
    take(pool, MIB)
    assert pool.stats().pool_bytes == 3 * MIB
    assert pool.allocate(1) is None


def test_a_refusing_source_gets_smaller_requests() -> None:
    pool = BFCAllocator(SimSubAllocator(BASE, capacity=MIB), 1 << 30)
    take(pool, 1000)
    # 2 MiB times 0.9 until it is below 1 MiB, each rounded up to 256.
    size = 2 * MIB
    while size > MIB:
        size = -(-int(-(-size * 9 // 10)) // 256) * 256
    assert pool.stats().pool_bytes == size


def test_joined_regions_coalesce() -> None:
    pool = BFCAllocator(SimSubAllocator(BASE, supports_coalescing=True), 1 << 30)
    a = take(pool, 2 * MIB)
    b = take(pool, 4 * MIB)
    give(pool, a)
    give(pool, b)
    assert len(pool.regions) == 1
    assert take(pool, 6 * MIB) == a


def test_garbage_collection_returns_free_regions() -> None:
    pool = growing(8 * MIB, garbage_collection=True)
    blocks = [take(pool, 2 * MIB), take(pool, 4 * MIB)]
    for block in blocks:
        give(pool, block)
    take(pool, 7 * MIB)
    keep = growing(8 * MIB)
    for block in [take(keep, 2 * MIB), take(keep, 4 * MIB)]:
        give(keep, block)
    assert keep.allocate(7 * MIB) is None


def test_retry_waits_for_a_free() -> None:
    pool = BFCAllocator(
        SimSubAllocator(0),
        1024,
        BFCOptions(allow_growth=False, allow_retry_on_failure=True),
    )
    first = take(pool, 1024)
    timer = threading.Timer(0.05, pool.deallocate, (first,))
    timer.start()
    assert pool.allocate(512) is not None
    assert pool.allocate(1024, retry_on_failure=False) is None
    timer.join()


class Counter:
    def __init__(self) -> None:
        self.now = 0

    def next(self) -> int:
        self.now += 1
        return self.now


def test_timestamped_frees_merge_only_when_safe() -> None:
    pool = BFCAllocator(
        SimSubAllocator(0), 1024, BFCOptions(allow_growth=False), counter=Counter()
    )
    blocks = [take(pool, 256) for _ in range(4)]
    for block in blocks:
        give(pool, block)
    assert [c.freed_at for c in pool.walk()] == [1, 2, 3, 4]
    assert pool.allocate(1024, freed_before=2) is None
    pool.set_safe_frontier(3)
    assert take(pool, 512, freed_before=2) == 0
    assert [c.freed_at for c in pool.walk()] == [0, 3, 4]
    pool.set_safe_frontier(1)
    assert take(pool, 512) == 512


def test_frees_after_the_constraint_are_skipped() -> None:
    pool = BFCAllocator(
        SimSubAllocator(0), 512, BFCOptions(allow_growth=False), counter=Counter()
    )
    a, b = take(pool, 256), take(pool, 256)
    give(pool, b)
    give(pool, a)
    assert take(pool, 256, freed_before=1) == b


def test_pictures() -> None:
    pool = BFCAllocator(SimSubAllocator(0), 1024, BFCOptions(allow_growth=False))
    assert "no memory" in render_occupancy(pool)
    a = take(pool, 300)
    assert render_occupancy(pool, 4) == "**__"
    assert render_occupancy(pool, 8) == "***x____"
    shown = memory_map(pool)
    assert shown["internal_waste"] == 212
    assert [c["in_use"] for c in shown["chunks"]] == [True, False]
    give(pool, a)
    assert pool.stats().external_fragmentation == 0.0


class Naive:
    """Best fit over a plain list of free intervals in one fixed range."""

    def __init__(self, limit: int) -> None:
        self.free = [(0, limit)]
        self.used: dict[int, int] = {}

    def allocate(self, size: int) -> int | None:
        rounded = -(-size // 256) * 256
        fits = sorted((s, a) for a, s in self.free if s >= rounded)
        if not fits:
            return None
        length, address = fits[0]
        self.free.remove((address, length))
        if length >= 2 * rounded:
            self.free.append((address + rounded, length - rounded))
            length = rounded
        self.used[address] = length
        return address

    def deallocate(self, address: int) -> None:
        self.free.append((address, self.used.pop(address)))
        merged: list[tuple[int, int]] = []
        for a, s in sorted(self.free):
            if merged and sum(merged[-1]) == a:
                merged[-1] = (merged[-1][0], merged[-1][1] + s)
            else:
                merged.append((a, s))
        self.free = merged


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=120))
def test_against_a_naive_model(actions: list[tuple[bool, int]]) -> None:
    limit = 64 << 10
    pool = BFCAllocator(SimSubAllocator(0), limit, BFCOptions(allow_growth=False))
    model, live = Naive(limit), []
    for free, size in actions:
        if free and live:
            address = live.pop(size % len(live))
            pool.deallocate(address)
            model.deallocate(address)
        else:
            address = pool.allocate(size)
            assert address == model.allocate(size)
            if address is not None:
                live.append(address)
    pool.check()


def race(count: int, seed: int, limit: int, most: int) -> int:
    """Pool and model side by side on random operations; returns how many failed."""
    chance = random.Random(seed)
    pool = BFCAllocator(SimSubAllocator(0), limit, BFCOptions(allow_growth=False))
    model = Naive(limit)
    live: list[int] = []
    refused = 0
    for number in range(count):
        if live and (len(live) >= most or chance.random() < 0.45):
            place = chance.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            address = live.pop()
            pool.deallocate(address)
            model.deallocate(address)
        else:
            size = int(2 ** chance.uniform(0, 13))
            got = pool.allocate(size)
            assert got == model.allocate(size), number
            if got is None:
                refused += 1
            else:
                live.append(got)
        if number % 1000 == 0:
            pool.check()
            assert {c.address: c.size for c in pool.live_chunks()} == model.used
    pool.check()
    return refused


def test_many_operations_against_the_naive_model() -> None:
    assert race(20_000, seed=3, limit=64 << 10, most=60) > 100


@pytest.mark.slow
def test_a_million_operations_against_the_naive_model() -> None:
    assert race(1_000_000, seed=4, limit=64 << 10, most=60) > 5_000


def random_churn(count: int, seed: int) -> Iterator[BFCAllocator]:
    rng = random.Random(seed)
    pool = split_pool(256 * MIB)
    live: list[int] = []
    for i in range(count):
        if live and rng.random() < 0.5:
            place = rng.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            pool.deallocate(live.pop())
        else:
            size = int(256 * 2 ** (rng.random() * 10))
            address = pool.allocate(size, end=rng.choice(("lower", "upper")))
            if address is not None:
                live.append(address)
        if i % 5000 == 0:
            yield pool
    yield pool


def test_churn_keeps_every_invariant() -> None:
    for pool in random_churn(30_000, 1):
        pool.check()


@pytest.mark.slow
def test_a_million_operations_keep_every_invariant() -> None:
    for pool in random_churn(1_000_000, 2):
        pool.check()
