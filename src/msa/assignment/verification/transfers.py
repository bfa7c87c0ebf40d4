"""Copies that the plan has put in: each starts once, ends once and crosses memories."""

from __future__ import annotations

from typing import Final

from msa.assignment.verification.findings import Findings
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import Shape

_DONE_OF: Final = {"copy-start": "copy-done", "async-start": "async-done"}


def check_transfers(
    findings: Findings, original: Module, module: Module, space: int
) -> None:
    """Check every asynchronous pair that the original does not have. Linear."""
    schedule = module.schedule
    assert schedule is not None
    known = {
        (computation.name, x.name)
        for computation in original.computations
        for x in computation.instructions
        if x.opcode in _DONE_OF
    }
    for computation in schedule:
        for x in schedule.sequence(computation):
            if x.opcode in _DONE_OF and (computation.name, x.name) not in known:
                _check_pair(findings, x, space)


def _check_pair(findings: Findings, start: Instruction, space: int) -> None:
    done_opcode = _DONE_OF[start.opcode]
    dones = [user for user in start.users if user.opcode == done_opcode]
    others = [user for user in start.users if user.opcode != done_opcode]
    if len(dones) != 1:
        findings.add(
            "copy ends",
            f"it has {len(dones)} {done_opcode}, not one",
            start.name,
            ends=len(dones),
        )
    for other in others:
        findings.add(
            "copy in flight",
            f"{other.name} reads it before it has ended",
            start.name,
        )
    source, result = _ends(start)
    spaces = source.memory_space, result.memory_space
    if sorted(spaces) != sorted((0, space)):
        findings.add(
            "copy crosses",
            f"it copies from memory space {spaces[0]} to {spaces[1]}",
            start.name,
            source=spaces[0],
            destination=spaces[1],
        )
    for done in dones:
        if done.shape.is_array and done.shape.memory_space != spaces[1]:
            findings.add(
                "copy ends",
                f"it ends in memory space {done.shape.memory_space}, not {spaces[1]}",
                done.name,
            )
    if start.opcode == "copy-start":
        kept = start.shape.children[1].memory_space
        if kept != spaces[0]:
            findings.add(
                "copy crosses",
                f"it names its source in memory space {kept}, which is in {spaces[0]}",
                start.name,
            )
        if not result.compatible(source):
            findings.add("copy bytes", f"it copies {source} to {result}", start.name)


def _ends(start: Instruction) -> tuple[Shape, Shape]:
    """What is copied, and what it becomes."""
    shape = start.shape
    place = 0 if start.opcode == "copy-start" else 1
    return start.operands[0].shape, shape.children[place]
