"""Where in the user's program something was allocated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msa

_PACKAGE: Final = str(Path(msa.__file__).parent)

Site = tuple[str, int]
"""File name and line."""

UNKNOWN_SITE: Final[Site] = ("<unknown>", 0)


def allocation_site(depth: int = 2) -> Site:
    """The nearest caller outside this library; O(frames inside the library)."""
    try:
        frame = sys._getframe(depth)
    except ValueError:
        return UNKNOWN_SITE
    here = frame
    while here is not None:
        name = here.f_code.co_filename
        if not name.startswith(_PACKAGE):
            return name, here.f_lineno
        if here.f_back is None:
            break
        here = here.f_back
    return frame.f_code.co_filename, frame.f_lineno


def format_site(site: Site) -> str:
    """`file:line` with the file's name only.

    >>> format_site(("/a/b/train.py", 7))
    'train.py:7'
    """
    return f"{Path(site[0]).name}:{site[1]}"
