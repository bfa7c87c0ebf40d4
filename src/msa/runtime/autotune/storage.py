"""Tuned results as text or bytes.

Structure, version 3: entries sorted by device and operation, each with its version
and result. Text is JSON; bytes are the same, compressed, behind a mark.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msa.runtime.autotune.key import CURRENT_VERSION, AutotuneKey
from msa.runtime.status import InternalStatus, InvalidArgument

STRUCTURE_VERSION: Final = 3
_MARK: Final = b"MSAT\x03"
BINARY_SUFFIX: Final = ".bin"

Result = Mapping[str, Any]
"""A tuned configuration: plain data."""


def to_data(entries: Iterable[tuple[AutotuneKey, Result]]) -> dict[str, Any]:
    """Plain data of some entries."""
    rows = sorted(entries, key=lambda row: (row[0].device, row[0].hlo, row[0].version))
    return {
        "version": STRUCTURE_VERSION,
        "results": [
            {
                "device": key.device,
                "hlo": key.hlo,
                "version": key.version,
                "result": dict(result),
            }
            for key, result in rows
        ],
    }


def from_data(data: Any, *, override: bool = False) -> dict[AutotuneKey, Result]:
    """Entries from plain data; those without a version get the current one.

    Raises:
        InvalidArgument: the structure is malformed or of another version.
        InternalStatus: a key occurs twice and `override` is off.
    """
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise InvalidArgument("not tuned results: no list of results")
    if data.get("version") != STRUCTURE_VERSION:
        raise InvalidArgument(
            f"tuned results of structure {data.get('version')!r}, not "
            f"{STRUCTURE_VERSION}",
            hint="tune again",
        )
    found: dict[AutotuneKey, Result] = {}
    for row in data["results"]:
        key, result = _entry(row)
        if key in found and not override:
            raise InternalStatus(f"tuned twice: {key}")
        found[key] = result
    return found


def _entry(row: Any) -> tuple[AutotuneKey, Result]:
    try:
        version = row.get("version", CURRENT_VERSION)
        key = AutotuneKey(row["device"], row["hlo"], version)
        result = row["result"]
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidArgument(f"a malformed entry: {error!r}") from None
    texts = isinstance(key.device, str) and isinstance(key.hlo, str)
    number = isinstance(version, int) and not isinstance(version, bool)
    if not (texts and number and isinstance(result, dict)):
        raise InvalidArgument(f"a malformed entry: {row!r:.80}")
    return key, result


def to_text(entries: Iterable[tuple[AutotuneKey, Result]]) -> str:
    """JSON; equal entries give equal text."""
    return json.dumps(to_data(entries), indent=1, sort_keys=True) + "\n"


def to_bytes(entries: Iterable[tuple[AutotuneKey, Result]]) -> bytes:
    """The compact form."""
    text = json.dumps(to_data(entries), sort_keys=True, separators=(",", ":"))
    return _MARK + zlib.compress(text.encode(), 9)


def read(raw: bytes, *, override: bool = False) -> dict[AutotuneKey, Result]:
    """Entries from either form.

    Raises:
        InvalidArgument: neither form, or malformed.
        InternalStatus: a key occurs twice and `override` is off.
    """
    try:
        if raw.startswith(_MARK):
            raw = zlib.decompress(raw[len(_MARK) :])
        data = json.loads(raw)
    except (ValueError, zlib.error, RecursionError) as error:
        raise InvalidArgument(f"tuned results cannot be read: {error}") from None
    return from_data(data, override=override)
