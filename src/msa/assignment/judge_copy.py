"""What keeps a copy from bringing a value into fast memory, or out, in time."""

from __future__ import annotations

from typing import Final

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    SlicedCopyAllocation,
    Use,
)
from msa.assignment.copy_times import done_at
from msa.assignment.crowding import Occupancy
from msa.assignment.explain_room import (
    NAMED,
    exact,
    room_change,
    room_competitors,
    room_details,
    steps_text,
    with_rest,
)
from msa.assignment.finding import Competitor, Finding, Way
from msa.assignment.options import Options
from msa.assignment.problem import Problem, Value
from msa.assignment.reason import Reason
from msa.assignment.search_note import search_note
from msa.assignment.traffic import Mover, Traffic
from msa.units import format_bytes, format_seconds

_ROUNDING: Final = 1e-6
"""A copy pays if it is waited for by this share less than it gains."""


class CopyJudge:
    """Judges copies that a finished plan does not make."""

    __slots__ = ("_options", "_problem", "_room", "_traffic")

    def __init__(
        self, problem: Problem, options: Options, traffic: Traffic, room: Occupancy
    ) -> None:
        self._problem = problem
        self._options = options
        self._traffic = traffic
        self._room = room

    def fetch(
        self, value: Value, use: Use, source: Allocation | None, gain: float
    ) -> Finding:
        """A copy into fast memory for one use, from where `source` holds the value.

        `gain` is what a run of the program saves if the use reads fast memory.
        """
        problem = self._problem
        ready = value.position.step if source is None else source.available
        home = value.position.step if source is None else source.position.step
        done = done_at(problem, use.step, home)
        gain /= max(self._traffic.trips(use.step), 1.0)
        found = self.transfer(value, "copy", (ready, done), gain)
        if found.reason is not Reason.OPEN:
            return found
        need = value.size / self._traffic.rate
        region = problem.region_of[home]
        for hidden in (
            need,
            need - gain * (1.0 - _ROUNDING),
        ):  # all of it, or as much as pays
            latest = self._traffic.latest(ready + 1, done - 1, max(hidden, 0.0))
            start = self._own(latest, region)
            many = self._too_many(start, use.step)
            if many is not None:
                return many
            hole = self._room.free_hole(value, start, use.step)
            if hole is not None:
                waited = need - self._traffic.left(latest, done - 1)
                return self.open("copy", start, use.step, hole, waited)
        room = self._room.crowding(value, start, use.step)
        return Finding(
            Reason.NO_ROOM,
            "copy",
            start,
            use.step,
            Reason.NO_ROOM.sentence,
            room_details(problem, room),
            room_competitors(room),
            room_change(problem, room, self._options),
        )

    def transfer(
        self, value: Value, way: Way, span: tuple[int, int], gain: float
    ) -> Finding:
        """Whether a copy is waited for less than it gains.

        Args:
            value: what is copied.
            way: into fast memory or out of it.
            span: the step that makes the value, and the one that needs the copy.
            gain: seconds, of one run of the span.
        """
        traffic, start, end = self._traffic, span[0] + 1, span[1] - 1
        need = value.size / traffic.rate
        have, idle = traffic.seconds(start, end), traffic.idle(start, end)
        left = traffic.left(start, end)
        where = steps_text(start, end) if end >= start else "no step between"
        text = f"a copy of {format_bytes(value.size)} takes {format_seconds(need)}"
        end = max(start, end)
        pays = gain * (1.0 - _ROUNDING)
        worth = f"it would be waited for longer than the {format_seconds(gain)} saved"
        if need - have >= pays:
            return Finding(
                Reason.NO_TIME,
                way,
                start,
                end,
                Reason.NO_TIME.sentence,
                (f"{text}; there are {format_seconds(have)} ({where}); {worth}",),
                change=f"it would be hidden with {format_seconds(need - have)} more",
            )
        if need - idle >= pays:
            return Finding(
                Reason.MEMORY_BUSY,
                way,
                start,
                end,
                Reason.MEMORY_BUSY.sentence,
                (
                    (
                        f"{text}; of {format_seconds(have)} ({where}) the instructions "
                        f"leave slow memory idle for {format_seconds(idle)}; {worth}"
                    ),
                ),
                change=(
                    f"it would be hidden with {format_seconds(need - idle)} more of "
                    "arithmetic, or if more of what is read and written there were in "
                    "fast memory"
                ),
            )
        if need - left >= pays:
            movers = traffic.movers(start, end)
            if movers:
                figures = (
                    f"{text}; in {where} slow memory is idle for {format_seconds(idle)}"
                    f", of which other copies leave {format_seconds(left)}; {worth}"
                )
                return self._crowded(movers, (way, start, end), figures, need - left)
        return self.open(way, start, end, None)

    def open(
        self, way: Way, start: int, end: int, hole: int | None, waited: float = 0.0
    ) -> Finding:
        """Nothing stands in the way, also if a copy is `waited` for some seconds."""
        line = f"in {steps_text(start, end)} there is enough idle copy bandwidth"
        if hole is not None:
            line = f"in {steps_text(start, end)} a hole of {exact(hole)} is left free"
        details = [line]
        if waited > 0.0:
            more = f"a copy would be waited for {format_seconds(waited)} there"
            details.append(f"{more}, less than it saves")
        change = search_note(
            self._problem,
            self._options,
            "left it so; a higher effort tries more",
            "decides anew what one pass leaves open",
        )
        return Finding(
            Reason.OPEN,
            way,
            start,
            end,
            Reason.OPEN.sentence,
            tuple(details),
            change=change,
        )

    def _crowded(
        self,
        movers: list[Mover],
        span: tuple[Way, int, int],
        figures: str,
        missing: float,
    ) -> Finding:
        """Other copies have the bandwidth: which, and which of them would be enough."""
        rivals = [self._competitor(m.copy) for m in movers]
        named = [
            (
                f"{r.name} ({format_bytes(r.bytes)}, {steps_text(r.start, r.end)}, "
                f"{format_seconds(m.seconds)})"
            )
            for r, m in zip(rivals[:NAMED], movers, strict=False)
        ]
        text = with_rest(named, [r.bytes for r in rivals])
        enough = [
            r.name for r, m in zip(rivals, movers, strict=True) if m.seconds >= missing
        ]
        change = "no single one of these copies leaves enough: several would have to go"
        if enough:
            names = " or ".join(list(dict.fromkeys(enough))[:3])
            change = f"it would be hidden if {names} were not copied then"
        return Finding(
            Reason.NO_BANDWIDTH,
            *span,
            Reason.NO_BANDWIDTH.sentence,
            (figures, f"copied there: {text}"),
            tuple(rivals[:NAMED]),
            change,
        )

    def _competitor(self, copy: CopyAllocation | SlicedCopyAllocation) -> Competitor:
        """A copy, with the steps between which it is under way."""
        value = self._problem.values[copy.value]
        start = copy.start_after + 1 if isinstance(copy, CopyAllocation) else copy.start
        return Competitor(
            "bandwidth",
            self._problem.describe(value.position),
            value.size,
            max(0, start),
            max(0, start, copy.done_before - 1),
        )

    def _too_many(self, start: int, end: int) -> Finding | None:
        """Whether as many copies as are allowed are under way, and which."""
        limit = self._options.max_outstanding_prefetches
        if limit < 0:
            return None
        rivals = [
            rival
            for copy in self._traffic.copies
            if copy.is_alternate
            for rival in (self._competitor(copy),)
            if rival.start <= end and rival.end >= start
        ]
        if len(rivals) < limit:
            return None
        names = ", ".join(r.name for r in rivals[:NAMED]) or "none"
        span = steps_text(start, end)
        return Finding(
            Reason.TOO_MANY_COPIES,
            "copy",
            start,
            end,
            Reason.TOO_MANY_COPIES.sentence,
            (f"under way in {span}: {names}; {limit} are allowed at once",),
            tuple(rivals[:NAMED]),
            Reason.TOO_MANY_COPIES.change,
        )

    def _own(self, step: int, region: int) -> int:
        """The last step up to `step` before which a region's own copies start.

        Before what another step runs is before all of that.
        """
        problem = self._problem
        inside = problem.region_of[step]
        while inside != region:
            caller = problem.regions[inside].caller
            if caller < 0:
                break
            step = min(problem.regions[r].start for r in problem.called[caller])
            inside = problem.region_of[caller]
        return step
