"""Registered memories that survive an execution.

Source: `xla/backends/gpu/runtime/collective_memory_cache.h`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Literal

from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.multicast import MulticastMemory
from msa.runtime.collective.tied import Strong, TiedRef
from msa.runtime.status import InvalidArgument


@dataclass(slots=True)
class CacheStats:
    """Counts of look-ups; `inconsistent` counts entries on which ranks disagreed."""

    hits: int = 0
    misses: int = 0
    expired: int = 0
    replaced: int = 0
    inconsistent: int = 0


@dataclass(frozen=True, slots=True)
class MulticastEntry:
    """A multicast object with what each rank bound, and its multimem addresses."""

    memory: MulticastMemory
    bound: tuple[DeviceAddress, ...]
    multimem: tuple[DeviceAddress, ...]

    def close(self) -> None:
        """Take the object down."""
        self.memory.close()


class CollectiveMemoryCache:
    """Thread-safe map from (clique, address with size) to a tied memory.

    Registration is collective: when one rank hits and another misses, the misser
    would wait for ever. `consistency="checked"` lets the ranks agree first and turns
    a disagreement into a miss for all; `"trust"` relies on all ranks sharing one
    buffer assignment.

    >>> CollectiveMemoryCache(consistency="trust").consistency
    'trust'
    """

    def __init__(self, *, consistency: Literal["checked", "trust"] = "checked") -> None:
        if consistency not in ("checked", "trust"):
            raise InvalidArgument(
                f"consistency is 'checked' or 'trust', not {consistency!r}"
            )
        self.consistency = consistency
        self.stats = CacheStats()
        self._entries: dict[
            tuple[str, CliqueKey], dict[DeviceAddress, TiedRef[Any]]
        ] = {}
        self._lock = threading.Lock()

    def find(
        self, kind: str, clique: CliqueKey, address: DeviceAddress
    ) -> tuple[Strong[Any], int] | None:
        """A live memory that covers the range, with the range's offset in it.

        An exact entry is found at once; a covering one by a scan of the clique's.
        """
        with self._lock:
            table = self._entries.get((kind, clique), {})
            found = self._lock_entry(table, address)
            if found is not None:
                return found, 0
            for base in list(table):
                inside = base.opaque <= address.opaque and address.end <= base.end
                if inside and (found := self._lock_entry(table, base)) is not None:
                    return found, address.opaque - base.opaque
        return None

    def _lock_entry(
        self, table: dict[DeviceAddress, TiedRef[Any]], address: DeviceAddress
    ) -> Strong[Any] | None:
        ref = table.get(address)
        if ref is None:
            return None
        strong = ref.lock()
        if strong is None:
            del table[address]
            self.stats.expired += 1
        return strong

    def add(
        self, kind: str, clique: CliqueKey, address: DeviceAddress, ref: TiedRef[Any]
    ) -> Strong[Any] | None:
        """Insert or replace an entry; a strong reference to its value."""
        strong = ref.lock()
        with self._lock:
            table = self._entries.setdefault((kind, clique), {})
            old = table.get(address)
            table[address] = ref
            if old is not None:
                self.stats.replaced += 1
        if old is not None:
            old.close()
        return strong

    def count(self, *, hits: int = 0, misses: int = 0, inconsistent: int = 0) -> None:
        """Add to the statistics."""
        with self._lock:
            self.stats.hits += hits
            self.stats.misses += misses
            self.stats.inconsistent += inconsistent

    def clear(self) -> None:
        """Release every entry."""
        with self._lock:
            tables, self._entries = self._entries, {}
        for table in tables.values():
            for ref in table.values():
                ref.close()
