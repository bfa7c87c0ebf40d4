"""Pausing Python's cycle collector while large structures are built or walked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused(*, keep: bool = False) -> Iterator[None]:
    """No cycle collection inside: modules and plans make few garbage cycles.

    The collector would only walk, again and again, what is kept. With `keep`, what was
    made is moved to the oldest generation at the end (unless the caller froze objects
    of its own), so that the next young collection does not walk it either. Nothing
    happens where the collector is off already.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if keep and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
