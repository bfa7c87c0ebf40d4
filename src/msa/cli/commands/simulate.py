"""`msa simulate`: the modelled time of a module as it stands."""

from __future__ import annotations

import argparse
import json
import sys

from msa.cli import arguments, files

EXAMPLES = ("msa simulate examples/gpt2_small_forward.hlo.gz --target tpu_v5e",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    arguments.add_target(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Simulate and print seconds."""
    import msa
    from msa.units import format_bytes, format_seconds

    module = files.read_module(options.module)
    result = msa.simulate(module, arguments.target_of(options))
    peak = int(max(result.alternate_bytes, default=0))
    if options.json:
        row = {
            "elapsed_seconds": result.elapsed_seconds,
            "copy_stall_seconds": result.copy_stall_seconds,
            "alternate_peak_bytes": peak,
        }
        sys.stdout.write(json.dumps(row) + "\n")
        return 0
    sys.stdout.write(
        f"time             {format_seconds(result.elapsed_seconds)}\n"
        f"waits for copies {format_seconds(result.copy_stall_seconds)}\n"
        f"fast memory      {format_bytes(peak)} at the fullest step\n"
    )
    return 0
