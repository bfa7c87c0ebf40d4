"""Values whose allocations may be decided by themselves.

Such a value has one place, in one computation, and nothing is made of it in place:
whatever is decided about it binds nothing else but room and bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msa.assignment.allocation import Use
from msa.assignment.problem import Problem, Value

_RUNNING: Final = frozenset({"call", "conditional", "while"})
_ASYNC: Final = ("-start", "-done", "-update")
_OTHER: Final = frozenset({"recv", "send"})
_KINDS: Final = frozenset({"entry", "body", "condition", "branch"})


class FreeUse(NamedTuple):
    """A use of a free value.

    Attributes:
        use: the use.
        size: bytes that it reads, 0 if that is not known.
        default: it has to read default memory.
        trivial: it only names the storage.
    """

    use: Use
    size: float
    default: bool
    trivial: bool


class FreeValue(NamedTuple):
    """A value whose allocations may be decided by themselves.

    Attributes:
        value, size: id and bytes.
        step, region: where it is defined.
        written: bytes written there.
        definable: it may be defined in alternate memory.
        uses: by step.
    """

    value: int
    size: int
    step: int
    region: int
    written: float
    definable: bool
    uses: tuple[FreeUse, ...]


def free_values(
    problem: Problem, capacity: int, bound: Iterable[int]
) -> dict[int, FreeValue]:
    """The free values by id; those in `bound` are not free. Linear in places."""
    bound = set(bound)
    return {
        value.id: _free(problem, value)
        for value in problem.values
        if value.id not in bound and _is_free(problem, value, capacity)
    }


def _is_free(problem: Problem, value: Value, capacity: int) -> bool:
    if (
        not value.placeable
        or value.is_tuple
        or value.pinned
        or value.reserved
        or value.banned_positions
        or value.contiguous_positions
        or not 0 < value.size <= capacity
        or _is_tied(problem, value)
    ):
        return False
    home = problem.region_of[value.position.step]
    if problem.regions[home].kind not in _KINDS:
        return False
    if any(not problem.is_trivial(p.step) for p in value.positions[1:]):
        return False
    if problem.is_trivial(value.position.step) or _hands_on(
        problem, value.position.step
    ):
        return False
    root = problem.regions[home].root if home else -1
    return all(
        problem.region_of[use.step] == home
        and use.step != root
        and not use.index
        and not _hands_on(problem, use.step)
        for use in value.uses
    )


def _is_tied(problem: Problem, value: Value) -> bool:
    """Whether an instruction makes another value of the buffer out of this one.

    Or this one out of another. Values that share a buffer only from the program's input
    to its output are not tied: both are in default memory then.
    """
    members = problem.buffers[value.buffer]
    if len(members) == 1:
        return False
    read = {use.step for use in value.uses}
    made = value.position.step
    for member in members:
        other = problem.values[member]
        if member == value.id:
            continue
        if any(
            p.step in read and not problem.is_trivial(p.step) for p in other.positions
        ):
            return True
        if any(use.step == made for use in other.uses):
            return True
    return False


def _hands_on(problem: Problem, step: int) -> bool:
    """Whether an instruction runs or is in flight with what it reads or makes."""
    opcode = problem.opcodes[step]
    return opcode in _RUNNING or opcode in _OTHER or opcode.endswith(_ASYNC)


def _free(problem: Problem, value: Value) -> FreeValue:
    region = problem.region_of[value.position.step]
    entry = problem.regions[0]
    root = problem.regions[region].root
    inputs = problem.regions[region].parameters
    read = dict(zip(value.uses, value.use_bytes, strict=False))
    uses = [
        FreeUse(
            use,
            max(0.0, read.get(use, 0.0)),
            number in value.banned_uses or use.step == root,
            problem.is_trivial(use.step),
        )
        for number, use in enumerate(value.uses)
    ]
    uses.sort(key=lambda item: (item.use.step, item.use))
    step = value.position.step
    return FreeValue(
        value.id,
        value.size,
        step,
        region,
        max(0.0, value.position_bytes[0]) if value.position_bytes else 0.0,
        value.definable
        and not value.is_constant
        and step not in inputs
        and step not in (entry.root, root),
        tuple(uses),
    )
