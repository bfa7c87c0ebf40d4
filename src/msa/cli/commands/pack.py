"""`msa pack`: offsets for buffers with lifetimes."""

from __future__ import annotations

import argparse
import sys

from msa.cli import files

EXAMPLE = "msa pack buffers.csv --capacity 1MiB --html packing.html"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "buffers", metavar="FILE", help="CSV id,lower,upper,size, or JSON rows"
    )
    parser.add_argument("--capacity", metavar="SIZE", help="fail if it does not fit")
    parser.add_argument("--alignment", metavar="SIZE", default="1")
    parser.add_argument("--effort", type=int, help="count of search nodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", metavar="FILE", help="offsets as CSV")
    parser.add_argument("--html", metavar="FILE", help="picture of offset × time")
    parser.add_argument("--ascii", action="store_true", help="draw in the terminal")


def run(options: argparse.Namespace) -> int:
    """Pack and print the height against the bound."""
    import msa
    from msa.units import format_bytes, parse_bytes

    extra = {} if options.effort is None else {"effort": options.effort}
    plan = msa.pack(
        options.buffers,
        capacity=None if options.capacity is None else parse_bytes(options.capacity),
        alignment=parse_bytes(options.alignment),
        seed=options.seed,
        **extra,
    )
    plan.verify()
    if options.output:
        files.write_result(options.output, plan.to_csv())
    if options.html:
        files.write_result(options.html, plan.to_html())
    if "-" in (options.output, options.html):
        return 0
    if options.ascii:
        sys.stdout.write(f"{plan.ascii()}\n")
    proof = "optimal" if plan.optimal else "not proved optimal"
    sys.stdout.write(
        f"height      {plan.height} B ({format_bytes(plan.height)}), {proof}\n"
        f"lower bound {plan.lower_bound} B ({format_bytes(plan.lower_bound)})\n"
    )
    return 0
