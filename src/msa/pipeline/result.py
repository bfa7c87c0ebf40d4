"""What a run of the whole flow leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msa.errors import HloError
from msa.hlo.module import Module

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.assignment import Assignment
    from msa.passes.binding import Binding
    from msa.passes.rematerialization import Rematerialization


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage of a run.

    Attributes:
        name: which.
        summary: what came out, in words.
        changed: whether the module is another one than before.
        instructions_before, instructions_after: of the module.
        seconds: wall time.
    """

    name: str
    summary: str
    changed: bool
    instructions_before: int
    instructions_after: int
    seconds: float

    def __str__(self) -> str:
        mark = "*" if self.changed else " "
        return f"{mark} {self.name}: {self.summary}"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a value lies.

    Attributes:
        space: memory space.
        allocation: index of the allocation in that space's buffers, or -1 in the
            fast memory, which is one piece.
        offset: bytes from its start.
    """

    space: int
    allocation: int
    offset: int


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Module, places and proofs of a run.

    Attributes:
        module: placed, with consistent memory spaces inside fusions.
        prepared: the module before placement.
        records: one per stage, in order.
        plan: the placement in fast memory.
        binding: which memory each value of the prepared module is wanted in.
        rematerialization: what it did, or None if it was not asked for.
        buffers: allocations of the placed module, by memory space.
        bytes_by_space: of those allocations.
        places: addresses by defining position.
        violations: what checks of the result found; empty when all is well.
        proof: how the result was proved by execution, or an empty text.
    """

    module: Module
    prepared: Module
    records: tuple[StageRecord, ...]
    plan: Assignment
    binding: Binding
    rematerialization: Rematerialization | None
    buffers: BufferAssignment
    bytes_by_space: Mapping[int, int]
    places: Mapping[str, Address]
    violations: tuple[str, ...]
    proof: str

    def address(self, value: str) -> Address:
        """Where a value of the placed module lies.

        Args:
            value: defining position, such as `x{}` or `x`.

        Raises:
            HloError: no value is defined there, or it has no storage of its own.
        """
        place = value if value.endswith("}") else f"{value}{{}}"
        found = self.places.get(place)
        if found is None:
            raise HloError(f"no value with storage is defined at {value!r}")
        return found

    def summary(self) -> str:
        """A line per stage, then what the checks found."""
        lines = [str(record) for record in self.records]
        return "\n".join([*lines, *(f"! {v}" for v in self.violations)])
