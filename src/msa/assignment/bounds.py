"""A time that no plan can beat.

Arguments about the machine that `msa.simulate` models; the largest wins:

* *Everything fast*: a step cannot take less than its arithmetic, nor less than its
  traffic if those operands that fit into alternate memory together and move the most
  were there, and likewise the results (fractional knapsacks, so the bound is safe).
* *Order*: what comes in, the work, and what goes out, in one window of time after the
  other, add up (`bound_windows`).
* *Room*: default memory moves at most its bandwidth, whatever moves, and what does not
  fit into alternate memory between two accesses passes it again (`bound_residency`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from msa.assignment.bound_residency import Traffic, residency_bound
from msa.assignment.bound_windows import windows_bound
from msa.assignment.estimate import FREE
from msa.assignment.problem import TRIVIAL_OPCODES, Problem, Value
from msa.hlo.opcode import RUNNING_OPCODES

_ROUNDED: Final = 1.0 - 1e-12
"""Sums are rounded, here and in the times of plans; the bound must not be above them."""

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

    O(steps + accesses), times a bounded number of rounds and of places at which the
    program is cut (which are all of them up to some 2,000 steps), on arrays.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> lower_bound_seconds(problem, [1.0] * problem.end) > 0
    True
    """
    free = dead | set(problem.sync_moves) | _in_flight(problem)
    fastest = fastest_seconds(problem, trips, free)
    known = Traffic(problem, trips, free)
    capacity = problem.machine.capacity
    bound = max(
        sum(fastest),
        windows_bound(problem, fastest, known, capacity),
        residency_bound(problem, known, capacity),
    )
    return bound * _ROUNDED


def fastest_seconds(
    problem: Problem, trips: Sequence[float], free: Set[int] = frozenset()
) -> list[float]:
    """Per step, seconds of all its runs when what fits is fast."""
    machine = problem.machine
    # Nothing has to be in alternate memory: where that is slower, nothing need be.
    read_rate = max(machine.alternate_read_bandwidth, machine.default_bandwidth)
    write_rate = max(machine.alternate_write_bandwidth, machine.default_bandwidth)
    reads: list[list[_Access]] = [[] for _ in range(problem.end)]
    writes: list[list[_Access]] = [[] for _ in range(problem.end)]
    for value in problem.values:
        if not _can_be_fast(value, machine.capacity):
            continue
        for use, amount in zip(value.uses, value.use_bytes, strict=False):
            reads[use.step].append((value.buffer, amount, value.size))
        for place, amount in zip(value.positions, value.position_bytes, strict=False):
            writes[place.step].append((value.buffer, amount, value.size))
    fastest = [0.0] * problem.end
    # What calls or branches cost themselves depends on all that they run.
    shrunk = {
        step
        for step, called in problem.called.items()
        for region in called
        if any(
            x in free
            for x in range(problem.regions[region].start, problem.regions[region].end)
        )
    }
    compute, accessed = problem.simulated
    for step, opcode in enumerate(problem.opcodes):
        if (
            step in free
            or opcode in TRIVIAL_OPCODES
            or opcode in FREE
            or step in shrunk
        ):
            continue
        # Costs are of single precision here, but not where plans are timed.
        all_bytes = max(0.0, min(problem.total_bytes[step], accessed[step]))
        read = written = 0.0
        if opcode not in RUNNING_OPCODES:
            read = _most_bytes(reads[step], machine.capacity)
            written = _most_bytes(writes[step], machine.capacity)
        memory = (
            read / read_rate
            + written / write_rate
            + max(0.0, all_bytes - read - written) / machine.default_bandwidth
        )
        fastest[step] = max(min(problem.compute_seconds[step], compute[step]), memory)
        fastest[step] *= trips[step]
    return fastest


def _in_flight(problem: Problem) -> set[int]:
    """Steps that asynchronous operations run: they take none of the program's time."""
    found: set[int] = set()
    # A caller comes after what it runs: outer ones first.
    for region in sorted(problem.regions, key=lambda r: -r.caller):
        if region.kind == "async" or region.caller in found:
            found.update(range(region.start, region.end))
    return found


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
