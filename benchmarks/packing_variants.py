"""Perturbed packing instances that are known to fit, made from found packings.

    python -m benchmarks.packing_variants DIR [--families cut_time fill …] [--seeds 2]

Every instance of DIR (`NAME.CAPACITY.csv`) is packed once. Its boxes are then changed
in ways that keep them apart: cut in time or in space, joined, shortened, extended into
free addresses, dropped, mirrored, or joined by new buffers that fill holes. The height
of the changed boxes is the capacity into which `msa.pack` has to fit them, with default
effort. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import msa

#: Start, end, offset, size.
Box = tuple[int, int, int, int]
Boxes = list[Box]


def cut_time(boxes: Boxes, random_: random.Random, share: float = 0.2) -> Boxes:
    """Some buffers become two that follow each other."""
    changed: Boxes = []
    for start, end, offset, size in boxes:
        if end - start > 1 and random_.random() < share:
            at = random_.randrange(start + 1, end)
            changed += [(start, at, offset, size), (at, end, offset, size)]
        else:
            changed.append((start, end, offset, size))
    return changed


def cut_space(boxes: Boxes, random_: random.Random, share: float = 0.2) -> Boxes:
    """Some buffers become two that lie on each other."""
    changed: Boxes = []
    for start, end, offset, size in boxes:
        if size > 1 and random_.random() < share:
            at = random_.choice([max(1, size // 2), random_.randrange(1, size)])
            changed += [(start, end, offset, at), (start, end, offset + at, size - at)]
        else:
            changed.append((start, end, offset, size))
    return changed


def shorten(boxes: Boxes, random_: random.Random, share: float = 0.3) -> Boxes:
    """Some buffers start later or end earlier."""
    changed: Boxes = []
    for start, end, offset, size in boxes:
        if end - start > 1 and random_.random() < share:
            less = random_.randrange(1, max(2, (end - start) // 3))
            if random_.random() < 0.5:
                start += less
            else:
                end -= less
        changed.append((start, end, offset, size))
    return changed


def drop(boxes: Boxes, random_: random.Random, share: float = 0.1) -> Boxes:
    """Some buffers go away."""
    return [box for box in boxes if random_.random() >= share]


def _beside(boxes: Boxes, low: int, high: int) -> Boxes:
    return [box for box in boxes if box[2] < high and low < box[2] + box[3]]


def extend(boxes: Boxes, random_: random.Random, share: float = 0.3) -> Boxes:
    """Some buffers live longer, as far as their addresses are free."""
    boxes = list(boxes)
    first, last = min(box[0] for box in boxes), max(box[1] for box in boxes)
    for index, (start, end, offset, size) in enumerate(boxes):
        if random_.random() >= share:
            continue
        beside = _beside(boxes, offset, offset + size)
        if random_.random() < 0.5:
            free = max((box[1] for box in beside if box[1] <= start), default=first)
            start = random_.randint(free, start)
        else:
            free = min((box[0] for box in beside if box[0] >= end), default=last)
            end = random_.randint(end, free)
        boxes[index] = (start, end, offset, size)
    return boxes


def fill(boxes: Boxes, random_: random.Random, count: int = 10) -> Boxes:
    """New buffers in holes, as high and as long as these are."""
    boxes = list(boxes)
    first, last = min(box[0] for box in boxes), max(box[1] for box in boxes)
    top = max(box[2] + box[3] for box in boxes)
    wanted = len(boxes) + count
    for _ in range(50 * count):
        if len(boxes) == wanted:
            break
        at, address = random_.randrange(first, last), random_.randrange(top)
        live = [box for box in boxes if box[0] <= at < box[1]]
        if _beside(live, address, address + 1):
            continue
        low = max((b[2] + b[3] for b in live if b[2] < address), default=0)
        high = min((b[2] for b in live if b[2] > address), default=top)
        if random_.random() < 0.3:
            low += (high - low) // 3
        beside = _beside(boxes, low, high)
        start = max((box[1] for box in beside if box[1] <= at), default=first)
        end = min((box[0] for box in beside if box[0] > at), default=last)
        if high - low >= 64:
            boxes.append((start, end, low, high - low))
    return boxes


def fuse(boxes: Boxes, random_: random.Random, share: float = 0.3) -> Boxes:
    """Some buffers become one with the one that follows them or lies on them."""
    boxes = list(boxes)
    for _ in range(int(share * len(boxes))):
        index = random_.randrange(len(boxes))
        start, end, offset, size = boxes[index]
        for other, (s, e, o, z) in enumerate(boxes):
            if (s, o, z) == (end, offset, size):
                fused = (start, e, offset, size)
            elif (s, e, o) == (start, end, offset + size):
                fused = (start, end, offset, size + z)
            else:
                continue
            boxes[index] = fused
            boxes.pop(other)
            break
    return boxes


def mirror(boxes: Boxes, random_: random.Random) -> Boxes:
    """Time runs backward."""
    last = max(box[1] for box in boxes)
    return [(last - end, last - start, o, z) for start, end, o, z in boxes]


def mixed(boxes: Boxes, random_: random.Random) -> Boxes:
    """A little of everything."""
    boxes = drop(boxes, random_, 0.03)
    boxes = cut_space(cut_time(boxes, random_, 0.05), random_, 0.05)
    return fill(shorten(boxes, random_, 0.1), random_, 8)


FAMILIES: dict[str, Callable[[Boxes, random.Random], Boxes]] = {
    "cut_time": cut_time,
    "cut_space": cut_space,
    "shorten": shorten,
    "drop": drop,
    "extend": extend,
    "fill": fill,
    "fill more": lambda boxes, random_: fill(boxes, random_, 40),
    "fuse": fuse,
    "mirror": mirror,
    "mixed": mixed,
}


def found_boxes(path: Path, capacity: int) -> Boxes:
    """The boxes of a packing of an instance into its capacity."""
    rows = [
        (row["id"], int(row["lower"]), int(row["upper"]), int(row["size"]))
        for row in csv.DictReader(path.open())
    ]
    plan = msa.pack(rows, capacity=capacity)
    return [
        (start, end, offset, size)
        for (_, start, end, size), offset in zip(rows, plan.offsets, strict=True)
    ]


def attempt(boxes: Boxes, random_: random.Random) -> tuple[bool, float]:
    """Whether the boxes are packed into their height anew, and the CPU seconds."""
    boxes = random_.sample(boxes, len(boxes))
    capacity = max(box[2] + box[3] for box in boxes)
    rows = [(n, s, e, z) for n, (s, e, _, z) in enumerate(boxes)]
    before = time.process_time()
    try:
        msa.pack(rows, capacity=capacity).verify()
    except msa.CapacityError:
        return False, time.process_time() - before
    return True, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    bases = {}
    for path in sorted(arguments.folder.glob("*.csv")):
        if found := re.search(r"\.(\d+)\.csv$", path.name):
            boxes = found_boxes(path, int(found[1]))
            if len(boxes) > 10:
                bases[path.name.partition(".")[0]] = boxes
    fitted = tried = 0
    print(f"{'family':10} {'fits':>7} {'seconds':>8} {'slowest':>8}  not found")
    for family in arguments.families:
        seconds, missed = [], []
        for name, base in bases.items():
            for seed in arguments.seeds:
                random_ = random.Random(f"{family} {name} {seed}")
                fits, spent = attempt(FAMILIES[family](base, random_), random_)
                seconds.append(spent)
                if not fits:
                    missed.append(f"{name}{seed}")
        count = len(seconds)
        fitted, tried = fitted + count - len(missed), tried + count
        print(
            f"{family:10} {count - len(missed):3}/{count:<3} {sum(seconds):8.1f} "
            f"{max(seconds):8.1f}  {' '.join(missed)}",
            flush=True,
        )
    print(f"{fitted} of {tried} fit")


if __name__ == "__main__":
    main()
