"""Checks of asynchronous pairs: each done follows its start, each start one done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape_inference import Signature
from msa.hlo.shape_inference.operation import compatible, dims_text
from msa.hlo.shape_inference.transfers import is_unbound
from msa.hlo.verifier.report import Report

_STARTS: Final = {
    "async-update": ("async-start", "async-update"),
    "async-done": ("async-start", "async-update"),
    "copy-done": ("copy-start",),
    "all-gather-done": ("all-gather-start",),
    "all-reduce-done": ("all-reduce-start",),
    "collective-permute-done": ("collective-permute-start",),
    "send-done": ("send",),
    "recv-done": ("recv",),
}
"""Which operations the first operand of each continuation may come from."""

_CARRIED: Final = frozenset(
    {"get-tuple-element", "parameter", "opt-barrier", "add-dependency", "bitcast"}
)
"""Through these a loop may carry the handle of an open operation."""

_TAKING: Final = frozenset(
    {"tuple", "while", "call", "conditional", "opt-barrier", "add-dependency"}
)
"""These may take the handle of an open operation along."""

_HANDLES: Final = frozenset(
    {
        "copy-start",
        "all-gather-start",
        "all-reduce-start",
        "collective-permute-start",
    }
)
"""Their handles are only there to be finished."""

_CONTINUATIONS: Final = {
    start: frozenset(done for done, starts in _STARTS.items() if start in starts)
    for starts in _STARTS.values()
    for start in starts
}


def check_async_operations(report: Report, operations: Iterable[Instruction]) -> None:
    """Check starts, updates and dones of all computations."""
    for instruction in operations:
        opcode = instruction.opcode
        if opcode in _STARTS and instruction.operands:
            _check_source(report, instruction)
        if opcode in _CONTINUATIONS:
            _check_users(report, instruction)
            ends = [
                user.name
                for user in instruction._users
                if user.opcode in _CONTINUATIONS[opcode]
                and user.operands[0] is instruction
            ]
            if len(ends) > 1:
                report.instruction(
                    instruction, f"is continued more than once: by {', '.join(ends)}"
                )
        if opcode == "async-start" and len(instruction.called_computations) == 1:
            _check_wrapped(report, instruction)


def _check_users(report: Report, start: Instruction) -> None:
    """Until it is done, nothing reads the handle; loops and calls take it along."""
    ends = _CONTINUATIONS[start.opcode]
    if start.opcode not in _HANDLES:
        return
    for user in start._users:
        if user.opcode not in ends and user.opcode not in _TAKING:
            report.instruction(start, f"is read by {user.name} while it is under way")


def _check_source(report: Report, instruction: Instruction) -> None:
    source, expected = instruction.operands[0], _STARTS[instruction.opcode]
    if source.opcode in expected:
        if (
            instruction.opcode.startswith("async-")
            and instruction.called_computations != source.called_computations
        ):
            report.instruction(
                instruction, f"wraps another computation than {source.name}"
            )
        if source.attributes.get("is_host_transfer", False) != (
            instruction.attributes.get("is_host_transfer", False)
        ):
            report.instruction(
                instruction, f"and {source.name} differ in is_host_transfer"
            )
        numbers = [x.attributes.get("channel_id") for x in (source, instruction)]
        if None not in numbers and numbers[0] != numbers[1]:
            report.instruction(instruction, f"and {source.name} differ in channel_id")
        return
    # The handle of an all-reduce looks like any array: it cannot be told apart.
    known = instruction.opcode.startswith("async-")
    known = known or instruction.opcode == "all-reduce-done"
    if known or source.opcode not in _CARRIED:
        report.instruction(
            instruction,
            f"{instruction.opcode} must follow {' or '.join(expected)}, not "
            f"{source.opcode} {source.name}",
        )


def _check_wrapped(report: Report, start: Instruction) -> None:
    """The wrapped computation fits the slots of a fully bound start."""
    callee, shape = start.called_computations[0], start.shape
    if not shape.is_tuple or len(shape.children) < 2 or not callee.instructions:
        return  # reported with the instruction
    slots, result = shape.children[0].children, shape.children[1]
    if is_unbound(result) or is_unbound(shape.children[0]):
        return
    if any(map(is_unbound, slots)) or any(
        user.opcode == "async-update" and len(user.operands) > 1
        for user in start._users
    ):
        return
    parameters, root = Signature.of(callee)
    if len(parameters) != len(slots) or not all(map(compatible, parameters, slots)):
        report.instruction(
            start, f"operands do not fit the parameters of {callee.name}"
        )
    if not compatible(root, result):
        report.instruction(
            start, f"{callee.name} gives {dims_text(root)}, not {dims_text(result)}"
        )
