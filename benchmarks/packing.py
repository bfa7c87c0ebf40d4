"""Packing: height against the load bound, time and growth, guillotine optima.

    python benchmarks/packing.py [--buffers 1000 10000 100000] [--seeds 3]
    python benchmarks/packing.py --guillotine [--seeds 10]
    python benchmarks/packing.py --instances DIR [--seeds 3]

Times are CPU seconds of `msa.pack` with default effort, medians over seeds. The
growth exponent is fitted between the smallest and the largest number of buffers.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import re
import statistics
import time
from pathlib import Path

import numpy as np

import msa

Row = tuple[int, int, int, int]


def _sizes(count: int, random_: np.random.Generator) -> np.ndarray:
    """Power-law sizes from 512 B to 16 MiB, multiples of 256 B."""
    power = (random_.pareto(1.1, count) + 1) * 512
    return np.minimum(power // 256 * 256, 1 << 24).astype(np.int64)


def training(count: int, seed: int) -> list[Row]:
    """Weights for all time, activations kept from forward to backward, scratch."""
    random_ = np.random.default_rng(seed)
    steps = count
    kind = random_.random(count)
    start = random_.integers(0, steps - 1, count)
    length = (random_.pareto(1.2, count) * 4 + 1).clip(1, 2000)
    end = np.minimum(start + length.astype(np.int64), steps)
    weight, kept = kind < 0.08, (kind >= 0.08) & (kind < 0.18)
    start = np.where(kept, start // 2, start)
    wobble = random_.integers(-4, 5, count)
    end = np.where(kept, np.clip(steps - start + wobble, start + 1, steps), end)
    start, end = np.where(weight, 0, start), np.where(weight, steps, end)
    size = _sizes(count, random_)
    return _rows(start, end, size)


def inference(count: int, seed: int) -> list[Row]:
    """Weights for all time, scratch of which some hundred live at once."""
    random_ = np.random.default_rng(seed)
    steps = count
    start = random_.integers(0, steps - 1, count)
    length = (random_.pareto(0.9, count) * 20 + 1).clip(1, 4000).astype(np.int64)
    end = np.minimum(start + length, steps)
    weight = random_.random(count) < 0.1
    start, end = np.where(weight, 0, start), np.where(weight, steps, end)
    return _rows(start, end, _sizes(count, random_))


def layers(count: int, seed: int) -> list[Row]:
    """A stack of layers: each repeats a pattern of lifetimes and a few sizes."""
    random_ = np.random.default_rng(seed)
    pattern = 50
    size = random_.choice(2 ** np.arange(10, 22), pattern) * random_.integers(
        1, 4, pattern
    )
    first = np.sort(random_.integers(0, pattern, pattern))
    length = (random_.pareto(1.0, pattern) * 8 + 1).clip(1, 300).astype(np.int64)
    layer = np.arange(count) // pattern
    which = np.arange(count) % pattern
    start = layer * pattern + first[which]
    end = start + length[which] + random_.integers(0, 3, count)
    weight = which < 4
    start = np.where(weight, 0, start)
    end = np.where(weight, int(end.max()), end)
    return _rows(start, end, size[which])


def _rows(start: np.ndarray, end: np.ndarray, size: np.ndarray) -> list[Row]:
    columns = (start.tolist(), end.tolist(), size.tolist())
    return [(n, *row) for n, row in enumerate(zip(*columns, strict=True))]


MIXES = {"training": training, "inference": inference, "layers": layers}


def guillotine(count: int, seed: int, capacity: int, duration: int) -> list[Row]:
    """A full rectangle cut by random guillotine cuts; the optimum is its height."""
    random_ = random.Random(seed)
    pieces = [(0, duration, 0, capacity)]
    while len(pieces) < count:
        index = random_.randrange(len(pieces))
        start, end, low, high = pieces[index]
        if random_.random() < 0.5:
            if end - start > 1:
                cut = random_.randrange(start + 1, end)
                new = [(start, cut, low, high), (cut, end, low, high)]
                pieces[index : index + 1] = new
        elif high - low > 1:
            cut = random_.randrange(low + 1, high)
            pieces[index : index + 1] = [
                (start, end, low, cut),
                (start, end, cut, high),
            ]
    random_.shuffle(pieces)
    return [(n, s, e, high - low) for n, (s, e, low, high) in enumerate(pieces)]


def timed(rows: list[Row], **options: int) -> tuple[float, msa.HeapPlan]:
    before = time.process_time()
    plan = msa.pack(rows, **options)
    seconds = time.process_time() - before
    plan.verify()
    return seconds, plan


def run_mixes(counts: list[int], seeds: int) -> None:
    print(f"{'mix':10} {'buffers':>8} {'seconds':>8} {'height/bound':>12} {'worst':>7}")
    for name, mix in MIXES.items():
        medians = []
        for count in counts:
            results = [timed(mix(count, seed)) for seed in range(seeds)]
            seconds = statistics.median(r[0] for r in results)
            ratios = [p.height / p.lower_bound for _, p in results]
            medians.append(seconds)
            print(
                f"{name:10} {count:8} {seconds:8.2f} "
                f"{statistics.median(ratios):12.4f} {max(ratios):7.4f}",
                flush=True,
            )
        if len(counts) > 1:
            growth = math.log(medians[-1] / medians[0])
            print(f"{name:10} growth {growth / math.log(counts[-1] / counts[0]):.2f}")


def run_guillotine(seeds: int) -> None:
    capacity = 1 << 20
    print(f"{'buffers':>8} {'optimal':>8} {'worst':>7} {'seconds':>8} {'slowest':>8}")
    for grid in (capacity, 128):
        for count in (50, 100, 200, 400):
            results = [
                timed(guillotine(count, seed, grid, max(grid // 64, 100)))
                for seed in range(seeds)
            ]
            ratios = [p.height / grid for _, p in results]
            seconds = [r[0] for r in results]
            print(
                f"{count:8} {sum(r == 1 for r in ratios):3} of {seeds:<2} "
                f"{max(ratios):7.4f} {statistics.median(seconds):8.2f} "
                f"{max(seconds):8.2f}",
                flush=True,
            )


def run_instances(folder: Path, seeds: int) -> None:
    print(f"{'instance':16} {'fits':>7} {'seconds':>8} {'slowest':>8}")
    total = 0.0
    for path in sorted(folder.glob("*.csv")):
        found = re.search(r"\.(\d+)\.csv$", path.name)
        if not found:
            continue
        rows = [
            (r["id"], int(r["lower"]), int(r["upper"]), int(r["size"]))
            for r in csv.DictReader(path.open())
        ]
        seconds, fits = [], 0
        for seed in range(seeds):
            random.Random(seed).shuffle(rows)
            before = time.process_time()
            try:
                msa.pack(rows, capacity=int(found[1]), seed=seed).verify()
                fits += 1
            except msa.CapacityError:
                pass
            seconds.append(time.process_time() - before)
        total += statistics.median(seconds)
        print(
            f"{path.stem:16} {fits:3}/{seeds:<3} {statistics.median(seconds):8.2f} "
            f"{max(seconds):8.2f}",
            flush=True,
        )
    print(f"sum of medians {total:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--buffers", type=int, nargs="+", default=[1000, 10_000, 100_000]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--guillotine", action="store_true")
    parser.add_argument("--instances", type=Path)
    arguments = parser.parse_args()
    if arguments.guillotine:
        run_guillotine(arguments.seeds)
    elif arguments.instances:
        run_instances(arguments.instances, arguments.seeds)
    else:
        run_mixes(arguments.buffers, arguments.seeds)


if __name__ == "__main__":
    main()
