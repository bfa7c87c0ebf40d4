"""A progress line on a terminal for work that takes over a second."""

from __future__ import annotations

import sys
import time
from typing import Any, Final, Protocol, TextIO

QUIET_SECONDS: Final = 1.0
_REFRESH_SECONDS: Final = 0.1
_BAR_WIDTH: Final = 24


class _Line(Protocol):
    def draw(self, stage: str, done: int, total: int) -> None: ...

    def wipe(self) -> None: ...


class PlainLine:
    """A bar drawn with a carriage return and block characters."""

    __slots__ = ("_stream",)

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def draw(self, stage: str, done: int, total: int) -> None:
        """Draw over what was there."""
        filled = _BAR_WIDTH * done // total if total else 0
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        self._stream.write(f"\r\x1b[K{stage:<12} {bar} {done}/{total}")
        self._stream.flush()

    def wipe(self) -> None:
        """Leave the line empty."""
        self._stream.write("\r\x1b[K")
        self._stream.flush()


class RichLine:
    """The same with colours and the time left (extra `rich`)."""

    __slots__ = ("_bars", "_task")

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars

        self._bars: Any = Bars(
            console=Console(file=stream), transient=True, auto_refresh=False
        )
        self._task: Any = self._bars.add_task("")
        self._bars.start()

    def draw(self, stage: str, done: int, total: int) -> None:
        """Draw over what was there."""
        self._bars.update(
            self._task, description=stage, completed=done, total=total, refresh=True
        )

    def wipe(self) -> None:
        """Leave the line empty."""
        self._bars.stop()


class Progress:
    """Callable `(stage, done, total)`; silent in a pipe and for quick work.

    Use as a context manager: the line is wiped at the end.
    """

    __slots__ = ("_active", "_last", "_line", "_start", "_stream")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._active = self._stream.isatty()
        self._start = time.monotonic()
        self._last = 0.0
        self._line: _Line | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is; cheap enough to call often."""
        if not self._active:
            return
        now = time.monotonic()
        if now - self._start < QUIET_SECONDS or now - self._last < _REFRESH_SECONDS:
            return
        self._last = now
        if self._line is None:
            try:
                self._line = RichLine(self._stream)
            except ImportError:
                self._line = PlainLine(self._stream)
        self._line.draw(stage, done, total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.wipe()
            self._line = None
