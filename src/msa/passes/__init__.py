"""Other module-to-module passes, and pipelines of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.passes.base import Pass as Pass
    from msa.passes.binding import Binding as Binding
    from msa.passes.binding import bind_memory_spaces as bind_memory_spaces
    from msa.passes.binding import check_binding as check_binding
    from msa.passes.offload import HostOffloading as HostOffloading
    from msa.passes.offload import OffloadedValue as OffloadedValue
    from msa.passes.offload import offload_report as offload_report
    from msa.passes.offload import offload_to_host as offload_to_host
    from msa.passes.pipeline import Pipeline as Pipeline
    from msa.passes.propagation import check_memory_spaces as check_memory_spaces
    from msa.passes.propagation import (
        propagate_memory_spaces as propagate_memory_spaces,
    )
    from msa.passes.registry import pass_names as pass_names
    from msa.passes.rematerialization import Rematerialization as Rematerialization
    from msa.passes.rematerialization import (
        RematerializationOptions as RematerializationOptions,
    )
    from msa.passes.rematerialization import rematerialize as rematerialize
    from msa.passes.suggestions import Suggestion as Suggestion
    from msa.passes.suggestions import suggest as suggest

_HOMES = {
    "Binding": "binding",
    "bind_memory_spaces": "binding",
    "check_binding": "binding",
    "HostOffloading": "offload",
    "OffloadedValue": "offload",
    "offload_report": "offload",
    "offload_to_host": "offload",
    "Pass": "base",
    "Pipeline": "pipeline",
    "check_memory_spaces": "propagation",
    "pass_names": "registry",
    "propagate_memory_spaces": "propagation",
    "Rematerialization": "rematerialization",
    "RematerializationOptions": "rematerialization",
    "rematerialize": "rematerialization",
    "Suggestion": "suggestions",
    "suggest": "suggestions",
}

__all__ = [
    "Binding",
    "HostOffloading",
    "OffloadedValue",
    "Pass",
    "Pipeline",
    "Rematerialization",
    "RematerializationOptions",
    "Suggestion",
    "bind_memory_spaces",
    "check_binding",
    "check_memory_spaces",
    "offload_report",
    "offload_to_host",
    "pass_names",
    "propagate_memory_spaces",
    "rematerialize",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"msa.passes.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.passes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
