"""Writes `docs/reference.md` from the docstrings of the public names.

`python docs/make_reference.py` writes it; `build` gives the text and what is missing.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

PACKAGES = [
    "msa",
    "msa.hlo",
    "msa.analysis",
    "msa.analysis.dot_strategy",
    "msa.assignment",
    "msa.heap",
    "msa.passes",
    "msa.dealloc",
    "msa.runtime",
    "msa.runtime.collective",
    "msa.runtime.autotune",
    "msa.runtime.diag",
    "msa.runtime.host",
    "msa.runtime.perf",
    "msa.runtime.profile",
    "msa.report",
    "msa.testing",
    "msa.integrations.jax",
]


def public_names(package: Any) -> list[str]:
    """Names that a package exports."""
    names = getattr(package, "__all__", None)
    return sorted(names if names is not None else [])


def build() -> tuple[str, list[str]]:
    """The reference, and a line for each public name without a docstring."""
    parts = [
        "# Reference\n\nMade from the docstrings by `python docs/make_reference.py`.\n"
    ]
    missing: list[str] = []
    described: dict[int, str] = {}
    for name in PACKAGES:
        package = importlib.import_module(name)
        parts.append(f"\n## {name}\n\n{_text(package)}\n")
        for item in public_names(package):
            value = getattr(package, item)
            full = f"{name}.{item}"
            if inspect.ismodule(value):
                continue
            first = described.setdefault(id(value), full)
            if first != full and (inspect.isclass(value) or callable(value)):
                parts.append(f"\n### {full}\n\nThe same as `{first}`.\n")
                continue
            parts.append(_describe(full, value, missing))
    return "".join(parts), missing


def _describe(full: str, value: Any, missing: list[str]) -> str:
    if not (inspect.isclass(value) or callable(value)):
        return f"\n### {full}\n\nA constant: `{_short(value)}`.\n"
    text = _text(value)
    if not text or _is_made_by_dataclass(value, text):
        missing.append(full)
    head = f"\n### {full}{_signature(value)}\n\n{text}\n"
    if not inspect.isclass(value) or issubclass(value, (BaseException, enum.Enum)):
        return head
    return head + "".join(_members(full, value, missing))


def _members(full: str, kind: type, missing: list[str]) -> list[str]:
    parts = []
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, property) or hasattr(member, "func"):
            getter = getattr(member, "fget", None) or getattr(member, "func", None)
            text, signature = _text(getter), ""
        elif inspect.isfunction(member):
            text, signature = _text(member), _signature(member)
        else:
            continue
        if not text:
            missing.append(f"{full}.{name}")
        parts.append(f"\n#### {full}.{name}{signature}\n\n{text}\n")
    return parts


def _text(value: Any) -> str:
    """The docstring with examples as code blocks and field lists as lists."""
    lines = inspect.getdoc(value) or ""
    out: list[str] = []
    block: list[str] = []

    def flush() -> None:
        if block:
            out.append("```text\n" + textwrap.dedent("\n".join(block)) + "\n```")
            block.clear()

    for paragraph in lines.split("\n\n"):
        first = paragraph.splitlines()[0] if paragraph.strip() else ""
        if first.startswith((">>>", " ")):
            block.append(paragraph)
            continue
        flush()
        out.append(_fields(paragraph))
    flush()
    return "\n\n".join(out)


def _fields(paragraph: str) -> str:
    """`Args:` and such with their indented lines as a list."""
    lines = paragraph.splitlines()
    heads = [
        n for n, line in enumerate(lines) if line.endswith(":") and n + 1 < len(lines)
    ]
    starts = [
        n for n in heads if lines[n + 1].startswith("    ") and lines[n][0] != " "
    ]
    if not starts:
        return paragraph
    done = "\n".join(lines[: starts[0]])
    body: list[str] = []
    for line in lines[starts[0] :]:
        if not line.startswith("    "):
            body.append(f"\n**{line}**\n" if line.endswith(":") else line)
        elif line.startswith("     "):
            body.append("  " + line.strip())
        else:
            body.append("- " + line.strip())
    return (done + "\n" + "\n".join(body)).strip()


def _signature(value: Any) -> str:
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""
    return _short_text(text)


def _short(value: Any) -> str:
    return _short_text(repr(value))


def _short_text(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "…"


def _is_made_by_dataclass(value: Any, text: str) -> bool:
    return dataclasses.is_dataclass(value) and text.startswith(
        f"{getattr(value, '__name__', '')}("
    )


def main() -> int:
    """Write the file; complain about names without a docstring."""
    text, missing = build()
    Path(__file__).with_name("reference.md").write_text(text, encoding="utf-8")
    for name in missing:
        sys.stderr.write(f"no docstring: {name}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
