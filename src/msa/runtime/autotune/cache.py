"""Tuned results in memory and, if asked, in a folder with a file per key.

Source: `xla/service/gpu/autotuning/autotuner_cache.{h,cc}`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from msa.errors import FileFormatError
from msa.files import write_whole
from msa.runtime.autotune import storage
from msa.runtime.autotune.key import AutotuneKey
from msa.runtime.autotune.storage import BINARY_SUFFIX, Result
from msa.runtime.status import InternalStatus, InvalidArgument


class CacheMode(StrEnum):
    """What may happen to the folder.

    >>> str(CacheMode.READ)
    'read'
    """

    READ = "read"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Look-ups that found something, and that did not.

    >>> AutotuneCache().stats()
    CacheStats(hits=0, misses=0)
    """

    hits: int
    misses: int


class AutotuneCache:
    """Results by key. Safe to use from several threads.

    A look-up tries memory, then the folder; what is found there stays in memory. An
    insert keeps the first result of a key; a new one is also written to the folder,
    to a temporary file first.

    Args:
        folder: where files are; None for memory only.
        mode: `READ` never writes.

    >>> cache = AutotuneCache()
    >>> key = AutotuneKey("device", "hlo")
    >>> cache.insert(key, {"tile": 8}), cache.insert(key, {"tile": 16})
    (True, False)
    >>> cache.lookup(key)
    {'tile': 8}
    """

    def __init__(
        self, folder: str | Path | None = None, mode: CacheMode = CacheMode.UPDATE
    ) -> None:
        self.folder = Path(folder) if folder else None
        self.mode = mode
        self._results: dict[AutotuneKey, Result] = {}
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._results)

    def path_of(self, key: AutotuneKey) -> Path | None:
        """The file of a key, or None without a folder."""
        return self.folder / f"{key.file_stem}.json" if self.folder else None

    def lookup(self, key: AutotuneKey) -> Result | None:
        """The result of a key, or None.

        Raises:
            InvalidArgument: the key's file is damaged or of another structure.
        """
        with self._lock:
            found = self._results.get(key)
            if found is None:
                found = self._from_file(key)
                if found is not None:
                    self._results[key] = found
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
            return found

    def insert(self, key: AutotuneKey, result: Result) -> bool:
        """Keep a result unless the key has one; whether it was kept.

        Raises:
            InvalidArgument: the folder cannot be written.
        """
        with self._lock:
            if key in self._results:
                return False
            self._results[key] = dict(result)
            path = self.path_of(key)
            if path is not None and self.mode is CacheMode.UPDATE:
                _write(path, storage.to_text([(key, result)]).encode())
            return True

    def clear(self) -> None:
        """Forget what is in memory; files stay."""
        with self._lock:
            self._results.clear()

    def stats(self) -> CacheStats:
        """Look-ups so far."""
        with self._lock:
            return CacheStats(self._hits, self._misses)

    # -- whole files ---------------------------------------------------------

    def save(
        self, path: str | Path, keys: Collection[AutotuneKey] | None = None
    ) -> None:
        """Write all results, or those of some keys; bytes if the suffix is `.bin`.

        Raises:
            InvalidArgument: the file cannot be written.
        """
        with self._lock:
            rows = [
                (key, result)
                for key, result in self._results.items()
                if keys is None or key in keys
            ]
        target = Path(path)
        if target.suffix == BINARY_SUFFIX:
            _write(target, storage.to_bytes(rows))
        else:
            _write(target, storage.to_text(rows).encode())

    def load(self, path: str | Path, *, override: bool = False) -> int:
        """Add results from a file of either form; how many.

        Raises:
            InvalidArgument: the file cannot be read or is of another structure.
            InternalStatus: a key is known already and `override` is off.
        """
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror or error}") from error
        new = storage.read(raw, override=override)
        with self._lock:
            known = [key for key in new if key in self._results]
            if known and not override:
                raise InternalStatus(f"tuned already: {known[0]}")
            self._results.update(new)
        return len(new)

    def _from_file(self, key: AutotuneKey) -> Result | None:
        path = self.path_of(key)
        if path is None:
            return None
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror or error}") from error
        found = storage.read(raw)
        if key not in found:
            raise InvalidArgument(f"{path} holds the results of other keys")
        return found[key]


def _write(path: Path, raw: bytes) -> None:
    """Write to `tmp/` beside the file, then move into place."""
    scratch = path.parent / "tmp"
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        write_whole(path, raw, scratch=scratch)
    except (OSError, FileFormatError) as error:
        raise InvalidArgument(f"{path}: {error}") from error
