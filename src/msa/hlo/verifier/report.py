"""Collects violations with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction


class Report:
    """Violations found so far, in the order of discovery."""

    __slots__ = ("violations",)

    def __init__(self) -> None:
        self.violations: list[str] = []

    def instruction(self, instruction: Instruction, message: str) -> None:
        """A violation at an instruction."""
        line = f"line {instruction.line}: " if instruction.line else ""
        home = instruction.computation
        where = f" in {home.name}" if home is not None else ""
        self.violations.append(f"{line}{instruction.name}{where}: {message}")

    def computation(self, computation: Computation, message: str) -> None:
        """A violation of a whole computation."""
        self.violations.append(f"computation {computation.name}: {message}")

    def module(self, message: str) -> None:
        """A violation of the module's configuration."""
        self.violations.append(f"module: {message}")
