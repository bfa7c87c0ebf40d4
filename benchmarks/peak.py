"""Temporary bytes of real modules: this library against a recorded assignment.

    MSA_SHARED=… python benchmarks/peak.py [NAME]

For every module with a recorded buffer assignment the table shows the temporaries
that XLA allocated, and those of this library: `standard` follows the same rules,
`tight` also packs temporaries into outputs and donated arguments while these are
not in use. Every assignment is verified. Ratios are to the recorded bytes.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path

import msa
from msa.analysis import LiveRanges
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions

ALIGNMENT = 64  # what the recorded assignments use


def programs(shared: Path, wanted: str):
    """(name, path of the module, recorded temporary bytes)."""
    manifest = json.loads((shared / "corpus" / "manifest.json").read_text())
    for program in manifest["programs"]:
        record = program.get("buffer_assignment")
        if not record or wanted not in program["name"]:
            continue
        for entry in program["files"]:
            if entry["form"] == "opt":
                path = shared / "corpus" / entry["file"]
                yield program["name"], path, sum(record["temp_allocations"])


def measure(path: Path) -> tuple[dict[str, int], dict[str, float]]:
    """Temporary bytes and CPU seconds per kind of sharing."""
    module = msa.load(path)
    live = LiveRanges.run(module)
    found, seconds = {}, {}
    for sharing in ("standard", "tight"):
        options = BufferAssignmentOptions(sharing=sharing, alignment=ALIGNMENT)
        start = time.process_time()
        assignment = BufferAssignment.run(module, options, live=live)
        seconds[sharing] = time.process_time() - start
        assignment.verify()
        found[sharing] = assignment.temporary_bytes
    return found, seconds


def geomean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> int:
    shared = os.environ.get("MSA_SHARED")
    if not shared:
        print("set MSA_SHARED to the folder that holds corpus/", file=sys.stderr)
        return 2
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    ratios: dict[str, list[float]] = {"standard": [], "tight": []}
    print(
        f"{'module':28}{'recorded':>15}{'standard':>15}{'':>8}{'tight':>15}{'':>8}{'s':>8}"
    )
    worse = 0
    for name, path, recorded in programs(Path(shared), wanted):
        found, seconds = measure(path)
        cells = ""
        for kind, size in found.items():
            ratio = size / recorded
            ratios[kind].append(max(ratio, 1e-3))
            cells += f"{size:>15,}{ratio:>8.4f}"
        worse += found["tight"] > recorded
        print(f"{name:28}{recorded:>15,}{cells}{sum(seconds.values()):>8.2f}")
    for kind, values in ratios.items():
        print(f"{kind}: geomean {geomean(values):.4f} of {len(values)}")
    print(f"tight is worse than recorded in {worse} modules")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
