"""`python -m msa.diag` is the command `msa diag`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a diagnosis; 0 nothing found, 1 findings, 2 bad input."""
    from msa.cli import main as run

    return run(["diag", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    raise SystemExit(main())
