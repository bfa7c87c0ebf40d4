"""`msa plan`: plan a module, print the summary, write what was asked for."""

from __future__ import annotations

import argparse
import sys

from msa.cli import arguments, files
from msa.cli.progress import Progress

EXAMPLES = (
    "msa plan examples/gpt2_small_forward.hlo.gz --alternate-memory 16MiB --html plan.html",
    "msa plan examples/gpt2_small_forward.hlo.gz --target tpu_v6e --strategy search -o planned.hlo",
)
EXIT_ONE = "the plan breaks a rule, or what must be in fast memory does not fit"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    arguments.add_target(parser)
    arguments.add_strategy(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="planned module as HLO")
    parser.add_argument("--html", metavar="FILE", help="self-contained report page")
    parser.add_argument("--json", metavar="FILE", help="the plan as JSON")
    parser.add_argument("--csv", metavar="FILE", help="the copies as CSV")
    parser.add_argument(
        "--capture", metavar="FILE", help="what reports are made of; msa diff reads it"
    )
    parser.add_argument("--perfetto", metavar="FILE", help="trace for Perfetto")
    parser.add_argument(
        "--no-verify", action="store_true", help="skip the check of the plan"
    )
    parser.add_argument("--table", action="store_true", help="list the buffers")
    parser.add_argument("--ascii", action="store_true", help="draw the map")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")


def run(options: argparse.Namespace) -> int:
    """Plan, verify, write files, print the summary."""
    import msa
    from msa.report import capture_plan, capture_to_json, plan_csv, plan_perfetto

    module = files.read_module(options.module)
    target = arguments.target_of(options)
    with Progress() as progress:
        plan = msa.assign(
            module, target, arguments.planning_options(options), progress=progress
        )
    if not options.no_verify:
        plan.verify()
    if options.output:
        files.write_result(options.output, plan.module.to_text())
    if options.html:
        files.write_result(options.html, plan.html())
    if options.json:
        files.write_result(options.json, plan.to_json())
    if options.csv:
        files.write_result(options.csv, plan_csv(plan))
    if options.capture:
        files.write_result(options.capture, capture_to_json(capture_plan(plan)))
    if options.perfetto:
        files.write_result(options.perfetto, plan_perfetto(plan))
    written = (
        options.output,
        options.html,
        options.json,
        options.csv,
        options.perfetto,
    )
    if not options.quiet and "-" not in written:
        sys.stdout.write(plan.summary() + "\n")
        if options.table:
            sys.stdout.write(f"\n{plan.table()}\n")
        if options.ascii:
            sys.stdout.write(f"\n{plan.ascii()}\n")
    return 0
