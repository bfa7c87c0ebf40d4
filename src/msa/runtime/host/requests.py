"""What a pool may be asked for: sizes, alignments and ends."""

from __future__ import annotations

from typing import Final, Literal

from msa.errors import shown
from msa.runtime.arguments import whole
from msa.runtime.host.chunks import LOWER, UPPER
from msa.runtime.host.errors import BadRequest

DEFAULT_ALIGNMENT: Final = 64
"""Bytes."""

End = Literal["lower", "upper"]


def checked_request(size: int, alignment: int, end: End) -> tuple[int, int]:
    """Size and alignment in bytes, as plain integers.

    Raises:
        BadRequest: the alignment is not a power of two, the size negative, or the end
            unknown.
        InvalidArgument: size or alignment is no whole number.

    >>> checked_request(100, 4096, "upper")
    (100, 4096)
    """
    if type(size) is not int or type(alignment) is not int:
        size = whole(size, "allocate", "the size")
        alignment = whole(alignment, "allocate", "the alignment", least=1)
    if end not in (LOWER, UPPER):
        raise BadRequest(f"the end is 'lower' or 'upper', not {shown(end)}")
    if alignment <= 0 or alignment & (alignment - 1) or size < 0:
        raise BadRequest(
            f"cannot allocate {size} bytes at alignment {alignment}: sizes are not "
            "negative, alignments powers of two"
        )
    return size, alignment
