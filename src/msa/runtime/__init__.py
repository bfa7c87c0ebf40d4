"""Execution: the evaluator, the simulated machine, collective and host memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.runtime.evaluator.execute import execute as execute
    from msa.runtime.machine.machine import Machine as Machine
    from msa.runtime.proving.prove import Proof as Proof
    from msa.runtime.proving.prove import prove_lowered as prove_lowered
    from msa.runtime.proving.prove import prove_plan as prove_plan

_LAZY = {
    "Machine": "msa.runtime.machine.machine",
    "Proof": "msa.runtime.proving.prove",
    "execute": "msa.runtime.evaluator.execute",
    "prove_lowered": "msa.runtime.proving.prove",
    "prove_plan": "msa.runtime.proving.prove",
}

__all__ = ["Machine", "Proof", "execute", "prove_lowered", "prove_plan"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'msa.runtime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
