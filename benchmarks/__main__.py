"""`python -m benchmarks [--json FILE] [--against FILE]`: the tables of the README.

`--json` keeps the figures; `--against` compares with figures kept before, such as
`benchmarks/baseline.json` (of the bundled modules): plan quality must not be worse,
times, growth and ratios to XLA's times are shown beside those before. `--recorded`
names a file of XLA's times (see `benchmarks.ratios`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import plans, ratios, stages
from benchmarks.parse import xla_reader

_STRATEGIES = ("greedy", "search")


def collect(
    names: str, memories: list[int], sizes: list[int], recorded: Path | None
) -> dict[str, Any]:
    """All figures as plain data. Stages come first: their memory is the most so far."""
    rows = stages.measure(sizes)
    known = ratios.recorded(recorded)
    return {
        "stages": rows,
        "growth": stages.growth(rows),
        "plans": plans.measure(names, memories, _STRATEGIES),
        "ratios": ratios.measure(names, memories, known, xla_reader()),
    }


def compare(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """Lines that tell what changed; `worse:` marks plans that got slower."""
    return [
        *_plans_changed(new["plans"], old["plans"]),
        *_times_changed(new["stages"], old["stages"]),
        *_figures_changed("growth, n^", new["growth"], old.get("growth", {})),
        *_figures_changed(
            "seconds × XLA's, ",
            ratios.summary(new["ratios"]),
            ratios.summary(old.get("ratios", [])),
        ),
    ]


def _plans_changed(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[str]:
    lines = []
    before = {(r["module"], r["MiB"], r["strategy"]): r["after"] for r in old}
    for row in new:
        key = (row["module"], row["MiB"], row["strategy"])
        if key in before and abs(row["after"] / before[key] - 1) > 1e-6:
            word = "worse" if row["after"] > before[key] else "better"
            lines.append(f"{word}: {key} {row['after'] / before[key]:.4f} × before")
    return lines


def _times_changed(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[str]:
    lines = []
    rows = {r["instructions"]: r for r in old}
    for row in new:
        known = rows.get(row["instructions"])
        if known:
            shares = ", ".join(
                f"{s} {row[s] / max(known[s], 1e-9):.2f}"
                for s in (*stages.STAGES, "peak_MiB")
                if s in known
            )
            lines.append(f"{row['instructions']} instructions, × before: {shares}")
    return lines


def _figures_changed(
    what: str, new: dict[str, float], old: dict[str, float]
) -> list[str]:
    """One line of figures that both have: before → now."""
    both = [f"{k} {old[k]:.2f} → {new[k]:.2f}" for k in new if k in old]
    return [f"{what}{', '.join(both)}"] if both else []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="part of modules' names")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--recorded", type=Path, default=ratios.beside_the_corpus())
    parser.add_argument("--memory", type=int, nargs="*", default=[4, 16, 128])
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[1000, 2000, 4000, 8000]
    )
    options = parser.parse_args(arguments)
    figures = collect(options.name, options.memory, options.sizes, options.recorded)
    print(plans.table(figures["plans"]))
    print()
    print(stages.table(figures["stages"]))
    print()
    print(ratios.table(figures["ratios"]))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    worse = False
    if options.against:
        lines = compare(figures, json.loads(options.against.read_text()))
        print()
        print("\n".join(lines) or "no plan changed")
        worse = any(line.startswith("worse") for line in lines)
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
