"""Growth of planning and verifying with what there are many of in wide programs.

    python -m benchmarks.wide [NAME] [--share 1.0]

CPU seconds from text to verified plan, for a quarter of what is many and for all of it.
The exponent is the slope of log(seconds) over log(number): 1 is linear. `--share`
makes all of it less.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import msa
from benchmarks.wide_programs import PROGRAMS
from msa.report.tables import format_table

STAGES = ("parse", "plan", "verify")


def seconds(text: str) -> dict[str, float]:
    """CPU seconds of each stage."""
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="16MiB")
    marks = [time.process_time()]
    module = msa.parse(text)
    marks.append(time.process_time())
    plan = msa.assign(module, target)
    marks.append(time.process_time())
    plan.verify()
    marks.append(time.process_time())
    return {s: marks[i + 1] - marks[i] for i, s in enumerate(STAGES)}


def measure(name: str = "", share: float = 1.0) -> list[dict[str, Any]]:
    """A row for each kind of program and number; the larger one has the exponent."""
    rows = []
    seconds(PROGRAMS["one value read often"][0](50))  # what is loaded on first use
    for what, (make, most) in PROGRAMS.items():
        if name not in what:
            continue
        before = 0.0
        for number in (int(most * share / 4), int(most * share)):
            row: dict[str, Any] = {"what": what, "number": number}
            row |= seconds(make(number))
            total = sum(row[stage] for stage in STAGES)
            if before:
                row["exponent"] = math.log(total / before) / math.log(4.0)
            before = total
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Rows for people."""
    body = [
        (
            f"{row['number']:,}",
            row["what"],
            *(f"{row[stage]:.2f} s" for stage in STAGES),
            f"n^{row['exponent']:.2f}" if "exponent" in row else "",
        )
        for row in rows
    ]
    return format_table(("number", "of", *STAGES, "growth"), body, right={0, 2, 3, 4})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    print(table(measure(options.name, options.share)))


if __name__ == "__main__":
    main()
