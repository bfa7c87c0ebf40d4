"""How far plans are from the lower bound: (after - bound) / bound.

python -m benchmarks.gaps [NAME] [--memory 4 16 128]

Prints a Markdown table of the corpus (see `benchmarks.corpus`), greedy and search. No
plan at a capacity can have a smaller gap than 0; one above 0 may be the plan's or the
bound's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import plans

_STRATEGIES = ("greedy", "search")


def gap(row: dict[str, Any]) -> float:
    """The gap of one row of `plans.measure`; 0 for a program without work."""
    bound = float(row["bound"])
    return float(row["after"]) / bound - 1.0 if bound > 0.0 else 0.0


def table(rows: Iterable[dict[str, Any]], memories: Sequence[int]) -> str:
    """A line per module: gaps of greedy and search at each capacity."""
    gaps = {(r["module"], r["MiB"], r["strategy"]): gap(r) for r in rows}
    heads = [f"{strategy}, {mib} MiB" for mib in memories for strategy in _STRATEGIES]
    lines = [
        "| module | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for module in dict.fromkeys(module for module, _, _ in gaps):
        cells = [
            f"{gaps[module, mib, strategy]:.3f}"
            for mib in memories
            for strategy in _STRATEGIES
        ]
        lines.append(f"| {module} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--memory", type=int, nargs="*", default=[4, 16, 128])
    options = parser.parse_args()
    rows = plans.measure(options.name, options.memory, _STRATEGIES)
    print(table(rows, options.memory))


if __name__ == "__main__":
    main()
