"""Schedules: a total order of the instructions of each scheduled computation.

Source: `xla/hlo/ir/hlo_schedule.h`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msa.errors import ScheduleError
from msa.hlo.arguments import expect

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module


class Schedule:
    """Execution order per computation; fusion bodies and the like have none.

    Invariant: a sequence holds every instruction of its computation exactly once,
    operands and control predecessors before their users (`check`).

    >>> import msa
    >>> module = msa.schedule(msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }"))
    >>> [x.name for x in module.schedule.sequence(module.entry)], module.schedule.check(module)
    (['p', 'n'], [])
    """

    __slots__ = ("_sequences",)

    def __init__(
        self, sequences: dict[Computation, tuple[Instruction, ...]] | None = None
    ) -> None:
        if sequences is not None:
            what = "a dict from computations to tuples of instructions"
            expect(sequences, dict, where="Schedule", what=what)
        self._sequences = dict(sequences or {})

    def __contains__(self, computation: object) -> bool:
        return computation in self._sequences

    def __iter__(self) -> Iterator[Computation]:
        return iter(self._sequences)

    def __len__(self) -> int:
        return len(self._sequences)

    def sequence(self, computation: Computation) -> tuple[Instruction, ...]:
        """The order of one computation.

        Raises:
            ScheduleError: the computation is not scheduled.
        """
        try:
            return self._sequences[computation]
        except KeyError:
            raise ScheduleError(
                f"computation {computation.name!r} has no schedule",
                hint="msa.schedule(module) makes one",
            ) from None

    def set_sequence(
        self, computation: Computation, sequence: Iterable[Instruction]
    ) -> None:
        """Replace the order of one computation (not checked, see `check`)."""
        self._sequences[computation] = tuple(sequence)

    def remove(self, computation: Computation) -> None:
        """Forget a computation that left the module."""
        self._sequences.pop(computation, None)

    def check(self, module: Module) -> list[str]:
        """Every way in which this is not a schedule of `module`, as text.

        Linear in the number of instructions.
        """
        problems: list[str] = []
        embedded = module.embedded_computations()
        for computation in module.computations:
            if computation in embedded:
                continue
            sequence = self._sequences.get(computation)
            if sequence is None:
                problems.append(f"{computation.name}: not scheduled")
                continue
            problems.extend(_check_sequence(computation, sequence))
        return problems


def _check_sequence(
    computation: Computation, sequence: tuple[Instruction, ...]
) -> Iterator[str]:
    place = {instruction: i for i, instruction in enumerate(sequence)}
    if len(place) != len(sequence):
        yield f"{computation.name}: an instruction is scheduled twice"
    for instruction in computation.instructions:
        if instruction not in place:
            yield f"{computation.name}: {instruction.name} is not scheduled"
    if len(place) > len(computation.instructions):
        known = set(computation.instructions)
        for instruction in sequence:
            if instruction not in known:
                yield f"{computation.name}: schedules foreign {instruction.name}"
    for instruction, i in place.items():
        for before in (*instruction.operands, *instruction.control_predecessors):
            if place.get(before, -1) >= i:
                yield (
                    f"{computation.name}: {instruction.name} is scheduled before "
                    f"{before.name}, which it needs"
                )
