"""Plan quality: modelled time before and after, against the lower bound.

python -m benchmarks.plans [NAME] [--strategy greedy|search] [--memory 4 16 128]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from typing import Any

import msa
from benchmarks import corpus
from msa.report.tables import format_table
from msa.units import format_seconds

MIB = 1 << 20


def measure(
    names: str, memories: Sequence[int], strategies: Sequence[str]
) -> list[dict[str, Any]]:
    """One row for each module, capacity and strategy; every plan is verified."""
    rows = []
    target = msa.Target.preset("tpu_v5e")
    for path in corpus.paths(names):
        module = msa.parse(corpus.read(path))
        for mib in memories:
            machine = target.replace(alternate_memory_bytes=mib * MIB)
            for strategy in strategies:
                plan = msa.assign(module, machine, msa.Options(strategy=strategy))
                plan.verify()
                e = plan.estimate
                rows.append(
                    {
                        "module": corpus.name(path),
                        "MiB": mib,
                        "strategy": strategy,
                        "before": e.before_seconds,
                        "after": e.after_seconds,
                        "bound": e.lower_bound_seconds,
                        "speedup": e.speedup,
                        "copies": len(plan.copies),
                    }
                )
    return rows


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Rows for people."""
    body = [
        (
            row["module"],
            f"{row['MiB']} MiB",
            row["strategy"],
            format_seconds(row["before"]),
            format_seconds(row["after"]),
            format_seconds(row["bound"]),
            f"{row['speedup']:.2f}×",
            str(row["copies"]),
        )
        for row in rows
    ]
    head = ("module", "memory", "strategy", "before", "after", "bound", "speed-up")
    return format_table((*head, "copies"), body, right={3, 4, 5, 6, 7})


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; nan without values."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--strategy", nargs="*", default=["greedy", "search"])
    parser.add_argument("--memory", type=int, nargs="*", default=[4, 16, 128])
    options = parser.parse_args()
    rows = measure(options.name, options.memory, options.strategy)
    print(table(rows))
    for strategy in options.strategy:
        found = [r["speedup"] for r in rows if r["strategy"] == strategy]
        print(f"{strategy}: speed-up, geometric mean {geomean(found):.2f}")


if __name__ == "__main__":
    main()
