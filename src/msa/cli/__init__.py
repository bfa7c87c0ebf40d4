"""The command line: `msa` and `python -m msa`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 done, 1 a negative answer (does not fit, differs), 2 bad input, 130 interrupted.
    """
    from msa.cli.app import run

    return run(argv)
