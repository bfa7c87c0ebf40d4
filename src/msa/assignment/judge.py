"""Why uses read slow memory: judged by the finished plan, way by way.

A value can be in fast memory because it is defined there and stays, or because a copy
brings it. What stands in the way of each is looked up in the plan as it is: room,
bandwidth, time, what it would save. How the plan was made does not matter, so figures
and reasons cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    SlicedCopyAllocation,
    Use,
    WindowPrefetchedAllocation,
)
from msa.assignment.crowding import Occupancy
from msa.assignment.explain_room import room_change, room_competitors, room_details
from msa.assignment.finding import Finding, Way
from msa.assignment.judge_copy import CopyJudge
from msa.assignment.options import Options
from msa.assignment.outcomes import BufferDecision, Decision, Outcome, Skip
from msa.assignment.problem import Problem, Value
from msa.assignment.reason import Reason
from msa.assignment.traffic import Traffic
from msa.heap.chunk import align_up
from msa.units import format_seconds

SKIPPED: Final = {
    Skip.NOT_PLACEABLE: Reason.NOT_PLACEABLE,
    Skip.TOO_LARGE: Reason.TOO_LARGE,
    Skip.ROOM_RESERVED: Reason.ROOM_RESERVED,
    Skip.CROSS_PROGRAM: Reason.FETCHED_AHEAD,
    Skip.RESERVED_BY_USER: Reason.FIXED,
}
"""What it means that a buffer was not considered."""

_RULES: Final = {
    Outcome.LIVE_RANGE_TOO_LONG: "too long until the use to keep the room for it",
    Outcome.ALL_SLICES_HAVE_THE_SAME_START_TIME: "slicing would not help",
    Outcome.CONFLICTING_PREFERRED_OFFSETS: "its partners lie at different addresses",
    Outcome.SYNC_DATA_MOVE_REPLACEMENT: "the copy that it replaces must stay",
}
"""Rules that the strategy names when it decides; they do not depend on the plan."""

_COPIES: Final = (CopyAllocation, SlicedCopyAllocation)

_TIED_NAMES: Final = 4


class _Reads(NamedTuple):
    """What the uses of one value read.

    Attributes:
        any: whether any of them reads bytes.
        slow: per step, the bytes that it reads from slow memory.
        banned: uses that must read slow memory.
    """

    any: bool
    slow: dict[int, float]
    banned: frozenset[Use]


class Judge:
    """Answers why uses of one finished plan read slow memory.

    What it needs to know of room and of time is found when it is first asked.

    Args:
        problem: what was planned.
        allocations: the plan.
        options: how it was planned.
        decisions, skipped: what the strategy noted.
        left: names of the instructions that the planned module has.
    """

    def __init__(
        self,
        problem: Problem,
        allocations: Iterable[Allocation],
        options: Options,
        decisions: Sequence[Decision] = (),
        skipped: Sequence[BufferDecision] = (),
        left: Collection[str] = (),
    ) -> None:
        self._problem = problem
        self._allocations = list(allocations)
        self._options = options
        self._left = left
        self._log = {(d.value, d.use): d for d in decisions}
        self._skipped = {d.value: SKIPPED[d.skipped] for d in skipped}
        self._known: dict[tuple[int, Use], tuple[Finding, ...]] = {}
        self._reads: dict[int, _Reads] = {}
        self._fast: set[tuple[int, Use]] = set()
        self._serving: dict[tuple[int, Use], Allocation] = {}
        self._stays: dict[int, list[Allocation]] = {}
        for a in self._allocations:
            if isinstance(a, WindowPrefetchedAllocation):
                continue
            self._serving.update({(a.value, use): a for use in a.uses})
            if a.is_alternate:
                self._fast.update((a.value, use) for use in a.uses)
                self._stays.setdefault(a.value, []).append(a)

    @cached_property
    def room(self) -> Occupancy:
        """Who holds which room when."""
        return Occupancy(self._problem, self._allocations)

    @cached_property
    def traffic(self) -> Traffic:
        """What steps and copies take."""
        names = enumerate(self._problem.names)
        kept = [step for step, name in names if name in self._left]
        return Traffic(self._problem, self._allocations, kept)

    @cached_property
    def _copies(self) -> CopyJudge:
        return CopyJudge(self._problem, self._options, self.traffic, self.room)

    def is_fast(self, value: Value, use: Use) -> bool:
        """Whether a use reads fast memory."""
        return (value.id, use) in self._fast

    def of_value(self, value: Value) -> Reason | None:
        """Why a value as a whole is in slow memory, if that is not asked use by use."""
        if value.is_tuple or not value.placeable:
            return Reason.NOT_PLACEABLE
        if value.id in self._skipped:
            return self._skipped[value.id]
        machine = self._problem.machine
        if align_up(value.size, machine.alignment) > machine.capacity:
            return Reason.TOO_LARGE
        if self._reads_of(value).any:
            return None
        if value.live_out:
            return Reason.RESULT
        return Reason.HANDED_ON if value.uses else Reason.NOT_READ

    def of_use(self, value: Value, use: Use) -> tuple[Finding, ...]:
        """What stands in the way of one use on each way; the first matters most."""
        known = self._known.get((value.id, use))
        if known is None:
            known = self._known[value.id, use] = self._judged(value, use)
        return known

    def of_definition(self, value: Value) -> Finding:
        """Why a value that is read in fast memory is in slow memory before.

        It is made there and fetched, or copied out in between.
        """
        start, end = value.position.step, min(use.step for use in value.uses)
        if any(
            a.position == value.position and not isinstance(a, _COPIES)
            for a in self._stays.get(value.id, ())
        ):
            text = "it is copied out of fast memory and fetched again"
            return _plain(Reason.FAST, start, end, text)
        made = "it is made in slow memory and fetched"
        if not self._is_definable(value):
            text = "it has to start in slow memory and is fetched"
            return Finding(Reason.MUST_BE_SLOW, "", start, end, text)
        written = self.traffic.bytes.get(value.position, 0.0)
        gain = self.traffic.gain(start, 0.0, written)
        found = self._kept(value, start, end, gain)
        return replace(found, sentence=f"{made}: {found.sentence}", seconds=gain)

    def _reads_of(self, value: Value) -> _Reads:
        """What the uses of a value read; found once, in one pass."""
        known = self._reads.get(value.id)
        if known is None:
            moved = [(u, self.traffic.bytes.get(u, 0.0)) for u in value.uses]
            slow = dict.fromkeys((u.step for u in value.uses), 0.0)
            for use, size in moved:
                if not self.is_fast(value, use):
                    slow[use.step] += size
            known = self._reads[value.id] = _Reads(
                any(size > 0.0 for _, size in moved),
                slow,
                frozenset(value.uses[n] for n in value.banned_uses),
            )
        return known

    def _judged(self, value: Value, use: Use) -> tuple[Finding, ...]:
        whole = (value.live[0], max(value.live[0], use.step))
        if self.is_fast(value, use):
            return (_plain(Reason.FAST, *whole),)
        reason = self.of_value(value)
        if reason in (None, Reason.HANDED_ON, Reason.RESULT, Reason.NOT_READ):
            if use in self._reads_of(value).banned:
                reason = Reason.MUST_BE_SLOW
            elif self.traffic.bytes.get(use, 0.0) <= 0.0:
                reason = Reason.HANDED_ON
        if reason is not None:
            return (_plain(reason, *whole),)
        read = self._reads_of(value).slow[use.step]
        gain = self.traffic.gain(use.step, read)
        written = self._gain_of_writing(value)
        if gain <= 0.0 and written <= 0.0:
            return (self._no_gain(value, use, whole),)
        logged = self._log.get((value.id, use))
        if logged is not None and logged.required_default:
            tied = len(self._problem.buffers[value.buffer]) > 1
            return (_plain(Reason.TIED if tied else Reason.MUST_BE_SLOW, *whole),)
        return self._by_way(value, use, gain, written)

    def _by_way(
        self, value: Value, use: Use, gain: float, written: float
    ) -> tuple[Finding, ...]:
        found = []
        stay = self._stay(value, use, gain + written)
        if stay is not None:
            found.append(replace(stay, seconds=gain + written))
        if gain > 0.0:
            source = self._serving.get((value.id, use))
            copy = self._copies.fetch(value, use, source, gain)
            found.append(replace(copy, seconds=gain))
        if not found:
            return (self._no_gain(value, use, (value.live[0], use.step)),)
        found = [self._by_rule(f, value, use) for f in found]
        found.sort(key=lambda f: f.reason not in (Reason.OPEN, Reason.RULE))
        return tuple(found)

    # -- staying ---------------------------------------------------------------

    def _stay(self, value: Value, use: Use, gain: float) -> Finding | None:
        """Being defined in fast memory, or being there already, and staying."""
        before = [a for a in self._stays.get(value.id, ()) if a.start <= use.step]
        if before:
            start = max(a.start for a in before)
        elif self._is_definable(value):
            start = value.position.step
        else:
            return None
        return self._kept(value, start, use.step, gain)

    def _kept(self, value: Value, start: int, end: int, gain: float) -> Finding:
        """Being in fast memory from one step to another."""
        hole = self.room.free_hole(value, start, end)
        if hole is None:
            found = self.room.crowding(value, start, end)
            return Finding(
                Reason.NO_ROOM,
                "stay",
                start,
                end,
                Reason.NO_ROOM.sentence,
                room_details(self._problem, found),
                room_competitors(found),
                room_change(self._problem, found, self._options),
            )
        leaving = self._leaving(value, start, gain)
        if leaving is not None:
            return leaving
        if len(self._problem.buffers[value.buffer]) > 1:
            return self._together(value, start, end)
        return self._open("stay", start, end, hole)

    def _leaving(self, value: Value, start: int, gain: float) -> Finding | None:
        """What keeps a value from being copied out where slow memory has to hold it."""
        needed = [value.uses[n].step for n in value.banned_uses]
        if value.live_out:
            needed.append(self._problem.end)
        later = [step for step in needed if step > start]
        if not later or self._stays.get(value.id):
            return None
        gain /= max(self.traffic.trips(start), 1.0)
        found = self._copies.transfer(value, "evict", (start, min(later)), gain)
        return None if found.reason is Reason.OPEN else found

    def _together(self, value: Value, start: int, end: int) -> Finding:
        """All that shares the storage, which has to be placed at once."""
        problem = self._problem
        mates = [problem.values[m] for m in problem.buffers[value.buffer]]
        names = [problem.describe(m.position) for m in mates if m.id != value.id]
        text = ", ".join(names[:_TIED_NAMES])
        if len(names) > _TIED_NAMES:
            text += f" and {len(names) - _TIED_NAMES} more"
        shares = f"it shares its storage with {text}"
        blocker = next((m for m in mates if self._is_bound(m)), None)
        if blocker is not None:
            name = problem.describe(blocker.position)
            return Finding(
                Reason.TIED,
                "stay",
                start,
                end,
                Reason.TIED.sentence,
                (f"{shares}; {name} has to be in slow memory",),
                change=f"a copy between it and {name} in the program",
            )
        first, last = min(m.live[0] for m in mates), max(m.live[1] for m in mates)
        largest = max(mates, key=lambda m: m.size)
        found = self.room.crowding(largest, first, last)
        if not found.missing_in_one_piece:
            opened = self._open("stay", first, last, found.hole)
            return replace(opened, details=(shares, *opened.details))
        return Finding(
            Reason.TIED,
            "stay",
            first,
            last,
            Reason.TIED.sentence,
            (f"{shares}; together:", *room_details(problem, found)),
            room_competitors(found),
            room_change(self._problem, found, self._options),
        )

    def _is_definable(self, value: Value) -> bool:
        problem = self._problem
        step = value.position.step
        entry = problem.regions[0]
        return (
            value.definable
            and not value.is_constant
            and 0 not in value.banned_positions
            and step not in entry.parameters
        )

    def _is_bound(self, value: Value) -> bool:
        """Whether a value that shares storage has to be in slow memory."""
        return (
            not value.placeable
            or not self._is_definable(value)
            or value.live_out
            or bool(value.banned_positions)
        )

    # -- gains -----------------------------------------------------------------

    def _gain_of_writing(self, value: Value) -> float:
        """Seconds saved where a value is made, if it could be made in fast memory."""
        if self._stays.get(value.id) or not self._is_definable(value):
            return 0.0
        written = self.traffic.bytes.get(value.position, 0.0)
        return self.traffic.gain(value.position.step, 0.0, written)

    def _no_gain(self, value: Value, use: Use, span: tuple[int, int]) -> Finding:
        """The figures of an instruction that fast memory makes no faster."""
        problem, traffic, step = self._problem, self.traffic, use.step
        compute, memory = float(traffic.compute[step]), float(traffic.memory[step])
        name = problem.names[step]
        if not traffic.trips(step):
            details, change = (f"{name} (step {step}) never runs",), ""
        elif traffic.is_removed(step):
            details, change = (
                (f"{name} (step {step}) is removed: nothing reads it",),
                "",
            )
        else:
            details = (
                (
                    f"{name} (step {step}) is bound by arithmetic: it computes for "
                    f"{format_seconds(compute)} and moves bytes for "
                    f"{format_seconds(memory)} meanwhile, so faster reads save 0 s"
                ),
            )
            change = f"it would help if {name} computed for less than it moves bytes"
        return Finding(
            Reason.NO_GAIN, "", *span, Reason.NO_GAIN.sentence, details, change=change
        )

    # -- nothing in the way ------------------------------------------------------

    def _open(self, way: Way, start: int, end: int, hole: int) -> Finding:
        return self._copies.open(way, start, end, hole)

    def _by_rule(self, found: Finding, value: Value, use: Use) -> Finding:
        """A way that only a rule of the strategy closes."""
        if found.reason is not Reason.OPEN:
            return found
        if self._problem.runs_asynchronously[self._problem.region_of[use.step]]:
            text = "nothing is moved inside of asynchronous computations"
            return _plain(Reason.RULE, found.start, found.end, text)
        logged = self._log.get((value.id, use))
        rules = [
            text
            for flag, text in _RULES.items()
            if logged is not None and flag & logged.failures
        ]
        if not rules:
            return found
        return replace(found, reason=Reason.RULE, sentence="; ".join(rules), change="")


def _plain(reason: Reason, start: int, end: int, sentence: str = "") -> Finding:
    return Finding(
        reason, "", start, end, sentence or reason.sentence, change=reason.change
    )
