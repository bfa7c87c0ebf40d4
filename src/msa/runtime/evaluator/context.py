"""What kernels may know about their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from msa.errors import ExecutionError

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction
    from msa.hlo.shape import Shape

ElidedConstant = Callable[["Instruction", "Shape"], Any]
"""Makes up the contents of one array of a constant that text left out."""

CustomCall = Callable[["Instruction"], Callable[..., Any]]
"""From a custom call to its kernel."""


class Mover(Protocol):
    """Moves the data of copies that it takes on."""

    def start(self, instruction: Instruction, value: Any) -> Any:
        """Begin a copy; the array that will hold the data once it is done."""
        ...

    def finish(self, instruction: Instruction, value: Any) -> None:
        """Wait for the copy whose destination this is."""
        ...


@dataclass(slots=True)
class LoopTurns:
    """Turns that the loops of an execution take, and how many they may.

    Attributes:
        limit: turns of all loops together; None for no limit.
        count: turns taken so far.

    >>> turns = LoopTurns(limit=1)
    >>> turns.take("loop")
    >>> turns.take("loop")
    Traceback (most recent call last):
    ...
    msa.errors.ExecutionError: loop: loops take more than 1 turns
    """

    limit: int | None = None
    count: int = 0

    def take(self, where: str) -> None:
        """Count one turn of the loop `where`.

        Raises:
            ExecutionError: that is one too many.
        """
        if self.limit is not None and self.count >= self.limit:
            raise ExecutionError(
                f"loops take more than {self.limit} turns", where=where
            )
        self.count += 1


@dataclass(frozen=True, slots=True)
class Context:
    """One device's view of the execution.

    Attributes:
        device: its number, below `replica_count * num_partitions`.
        num_partitions: partitions of each replica.
        custom_calls: handlers by target, before the built-in ones.
        elided: contents of constants whose text was left out, or None to refuse.
        stand_in: handler for custom calls that no other handler knows, or None.
        infeed: makes the next value of an infeed, or None for zeros.
        mover: moves the data of copies between memories, or None to hand values on.
        turns: counts the turns of loops, or None.
    """

    device: int = 0
    num_partitions: int = 1
    custom_calls: Mapping[str, CustomCall] = field(default_factory=dict)
    elided: ElidedConstant | None = None
    stand_in: CustomCall | None = None
    infeed: Callable[[Shape], Any] | None = None
    mover: Mover | None = None
    turns: LoopTurns | None = None

    @property
    def replica_id(self) -> int:
        """Replica of this device."""
        return self.device // self.num_partitions

    @property
    def partition_id(self) -> int:
        """Partition of this device."""
        return self.device % self.num_partitions

    def elided_contents(self, instruction: Instruction, shape: Shape) -> Any:
        """Contents for an elided constant.

        Raises:
            ExecutionError: nobody said what to put there.
        """
        if self.elided is None:
            raise ExecutionError(
                f"the contents of constant {instruction.name} were left out of the text",
                where=instruction.name,
                hint="print the module with large constants, or give `elided`",
            )
        return self.elided(instruction, shape)
