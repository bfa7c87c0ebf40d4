"""No two things may lie at the same bytes while both are needed."""

from __future__ import annotations

from sortedcontainers import SortedList

from msa.analysis.operand_sharing import OperandSharing
from msa.analysis.values import Value
from msa.assignment.verification.findings import Findings
from msa.assignment.verification.joins import joined_slices
from msa.assignment.verification.occupants import Occupant
from msa.assignment.verification.scratch import scratch_occupants
from msa.assignment.verification.storage import Storage
from msa.hlo.instruction import Instruction


def check_overlap(findings: Findings, storage: Storage) -> None:
    """Sweep over the steps with the occupants of each in order of address.

    O(n log n) in the number of intervals.
    """
    sweep = _Sweep(findings, storage)
    occupants = sorted(_occupants(storage), key=lambda o: (o.start, o.offset, o.end))
    for occupant in occupants:
        sweep.enter(occupant)


def _occupants(storage: Storage) -> list[Occupant]:
    occupants = [
        Occupant(
            buffer.offset,
            buffer.offset + buffer.size,
            start,
            stop,
            buffer.name,
            tuple(buffer.values),
        )
        for buffer in storage.placed
        for start, stop in buffer.spans
    ]
    return occupants + scratch_occupants(storage)


class _Sweep:
    """Occupants at the current step, by address.

    Invariant: those present do not overlap, but for violations already reported.
    """

    __slots__ = ("_findings", "_joined", "_leaving", "_present", "_sharing", "_steps")

    def __init__(self, findings: Findings, storage: Storage) -> None:
        self._findings = findings
        self._steps = storage.analyses.schedule.instructions
        self._sharing = OperandSharing(
            storage.analyses.dataflow, pairs=storage.analyses.in_place
        )
        self._joined = joined_slices(storage, findings)
        self._present: SortedList[Occupant] = SortedList(
            key=lambda o: (o.offset, o.end, o.start)
        )
        self._leaving: SortedList[Occupant] = SortedList(
            key=lambda o: (o.stop, o.offset)
        )

    def enter(self, new: Occupant) -> None:
        """Take an occupant in, and those out that are gone by then."""
        while self._leaving and self._leaving[0].stop <= new.start:
            self._remove(self._leaving[0])
        for old in self._overlapping(new):
            if self._may_follow(old, new):
                self._remove(old)
            else:
                self._report(old, new)
        self._present.add(new)
        self._leaving.add(new)

    def _remove(self, occupant: Occupant) -> None:
        self._leaving.remove(occupant)
        self._present.remove(occupant)

    def _overlapping(self, new: Occupant) -> list[Occupant]:
        """Those present that share bytes with `new`: its neighbours by address."""
        present = self._present
        found = []
        place = present.bisect_key_left((new.offset,))
        for i in range(place - 1, -1, -1):
            if present[i].end <= new.offset:
                break
            found.append(present[i])
        for i in range(place, len(present)):
            if present[i].offset >= new.end:
                break
            found.append(present[i])
        return found

    def _may_follow(self, old: Occupant, new: Occupant) -> bool:
        """Whether `new` may be written over `old` at the step that reads it last."""
        if old.stop != new.start + 1:
            return False
        step = self._steps[new.start]
        if (old.name, new.name) in self._joined:
            return True
        if (old.offset, old.end) != (new.offset, new.end):
            return False
        return any(
            self._writes_over(step, value, result)
            for value in old.values
            for result in new.values
            if result.instruction is step
        )

    def _writes_over(self, step: Instruction, value: Value, result: Value) -> bool:
        places = [
            (u.operand, u.operand_index) for u in value.uses if u.instruction is step
        ]
        return bool(places) and all(
            self._sharing.can_share(operand, index, step, result.index)
            for operand, index in places
        )

    def _report(self, old: Occupant, new: Occupant) -> None:
        step = new.start
        self._findings.add(
            "overlap",
            f"{old.name} at [{old.offset}, {old.end}) is needed in steps [{old.start}, "
            f"{old.stop}), {new.name} at [{new.offset}, {new.end}) in [{new.start}, "
            f"{new.stop})",
            f"step {step}, {self._steps[step].name}",
            step=step,
            bytes=min(old.end, new.end) - max(old.offset, new.offset),
        )
