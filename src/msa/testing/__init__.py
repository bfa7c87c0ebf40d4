"""Tools for tests: random modules, a shrinker, hypothesis strategies."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.testing.random_modules.generator import random_module as random_module
    from msa.testing.random_modules.options import (
        RandomModuleOptions as RandomModuleOptions,
    )

_LAZY = {
    "RandomModuleOptions": "msa.testing.random_modules.options",
    "random_module": "msa.testing.random_modules.generator",
}

__all__ = ["RandomModuleOptions", "random_module"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
