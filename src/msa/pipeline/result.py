"""What a run of the whole flow leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from msa.errors import HloError
from msa.hlo.module import Module

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.assignment import Assignment
    from msa.passes.binding import Binding
    from msa.passes.rematerialization import Rematerialization
    from msa.passes.suggestions import Suggestion
    from msa.pipeline.sharing import SharedBuffers
    from msa.runtime.collective import DeviceAddress


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
        suggestions: values that fast memory is worth most to, best first.
        rematerialization: what it did, or None if it was not asked for.
        buffers: allocations of the placed module, but for what the plan placed.
        bytes_by_space: of those allocations, and of the plan's in fast memory.
        places: addresses by defining position.
        shared: buffers that devices share, and their mappings.
        violations: what checks of the result found; empty when all is well.
        proof: how the result was proved by execution, or an empty text.
    """

    module: Module
    prepared: Module
    records: tuple[StageRecord, ...]
    plan: Assignment
    binding: Binding
    suggestions: tuple[Suggestion, ...]
    rematerialization: Rematerialization | None
    buffers: BufferAssignment
    bytes_by_space: Mapping[int, int]
    places: Mapping[str, Address]
    shared: SharedBuffers
    violations: tuple[str, ...]
    proof: str

    @overload
    def address(self, value: str) -> Address: ...

    @overload
    def address(self, value: str, rank: int) -> DeviceAddress: ...

    def address(self, value: str, rank: int | None = None) -> Address | DeviceAddress:
        """Where a value of the placed module lies.

        Args:
            value: defining position, such as `x{}` or `x`.
            rank: a device: where the value, which must be shared with other devices,
                lay on it when it was mapped.

        Raises:
            HloError: no value is defined there, or it has no storage of its own; with
                a device, it is not shared.
        """
        if rank is not None:
            return self.shared.find(value, rank).address
        place = value if value.endswith("}") else f"{value}{{}}"
        found = self.places.get(place)
        if found is None:
            raise HloError(f"no value with storage is defined at {value!r}")
        return found

    def multimem(self, value: str, rank: int = 0) -> DeviceAddress:
        """Where a store by a device reaches a value on all devices of its group.

        Raises:
            HloError: the value is not shared, or not in multicast memory.
        """
        found = self.shared.find(value, rank)
        if found.multimem is None:
            raise HloError(
                f"{value!r} is in {found.request.kind.value} memory, not in multicast "
                f"memory{found.request.because}",
                hint="name its kernel in GpuColoring(multimem_targets=...)",
            )
        return found.multimem

    def peer(self, value: str, rank: int, *, at: int = 0) -> DeviceAddress:
        """Where device `at` reaches a value of device `rank`.

        Raises:
            HloError: the value is not shared, not in peer memory, or not with `rank`.
        """
        found = self.shared.find(value, at)
        address = found.peers.get(rank)
        if address is None:
            reached = ", ".join(map(str, found.peers)) or "no other"
            raise HloError(
                f"device {at} does not reach {value!r} of device {rank}; it reaches "
                f"{reached} (mapped as {found.request.kind.value} memory"
                f"{found.request.because})"
            )
        return address

    def summary(self) -> str:
        """A line per stage, then what the checks found."""
        lines = [str(record) for record in self.records]
        return "\n".join([*lines, *(f"! {v}" for v in self.violations)])
