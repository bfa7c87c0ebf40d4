"""Structural equality of modules.

Modules are equal when they print the same: names, shapes, attributes, order and
schedule. Wrapped computations that async sugar hides are compared by what they do,
since their names are made up by the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msa.hlo.async_wrapping import can_vanish
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.orders import printed_computations, printed_order
from msa.hlo.printer import is_default_comparison


def modules_equal(a: Module, b: Module) -> bool:
    """Whether two modules are the same program, names included; linear."""
    return first_difference(a, b) is None


def first_difference(a: Module, b: Module) -> str | None:
    """Where two modules differ first, in words, or None when they are equal."""
    for name in (
        "name",
        "is_scheduled",
        "aliases",
        "buffer_donors",
        "replica_count",
        "num_partitions",
        "stack_frames",
    ):
        if getattr(a, name) != getattr(b, name):
            return f"module: {name} differs"
    if dict(a.attributes) != dict(b.attributes):
        return "module: attributes differ"
    if a.effective_entry_layout() != b.effective_entry_layout():
        return "module: entry layouts differ"
    hidden, hidden_too = _hidden(a), _hidden(b)
    left = [c for c in printed_computations(a) if c not in hidden]
    right = [c for c in printed_computations(b) if c not in hidden_too]
    if len(left) != len(right):
        return f"{len(left)} computations against {len(right)}"
    pairing = dict(zip(left, right, strict=True))
    if pairing.get(a.entry) is not b.entry:
        return "entries differ"
    for x, y in list(pairing.items()):
        for start, other in zip(printed_order(x), printed_order(y), strict=False):
            if start.opcode == "async-start" == other.opcode:
                wrapped, twin = start.called_computations, other.called_computations
                if wrapped[0] in hidden and twin[0] in hidden_too:
                    pairing[wrapped[0]] = twin[0]
    for x, y in pairing.items():
        problem = _compare(x, y, pairing, named=x not in hidden)
        if problem is not None:
            return f"computation {x.name}: {problem}"
    return None


def _hidden(module: Module) -> set[Computation]:
    return {
        x.called_computations[0]
        for c in module.computations
        for x in c.instructions
        if x.opcode == "async-start" and can_vanish(x)
    }


def _compare(
    a: Computation,
    b: Computation,
    pairing: Mapping[Computation, Computation],
    *,
    named: bool,
) -> str | None:
    if named and a.name != b.name:
        return f"is named {b.name} in the other"
    if a.execution_thread != b.execution_thread:
        return "execution threads differ"
    left, right = printed_order(a), printed_order(b)
    if len(left) != len(right):
        return f"{len(left)} instructions against {len(right)}"
    same: dict[Instruction, Instruction] = dict(zip(left, right, strict=True))
    for x, y in same.items():
        problem = _differs(x, y, same, pairing, named=named)
        if problem:
            return f"{x.name}: {problem}"
    if same[a.root] is not b.root:
        return "roots differ"
    return None


def _differs(
    x: Instruction,
    y: Instruction,
    same: Mapping[Instruction, Instruction],
    pairing: Mapping[Computation, Computation],
    *,
    named: bool,
) -> str:
    if named and x.name != y.name:
        return f"is named {y.name} in the other"
    if x.opcode != y.opcode:
        return f"opcode {y.opcode} in the other"
    if x.shape is not y.shape and x.shape != y.shape:
        return f"shape {y.shape} in the other"
    if len(x.operands) != len(y.operands) or any(
        same.get(p) is not q for p, q in zip(x.operands, y.operands, strict=True)
    ):
        return "operands differ"
    if x.attributes is not y.attributes and _shown(x) != _shown(y):
        return "attributes differ"
    if [pairing.get(c) for c in x.called_computations] != list(y.called_computations):
        return "called computations differ"
    if {same.get(p) for p in x.control_predecessors} != set(y.control_predecessors):
        return "control predecessors differ"
    if x.metadata_text != y.metadata_text:
        return "metadata differs"
    if x.backend_config != y.backend_config:
        return "backend configs differ"
    return ""


def _shown(instruction: Instruction) -> dict[str, Any]:
    attributes = dict(instruction.attributes)
    if instruction.opcode == "compare" and is_default_comparison(instruction):
        attributes.pop("type", None)
    return attributes
