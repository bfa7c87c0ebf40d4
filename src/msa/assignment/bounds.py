"""A time that no plan can beat.

Two arguments, both about the machine that `msa.simulate` models; the larger wins:

* *Everything fast*: a step cannot take less than its arithmetic, nor less than its
  traffic if those operands that fit into alternate memory together and move the most
  were there, and likewise the results (fractional knapsacks, so the bound is safe).
* *Compulsory traffic*: default memory moves at most its bandwidth, whatever moves:
  instructions or copies. What the program is given must be read from there at least
  once, and its results written there, before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from msa.assignment.problem import Problem, Value

_RUNNING = frozenset({"call", "conditional", "while"})
_NAMING = frozenset({"bitcast", "get-tuple-element", "tuple"})

_Access = tuple[int, float, int]
"""Buffer, bytes moved, bytes of storage."""


def lower_bound_seconds(
    problem: Problem, trips: Sequence[float], *, dead: Set[int] = frozenset()
) -> float:
    """Seconds that every plan of the problem takes at least.

    Args:
        problem: the problem.
        trips: per step, how often it runs.
        dead: steps that lowering removes because nothing needs them.

    O(n log n) in the number of values' places.
    """
    free = dead | set(problem.sync_moves)
    return max(
        _everything_fast(problem, trips, free),
        _compulsory_traffic(problem, trips, free),
    )


def _everything_fast(problem: Problem, trips: Sequence[float], free: Set[int]) -> float:
    machine = problem.machine
    reads: list[list[_Access]] = [[] for _ in range(problem.end)]
    writes: list[list[_Access]] = [[] for _ in range(problem.end)]
    for value in problem.values:
        if not _can_be_fast(value, machine.capacity):
            continue
        for use, amount in zip(value.uses, value.use_bytes, strict=False):
            reads[use.step].append((value.buffer, amount, value.size))
        for place, amount in zip(value.positions, value.position_bytes, strict=False):
            writes[place.step].append((value.buffer, amount, value.size))
    total = 0.0
    for step, opcode in enumerate(problem.opcodes):
        if step in free or opcode in _NAMING or opcode == "while":
            continue
        all_bytes = max(0.0, problem.total_bytes[step])
        read = written = 0.0
        if opcode not in _RUNNING:
            read = _most_bytes(reads[step], machine.capacity)
            written = _most_bytes(writes[step], machine.capacity)
        memory = (
            read / machine.alternate_read_bandwidth
            + written / machine.alternate_write_bandwidth
            + max(0.0, all_bytes - read - written) / machine.default_bandwidth
        )
        total += max(problem.compute_seconds[step], memory) * trips[step]
    return total


def _can_be_fast(value: Value, capacity: int) -> bool:
    return value.pinned or (value.placeable and value.size <= capacity)


def _most_bytes(accesses: list[_Access], capacity: int) -> float:
    """Bytes moved fast when storage goes to where it moves most.

    Accesses of one buffer need its room once. Operands and results are not weighed
    against each other: a result may take the room of an operand that dies.
    """
    if sum(size for _, _, size in accesses) <= capacity:
        return sum(max(0.0, moved) for _, moved, _ in accesses)
    moved_of: dict[int, float] = {}
    size_of: dict[int, int] = {}
    for buffer, moved, size in accesses:
        moved_of[buffer] = moved_of.get(buffer, 0.0) + max(0.0, moved)
        size_of[buffer] = max(1, size_of.get(buffer, 0), size)
    fast, room = 0.0, float(capacity)
    for buffer in sorted(moved_of, key=lambda x: -moved_of[x] / size_of[x]):
        share = min(1.0, room / size_of[buffer])
        fast += moved_of[buffer] * share
        room -= size_of[buffer] * share
        if room <= 0.0:
            break
    return fast


def _compulsory_traffic(
    problem: Problem, trips: Sequence[float], free: Set[int]
) -> float:
    entry = problem.regions[0]
    inputs = set(entry.parameters)
    moved = 0.0
    for value in problem.values:
        if value.pinned or value.is_tuple or not value.positions:
            continue
        step = value.position.step
        if step in inputs or value.is_constant:
            moved += _least_read(problem, value, trips, free)
        elif value.live_out and step not in free and trips[step] > 0:
            moved += _written(problem, value)
    return moved / problem.machine.default_bandwidth


def _least_read(
    problem: Problem, value: Value, trips: Sequence[float], free: Set[int]
) -> float:
    """The largest single read: made directly, or by a copy that brings as much."""
    largest = 0.0
    for use, amount in zip(value.uses, value.use_bytes, strict=False):
        opcode = problem.opcodes[use.step]
        if use.step in free or opcode in _RUNNING or opcode in _NAMING:
            continue
        if trips[use.step] > 0:
            largest = max(largest, min(amount, float(value.size)))
    return largest


def _written(problem: Problem, value: Value) -> float:
    opcode = problem.opcodes[value.position.step]
    if opcode in _RUNNING or opcode in _NAMING or not value.position_bytes:
        return 0.0
    return max(0.0, min(value.position_bytes[0], float(value.size)))
