"""`msa opt`: run passes over a module."""

from __future__ import annotations

import argparse

from msa.cli import files
from msa.cli.progress import Progress

EXAMPLES = (
    'msa opt examples/gpt2_small_forward.hlo.gz -p "copy-insertion,dce" -o out.hlo',
)
EXIT_ONE = "a pass cannot do what it must"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("module", metavar="MODULE", help="HLO text, or - for stdin")
    parser.add_argument(
        "-p", "--pipeline", required=True, help='passes, such as "a,b{x=1}"'
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="-")


def run(options: argparse.Namespace) -> int:
    """Run the pipeline on the module and print the result."""
    from msa.passes import Pipeline

    pipeline = Pipeline(options.pipeline)
    module = files.read_module(options.module)
    with Progress() as progress:
        result = pipeline.run(module, progress=progress)
    files.write_result(options.output, result.to_text())
    return 0
