"""Modules to measure: the bundled ones, or a folder of yours.

`MSA_SHARED` names a folder whose `corpus/` holds scheduled modules
(`NAME.opt.hlo[.gz]`); without it the bundled examples are taken.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def paths(wanted: str = "") -> list[Path]:
    """Scheduled modules by name."""
    shared = os.environ.get("MSA_SHARED")
    folder = Path(shared) / "corpus" if shared else ROOT / "tests" / "data"
    found = [p for p in folder.glob("*.opt.hlo*") if wanted in p.name]
    return sorted(found)


def read(path: Path) -> str:
    """The text of a module."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def name(path: Path) -> str:
    """A module's name without endings."""
    return path.name.split(".")[0]
