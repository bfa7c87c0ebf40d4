"""Checks of one computation: edges, order, names, parameters, root."""

from __future__ import annotations

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.verifier.instructions import InstructionChecker
from msa.hlo.verifier.report import Report


def check_computation(
    report: Report, computation: Computation, checker: InstructionChecker
) -> bool:
    """Check everything within one computation.

    Returns whether its instructions are listed in topological order; when they are
    not, cycles have been looked for and reported.
    """
    instructions = computation.instructions
    if not instructions or computation.root is None:
        report.computation(computation, "has no instructions")
        return True
    ordered, uses, users = True, 0, 0
    seen: set[Instruction] = set()
    covers, see, check = seen.issuperset, seen.add, checker.check
    for instruction in instructions:
        operands = instruction.operands
        if operands:
            if not covers(operands):
                ordered = False
            for operand in operands:
                if instruction not in operand._users:
                    report.instruction(
                        instruction, f"is missing among the users of {operand.name}"
                    )
            uses += len(operands) if len(operands) == 1 else len(set(operands))
        users += len(instruction._users)
        if instruction.control_predecessors:
            ordered = ordered and covers(instruction.control_predecessors)
        if instruction.computation is not computation:
            report.computation(
                computation, f"holds {instruction.name}, which belongs elsewhere"
            )
        see(instruction)
        check(instruction)
    if len(seen) != len(instructions):
        report.computation(computation, "holds an instruction twice")
    if not ordered:
        _check_edges(report, computation, seen)
        _check_cycles(report, computation, seen)
    if uses != users:
        _check_users(report, computation)
    _check_control_edges(report, computation, seen)
    _check_names(report, computation)
    _check_parameters(report, computation)
    if computation.root not in seen:
        report.computation(
            computation, f"root {computation.root.name} is not in the computation"
        )
    return ordered


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
    report: Report, computation: Computation, members: set[Instruction]
) -> None:
    for instruction in computation.instructions:
        for before in instruction.control_predecessors:
            if before not in members:
                report.instruction(
                    instruction, f"control predecessor {before.name} is elsewhere"
                )
            elif instruction not in before.control_successors:
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


def _check_names(report: Report, computation: Computation) -> None:
    instructions = computation.instructions
    if len({x.name for x in instructions}) == len(set(instructions)):
        return
    first: dict[str, Instruction] = {}
    for instruction in instructions:
        other = first.setdefault(instruction.name, instruction)
        if other is not instruction:
            line = f" at line {other.line}" if other.line else ""
            report.instruction(instruction, f"has the name of another{line}")


def _check_parameters(report: Report, computation: Computation) -> None:
    parameters = [x for x in computation.instructions if x.opcode == "parameter"]
    numbers = sorted(x.attributes.get("parameter_number", -1) for x in parameters)
    if numbers != list(range(len(parameters))):
        report.computation(computation, f"parameter numbers are not 0, 1, …: {numbers}")
    if set(parameters) != set(computation.parameters):
        report.computation(computation, "its list of parameters is out of date")
