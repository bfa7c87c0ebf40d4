"""Prints a command that the README tells a newcomer to run.

`python tests/readme_command.py tests` prints the one that passes the tests,
`python tests/readme_command.py plan` the one that plans the bundled module, so that
automation runs exactly what the README says.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def command(label: str) -> str:
    """The first line of the shell block that follows `<!-- command: label -->`."""
    text = README.read_text(encoding="utf-8")
    pattern = rf"<!-- command: {re.escape(label)} -->\s*```(?:sh|bash)\n(.+?)\n```"
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        raise SystemExit(f"the README has no command labelled {label!r}")
    return match[1]


if __name__ == "__main__":
    sys.stdout.write(command(sys.argv[1]) + "\n")
