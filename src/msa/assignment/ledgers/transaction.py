"""One place that begins, commits and rolls back changes of all ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Transaction:
    """The changes made since the last commit, so that they can be taken back.

    Every ledger records, with each change, the call that undoes it. `rollback` makes
    these calls, last first; `commit` forgets them. Nothing else keeps such a list.

    >>> log = Transaction()
    >>> stock = [1]
    >>> stock.append(2); log.record(stock.pop)
    >>> mark = log.mark()
    >>> stock.append(3); log.record(stock.pop)
    >>> log.rollback(mark); stock
    [1, 2]
    >>> log.rollback(); stock
    [1]
    """

    __slots__ = ("_undo",)

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._undo)

    def record(self, undo: Callable[..., Any], *arguments: Any) -> None:
        """Remember that `undo(*arguments)` takes the change back."""
        self._undo.append((undo, arguments))

    def mark(self) -> int:
        """A place to roll back to."""
        return len(self._undo)

    def rollback(self, mark: int = 0) -> None:
        """Undo everything recorded after `mark` (default: since the last commit)."""
        pending = self._undo
        while len(pending) > mark:
            undo, arguments = pending.pop()
            undo(*arguments)

    def commit(self) -> None:
        """Keep everything."""
        self._undo.clear()
