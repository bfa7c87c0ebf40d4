"""Reading modules and writing results: `-` is a standard stream, files are whole."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msa.hlo import Module


def read_module(path: str) -> Module:
    """A module from a file, a dump folder, or standard input (`-`)."""
    import msa

    if path == "-":
        return msa.parse(sys.stdin.read())
    return msa.load(path)


def write_result(path: str, text: str) -> None:
    """Write to standard output (`-`) or replace a file in one step.

    The text goes to a temporary file beside the target first, so that an interrupted
    run leaves either the old file or the new one.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    target = Path(path)
    handle, temporary = tempfile.mkstemp(
        prefix=f".{target.name}.", dir=target.parent or Path()
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
