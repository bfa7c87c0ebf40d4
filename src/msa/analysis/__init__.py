"""Facts of a module: what is live when, what shares storage, what things cost."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.analysis.schedulers import schedule as schedule

_LAZY = {
    "schedule": "msa.analysis.schedulers",
}

__all__ = ["schedule"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
