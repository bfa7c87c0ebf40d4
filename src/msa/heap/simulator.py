"""Replaying a schedule's allocations and frees into a heap algorithm.

The simulator sees plain values with lifetimes; who knows the program says which
values share a buffer and which operands a value may reuse.

Reference: `HeapSimulator` of `xla/service/heap_simulator/heap_simulator.cc`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from msa.errors import InternalError, PackingError, shown
from msa.heap.algorithm import HeapAlgorithm, Result
from msa.heap.no_fragmentation import NoFragmentationStatsHeap
from msa.heap.whole_number import WORD_LIMIT, read_whole


@dataclass(frozen=True, slots=True)
class SimulatedValue:
    """A value of a program as the simulator sees it.

    Attributes:
        id: dense; orders values of equal lifetime.
        buffer: values with the same number are aliases.
        size: bytes.
        start, end: **inclusive** steps of its live range; None if it has none.
        is_constant: allocated only on request.
        reusable: ids of operand values whose memory the definition may take over, in
            order of operands. The caller checks the program's rules (direct use, no
            copy, operand and user may share); the simulator checks lifetimes.
        name: for the trace.

    >>> SimulatedValue(0, buffer=0, size=64, start=1, end=4).end
    4
    """

    id: int
    buffer: int
    size: int
    start: int | None = None
    end: int | None = None
    is_constant: bool = False
    reusable: tuple[int, ...] = ()
    name: str = ""


class EventKind(Enum):
    """What happened to a value.

    >>> [kind.name for kind in EventKind]
    ['ALLOC', 'FREE', 'SHARE_WITH']
    """

    ALLOC = "ALLOC"
    FREE = "FREE"
    SHARE_WITH = "SHARE_WITH"


@dataclass(frozen=True, slots=True)
class Event:
    """A call to the algorithm; `share_with` is a value id for `SHARE_WITH` only.

    >>> Event(EventKind.ALLOC, 3, 64).size
    64
    """

    kind: EventKind
    value: int
    size: int
    name: str = ""
    share_with: int | None = None


def _checked(values: Any) -> list[SimulatedValue]:
    """The values, whose numbers are whole and whose ids differ."""
    try:
        listed = list(values)
    except TypeError:
        raise PackingError(f"cannot read {shown(values)} as values") from None
    seen: set[int] = set()
    for number, value in enumerate(listed):
        where = f"value {number}"
        if not isinstance(value, SimulatedValue):
            raise PackingError(f"no SimulatedValue: {shown(value)}", where=where)
        for name in ("id", "buffer", "size", "start", "end"):
            field = getattr(value, name)
            if field is not None or name in ("id", "buffer", "size"):
                read_whole(
                    field,
                    name,
                    at_least=0 if name == "size" else -WORD_LIMIT,
                    below=WORD_LIMIT,
                    error=PackingError,
                    where=where,
                )
        if not isinstance(value.reusable, (tuple, list)):
            raise PackingError("reusable is no tuple of ids", where=where)
        if value.id in seen:
            raise PackingError(f"id {value.id} is used twice", where=where)
        seen.add(value.id)
    return listed


def _wanted(ids: Any) -> frozenset[int]:
    try:
        return frozenset(ids)
    except TypeError:
        raise PackingError(f"no ids of buffers to assign: {shown(ids)}") from None


class _Groups:
    """Union-find over values; each group has one size, set on every union."""

    __slots__ = ("_parent", "_size")

    def __init__(self, values: Sequence[SimulatedValue]) -> None:
        largest: dict[int, int] = {}
        first: dict[int, int] = {}
        self._parent: dict[int, int] = {}
        self._size: dict[int, int] = {}
        for value in values:
            largest[value.buffer] = max(largest.get(value.buffer, 0), value.size)
        for value in values:
            self._parent[value.id] = first.setdefault(value.buffer, value.id)
            self._size[value.id] = largest[value.buffer]

    def _find(self, value: int) -> int:
        parent = self._parent
        while parent[value] != value:
            parent[value] = parent[parent[value]]
            value = parent[value]
        return value

    def size(self, value: int) -> int:
        return self._size[self._find(value)]

    def share(self, value: int, other: int) -> int:
        """Unite the groups; the larger size becomes that of both."""
        size = max(self.size(value), self.size(other))
        into, root = self._find(value), self._find(other)
        self._size[into] = size
        if into != root:
            self._parent[root] = into
        return size


class HeapSimulator:
    """Replays values step by step: definitions first, then frees.

    So a value that ends at a step conflicts with one that starts there, unless the
    second takes over the memory of the first.

    Args:
        values: all values of the program; those without a live range only
            contribute to the size of their buffer.
        schedule_end: the last step.
        may_reuse_operand_buffers: follow `SimulatedValue.reusable`.
        alloc_constants: allocate constants too.
        buffers_to_assign: ids of the only values to allocate; None for all.

    Raises:
        PackingError: a value is malformed, or an id is used twice.

    O(n log n + reusable operands) time.

    >>> a = SimulatedValue(0, 0, 8, 0, 1)
    >>> b = SimulatedValue(1, 1, 8, 1, 2, reusable=(0,))
    >>> simulator = HeapSimulator([a, b], 2)
    >>> simulator.run(NoFragmentationStatsHeap()).heap_size
    8
    >>> [event.kind.value for event in simulator.trace]
    ['ALLOC', 'FREE', 'SHARE_WITH', 'FREE']
    """

    def __init__(
        self,
        values: Sequence[SimulatedValue],
        schedule_end: int,
        *,
        may_reuse_operand_buffers: bool = True,
        alloc_constants: bool = False,
        buffers_to_assign: Collection[int] | None = None,
    ) -> None:
        self._all = _checked(values)
        self._values = {value.id: value for value in self._all}
        self._end = read_whole(
            schedule_end, "schedule_end", below=WORD_LIMIT, error=PackingError
        )
        self._reuse = may_reuse_operand_buffers
        self._constants = alloc_constants
        self._wanted = None if buffers_to_assign is None else _wanted(buffers_to_assign)
        self.trace: list[Event] = []

    def run(self, algorithm: HeapAlgorithm) -> Result:
        """The algorithm's result, with the fragmentation against a perfect packer.

        Raises:
            InternalError: the algorithm placed some wanted buffers but not all.
        """
        ideal = self.replay(algorithm)
        result = algorithm.finish()
        chunks = sum(len(heap.chunk_map) for heap in result.heaps)
        if chunks and self._wanted is not None and chunks != len(self._wanted):
            raise InternalError(
                f"{chunks} chunks for {len(self._wanted)} buffers to assign"
            )
        return replace(result, fragmentation_size=result.heap_size - ideal)

    def replay(self, algorithm: HeapAlgorithm) -> int:
        """Make all calls but `finish`; the most bytes live at once.

        The trace is that of the latest replay.
        """
        replay = _Replay(self, algorithm)
        replay.run()
        return replay.ideal.finish().heap_size

    def _is_ignored(self, value: SimulatedValue) -> bool:
        if value.is_constant and not self._constants:
            return True
        return self._wanted is not None and value.id not in self._wanted


class _Replay:
    """One pass over the steps."""

    def __init__(self, simulator: HeapSimulator, algorithm: HeapAlgorithm) -> None:
        self._simulator = simulator
        self._algorithm = algorithm
        self.ideal = NoFragmentationStatsHeap()
        self._groups = _Groups(simulator._all)
        self._ends: dict[int, int] = {}
        self._aliases: dict[int, int] = {}
        for value in simulator._all:
            self._aliases[value.buffer] = self._aliases.get(value.buffer, 0) + 1
        self._first: dict[int, int] = {}
        simulator.trace = []

    def run(self) -> None:
        simulator = self._simulator
        live: list[tuple[int, int, SimulatedValue]] = []
        for value in simulator._all:
            if value.start is None or value.end is None or simulator._is_ignored(value):
                continue
            live.append((value.start, value.end, value))
            self._ends[value.id] = value.end
        live.sort(key=lambda entry: (entry[0], entry[1], entry[2].id))
        defined: dict[int, list[SimulatedValue]] = {}
        # Insertion order is the order of frees; a dict removes in constant time.
        freed: dict[int, dict[int, None]] = {}
        for start, end, value in live:
            if not 0 <= start <= end <= simulator._end:
                raise InternalError(
                    f"value {value.id} lives in [{start},{end}], the schedule ends "
                    f"at {simulator._end}"
                )
            defined.setdefault(start, []).append(value)
            freed.setdefault(end, {})[value.id] = None
        for step in sorted({*defined, *freed}):
            freed_here = freed.get(step, {})
            for value in defined.get(step, ()):
                self._define(value, step, freed_here)
            for value_id in freed_here:
                self._free(value_id)

    def _define(self, value: SimulatedValue, step: int, freed: dict[int, None]) -> None:
        if value.buffer in self._first:
            self._share(value.id, self._first[value.buffer])
            return
        if self._simulator._reuse and self._aliases[value.buffer] == 1:
            for other in value.reusable:
                if self._may_take_over(other, step, freed):
                    del freed[other]
                    self._free(other)
                    self._share(value.id, other)
                    self._ends[other] = self._ends[value.id]
                    return
        self._alloc(value.id)
        self._first[value.buffer] = value.id

    def _may_take_over(self, other: int, step: int, freed: dict[int, None]) -> bool:
        operand = self._simulator._values.get(other)
        return (
            operand is not None
            and self._aliases[operand.buffer] == 1
            and self._ends.get(other) == step
            and other in freed
        )

    def _emit(self, kind: EventKind, value: int, size: int, other: int | None) -> None:
        name = self._simulator._values[value].name
        self._simulator.trace.append(Event(kind, value, size, name, other))

    def _alloc(self, value: int) -> None:
        size = self._groups.size(value)
        self._algorithm.alloc(value, size)
        self.ideal.alloc(value, size)
        self._emit(EventKind.ALLOC, value, size, None)

    def _free(self, value: int) -> None:
        size = self._groups.size(value)
        self._algorithm.free(value, size)
        self.ideal.free(value, size)
        self._emit(EventKind.FREE, value, size, None)

    def _share(self, value: int, other: int) -> None:
        size = self._groups.share(value, other)
        self._algorithm.share_with(value, other, size)
        self.ideal.share_with(value, other, size)
        self._emit(EventKind.SHARE_WITH, value, size, other)


def minimum_memory(values: Sequence[SimulatedValue], schedule_end: int) -> int:
    """The most bytes live at once with default options; 0 for no values.

    >>> values = [SimulatedValue(0, 0, 64, 0, 2), SimulatedValue(1, 1, 32, 1, 3)]
    >>> minimum_memory(values, 4)
    96
    """
    if not values:
        return 0
    simulator = HeapSimulator(values, schedule_end)
    return simulator.run(NoFragmentationStatsHeap()).heap_size
