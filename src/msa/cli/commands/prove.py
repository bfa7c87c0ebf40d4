"""`msa prove`: execute the original and the planned module and compare."""

from __future__ import annotations

import argparse
import sys

from msa.cli import arguments, files
from msa.cli.progress import Progress

EXAMPLES = (
    "msa prove examples/gpt2_small_forward.hlo.gz --alternate-memory 4MiB --seeds 2",
)
EXIT_ONE = "the results differ, or an access is not allowed"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    arguments.add_target(parser)
    arguments.add_strategy(parser)
    parser.add_argument("--seeds", type=int, default=1, help="runs (default: 1)")


def run(options: argparse.Namespace) -> int:
    """Plan, verify and prove with several seeds."""
    import msa

    module = files.read_module(options.module)
    with Progress() as progress:
        plan = msa.assign(
            module,
            arguments.target_of(options),
            arguments.planning_options(options),
            progress=progress,
        )
        plan.verify()
        for seed in range(options.seeds):
            progress("proving", seed, options.seeds)
            plan.prove(seed=seed)
    sys.stdout.write(f"equal on {options.seeds} seed(s): {module.name}\n")
    return 0
