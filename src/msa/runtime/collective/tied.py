"""Values whose life is tied to a container's.

Source: `xla/tsl/util/tied_ref.h`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msa.errors import InternalError

T = TypeVar("T")


class _Cell:
    """A shared slot: the value, and what to do when its last holder lets go."""

    __slots__ = ("destroy", "holders", "lock", "value")

    def __init__(self, value: Any, destroy: Callable[[Any], None] | None) -> None:
        self.value = value
        self.destroy = destroy
        self.holders = 1
        self.lock = threading.Lock()

    def hold(self) -> bool:
        with self.lock:
            if self.holders == 0:
                return False
            self.holders += 1
            return True

    def let_go(self) -> None:
        with self.lock:
            self.holders -= 1
            last = self.holders == 0
        if last:
            value, self.value = self.value, None
            if self.destroy is not None:
                self.destroy(value)


class Strong(Generic[T]):
    """A strong reference from `TiedRef.lock`; release it with `close` or `with`.

    >>> strong = TiedContainer().tie("memory").lock()
    >>> strong is None or strong.value
    'memory'
    """

    __slots__ = ("_cell",)

    def __init__(self, cell: _Cell) -> None:
        self._cell: _Cell | None = cell

    @property
    def value(self) -> T:
        """The value, alive as long as this reference is."""
        if self._cell is None:
            raise InternalError("a strong reference was used after close")
        value: T = self._cell.value
        return value

    def share(self) -> Strong[T]:
        """One more strong reference to the same value."""
        cell = self._cell
        if cell is None or not cell.hold():
            raise InternalError("a strong reference was used after close")
        return Strong(cell)

    def close(self) -> None:
        """Let go; harmless when repeated."""
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.let_go()

    def __enter__(self) -> Strong[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TiedRef(Generic[T]):
    """A reference that expires with its container; made by `TiedContainer.tie`.

    >>> container = TiedContainer()
    >>> ref = container.tie("memory")
    >>> with ref.lock() as strong:
    ...     strong.value
    'memory'
    >>> container.close()
    >>> ref.lock() is None
    True
    """

    __slots__ = ("_cell", "_container")

    def __init__(
        self, container: TiedContainer | None = None, cell: _Cell | None = None
    ) -> None:
        self._container = container
        self._cell = cell

    @property
    def expired(self) -> bool:
        """Whether `lock` would give None."""
        container, cell = self._container, self._cell
        return cell is None or container is None or not container._holds(cell)

    def lock(self) -> Strong[T] | None:
        """A strong reference, or None when the value is no longer tied."""
        container, cell = self._container, self._cell
        if cell is None or container is None or not container._holds(cell):
            return None
        return Strong(cell) if cell.hold() else None

    def close(self) -> None:
        """Release the value now; harmless when repeated or expired."""
        container, cell = self._container, self._cell
        self._container = self._cell = None
        if container is not None and cell is not None and container._drop(cell):
            cell.let_go()

    def untie(self) -> Strong[T] | None:
        """Take the value out of the container; None when expired."""
        container, cell = self._container, self._cell
        self._container = self._cell = None
        if container is None or cell is None or not container._drop(cell):
            return None
        return Strong(cell)

    def assign(self, other: TiedRef[T]) -> None:
        """Move another reference in; the old value is released."""
        container, cell = other._container, other._cell
        other._container = other._cell = None
        self.close()
        self._container, self._cell = container, cell

    def __enter__(self) -> TiedRef[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TiedContainer:
    """Owns tied values of any types; closing it expires all references.

    >>> box = TiedContainer()
    >>> ref = box.tie("value")
    >>> with ref.lock() as strong: strong.value
    'value'
    >>> box.close(); ref.lock() is None
    True
    """

    __slots__ = ("_cells", "_closed", "_lock")

    def __init__(self) -> None:
        self._cells: dict[_Cell, None] = {}
        self._closed = False
        self._lock = threading.Lock()

    def tie(
        self, value: T | None, destroy: Callable[[T], None] | None = None
    ) -> TiedRef[T]:
        """Take ownership; `destroy` runs when the last holder lets go.

        Tying None, or tying to a closed container, gives an expired reference.
        """
        if value is None:
            return TiedRef()
        cell = _Cell(value, destroy)
        with self._lock:
            if not self._closed:
                self._cells[cell] = None
                return TiedRef(self, cell)
        cell.let_go()
        return TiedRef()

    def _holds(self, cell: _Cell) -> bool:
        with self._lock:
            return cell in self._cells

    def _drop(self, cell: _Cell) -> bool:
        with self._lock:
            return self._cells.pop(cell, 0) is None

    def __len__(self) -> int:
        with self._lock:
            return len(self._cells)

    def close(self) -> None:
        """Expire every reference and let go of every value, in order of tying."""
        with self._lock:
            cells, self._cells = self._cells, {}
            self._closed = True
        for cell in cells:
            cell.let_go()
