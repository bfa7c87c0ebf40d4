"""Checks across computations: callees exist, names differ, no recursion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.verifier.report import Report


def check_calls(report: Report, module: Module, callers: Iterable[Instruction]) -> None:
    """Check the module's list of computations and its call graph."""
    members = set(module.computations)
    if module.entry is None or module.entry not in members:
        report.module("has no entry computation")
    for name, count in Counter(c.name for c in module.computations).items():
        if count > 1:
            report.module(f"{count} computations are named {name}")
    if len(members) != len(module.computations):
        report.module("holds a computation twice")
    callees: dict[Computation, dict[Computation, None]] = {
        c: {} for c in module.computations
    }
    starts: dict[Computation, Instruction] = {}
    for instruction in callers:
        called = callees.get(instruction.computation)
        for callee in instruction.called_computations:
            if called is not None:
                called[callee] = None
            if callee not in members:
                report.instruction(
                    instruction, f"calls {callee.name}, not in the module"
                )
        if instruction.opcode == "async-start":
            _check_only_start(report, instruction, starts)
    _check_recursion(report, callees)


def _check_only_start(
    report: Report, start: Instruction, starts: dict[Computation, Instruction]
) -> None:
    for callee in start.called_computations:
        other = starts.setdefault(callee, start)
        if other is not start:
            report.instruction(
                start,
                f"computation {callee.name} is called by more than one async op: "
                f"also by {other.name}",
            )


def _check_recursion(
    report: Report, callees: dict[Computation, dict[Computation, None]]
) -> None:
    finished: set[Computation] = set()
    for start in callees:
        if start in finished:
            continue
        path = {start: None}
        stack = [(start, iter(callees[start]))]
        while stack:
            computation, rest = stack[-1]
            for callee in rest:
                if callee in path:
                    report.computation(callee, "calls itself, directly or not")
                    return
                if callee not in finished and callee in callees:
                    path[callee] = None
                    stack.append((callee, iter(callees[callee])))
                    break
            else:
                stack.pop()
                del path[computation]
                finished.add(computation)
