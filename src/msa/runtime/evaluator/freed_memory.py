"""Freed arrays are kept by the process for the arrays that follow."""

from __future__ import annotations

from typing import Final

import numpy as np

_LESSON: Final = (32 << 20) - (64 << 10)
"""Bytes, a little below the largest block that the allocator learns from."""


def keep_freed_memory() -> None:
    """Make the C library's allocator hold on to what arrays give back.

    At first glibc maps every array of 128 KiB and more, and gives its pages back to
    the system when it is freed: an execution then spends most of its time on page
    faults. The allocator adapts when a mapped block is freed: from then on blocks up
    to the size of that one come from its own heap, and up to twice that size may lie
    free there (mallopt(3), M_MMAP_THRESHOLD). So the smallest lesson is one large
    block, never touched. Other allocators take no notice.
    """
    np.empty(_LESSON, dtype=np.uint8)
