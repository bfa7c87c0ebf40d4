"""`msa diff`: compare two plans."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msa.cli import arguments, files
from msa.cli.progress import Progress
from msa.errors import OptionsError

if TYPE_CHECKING:
    from msa.report import PlanDiff

EXAMPLES = (
    "msa diff examples/gpt2_small_forward.hlo.gz --alternate-memory 16MiB --against-memory 32MiB --json diff.json",
    "msa diff examples/gpt2_small_forward.hlo.gz --target tpu_v5e --against-target tpu_v6e --html diff.html",
)
EXIT_ONE = "the plans differ, or what must be in fast memory does not fit"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="second module (default: the same), or two captured plans",
    )
    arguments.add_target(parser)
    arguments.add_strategy(parser)
    parser.add_argument(
        "--against-target", metavar="TARGET", help="machine of the second plan"
    )
    parser.add_argument(
        "--against-memory", metavar="SIZE", help="fast memory of the second plan"
    )
    parser.add_argument(
        "--against-strategy", choices=["greedy", "search"], help="of the second plan"
    )
    parser.add_argument("--html", metavar="FILE", help="page with both maps")
    parser.add_argument("--json", metavar="FILE", help="the difference as JSON")


def run(options: argparse.Namespace) -> int:
    """Make or read both plans; exit 1 when they differ."""
    if options.module.endswith(".json"):
        difference = _of_captures(options)
    else:
        difference = _of_plans(options)
    if options.html:
        files.write_result(options.html, difference.html())
    if options.json:
        files.write_result(options.json, difference.to_json())
    if "-" not in (options.html, options.json):
        sys.stdout.write(f"{difference}\n")
    return 1 if difference else 0


def _of_captures(options: argparse.Namespace) -> PlanDiff:
    from msa.report import capture_from_json, compare

    if options.other is None:
        raise OptionsError("give two captured plans", hint="msa diff a.json b.json")
    paths = (Path(options.module), Path(options.other))
    first, second = (capture_from_json(p.read_text(encoding="utf-8")) for p in paths)
    return compare(first, second)


def _of_plans(options: argparse.Namespace) -> PlanDiff:
    import dataclasses

    import msa
    from msa.report import plan_diff

    module = files.read_module(options.module)
    other = files.read_module(options.other) if options.other else module
    target = arguments.target_of(options)
    planning = arguments.planning_options(options)
    second, against = target, planning
    if options.against_target is not None:
        # The other machine has its own fast memory unless a size is given.
        second = arguments.named_target(options.against_target)
    if options.against_memory is not None:
        second = second.replace(alternate_memory_bytes=options.against_memory)
    if options.against_strategy is not None:
        against = dataclasses.replace(planning, strategy=options.against_strategy)
    with Progress() as progress:
        left = msa.assign(module, target, planning, progress=progress)
        right = msa.assign(other, second, against, progress=progress)
    return plan_diff(left, right)
