"""CPU seconds of each stage from text to verified plan, how they grow, peak memory.

    python -m benchmarks.stages [--sizes 1000 2000 4000 8000]

Generated modules: layers of a dot, a bias and a tanh whose results the backward half
reads again. The exponent is the slope of log(seconds) over log(instructions). Memory is
the most that the process has held so far, so sizes are measured in ascending order.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import msa
from msa.report.tables import format_table

STAGES = ("parse", "plan", "verify", "simulate", "print")
_SHAPE = "f32[512,512]{1,0}"
_WARM_UP = 50
"""Instructions of a module that is planned first."""


def training_step(count: int) -> str:
    """Text of a scheduled module of about `count` instructions."""
    layers = max(1, count // 9)
    lines = [f"  p0 = {_SHAPE} parameter(0)"]
    lines += [f"  w{i} = {_SHAPE} parameter({i + 1})" for i in range(layers)]
    dot = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    last = "p0"
    for i in range(layers):
        lines.append(f"  d{i} = {_SHAPE} dot({last}, w{i}){dot}")
        lines.append(f"  a{i} = {_SHAPE} tanh(d{i})")
        last = f"a{i}"
    gradient, total = last, "p0"
    for i in range(layers - 1, -1, -1):
        lines.append(f"  sq{i} = {_SHAPE} multiply(a{i}, a{i})")
        lines.append(f"  t{i} = {_SHAPE} multiply({gradient}, sq{i})")
        lines.append(f"  dx{i} = {_SHAPE} subtract({gradient}, t{i})")
        lines.append(f"  g{i} = {_SHAPE} dot(dx{i}, w{i}){dot}")
        lines.append(f"  h{i} = {_SHAPE} add({total}, g{i})")
        gradient, total = f"g{i}", f"h{i}"
    lines[-1] = lines[-1].replace("  ", "  ROOT ", 1)
    body = "\n".join(lines)
    return f"HloModule train, is_scheduled=true\n\nENTRY main {{\n{body}\n}}\n"


def measure(sizes: Sequence[int], strategy: str = "greedy") -> list[dict[str, Any]]:
    """One row for each size; what is loaded on the first use is loaded before."""
    if len(sizes) > 1:
        measure([_WARM_UP], strategy)
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="16MiB")
    options = msa.Options(strategy=strategy)  # type: ignore[arg-type]
    rows = []
    for size in sorted(sizes):
        text = training_step(size)
        marks = [time.process_time()]
        module = msa.parse(text)
        marks.append(time.process_time())
        plan = msa.assign(module, target, options)
        marks.append(time.process_time())
        plan.verify()
        marks.append(time.process_time())
        msa.simulate(plan.module, target)
        marks.append(time.process_time())
        plan.module.to_text()
        marks.append(time.process_time())
        row: dict[str, Any] = {"instructions": module.instruction_count}
        for stage, a, b in zip(STAGES, marks[:-1], marks[1:], strict=True):
            row[stage] = b - a
        row["peak_MiB"] = _peak_mib()
        rows.append(row)
    return rows


def _peak_mib() -> float:
    """The most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def exponent(rows: Sequence[dict[str, Any]], stage: str) -> float:
    """Slope of log(seconds) over log(instructions), by least squares."""
    xs = [math.log(row["instructions"]) for row in rows]
    ys = [math.log(max(row[stage], 1e-9)) for row in rows]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return top / sum((x - mx) ** 2 for x in xs)


def growth(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The exponent of each stage; nothing of fewer than three sizes."""
    return {s: exponent(rows, s) for s in STAGES} if len(rows) > 2 else {}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows for people, growth in the last."""
    body = [
        (
            f"{row['instructions']:,}",
            *(f"{row[s]:.2f} s" for s in STAGES),
            f"{row['peak_MiB']:.0f} MiB",
        )
        for row in rows
    ]
    exponents = growth(rows)
    if exponents:
        body.append(("growth", *(f"n^{exponents[s]:.2f}" for s in STAGES), ""))
    head = ("instructions", *STAGES, "memory")
    return format_table(head, body, right=set(range(len(head))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[1000, 2000, 4000, 8000]
    )
    parser.add_argument("--strategy", default="greedy")
    options = parser.parse_args()
    print(table(measure(options.sizes, options.strategy)))


if __name__ == "__main__":
    main()
