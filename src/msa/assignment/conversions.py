"""Synchronous copies and slices that may become asynchronous copies.

A copy or slice whose result could live in alternate memory is a candidate: instead of
running it, its source is copied ahead of time straight to where the result is read.
Source and result are then decided together; if a result cannot be served so, its
candidate has failed, for a reason, and the proposal is made again without it.

Reference: `IsAsyncConversionCandidate` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from enum import Enum

from msa.assignment.allocation import Allocation, CopyAllocation, Position
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.outcomes import REQUIRES_UNCOMMIT, SYNC_DATA_MOVE_REPLACEMENT
from msa.assignment.problem import Problem, SyncMove
from msa.assignment.request import AllocationRequest
from msa.assignment.times import UseTimes

_STARTS = frozenset({"async-start", "async-update", "copy-start"})
_FAILED = SYNC_DATA_MOVE_REPLACEMENT | REQUIRES_UNCOMMIT


class ConversionResult(Enum):
    """What became of a candidate; it is never one again."""

    SUCCESS = 0
    NOT_ENABLED = 1
    PRECONDITION = 2
    VALUE_NOT_ALLOWED = 4
    CONSTRAINTS = 8
    NOT_PROCESSED = 16
    GAVE_UP = 32
    COLORED = 64
    SOURCE_IN_ALTERNATE = 128


class Conversions:
    """Candidates, the ones of the current proposal, and what became of the others.

    Attributes:
        results: per step of a former candidate.
        candidates: steps of the current proposal's candidates, ascending.
        noted: candidates that the current attempt has converted.
    """

    __slots__ = (
        "_available",
        "_finalized",
        "_intervals",
        "_moves",
        "_placeable",
        "_problem",
        "candidates",
        "noted",
        "results",
    )

    def __init__(
        self,
        problem: Problem,
        intervals: list[MsaBufferInterval | None],
        finalized: bytearray,
        available: int,
        enabled: set[str],
    ) -> None:
        self._problem = problem
        self._intervals = intervals
        self._finalized = finalized
        self._available = available
        self._moves = {
            step: move
            for step, move in problem.sync_moves.items()
            if move.kind in enabled
        }
        self.results: dict[int, ConversionResult] = {}
        self.candidates: list[int] = []
        self.noted: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._moves)

    def move(self, step: int) -> SyncMove:
        """What the candidate at the step moves."""
        return self._moves[step]

    # -- candidates ----------------------------------------------------------------

    def is_candidate(self, step: int) -> bool:
        """Whether the instruction may be replaced, as things stand now.

        Of a chain of candidates only the first one is.
        """
        verdict: dict[int, bool] = {}
        pending = [step]
        while pending:
            current = pending[-1]
            if current in verdict:
                pending.pop()
            elif not self._is_eligible(current):
                verdict[current] = False
            else:
                operands = [o for o in self._problem.operands[current] if o >= 0]
                unknown = [o for o in operands if o not in verdict]
                if unknown:
                    pending += unknown
                else:
                    verdict[current] = not any(verdict[o] for o in operands)
        return verdict[step]

    def _is_eligible(self, step: int) -> bool:
        if step not in self._moves or step in self.results:
            return False
        problem = self._problem
        output = problem.value_at.get(Position(step))
        if output is None or self._finalized[output]:
            return False
        value = problem.values[output]
        needed = self._intervals[output]
        if (
            needed is None
            or not needed.need_allocation
            or needed.size > self._available
            or not value.placeable
            or any(problem.opcodes[u.step] in _STARTS for u in value.uses)
            or any(
                problem.regions[problem.region_of[p.step]].root == p.step
                for p in value.positions
            )
        ):
            return False
        for operand in problem.operands[step]:
            source = problem.value_at.get(Position(operand))
            interval = None if source is None else self._intervals[source]
            if interval is None or not interval.need_allocation:
                return False
        return True

    def fail(self, step: int, reason: ConversionResult) -> None:
        """It is no candidate any more (the first reason stays)."""
        self.results.setdefault(step, reason)

    def joint_values(self, first: int) -> list[int]:
        """Values connected with the first one over candidates; notes the candidates."""
        problem = self._problem
        found = {first: None}
        touched: set[int] = set()
        pending = [first]
        while pending:
            value = problem.values[pending.pop()]
            linked = []
            for use in value.uses:
                if self.is_candidate(use.step):
                    touched.add(use.step)
                    linked.append(problem.value_at[Position(use.step)])
            step = value.position.step
            if self.is_candidate(step):
                touched.add(step)
                source = problem.operands[step][self._moves[step].source_operand]
                linked.append(problem.value_at[Position(source)])
            for other in linked:
                if other not in found:
                    found[other] = None
                    pending.append(other)
        self.candidates = sorted(touched)

        def time(value: int) -> tuple[int, int]:
            interval = self._intervals[value]
            return (-1, -1) if interval is None else (interval.start, interval.end)

        return sorted(found, key=time)

    def is_pending(self, step: int) -> bool:
        """Whether the step is a candidate of the current proposal."""
        return step in self.candidates

    def feeds_slice(self, step: int) -> bool:
        """Whether a reader of the step's result is a slice to be replaced."""
        value = self._problem.value_at.get(Position(step))
        return value is not None and any(
            self.is_candidate(use.step) and self._moves[use.step].kind != "copy"
            for use in self._problem.values[value].uses
        )

    # -- one attempt -----------------------------------------------------------------

    def note(self, request: AllocationRequest, outcome: int) -> int:
        """Check that the use reads what replaces the candidate; flags if it does not."""
        step = request.replaces
        assert step is not None
        found = None
        if not outcome & REQUIRES_UNCOMMIT:
            found = _replacement(request)
        if found is None:
            self.fail(step, ConversionResult.CONSTRAINTS)
            return _FAILED
        if request.use.use not in found.uses:
            self.fail(step, ConversionResult.PRECONDITION)
            return _FAILED
        self.noted.add(step)
        return 0

    def close(self) -> int:
        """After an attempt: flags if a candidate was not converted."""
        missed = [step for step in self.candidates if step not in self.noted]
        for step in missed:
            self.fail(step, ConversionResult.NOT_PROCESSED)
        return _FAILED if missed else 0

    def succeed(self) -> None:
        """The attempt is kept: its candidates are converted for good."""
        for step in self.noted:
            self.results[step] = ConversionResult.SUCCESS
        self.noted.clear()
        self.candidates = []


def _replacement(request: AllocationRequest) -> Allocation | None:
    """The copy in the target's sequence that stands in for the instruction."""
    for allocation in request.target.sequence:
        if (
            isinstance(allocation, CopyAllocation)
            and allocation.replaces == request.replaces
            and allocation.is_alternate
            and allocation.available <= request.required_copy_latest
            and not (
                request.replaces_slice and allocation.cross_program_index is not None
            )
        ):
            return allocation
    return None


def require_copy(
    request: AllocationRequest,
    step: int,
    conversions: Conversions,
    problem: Problem,
    times: UseTimes,
) -> None:
    """Ask for a copy from the source that replaces the candidate at the step."""
    target = request.target
    move = conversions.move(step)
    request.require_copy = True
    request.replaces = step
    request.replaces_slice = move.kind != "copy"
    latest = problem.end
    defined = times.corrected(target.position.step)
    for position in target.value.positions:
        time = times.corrected(position.step)
        if time > defined and not _only_renames(problem, position.step):
            latest = min(latest, time)
    for use in target.uses:
        if not _only_renames(problem, use.use.step):
            latest = min(latest, use.corrected)
    for successor in move.control_successors:
        latest = min(latest, successor)
    request.required_copy_latest = latest
    # The copy may run on after the instruction that it replaces, but not after
    # something else is written into the source's storage.
    for member in problem.buffers[request.source.value.buffer]:
        written = problem.values[member].position.step
        if written > step:
            request.latest_prefetch = min(request.latest_prefetch, written)
    request.earliest_prefetch = max(
        (o for o in problem.operands[step] if o >= 0), default=None
    )


def _only_renames(problem: Problem, step: int) -> bool:
    """Whether the step is one that lowering makes anew behind a copy."""
    return (
        problem.is_trivial(step)
        and problem.regions[problem.region_of[step]].root != step
    )


def segment_contexts(
    item: AllocationValue,
    values: list[AllocationValue],
    conversions: Conversions,
) -> list[tuple[SegmentUse, AllocationValue, int | None, bool]]:
    """(use, whose, candidate, only extend): what is served from the source's places.

    The candidate's own read only keeps the source where it is; the reads of its result
    are served in its stead.
    """
    contexts: list[tuple[SegmentUse, AllocationValue, int | None, bool]] = []
    for use in item.uses:
        step = use.use.step
        if not conversions.is_pending(step):
            contexts.append((use, item, None, False))
            continue
        contexts.append((use, item, None, True))
        for other in values:
            if other.position.step == step:
                contexts += [(u, other, step, False) for u in other.uses]
    contexts.sort(key=lambda c: c[0].use.step)
    return contexts
