"""`msa pack`: offsets for buffers with lifetimes."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from msa.cli import files

if TYPE_CHECKING:
    from msa.heap import Buffer

EXAMPLES = ("msa pack examples/buffers.csv --capacity 1MiB --html packing.html",)
EXIT_ONE = "the buffers do not fit the capacity"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "buffers",
        metavar="FILE",
        help="CSV id,lower,upper,size[,alignment,offset,group,gaps] or JSON; - for "
        "stdin",
    )
    parser.add_argument("--capacity", metavar="SIZE", help="fail if it does not fit")
    parser.add_argument("--alignment", metavar="SIZE", default="1")
    parser.add_argument("--effort", type=int, help="count of search nodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--reserve",
        metavar="OFFSET:SIZE[:START:END]",
        action="append",
        default=[],
        help="addresses that no buffer may use; may be repeated",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the plan as CSV, or as .json"
    )
    parser.add_argument("--html", metavar="FILE", help="picture of offset × time")
    parser.add_argument("--ascii", action="store_true", help="draw in the terminal")


def run(options: argparse.Namespace) -> int:
    """Pack and print the height against the bound."""
    import msa
    from msa.units import format_bytes, parse_bytes

    extra = {} if options.effort is None else {"effort": options.effort}
    plan = msa.pack(
        _buffers(options.buffers),
        capacity=None if options.capacity is None else parse_bytes(options.capacity),
        alignment=parse_bytes(options.alignment),
        seed=options.seed,
        reserved=[_reserved(text) for text in options.reserve],
        **extra,
    )
    plan.verify()
    if options.output:
        as_json = options.output.endswith(".json")
        text = plan.to_json() if as_json else plan.to_csv()
        files.write_result(options.output, text)
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


def _buffers(path: str) -> list[Buffer]:
    """The buffers of a file or of standard input; none at all is a mistake."""
    from msa.errors import FileFormatError
    from msa.heap import load_buffers, parse_buffers

    piped = path == "-"
    buffers = (
        parse_buffers(files.read_stdin(), name="stdin") if piped else load_buffers(path)
    )
    if not buffers:
        raise FileFormatError(
            "no buffers in it",
            where="stdin" if piped else path,
            hint="rows such as a,0,2,64 below a head line id,lower,upper,size",
        )
    return buffers


def _reserved(text: str) -> tuple[int, ...]:
    from msa.errors import OptionsError
    from msa.units import parse_bytes

    parts = text.split(":")
    if len(parts) in (2, 4):
        try:
            times = [int(part) for part in parts[2:]]
        except ValueError:
            pass
        else:
            return (parse_bytes(parts[0]), parse_bytes(parts[1]), *times)
    raise OptionsError(
        f"cannot read reservation {text!r}", hint="such as 0:64KiB or 0:64KiB:10:20"
    )
