"""Reading files that may be packed; writing files that are whole or not there."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import zlib
from pathlib import Path

from msa.errors import FileFormatError, did_you_mean, shown


def read_unpacked(path: Path) -> bytes:
    """The bytes of a file; those inside if it is packed with gzip, whatever its name.

    Raises:
        OSError, EOFError, ValueError, zlib.error: it cannot be read.

    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "rows").write_bytes(gzip.compress(b"a,0,2,64"))
    >>> read_unpacked(Path(folder, "rows"))
    b'a,0,2,64'
    """
    data = path.read_bytes()
    packed = path.suffix == ".gz" or data[:2] == b"\x1f\x8b"
    return gzip.decompress(data) if packed else data


def no_such_file(path: Path) -> FileFormatError:
    """The error for a missing file, with the nearest name in its folder.

    >>> print(no_such_file(Path("/nowhere/m.hlo")))
    /nowhere/m.hlo: there is no folder /nowhere; is the path right, from where you are?
    """
    message, names = "no such file", []
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        message = f"there is no folder {path.parent}"
    hint = did_you_mean(path.name, names, "is the path right, from where you are?")
    return FileFormatError(message, where=str(path), hint=hint)


def read_standard_input(hint: str) -> str:
    """All text of standard input, unpacked if it is packed with gzip.

    Args:
        hint: what to try when it cannot be read.

    Raises:
        FileFormatError: it is closed, or holds no text.
    """
    try:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:  # a stand-in that holds text only
            return sys.stdin.read()
        data = stream.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return str(data.decode("utf-8-sig"))
    except (OSError, EOFError, ValueError, AttributeError, zlib.error) as error:
        raise FileFormatError(
            f"cannot be read: {error}", where="standard input", hint=hint
        ) from error


def write_whole(
    path: str | Path, content: str | bytes, *, scratch: Path | None = None
) -> None:
    """Replace a file in one step.

    The content goes to a temporary file first, so that an interrupted run leaves
    either the old file or the new one. What is not a regular file (a pipe, a
    terminal) is written directly.

    Args:
        path: where to.
        content: text, written as UTF-8, or bytes.
        scratch: folder of the temporary file, on the same disk; by default it lies
            beside the file.

    Raises:
        FileFormatError: the file cannot be written.
        BrokenPipeError: the reader of a pipe went away.

    >>> write_whole("/nowhere/plan.json", "{}")
    Traceback (most recent call last):
    ...
    msa.errors.FileFormatError: /nowhere/plan.json: cannot be written: No such file or directory; does the folder exist, and may you write there?
    """
    try:
        target = Path(path)
        raw = content.encode("utf-8") if isinstance(content, str) else content
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                stream.write(raw)
        else:
            _replace(target.resolve(), raw, scratch)
    except BrokenPipeError:
        raise
    except (TypeError, ValueError) as error:
        # No path at all, a path with a zero byte, or text that is not Unicode.
        raise FileFormatError(
            f"cannot be written: {error}", where=shown(path)
        ) from error
    except OSError as error:
        raise FileFormatError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint="does the folder exist, and may you write there?",
        ) from error


def _replace(target: Path, raw: bytes, scratch: Path | None) -> None:
    handle, temporary = tempfile.mkstemp(
        prefix=f".{target.name}.", dir=scratch or target.parent
    )
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(text: str, path: str | Path | None) -> str:
    """The text, also written to `path` if one is given (see `write_whole`)."""
    if path is not None:
        write_whole(path, text)
    return text
