"""`msa diff`: compare two plans."""

from __future__ import annotations

import argparse
import sys

from msa.cli import arguments, files
from msa.cli.progress import Progress

EXAMPLE = "msa diff model.hlo --alternate-memory 16MiB --against-memory 32MiB"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    parser.add_argument(
        "other", metavar="OTHER", nargs="?", help="second module (default: the same)"
    )
    arguments.add_target(parser)
    arguments.add_strategy(parser)
    parser.add_argument(
        "--against-memory", metavar="SIZE", help="fast memory of the second plan"
    )
    parser.add_argument("--html", metavar="FILE", help="page with both maps")
    parser.add_argument(
        "--against-strategy", choices=["greedy", "search"], help="of the second plan"
    )


def run(options: argparse.Namespace) -> int:
    """Make both plans; exit 1 when they differ."""
    import dataclasses

    import msa

    module = files.read_module(options.module)
    other = files.read_module(options.other) if options.other else module
    target = arguments.target_of(options)
    planning = arguments.planning_options(options)
    second, against = target, planning
    if options.against_memory is not None:
        second = target.replace(alternate_memory_bytes=options.against_memory)
    if options.against_strategy is not None:
        against = dataclasses.replace(planning, strategy=options.against_strategy)
    with Progress() as progress:
        left = msa.assign(module, target, planning, progress=progress)
        right = msa.assign(other, second, against, progress=progress)
    difference = left.diff(right)
    if options.html:
        files.write_result(options.html, difference.html())
    if options.html != "-":
        sys.stdout.write(f"{difference}\n")
    return 1 if difference else 0
