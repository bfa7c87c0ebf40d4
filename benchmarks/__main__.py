"""`python -m benchmarks [--json FILE] [--against FILE]`: the tables of the README.

`--json` keeps the figures; `--against` compares with figures kept before: plan
quality must not be worse, times are shown as ratios.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import plans, stages


def collect(memories: list[int], sizes: list[int]) -> dict[str, Any]:
    """All figures as plain data."""
    return {
        "plans": plans.measure("", memories, ["greedy", "search"]),
        "stages": stages.measure(sizes),
    }


def compare(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """Lines that tell what changed; `worse:` marks plans that got slower."""
    lines = []
    before = {(r["module"], r["MiB"], r["strategy"]): r["after"] for r in old["plans"]}
    for row in new["plans"]:
        key = (row["module"], row["MiB"], row["strategy"])
        if key in before and abs(row["after"] / before[key] - 1) > 1e-6:
            word = "worse" if row["after"] > before[key] else "better"
            lines.append(f"{word}: {key} {row['after'] / before[key]:.4f} × before")
    rows = {r["instructions"]: r for r in old["stages"]}
    for row in new["stages"]:
        known = rows.get(row["instructions"])
        if known:
            ratios = ", ".join(
                f"{s} {row[s] / max(known[s], 1e-9):.2f}"
                for s in (*stages.STAGES, "peak_MiB")
                if s in known
            )
            lines.append(f"{row['instructions']} instructions, × before: {ratios}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--memory", type=int, nargs="*", default=[4, 16, 128])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000, 4000])
    options = parser.parse_args()
    figures = collect(options.memory, options.sizes)
    print(plans.table(figures["plans"]))
    print()
    print(stages.table(figures["stages"]))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    worse = False
    if options.against:
        lines = compare(figures, json.loads(options.against.read_text()))
        print("\n".join(lines) or "no plan changed")
        worse = any(line.startswith("worse") for line in lines)
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
