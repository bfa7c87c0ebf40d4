"""Writing results: a file is whole or as it was before."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: str | Path, text: str) -> None:
    """Replace a file in one step.

    The text goes to a temporary file beside it first, so that an interrupted run
    leaves either the old file or the new one. What is not a regular file (a pipe, a
    terminal) is written directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            stream.write(text)
        return
    target = target.resolve()
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
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


def write_text(text: str, path: str | Path | None) -> str:
    """The text, also written to `path` if one is given."""
    if path is not None:
        write_whole(path, text)
    return text
