"""Tools for tests: random modules, a shrinker, Hypothesis strategies."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.testing.random_modules.generator import random_module as random_module
    from msa.testing.random_modules.options import (
        RandomModuleOptions as RandomModuleOptions,
    )
    from msa.testing.shrinking.shrink import shrink as shrink
    from msa.testing.strategies import modules as modules

_LAZY = {
    "RandomModuleOptions": "msa.testing.random_modules.options",
    "modules": "msa.testing.strategies",
    "random_module": "msa.testing.random_modules.generator",
    "shrink": "msa.testing.shrinking.shrink",
}

__all__ = ["RandomModuleOptions", "modules", "random_module", "shrink"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
