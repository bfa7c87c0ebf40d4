"""Throughput of the coalescing pool: allocations and frees per CPU second.

python -m benchmarks.pool [--live 100 1000 10000 100000] [--operations 400000]

Random sizes from 256 bytes to 256 KiB (log-uniform); once `live` blocks are held,
every step frees a random one and allocates another. The best of three runs.
"""

from __future__ import annotations

import argparse
import random
import time

from msa.runtime.host import BFCAllocator, BFCOptions, SimSubAllocator


def throughput(live: int, operations: int, *, seed: int = 0) -> float:
    """Allocations plus frees per CPU second at `live` blocks."""
    chance = random.Random(seed)
    options = BFCOptions(allow_growth=False)
    pool = BFCAllocator(SimSubAllocator(0), 16 << 30, options)
    sizes = [int(256 * 2 ** chance.uniform(0, 10)) for _ in range(4096)]
    held = [pool.allocate(sizes[i % 4096]) for i in range(live)]
    picks = [chance.randrange(live) for _ in range(operations // 2)]
    start = time.process_time()
    for i, pick in enumerate(picks):
        pool.deallocate(held[pick])
        held[pick] = pool.allocate(sizes[(7 * i) % 4096])
    seconds = time.process_time() - start
    pool.check()
    return 2 * len(picks) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--live", type=int, nargs="*", default=[100, 10**3, 10**4, 10**5]
    )
    parser.add_argument("--operations", type=int, default=400_000)
    options = parser.parse_args()
    for live in options.live:
        rate = max(throughput(live, options.operations, seed=seed) for seed in range(3))
        print(f"{live:7d} live blocks: {rate:10,.0f} operations/s")


if __name__ == "__main__":
    main()
