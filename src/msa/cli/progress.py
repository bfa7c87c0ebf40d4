"""A progress line on a terminal for work that takes over a second."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

QUIET_SECONDS: Final = 1.0
_REFRESH_SECONDS: Final = 0.1
_BAR_WIDTH: Final = 24


class Progress:
    """Callable `(stage, done, total)`; silent in a pipe and for quick work.

    Use as a context manager: the line is wiped at the end.
    """

    __slots__ = ("_active", "_drawn", "_last", "_start", "_stream")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._active = self._stream.isatty()
        self._start = time.monotonic()
        self._last = 0.0
        self._drawn = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is; cheap enough to call often."""
        if not self._active:
            return
        now = time.monotonic()
        if now - self._start < QUIET_SECONDS or now - self._last < _REFRESH_SECONDS:
            return
        self._last = now
        self._drawn = True
        filled = _BAR_WIDTH * done // total if total else 0
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        self._stream.write(f"\r\x1b[K{stage:<12} {bar} {done}/{total}")
        self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
