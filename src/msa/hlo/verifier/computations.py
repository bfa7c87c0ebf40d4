"""Checks of one computation: edges, order, names, parameters, root."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import is_
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import ASYNC_DONES, ASYNC_STARTS
from msa.hlo.verifier.instructions import InstructionChecker
from msa.hlo.verifier.report import Report

_COLLECTIVE: Final = (
    "all-gather all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all "
    "ragged-all-to-all collective-broadcast collective-permute collective-permute-start"
)
COLLECTIVE_OPCODES: Final = frozenset(_COLLECTIVE.split())
"""Opcodes in which several devices take part."""

ASYNC_OPCODES: Final = ASYNC_STARTS | ASYNC_DONES | {"async-update"}
"""Opcodes that start, continue or end an asynchronous operation."""


@dataclass(slots=True)
class Findings:
    """What later checks need to know, gathered on the one walk over the module.

    Attributes:
        asynchronous: instructions that start, continue or end async operations.
        collectives: instructions in which several devices take part.
        callers: instructions that call computations.
        disordered: computations not listed in topological order.
    """

    asynchronous: list[Instruction] = field(default_factory=list)
    collectives: list[Instruction] = field(default_factory=list)
    callers: list[Instruction] = field(default_factory=list)
    disordered: list[Computation] = field(default_factory=list)


def check_computation(
    report: Report,
    computation: Computation,
    checker: InstructionChecker,
    findings: Findings,
) -> None:
    """Check everything within one computation; linear in its size."""
    instructions = computation.instructions
    if not instructions or computation.root is None:
        report.computation(computation, "has no instructions")
        return
    ordered, edges = True, 0
    controlled: list[Instruction] = []
    parameters: list[Instruction] = []
    seen: set[Instruction] = set()
    check = checker.check
    checker.begin_computation()
    for instruction in instructions:
        operands, opcode = instruction.operands, instruction.opcode
        if operands:
            for operand in operands:
                if instruction not in operand._users:
                    report.instruction(
                        instruction, f"is missing among the users of {operand.name}"
                    )
            edges += 1 if len(operands) == 1 else len(set(operands))
        elif opcode == "parameter":
            parameters.append(instruction)
        edges -= len(instruction._users)
        if instruction.control_predecessors or instruction.control_successors:
            controlled.append(instruction)
            ordered = ordered and seen.issuperset(instruction.control_predecessors)
        if instruction.called_computations:
            findings.callers.append(instruction)
        if opcode in ASYNC_OPCODES:
            findings.asynchronous.append(instruction)
        if opcode in COLLECTIVE_OPCODES:
            findings.collectives.append(instruction)
        if instruction.computation is not computation:
            report.computation(
                computation, f"holds {instruction.name}, which belongs elsewhere"
            )
        seen.add(instruction)
        if not check(instruction):
            ordered = False
    if len(seen) != len(instructions):
        report.computation(computation, "holds an instruction twice")
    if not ordered:
        findings.disordered.append(computation)
        _check_edges(report, computation, seen)
        _check_cycles(report, computation, seen)
    if edges:
        _check_users(report, computation)
    if controlled:
        _check_control_edges(report, controlled, seen)
    _check_names(report, computation, len(seen))
    _check_parameters(report, computation, parameters)
    if computation.root not in seen:
        report.computation(
            computation, f"root {computation.root.name} is not in the computation"
        )


def _check_edges(
    report: Report, computation: Computation, members: set[Instruction]
) -> None:
    for instruction in computation.instructions:
        for operand in instruction.operands:
            if operand not in members:
                report.instruction(
                    instruction,
                    f"operand {operand.name} is not in computation {computation.name}",
                )


def _check_cycles(
    report: Report, computation: Computation, members: set[Instruction]
) -> None:
    """Report one cycle, if there is any, with the instructions on it."""
    finished: set[Instruction] = set()
    for start in computation.instructions:
        if start in finished:
            continue
        path = {start: None}
        stack = [(start, iter(_before(start)))]
        while stack:
            instruction, rest = stack[-1]
            for before in rest:
                if before in path:
                    _report_cycle(report, list(path), before)
                    return
                if before not in finished and before in members:
                    path[before] = None
                    stack.append((before, iter(_before(before))))
                    break
            else:
                stack.pop()
                del path[instruction]
                finished.add(instruction)


def _before(instruction: Instruction) -> tuple[Instruction, ...]:
    return (*instruction.operands, *instruction.control_predecessors)


def _report_cycle(report: Report, path: list[Instruction], entry: Instruction) -> None:
    cycle = [entry, *reversed(path[path.index(entry) :])]
    shown = [x.name for x in cycle[:8]] + (["…"] if len(cycle) > 8 else [])
    report.instruction(entry, f"is on a cycle: {' -> '.join(shown)}")


def _check_users(report: Report, computation: Computation) -> None:
    for instruction in computation.instructions:
        for user in instruction._users:
            if instruction not in user.operands:
                report.instruction(
                    instruction, f"lists user {user.name}, which does not read it"
                )
            elif user.computation is not instruction.computation:
                report.instruction(
                    instruction, f"is read from another computation by {user.name}"
                )


def _check_control_edges(
    report: Report, instructions: Iterable[Instruction], members: set[Instruction]
) -> None:
    for instruction in instructions:
        for before in instruction.control_predecessors:
            if before not in members:
                report.instruction(
                    instruction, f"control predecessor {before.name} is elsewhere"
                )
            elif not before.runs_before(instruction):
                report.instruction(
                    instruction, f"is no control successor of {before.name}"
                )
        for after in instruction.control_successors:
            if after not in members:
                report.instruction(
                    instruction, f"control successor {after.name} is elsewhere"
                )
            elif instruction not in after.control_predecessors:
                report.instruction(
                    instruction, f"is no control predecessor of {after.name}"
                )


def _check_names(report: Report, computation: Computation, count: int) -> None:
    instructions = computation.instructions
    if len({x.name for x in instructions}) == count:
        return
    first: dict[str, Instruction] = {}
    for instruction in instructions:
        other = first.setdefault(instruction.name, instruction)
        if other is not instruction:
            line = f" at line {other.line}" if other.line else ""
            report.instruction(instruction, f"has the name of another{line}")


def _check_parameters(
    report: Report, computation: Computation, parameters: list[Instruction]
) -> None:
    numbers = [_number(x) for x in parameters]
    if sorted(numbers) != list(range(len(numbers))):
        report.computation(
            computation, f"parameter numbers are not 0, 1, …: {sorted(numbers)}"
        )
    listed = computation.parameters
    if len(listed) == len(parameters) and all(map(is_, listed, parameters)):
        return
    if listed != sorted(parameters, key=_number):
        report.computation(computation, "its list of parameters is out of date")


def _number(parameter: Instruction) -> int:
    number = parameter.attributes.get("parameter_number")
    return number if isinstance(number, int) else -1
