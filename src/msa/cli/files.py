"""Reading modules and writing results: `-` is a standard stream, files are whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msa.hlo import Module


def read_module(path: str) -> Module:
    """A module from a file, a dump folder, or standard input (`-`)."""
    import msa

    return msa.load(path)


def read_text(path: str) -> str:
    """The text of a file (also packed, `.gz`) or of standard input (`-`)."""
    if path == "-":
        return read_stdin()
    from msa.hlo.files import read_text as read

    return read(path)


def read_stdin() -> str:
    """All of standard input, also packed."""
    from msa.files import read_standard_input

    return read_standard_input("is it text?")


def write_result(path: str, text: str) -> None:
    """Write to standard output (`-`) or replace a file in one step."""
    from msa.files import write_whole

    if path == "-":
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        write_whole(path, text)
