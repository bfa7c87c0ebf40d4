"""`msa sweep`: modules × capacities × targets."""

from __future__ import annotations

import argparse

from msa.cli import arguments, files
from msa.cli.console import print_table
from msa.cli.progress import Progress

EXAMPLES = (
    "msa sweep examples/gpt2_small_forward.hlo.gz --memory 4MiB 16MiB 128MiB --csv curve.csv",
)
EXIT_ONE = "a combination could not be planned"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("modules", metavar="MODULE", nargs="+", help="HLO files")
    parser.add_argument(
        "--target", nargs="+", default=["tpu_v5e"], help="presets or files"
    )
    parser.add_argument(
        "--memory", nargs="+", metavar="SIZE", help="capacities of the fast memory"
    )
    arguments.add_strategy(parser)
    parser.add_argument("--csv", metavar="FILE", help="rows as CSV")
    parser.add_argument(
        "--journal", metavar="FILE", help="keep finished rows; go on after a stop"
    )
    parser.add_argument("--jobs", type=int, help="processes (default: all cores)")


def run(options: argparse.Namespace) -> int:
    """Plan every combination and print the table."""
    import msa
    from msa.report.sweeping import process_pool

    modules = {path: files.read_module(path) for path in options.modules}
    targets = []
    for name in options.target:
        for size in options.memory or [None]:
            one = argparse.Namespace(target=name, alternate_memory=size)
            targets.append(arguments.target_of(one))
    with Progress() as progress, process_pool(options.jobs) as pool:
        result = msa.sweep(
            modules,
            targets,
            arguments.planning_options(options),
            executor=pool,
            journal=options.journal,
            progress=progress,
        )
    if options.csv:
        files.write_result(options.csv, result.to_csv())
    if options.csv != "-":
        print_table(result.columns, result.cells(), right={3, 4, 5, 6, 7})
    return 1 if any(row.error for row in result.rows) else 0
