"""Reading modules from files, dump folders and standard input."""

from __future__ import annotations

import importlib
import os
import re
import zlib
from collections.abc import Iterable
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Final

from msa.errors import FileFormatError, HloParseError, UnsupportedError, shown
from msa.files import no_such_file, read_standard_input, read_unpacked
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.hlo.parser import parse

_DUMP: Final = re.compile(r"module_(\d+)\.(.+?)\.(?:\d+\.)?(.*)\.(?:txt|hlo)(?:\.gz)?$")
_BEST_LAST: Final = ("before_optimizations", "after_optimizations")


def load(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    verify: bool = True,
    allow_unknown: bool = False,
) -> Module:
    """Read one module.

    Args:
        path: a text file (`.hlo`, `.txt`, either with `.gz`), a folder of XLA dumps
            (`module_0003.jit_f.cpu_after_optimizations.txt`), or `-` for standard
            input.
        name: in a folder, the name of the module to pick (needed when the dumps are
            of several modules).
        verify: check the rules of the IR after reading.
        allow_unknown: keep unknown opcodes and attributes as opaque ones.

    Raises:
        FileFormatError: the file is missing, unreadable or not text, or no path.
        HloParseError, HloVerifyError: see `msa.parse`.
        UnsupportedError: a `.pb` file.

    >>> import tempfile, msa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/m.hlo"
    ...     _ = Path(path).write_text("ENTRY e { ROOT p = f32[4] parameter(0) }")
    ...     msa.load(path).entry.name
    'e'
    """
    path = _path(path)
    if name is not None:
        expect(name, str, where="load", what="a module's name as text")
    piped = str(path) == "-"
    if piped:
        text = read_standard_input("pipe HLO text into it")
    else:
        text = read_text(path, name)
    try:
        return parse(text, verify=verify, allow_unknown=allow_unknown)
    except HloParseError as error:
        error.where = f"{'standard input' if piped else path}:{error.where}"
        error.hint = _advice(text, error.line) or error.hint
        raise


def _advice(text: str, line: int) -> str:
    """What to try with a text that is no HLO or ends early, from what it looks like.

    Args:
        text: the whole text.
        line: where reading stopped, counted from 1.
    """
    head = text.lstrip("\ufeff \t\r\n")[:4096]
    first = head.partition("\n")[0].lower()
    if not head:
        return "give it HLO text, such as compiled.as_text() prints"
    if head[0] in "{[":
        return "is it a list of buffers, for `msa pack`?"
    if "," in first and "size" in first and "=" not in first:
        return "is it a table of buffers, for `msa pack`?"
    if "hlomodule" not in first and " = " not in head and "entry" not in head.lower():
        return "is it HLO text, such as compiled.as_text() prints?"
    ended = line > text.rstrip().count("\n")
    if ended and text.count("{") > text.count("}"):
        return "the text ends before its braces close: was the file cut off?"
    return ""


def _path(path: object) -> Path:
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str | PathLike):
        raise FileFormatError(
            f"takes a path, not {shown(path)}",
            where="load",
            hint="the name of a file or folder, or '-' for standard input",
        )
    return Path(path)


def read_text(path: str | Path, name: str | None = None) -> str:
    """The text of a file or of a dump folder, unpacked; arguments as for `load`.

    Raises:
        FileFormatError: the file is missing, unreadable or not text.
    """
    path = Path(path)
    try:
        if path.is_dir():
            path = pick_dump(path, name)
        if path.suffix == ".pb":
            return _proto_text(path.read_bytes(), path)
        return read_unpacked(path).decode("utf-8-sig")  # some editors set a mark
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise FileFormatError(
            f"cannot be read: {error}", where=str(path), hint="is it HLO text?"
        ) from error


def _proto_text(data: bytes, path: Path) -> str:
    """HLO text of a serialized module, printed by jaxlib where it is installed."""
    try:
        jaxlib = importlib.import_module("jaxlib._hlo")
    except ImportError:
        raise UnsupportedError(
            "serialized modules are read through jaxlib, which is not installed",
            subject=".pb",
            where=str(path),
            hint="pip install 'msa[jax]', or dump text with --xla_dump_hlo_as_text",
        ) from None
    try:
        module = jaxlib.HloModule.from_serialized_hlo_module_proto(_module_proto(data))
        options = jaxlib.HloPrintOptions()
        options.print_large_constants = True
        return str(module.to_string(options))
    except (ValueError, RuntimeError, TypeError) as error:
        raise FileFormatError(
            f"is no serialized HLO module: {error}", where=str(path)
        ) from error


def _module_proto(data: bytes) -> bytes:
    """The module inside an `HloProto`, whose field 1 it is, or the data itself.

    A module of its own starts with its name, field 1 too, which holds no message
    that starts with a name.
    """
    if data[:1] != b"\n":
        return data
    size, shift, position = 0, 0, 1
    while position < min(len(data), 11):
        size |= (data[position] & 0x7F) << shift
        shift += 7
        position += 1
        if data[position - 1] < 0x80:
            break
    inner = data[position : position + size]
    return inner if inner[:1] == b"\n" and len(inner) == size else data


def pick_dump(folder: Path, name: str | None = None) -> Path:
    """The text of the most optimized stage of a module in a folder of dumps.

    Args:
        folder: where XLA dumped.
        name: the module's name, or part of it; None when there is only one.

    Raises:
        FileFormatError: none, or several modules fit.
    """
    found: dict[str, list[tuple[int, int, Path]]] = {}
    for path in sorted(folder.iterdir()):
        match = _DUMP.match(path.name)
        if match is None:
            continue
        number, module, stage = int(match[1]), match[2], match[3]
        rank = max(
            (i for i, word in enumerate(_BEST_LAST, 1) if word in stage), default=0
        )
        if "buffer" in stage or "memory-usage" in stage:
            continue
        found.setdefault(module, []).append((rank, number, path))
    if not found:
        all_texts = [p for p in sorted(folder.iterdir()) if _is_text(p)]
        texts = [p for p in all_texts if name is None or name in p.name]
        if len(texts) == 1:
            return texts[0]
        raise FileFormatError(
            f"{len(texts)} module texts fit in this folder",
            where=str(folder),
            hint=_choice(p.name for p in (texts or all_texts)),
        )
    fitting = [m for m in found if name is None or m == name] or [
        m for m in found if name is not None and name in m
    ]
    if len(fitting) != 1:
        raise FileFormatError(
            f"{len(fitting)} modules fit in this folder",
            where=str(folder),
            hint=_choice(sorted(found)),
        )
    return max(found[fitting[0]])[2]


def _choice(names: Iterable[str]) -> str:
    shown = list(islice(names, 10))
    if shown:
        return "give that file, or msa.load its name=, one of: " + ", ".join(shown)
    return "dump text with --xla_dump_to and --xla_dump_hlo_as_text"


def _is_text(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".hlo", ".txt"))
