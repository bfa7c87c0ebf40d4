"""Times beside XLA's: its planner as recorded, its reader of text in the same run.

    python -m benchmarks.ratios [NAME] [--memory 4 16 128] [--recorded FILE]

Wall seconds of each stage from text to verified plan. `FILE` tells what XLA's planner
took: JSON, a module's name → `plans` → MiB → `run_seconds` (planning) and
`setup_seconds` (reading and analyses); the one beside the corpus is taken where there
is one (`golden/summary.json`). `× planner` is reading plus planning over their sum,
`× reader` is reading without the verifier over jaxlib's reader, where that is
installed. Cells without a figure to compare with stay empty.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msa
from benchmarks import corpus
from benchmarks.parse import best, xla_reader
from benchmarks.plans import MIB, geomean
from msa.hlo.parser import parse
from msa.report.tables import format_table

STAGES = ("read", "plan", "verify")
_RATIOS = {"planner": "of planner", "reader": "of reader"}
_ROUNDS = 3

Recorded = Mapping[str, Mapping[int, float]]
"""Module → MiB of fast memory → seconds of XLA's planner, reading included."""
Reader = Callable[[str], object]


def recorded(path: Path | None) -> dict[str, dict[int, float]]:
    """What XLA's planner took; nothing without a file."""
    if path is None:
        return {}
    modules: dict[str, Any] = json.loads(path.read_text())
    return {
        name: {
            int(mib): float(plan["run_seconds"]) + float(plan["setup_seconds"])
            for mib, plan in module.get("plans", {}).items()
            if "run_seconds" in plan and "setup_seconds" in plan
        }
        for name, module in modules.items()
    }


def beside_the_corpus() -> Path | None:
    """The recording that comes with a corpus, if there is one."""
    shared = os.environ.get("MSA_SHARED")
    path = Path(shared, "golden", "summary.json") if shared else None
    return path if path is not None and path.exists() else None


def measure(
    names: str,
    memories: Sequence[int],
    known: Recorded,
    reader: Reader | None,
    strategy: str = "greedy",
) -> list[dict[str, Any]]:
    """A row for each module and capacity."""
    rows = []
    for path in corpus.paths(names):
        text = corpus.read(path)
        of_reader = _of_reader(text, reader)
        for mib in memories:
            row = {
                "module": corpus.name(path),
                "MiB": mib,
                **_stages(text, mib, strategy),
            }
            theirs = known.get(row["module"], {}).get(mib)
            if theirs:
                row["of planner"] = (row["read"] + row["plan"]) / theirs
            if of_reader is not None:
                row["of reader"] = of_reader
            rows.append(row)
    return rows


def _stages(text: str, mib: int, strategy: str) -> dict[str, float]:
    """Wall seconds of each stage, nothing kept from another capacity."""
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=mib * MIB)
    marks = [time.perf_counter()]
    module = msa.parse(text)
    marks.append(time.perf_counter())
    plan = msa.assign(module, target, msa.Options(strategy=strategy))  # type: ignore[arg-type]
    marks.append(time.perf_counter())
    plan.verify()
    marks.append(time.perf_counter())
    seconds = (after - before for before, after in pairwise(marks))
    return dict(zip(STAGES, seconds, strict=True))


def _of_reader(text: str, reader: Reader | None) -> float | None:
    """Reading without the verifier over another reader; best of several each."""
    if reader is None:
        return None
    ours = best(lambda: parse(text, verify=False), _ROUNDS)
    return ours / max(best(lambda: reader(text), _ROUNDS), 1e-9)


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Geometric mean of each ratio that there is."""
    rows = list(rows)
    found = {}
    for key in _RATIOS.values():
        values = [row[key] for row in rows if key in row]
        if values:
            found[key] = geomean(values)
    return found


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows for people, geometric means in the last."""
    rows = list(rows)
    body = [
        (
            row["module"],
            f"{row['MiB']} MiB",
            *(f"{row[stage]:.3f} s" for stage in STAGES),
            *(f"{row[key]:.1f}" if key in row else "" for key in _RATIOS.values()),
        )
        for row in rows
    ]
    means = summary(rows)
    if means:
        cells = (f"{means[k]:.1f}" if k in means else "" for k in _RATIOS.values())
        body.append(("geometric mean", *[""] * 4, *cells))
    head = ("module", "memory", *STAGES, *(f"× {name}" for name in _RATIOS))
    return format_table(head, body, right=set(range(2, len(head))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--strategy", default="greedy")
    parser.add_argument("--memory", type=int, nargs="*", default=[4, 16, 128])
    parser.add_argument("--recorded", type=Path, default=beside_the_corpus())
    options = parser.parse_args()
    known = recorded(options.recorded)
    rows = measure(options.name, options.memory, known, xla_reader(), options.strategy)
    print(table(rows))


if __name__ == "__main__":
    main()
