"""Which asynchronous starts can be written as `slice-start` and the like.

Source: `xla/hlo/ir/hlo_instruction.cc`, `xla/hlo/ir/hlo_computation.cc`.
"""

from __future__ import annotations

import re
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import NATIVE_ASYNC_STARTS

_GENERATED: Final = re.compile(r"async_wrapped(?:\.[0-9]+)?\Z")
_NO_SUGAR: Final = frozenset(
    {name.removesuffix("-start") for name in NATIVE_ASYNC_STARTS}
    | {"async-start", "async-update", "async-done", "parameter", "constant"}
)


def is_single_operation(computation: Computation) -> bool:
    """Whether everything but the root is a parameter."""
    root = computation.root
    return all(x.opcode == "parameter" or x is root for x in computation.instructions)


def wrapped_root(instruction: Instruction) -> Instruction | None:
    """The operation that an async instruction wraps, if it wraps only one."""
    if not instruction.called_computations:
        return None
    computation = instruction.called_computations[0]
    root = computation.root
    if root.opcode in _NO_SUGAR or not is_single_operation(computation):
        return None
    return root


def can_vanish(start: Instruction) -> bool:
    """Whether `op-start` says all that the wrapped computation says.

    The computation must have a generated name, its parameters must be plain and in
    operand order, and its root must carry the start's own metadata and config.
    """
    root = wrapped_root(start)
    if root is None:
        return False
    computation = start.called_computations[0]
    thread = start.attributes.get("async_execution_thread", "main")
    if not _GENERATED.match(computation.name) or computation.execution_thread != thread:
        return False
    if root.operands != tuple(computation.parameters) or root.control_predecessors:
        return False
    if any(
        p.metadata_text is not None
        or p.backend_config is not None
        or len(p.attributes) != 1
        for p in computation.parameters
    ):
        return False
    if (root.metadata_text, root.backend_config) != (
        start.metadata_text,
        start.backend_config,
    ):
        return False
    both = ("frontend_attributes", "statistics", "origin")
    if any(root.attributes.get(a) != start.attributes.get(a) for a in both):
        return False
    return "sharding" not in root.attributes or "sharding" not in start.attributes
