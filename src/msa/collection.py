"""Pausing Python's cycle collector while large structures are built or walked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FEW: Final = 3_000_000
"""Objects that are never worth a collection: some hundreds of MiB."""

_MANY: Final = 200_000
"""Young objects worth a walk over all there are, to move them to the oldest."""


@contextmanager
def collection_paused(*, keep: bool = False) -> Iterator[None]:
    """No cycle collection inside: modules and plans make few garbage cycles.

    The collector would only walk, again and again, what is kept. With `keep`, what was
    made is moved to the oldest generation at the end (unless it is little, or the
    caller froze objects of its own), so that the next young collections do not walk it
    either; modules and plans that were dropped since are collected once they may be
    half of all, but not those that were just made. Nothing happens where the collector
    is off already.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if keep and gc.get_count()[0] >= _MANY and not gc.get_freeze_count():
                _oldest.take_all()
            gc.enable()


class _Oldest:
    """The oldest generation, which Python collects when young objects survive.

    What is moved there at once does not count for that, so it is counted here.
    """

    __slots__ = ("_collected", "_seen")

    def __init__(self) -> None:
        # Objects that were left by the last collection made here.
        self._collected = 0
        # Objects that there were after the last move.
        self._seen = 0

    def take_all(self) -> None:
        """Move all objects there; collect if they have more than doubled.

        Where most of them were made since the last move, which is one module or plan,
        they are still in use: then the next move is the first to collect.
        """
        count = self._move()
        fresh, self._seen = count - self._seen, count
        if count > 2 * self._collected + _FEW and 2 * fresh < count:
            gc.collect()
            self._collected = self._seen = self._move()

    def _move(self) -> int:
        """Move all objects there; how many there are."""
        gc.freeze()
        count = gc.get_freeze_count()
        gc.unfreeze()
        return count


_oldest = _Oldest()
