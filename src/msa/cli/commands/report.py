"""`msa report`: what is at the peak, and why."""

from __future__ import annotations

import argparse
import json
import sys

from msa.cli import arguments, files

EXAMPLES = ("msa report examples/gpt2_small_forward.hlo.gz --html memory.html",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_module(parser)
    arguments.add_target(parser)
    parser.add_argument("--html", metavar="FILE", help="self-contained report page")
    parser.add_argument("--json", metavar="FILE", help="the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Analyse, write files, print the report."""
    import msa

    module = files.read_module(options.module)
    report = msa.analyze(module, target=arguments.target_of(options))
    if options.html:
        files.write_result(options.html, report.html())
    if options.json:
        text = json.dumps(report.to_dict(), indent=1)
        files.write_result(options.json, text + "\n")
    if "-" not in (options.html, options.json):
        sys.stdout.write(f"{report}\n")
    return 0
