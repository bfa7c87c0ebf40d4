"""Execution: the evaluator, the simulated machine, collective and host memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.runtime.evaluator.execute import execute as execute

_LAZY = {
    "execute": "msa.runtime.evaluator.execute",
}

__all__ = ["execute"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.runtime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
