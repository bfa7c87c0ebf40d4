"""`msa explain`: why a buffer lives where it lives."""

from __future__ import annotations

import argparse
import sys

from msa.cli import arguments, files
from msa.cli.console import print_table
from msa.cli.progress import Progress
from msa.errors import OptionsError, PlanError

EXAMPLES = (
    "msa explain examples/gpt2_small_forward.hlo.gz add_add_fusion.11 --alternate-memory 16MiB --why-not --json why.json",
    "msa explain examples/gpt2_small_forward.hlo.gz --alternate-memory 16MiB",
)
EXIT_ONE = "what must be in fast memory does not fit"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="instruction, or name{index} (default: list all values by size)",
    )
    arguments.add_target(parser)
    arguments.add_strategy(parser)
    parser.add_argument(
        "--dot", metavar="FILE", help="its neighbourhood in the planned module (DOT)"
    )
    parser.add_argument("--html", metavar="FILE", help="the explanation as a page")
    parser.add_argument("--json", metavar="FILE", help="the explanation as JSON")
    parser.add_argument(
        "--why-not", action="store_true", help="what keeps it out of fast memory"
    )


def run(options: argparse.Namespace) -> int:
    """Plan and explain one buffer, or list the names that there are."""
    import msa
    from msa.assignment.explain_names import value_rows

    module = files.read_module(options.module)
    with Progress() as progress:
        plan = msa.assign(
            module,
            arguments.target_of(options),
            arguments.planning_options(options),
            progress=progress,
        )
    if options.name is None:
        for option in ("dot", "html", "json"):
            if getattr(options, option):
                raise OptionsError(f"--{option} needs a name")
        print_table(("value", "bytes", "live in", "place"), value_rows(plan), right={1})
        return 0
    explain = plan.why_not if options.why_not else plan.explain
    try:
        text = explain(options.name)
    except PlanError as error:  # no such name: bad input, not a bad plan
        raise OptionsError(error.message, hint=error.hint) from error
    if options.dot:
        from msa.report import neighbourhood

        name = options.name.partition("{")[0]
        files.write_result(options.dot, neighbourhood(plan.module, name))
    if options.html:
        files.write_result(options.html, text.html())
    if options.json:
        files.write_result(options.json, text.to_json())
    if "-" not in (options.dot, options.html, options.json):
        sys.stdout.write(f"{text}\n")
    return 0
