"""Allocation values: a value at one of its places, with the uses served from there.

A loop-carried value is one value with many places: where it is computed, the loop's
parameter, the loop's result. Each place that is not a mere name (tuple, tuple element,
bitcast) gets an `AllocationValue` with the uses that read it directly, and a sequence
of allocations of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from msa.assignment.allocation import Allocation, Index, Position, Use
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.problem import Problem, Value
from msa.assignment.times import UseTimes
from msa.errors import InternalError
from msa.hlo.layout import SplitConfig

_DONE = frozenset(
    {
        "all-gather-done",
        "all-reduce-done",
        "async-done",
        "collective-permute-done",
        "copy-done",
        "recv-done",
        "send-done",
    }
)
_STARTS_OR_UPDATES = frozenset(
    {
        "all-gather-start",
        "all-reduce-start",
        "async-start",
        "async-update",
        "collective-permute-start",
        "copy-start",
        "recv",
        "send",
    }
)


class SegmentUse:
    """A use of an allocation value.

    Attributes:
        use: the use.
        number: its number among the value's uses.
        corrected: the step at which it reads (see `UseTimes`).
        extended: the last step at which what it reads is looked at.
        aliases: places that must be where this use reads from.
        read_bytes: bytes that it reads.
    """

    __slots__ = ("aliases", "corrected", "extended", "number", "read_bytes", "use")

    def __init__(self, use: Use, number: int, times: UseTimes, read: float) -> None:
        self.use = use
        self.number = number
        self.corrected = times.corrected(use.step)
        self.extended = times.extended(use)
        self.aliases: list[Position] = []
        self.read_bytes = read

    def __repr__(self) -> str:
        return f"SegmentUse({self.use})"


class AllocationValue:
    """A value at one place.

    Attributes:
        value: the value.
        position: the place.
        region: region of the place.
        size: bytes.
        uses: by step.
        sequence: allocations made so far.
        contiguous: must stay in one memory, in one piece.
        split: how it is cut into shards, or None; `size` is then the largest shard's.
    """

    __slots__ = (
        "contiguous",
        "position",
        "region",
        "sequence",
        "size",
        "split",
        "uses",
        "value",
    )

    def __init__(
        self, value: Value, position: Position, region: int, size: int
    ) -> None:
        self.value = value
        self.position = position
        self.region = region
        self.size = size
        self.uses: list[SegmentUse] = []
        self.sequence: list[Allocation] = []
        self.contiguous = False
        self.split: SplitConfig | None = None

    def __repr__(self) -> str:
        return f"AllocationValue({self.position}, uses={self.uses})"


def create_allocation_values(
    group: list[MsaBufferInterval], problem: Problem, times: UseTimes
) -> list[AllocationValue]:
    """Allocation values of values that share storage, with the aliases of uses.

    `group` is ordered by (start, end); values at equal places with equal users
    (asynchronous in-place operations) are kept once.
    """
    created: list[AllocationValue] = []
    for interval in group:
        created += _of_value(
            problem.values[interval.value], interval.size, problem, times
        )
    if len(created) > 1:
        created = _without_duplicates(created)
    _find_aliases(created, problem)
    return created


def _of_value(
    value: Value, size: int, problem: Problem, times: UseTimes
) -> list[AllocationValue]:
    region_of = problem.region_of
    places = [p for p in value.positions if not problem.is_trivial(p.step)]
    if len(places) > 1:
        places.sort(key=lambda p: p.step)
    created = [AllocationValue(value, p, region_of[p.step], size) for p in places]
    numbered = list(enumerate(value.uses))
    if len(numbered) > 1:
        numbered.sort(key=lambda item: item[1].step)
    read = value.use_bytes
    in_region: dict[int, list[AllocationValue]] = {}
    for item in created:
        in_region.setdefault(item.region, []).append(item)
    for number, use in numbered:
        home = _home(in_region.get(region_of[use.step], ()), use, problem)
        home.uses.append(SegmentUse(use, number, times, read[number] if read else 0.0))
    for item in created:
        item.contiguous = _starts_or_updates(problem.opcodes[item.position.step])
    if value.contiguous_positions:
        contiguous = {value.positions[n] for n in value.contiguous_positions}
        for item in created:
            item.contiguous |= item.position in contiguous
    return created


def _starts_or_updates(opcode: str) -> bool:
    return opcode in _STARTS_OR_UPDATES


def _home(
    created: Sequence[AllocationValue], use: Use, problem: Problem
) -> AllocationValue:
    """The place that the use reads: the last one before it, of those in its region.

    What is bound twice to an asynchronous operation is two of its parameters, though
    one value: there, and along the operation, what is read is the place itself.
    """
    opcode = problem.opcodes[use.step]
    region = problem.regions[problem.region_of[use.step]]
    if region.kind == "async" or (
        use.operand == 0 and (opcode in _DONE or opcode == "async-update")
    ):
        source = problem.operands[use.step][use.operand]
        for item in created:
            if item.position.step == source and item.position.index == use.index:
                return item
    for item in reversed(created):
        step = item.position.step
        if step < use.step and not _starts_or_updates(problem.opcodes[step]):
            return item
    raise InternalError(
        f"no place of the value serves {problem.describe_use(use)}: "
        f"{[problem.describe(item.position) for item in created]}"
    )


def _without_duplicates(created: list[AllocationValue]) -> list[AllocationValue]:
    kept: dict[tuple[int, ...], AllocationValue] = {}
    for item in created:
        key = (item.position.step, *(u.use.step for u in item.uses))
        kept.setdefault(key, item)
    return list(kept.values())


def _find_aliases(created: list[AllocationValue], problem: Problem) -> None:
    """For every use, the places that must have the same allocation.

    Uses of one instruction that runs others have one list of them, where it is the
    same: a branch may get the same value by each of its operands.
    """
    shared: dict[tuple[int, Index], list[Position]] = {}
    at_step: dict[int, list[AllocationValue]] = {}
    for item in created:
        at_step.setdefault(item.position.step, []).append(item)
    for item in created:
        for use in item.uses:
            step = use.use.step
            if step in problem.called:
                key = (step, use.use.index)
                if key not in shared:
                    shared[key] = _aliases_inside(use.use, at_step, problem)
                use.aliases = shared[key]
                continue
            aliases = use.aliases
            for other in at_step.get(step, ()):
                if other.position not in aliases:
                    aliases.append(other.position)
            if problem.opcodes[step] == "async-update" and use.use.operand:
                _alias_late_operand(use, at_step, problem)
            _alias_out_of_branch(use, problem)


def _aliases_inside(
    use: Use, at_step: dict[int, list[AllocationValue]], problem: Problem
) -> list[Position]:
    """Aliases of what is handed to other computations: there, and the result."""
    step, _, index = use
    opcode = problem.opcodes[step]
    aliases = dict.fromkeys(other.position for other in at_step.get(step, ()))
    if opcode in ("async-update", "async-done"):
        return list(aliases)
    for number in problem.called[step]:
        region = problem.regions[number]
        for parameter in region.parameters:
            aliases.update((x.position, None) for x in at_step.get(parameter, ()))
        if opcode == "while" and region.kind == "body":
            aliases[Position(region.root, index)] = None
    return list(aliases)


def _alias_late_operand(
    use: SegmentUse, at_step: dict[int, list[AllocationValue]], problem: Problem
) -> None:
    """An operand that an update binds is a parameter of what the start runs."""
    step, operand, _ = use.use
    number = operand - 1
    link = problem.operands[step][0]
    while problem.opcodes[link] == "async-update":
        number += len(problem.operands[link]) - 1
        link = problem.operands[link][0]
    number += len(problem.operands[link])
    for called in problem.called.get(link, ()):
        parameters = problem.regions[called].parameters
        for other in at_step.get(parameters[number], ()):
            if other.position not in use.aliases:
                use.aliases.append(other.position)


def _alias_out_of_branch(use: SegmentUse, problem: Problem) -> None:
    step, operand, index = use.use
    region = problem.regions[problem.region_of[step]]
    if (
        region.kind == "branch"
        and region.root == step
        and problem.opcodes[step] == "tuple"
    ):
        use.aliases.append(Position(region.caller, (operand, *index)))
