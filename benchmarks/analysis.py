"""Time of the analyses over growing modules, and how it scales.

    python benchmarks/analysis.py [KIND] [LARGEST]
    MSA_SHARED=… python benchmarks/analysis.py corpus

CPU seconds of every analysis per kind of generated module and size. The exponent is
the slope of log(time) over log(instructions) between the two largest sizes: 1 is
linear. The cycle collector is off for these, because its full passes fall into one
step or another at random. With `corpus`, the facts of the largest recorded modules,
the collector on. Exit code 1 if an exponent exceeds 1.3 or the facts of a module take
over 10 seconds.
"""

from __future__ import annotations

import gc
import math
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msa
from msa.analysis import (
    AliasAnalysis,
    CallGraph,
    CostModel,
    DataflowAnalysis,
    FlattenedSchedule,
    InstructionCosts,
    LiveRanges,
    TripCounts,
    facts,
)

TARGET = msa.Target.preset("tpu_v5e")
SHAPE = "f32[128,128]"
MAX_EXPONENT = 1.3
MAX_SECONDS = 10.0


def module(entry: list[str], outer: str = "") -> str:
    body = "\n  ".join(entry)
    return f"HloModule m, is_scheduled=true\n{outer}\nENTRY main {{\n  {body}\n}}\n"


def graph(n: int) -> str:
    """A random graph of elementwise operations, some reading far back."""
    rng = random.Random(n)
    lines = [f"v0 = {SHAPE} parameter(0)", f"v1 = {SHAPE} parameter(1)"]
    for i in range(2, n):
        near = rng.randrange(max(0, i - 8), i)
        far = rng.randrange(i) if rng.random() < 0.1 else near
        lines.append(f"v{i} = {SHAPE} add(v{near}, v{far})")
    return module([*lines[:-1], "ROOT " + lines[-1]])


def fusions(n: int) -> str:
    """A chain of fusions of eight operations each."""
    count = n // 9
    parts = []
    for k in range(count):
        ops = "\n  ".join(
            f"m{k}_{j} = {SHAPE} multiply({f'm{k}_{j - 1}' if j else f'a{k}'}, b{k})"
            for j in range(6)
        )
        parts.append(
            f"fused{k} {{\n  a{k} = {SHAPE} parameter(0)\n  b{k} = {SHAPE} parameter(1)"
            f"\n  {ops}\n  ROOT r{k} = {SHAPE} exponential(m{k}_5)\n}}"
        )
    lines = [f"p = {SHAPE} parameter(0)", f"q = {SHAPE} parameter(1)"]
    last = "p"
    for k in range(count):
        root = "ROOT " if k == count - 1 else ""
        lines.append(
            f"{root}x{k} = {SHAPE} fusion({last}, q), kind=kLoop, calls=fused{k}"
        )
        last = f"x{k}"
    return module(lines, "\n".join(parts))


def loop(name: str, width: int, inner: str = "") -> str:
    """A loop body over a wide state, a condition, and perhaps a loop within."""
    state = f"({', '.join([SHAPE] * width)})"
    read = [
        f"{name}_g{i} = {SHAPE} get-tuple-element({name}_p), index={i}"
        for i in range(width)
    ]
    step = [
        f"{name}_n{i} = {SHAPE} add({name}_g{i}, {name}_g{(i + 1) % width})"
        for i in range(width)
    ]
    made = ", ".join(f"{name}_n{i}" for i in range(width))
    lines = [f"{name}_p = {state} parameter(0)", *read, *step]
    if inner:
        lines.append(f"{name}_t = {state} tuple({made})")
        lines.append(
            f"ROOT {name}_w = {state} while({name}_t), condition={inner}_cond, body={inner}"
        )
    else:
        lines.append(f"ROOT {name}_t = {state} tuple({made})")
    body = "\n  ".join(lines)
    return (
        f"{name} {{\n  {body}\n}}\n{name}_cond {{ {name}_q = {state} parameter(0)  "
        f"ROOT {name}_f = pred[] constant(false) }}\n"
    )


def entry_loop(names: list[str], width: int) -> list[str]:
    state = f"({', '.join([SHAPE] * width)})"
    lines = [f"p = {state} parameter(0)"]
    last = "p"
    for name in names:
        lines.append(
            f"w_{name} = {state} while({last}), condition={name}_cond, body={name}"
        )
        last = f"w_{name}"
    return [*lines[:-1], "ROOT " + lines[-1]]


def wide(n: int) -> str:
    """One loop over a state of thousands of elements."""
    return module(entry_loop(["body"], n // 2), loop("body", n // 2))


def nested(n: int) -> str:
    """Loops within loops, as deep as there are elements in their state."""
    depth = max(2, math.isqrt(n // 2) // 4)
    width = n // (2 * depth)
    outer = ""
    for k in range(depth):
        outer += loop(f"l{k}", width, f"l{k - 1}" if k else "")
    return module(entry_loop([f"l{depth - 1}"], width), outer)


def sequence(n: int) -> str:
    """Many loops one after the other."""
    width = 8
    names = [f"s{k}" for k in range(n // (2 * width + 4))]
    return module(entry_loop(names, width), "".join(loop(x, width) for x in names))


KINDS: dict[str, Callable[[int], str]] = {
    "graph": graph,
    "fusions": fusions,
    "wide": wide,
    "nested": nested,
    "sequence": sequence,
}


def timed(make: Callable[[], object]) -> tuple[object, float]:
    gc.collect()
    start = time.process_time()
    result = make()
    return result, time.process_time() - start


def measure(text: str) -> tuple[int, dict[str, float]]:
    """Instructions, and CPU seconds per analysis."""
    m = msa.parse(text)
    seconds: dict[str, float] = {}

    def step(name: str, make: Callable[[], object]) -> object:
        result, seconds[name] = timed(make)
        return result

    calls = step("calls", lambda: CallGraph.run(m))
    flow = step("dataflow", lambda: DataflowAnalysis.run(m, call_graph=calls))
    alias = step("alias", lambda: AliasAnalysis.run(m, dataflow=flow))
    flat = step("flatten", lambda: FlattenedSchedule.run(m))
    step("live", lambda: LiveRanges.run(m, alias=alias, schedule=flat))
    costs = step("costs", lambda: InstructionCosts.run(m))
    trips = step("trips", lambda: TripCounts.run(m))

    def benefits() -> None:
        model = CostModel.run(m, TARGET, costs=costs, alias=alias, trip_counts=trips)
        for value in flow.values:
            if flat.time_of(value.instruction) >= 0:
                model.memory_boundedness(value)

    step("benefits", benefits)
    seconds["all"] = sum(seconds.values())
    return m.instruction_count, seconds


def scaling(kind: str, sizes: list[int]) -> float:
    """Print a table and return the exponent of the whole."""
    rows = [measure(KINDS[kind](n)) for n in sizes]
    names = list(rows[0][1])
    print(f"{kind:10s}" + "".join(f"{name:>10s}" for name in names))
    for count, seconds in rows:
        print(f"{count:10d}" + "".join(f"{seconds[name]:10.3f}" for name in names))
    (a, before), (b, after) = rows[-2:]

    def slope(name: str) -> float:
        if before[name] < 0.02:
            return float("nan")
        return math.log(after[name] / before[name]) / math.log(b / a)

    print(f"{'exponent':>10s}" + "".join(f"{slope(name):10.2f}" for name in names))
    return slope("all")


def corpus() -> float:
    """CPU seconds of the facts of the largest recorded modules."""
    folder = Path(os.environ["MSA_SHARED"], "corpus")
    paths = sorted(folder.glob("*.opt.hlo*"), key=lambda p: -len(msa.load(p).to_text()))
    worst = 0.0
    for path in paths[:3]:
        m, reading = timed(lambda path=path: msa.load(path))
        _, seconds = timed(lambda m=m: facts(m, TARGET))
        print(
            f"{path.name:32s} {m.instruction_count:8d} instructions, read "
            f"{reading:6.2f} s, facts {seconds:6.2f} s"
        )
        worst = max(worst, seconds)
    return worst


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["corpus"]:
        return int(corpus() > MAX_SECONDS)
    kinds = arguments[:1] or list(KINDS)
    largest = int(arguments[1]) if len(arguments) > 1 else 40000
    sizes = [largest // 8, largest // 4, largest // 2, largest]
    gc.disable()
    exponents = {kind: scaling(kind, sizes) for kind in kinds}
    gc.enable()
    return int(any(x > MAX_EXPONENT for x in exponents.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
