"""Two stores of tuned results, one behind the other.

Source: `xla/backends/autotuner/{autotune_fingerprint,tiered_cache}.cc`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from msa.errors import RuntimeMemoryError
from msa.hlo.identity import fingerprint
from msa.hlo.instruction import Instruction
from msa.runtime.autotune.cache import CacheStats


@dataclass(frozen=True, slots=True)
class TargetKey:
    """What is tuned: device, version, and 128 bits of the operation (32 hex digits).

    >>> TargetKey("CUDA: 8.0", 1, "f0" * 16).version
    1
    """

    device: str
    version: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Environment:
    """With what: the version of the code generator, a fingerprint of its options.

    >>> Environment("2", "fast-math") == Environment("2")
    False
    """

    codegen_version: str
    options_fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class TunedValue:
    """The best configuration, who made it, and that backend's version.

    >>> TunedValue({"tile": 8}, "gemm", "b7").backend
    'gemm'
    """

    config: Mapping[str, Any] = field(hash=False)
    backend: str = ""
    backend_version: str = ""


class StoreMode(StrEnum):
    """What a store may do with new values.

    >>> [str(mode) for mode in StoreMode]
    ['read-only', 'read-append', 'read-write']
    """

    READ_ONLY = "read-only"
    READ_APPEND = "read-append"
    READ_WRITE = "read-write"


class Store(Protocol):
    """Somewhere values are kept; failures are `RuntimeMemoryError`s.

    >>> store: Store = MemoryStore()
    >>> store.lookup(TargetKey("d", 1, "00"), Environment("1")) is None
    True
    """

    def lookup(self, key: TargetKey, environment: Environment) -> TunedValue | None:
        """The value that fits best, or None."""
        ...

    def insert(
        self, key: TargetKey, environment: Environment, value: TunedValue
    ) -> bool:
        """Keep a value; whether it was kept."""
        ...


class MemoryStore:
    """Values in memory, several environments per key.

    A value fits when the version of the code generator and the options are equal. In
    loose mode it also fits when it was made by the backend version that is current.

    Args:
        mode: what happens to new values. Append never replaces a value of the same
            environment.
        loose_backend_version: the current backend version, or None for strict mode.

    >>> store, key = MemoryStore(), TargetKey("d", 1, "00")
    >>> store.insert(key, Environment("1"), TunedValue({"tile": 8}))
    True
    >>> store.lookup(key, Environment("1")).config, store.lookup(key, Environment("2"))
    ({'tile': 8}, None)
    """

    def __init__(
        self,
        mode: StoreMode = StoreMode.READ_WRITE,
        *,
        loose_backend_version: str | None = None,
    ) -> None:
        self.mode = mode
        self.loose_backend_version = loose_backend_version
        self._values: dict[TargetKey, dict[Environment, TunedValue]] = {}
        self._lock = threading.Lock()

    def lookup(self, key: TargetKey, environment: Environment) -> TunedValue | None:
        """The value of the environment, else (loose) the first of this backend."""
        with self._lock:
            slots = self._values.get(key, {})
            if environment in slots:
                return slots[environment]
            if self.loose_backend_version is not None:
                for value in slots.values():
                    if value.backend_version == self.loose_backend_version:
                        return value
            return None

    def insert(
        self, key: TargetKey, environment: Environment, value: TunedValue
    ) -> bool:
        """Keep a value as the mode allows; whether it was kept."""
        if self.mode is StoreMode.READ_ONLY:
            return False
        with self._lock:
            slots = self._values.setdefault(key, {})
            if self.mode is StoreMode.READ_APPEND and environment in slots:
                return False
            slots[environment] = value
            return True


class TieredCache:
    """A quick store in front of a shared one.

    What only the second store has is put into the first. A first store that fails
    counts as a miss; the second is then not asked.

    >>> import msa
    >>> module = msa.parse("ENTRY e { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }")
    >>> first, second = MemoryStore(), MemoryStore()
    >>> cache = TieredCache(first, second, device="d", environment=Environment("1"))
    >>> cache.lookup(module.entry.root) is None
    True
    >>> cache.insert(module.entry.root, TunedValue({"tile": 8}))
    >>> cache.lookup(module.entry.root).config, cache.stats()
    ({'tile': 8}, CacheStats(hits=1, misses=1))
    """

    def __init__(
        self,
        primary: Store,
        secondary: Store | None = None,
        *,
        device: str,
        environment: Environment,
        version: int = 1,
        fingerprint_of: Callable[[Instruction], str] = fingerprint,
    ) -> None:
        self.primary = primary
        self.secondary = secondary
        self.device = device
        self.environment = environment
        self.version = version
        self._fingerprint_of = fingerprint_of
        self._hits = self._misses = 0
        self._lock = threading.Lock()

    def key_of(self, instruction: Instruction) -> TargetKey:
        """The key of an instruction."""
        return TargetKey(self.device, self.version, self._fingerprint_of(instruction))

    def lookup(self, instruction: Instruction) -> TunedValue | None:
        """The value of an instruction from either store, or None."""
        found = self._find(self.key_of(instruction))
        with self._lock:
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
        return found

    def _find(self, key: TargetKey) -> TunedValue | None:
        try:
            found = self.primary.lookup(key, self.environment)
        except RuntimeMemoryError:
            return None
        if found is None and self.secondary is not None:
            found = self.secondary.lookup(key, self.environment)
            if found is not None:
                self.primary.insert(key, self.environment, found)
        return found

    def insert(self, instruction: Instruction, value: TunedValue) -> None:
        """Offer a value to both stores."""
        key = self.key_of(instruction)
        self.primary.insert(key, self.environment, value)
        if self.secondary is not None:
            self.secondary.insert(key, self.environment, value)

    def stats(self) -> CacheStats:
        """Look-ups so far."""
        with self._lock:
            return CacheStats(self._hits, self._misses)
