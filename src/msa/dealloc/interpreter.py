"""Runs functions of the buffer IR and reports every misuse of memory.

Contents are small numpy arrays of integers: an opaque operation writes a number that
depends on its tag and on all that it reads, so that two runs agree only when the data
flow agrees.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from msa.dealloc.errors import BufferIRError
from msa.dealloc.ir import (
    VIEWS,
    BufferType,
    Function,
    Operation,
    Region,
    Type,
    Value,
)
from msa.dealloc.signatures import is_part

POISON: Final = -0x3333333333333333
_MODULUS: Final = (1 << 61) - 1


class Misuse(Enum):
    """Kinds of errors.

    >>> Misuse.DOUBLE_FREE.value
    'double free'
    """

    USE_AFTER_FREE = "use after free"
    DOUBLE_FREE = "double free"
    FREE_OF_STACK = "free of stack memory"
    FREE_OF_ARGUMENT = "free of an argument"
    FREE_OF_PART = "free of a part of a buffer"
    LEAK = "leak"
    RETURNED_ARGUMENT = "an argument is returned"
    RETURNED_TWICE = "a buffer is returned twice"
    RETURNED_FREED = "a freed buffer is returned"


@dataclass(frozen=True, slots=True)
class Finding:
    """One misuse, where, and the decisions that led to it.

    >>> str(Finding(Misuse.LEAK, "a", "return", (0, 1)))
    'leak of a at return (path 0,1)'
    """

    kind: Misuse
    object: str
    operation: str
    decisions: tuple[int, ...]

    def __str__(self) -> str:
        path = ",".join(map(str, self.decisions)) or "straight"
        return f"{self.kind.value} of {self.object} at {self.operation} (path {path})"


@dataclass(eq=False, slots=True)
class HeapObject:
    """A buffer at run time."""

    name: str
    data: npt.NDArray[np.int64]
    stack: bool = False
    argument: bool = False
    freed: bool = False


@dataclass(frozen=True, slots=True)
class Handle:
    """A value of buffer type: an object, whole or in part."""

    object: HeapObject
    whole: bool = True


@dataclass(slots=True)
class Run:
    """Outcome of one execution.

    Attributes:
        findings: misuses, in order.
        returned, arguments: contents at the end (the observable results).
        decisions: the outcome of every branch and the trip count of every loop.
        peak_bytes, allocations, clone_bytes: measured in elements times eight.
        uninitialized: whether an opaque operation read poison.
    """

    findings: list[Finding] = field(default_factory=list)
    returned: list[list[int]] = field(default_factory=list)
    arguments: list[list[int]] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)
    peak_bytes: int = 0
    allocations: int = 0
    clone_bytes: int = 0
    uninitialized: bool = False


class _Full(Exception):
    """The script of decisions is used up: the path needs one more."""


class Interpreter:
    """Executes one function along scripted decisions.

    Parameters:
        function: what to run.
        script: outcomes in order: 0 or 1 for branches, trip counts for loops.
        frees: False ignores deallocations (the reference meaning).
        copy_into: values that get a copy of what flows into them.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> run = Interpreter(function, ()).run()
    >>> run.allocations, len(run.findings)
    (1, 1)
    """

    def __init__(
        self,
        function: Function,
        script: Sequence[int],
        *,
        frees: bool = True,
        copy_into: Sequence[str] = (),
        strict_script: bool = False,
    ) -> None:
        self.function = function
        self.script = script
        self.frees = frees
        self.copy_into = frozenset(copy_into)
        self.strict = strict_script
        self.run_ = Run()
        self.values: dict[Value, Any] = {}
        self.live: dict[HeapObject, None] = {}
        self.bytes = 0

    def run(self) -> Run:
        """Execute and check for leaks."""
        arguments = []
        for number, value in enumerate(self.function.arguments):
            if value.is_buffer:
                data = np.full(_elements(value), 1000 + number, np.int64)
                made = HeapObject(value.name, data, argument=True)
                arguments.append(made)
                self.values[value] = Handle(made)
            else:
                self.values[value] = number
        returned = self._region(self.function.region)
        self._finish(returned, arguments)
        return self.run_

    # -- control -------------------------------------------------------------------

    def _decide(self, about: str = "branch") -> int:
        place = len(self.run_.decisions)
        if place >= len(self.script):
            if self.strict:
                raise _Full(about)
            choice = 0
        else:
            choice = self.script[place]
        self.run_.decisions.append(choice)
        return choice

    def _region(self, region: Region) -> list[Any]:
        """Run a region; what its last terminator passes on."""
        block = region.entry
        while True:
            for operation in block.operations[:-1]:
                self._operation(operation)
            end = block.terminator
            if end.kind in ("return", "yield", "condition"):
                return [self.values[v] for v in end.operands]
            number = self._decide() % 2 if end.kind == "cond_br" else 0
            if end.kind == "cond_br":
                number = 1 - number  # outcome 1 takes the first successor
            successor = end.successors[number]
            passed = [self.values[v] for v in successor.arguments]
            block = successor.block
            self._bind(block.arguments, passed)

    def _bind(self, targets: Sequence[Value], values: Sequence[Any]) -> None:
        for target, value in zip(targets, values, strict=True):
            if target.name in self.copy_into and isinstance(value, Handle):
                copy = HeapObject(target.name, value.object.data.copy())
                value = Handle(copy)
            self.values[target] = value

    # -- operations ------------------------------------------------------------------

    def _operation(self, op: Operation) -> None:
        kind = op.kind
        if kind in ("alloc", "alloca"):
            made = self._new(op.results[0], stack=kind == "alloca")
            self.values[op.results[0]] = Handle(made)
        elif kind == "dealloc":
            self._free(op)
        elif kind == "clone":
            source = self._read(op, op.operands[0])
            made = self._new(op.results[0])
            made.data[:] = np.resize(source.data, made.data.size)
            self.run_.clone_bytes += made.data.size * 8
            self.values[op.results[0]] = Handle(made)
        elif kind == "copy":
            source = self._read(op, op.operands[0])
            target = self._touch(op, op.operands[1])
            target.data[:] = np.resize(source.data, target.data.size)
        elif kind in VIEWS:
            handle = self.values[op.operands[0]]
            self._touch(op, op.operands[0])
            whole = handle.whole and not is_part(op.operands[0], op.results[0])
            self.values[op.results[0]] = Handle(handle.object, whole)
        elif kind == "select":
            chosen = op.operands[1 if self._decide() % 2 else 2]
            self._bind(op.results, [self.values[chosen]])
        elif kind == "use":
            self._opaque(op, op.reads, op.writes)
        elif kind == "load":
            self.values[op.results[0]] = int(self._read(op, op.operands[0]).data[0])
        elif kind == "store":
            self._touch(op, op.operands[-1]).data[:] = hash_of(self._scalar(op))
        elif kind == "call":
            self._call(op)
        elif op.regions:
            self._structured(op)
        elif kind == "constant":
            self.values[op.results[0]] = op.attributes["value"]
        elif all(not v.is_buffer for v in (*op.operands, *op.results)):
            for result in op.results:
                self.values[result] = 0
        else:
            raise BufferIRError(f"the interpreter does not know {kind!r}")

    def _scalar(self, op: Operation) -> int:
        value = self.values[op.operands[0]]
        return value if isinstance(value, int) else 0

    def _call(self, op: Operation) -> None:
        aliases = op.attributes.get("aliases", {})
        numbers = [i for i, v in enumerate(op.operands) if v.is_buffer]
        seed = self._digest(op, numbers)
        for result in op.results:
            if result.index in aliases:
                source = op.operands[aliases[result.index]]
                self.values[result] = self.values[source]
            elif result.is_buffer:
                made = self._new(result)
                made.data[:] = (seed + result.index) % _MODULUS
                self.values[result] = Handle(made)
            else:
                self.values[result] = 0

    def _structured(self, op: Operation) -> None:
        if op.kind == "if":
            taken = self._decide() % 2
            if not taken and len(op.regions) == 1:
                return
            self._bind(op.results, self._region(op.regions[0 if taken else 1]))
        elif op.kind in ("for", "parallel"):
            carried = [self.values[v] for v in op.operands[3:]]
            for trip in range(self._decide("loop")):
                arguments = op.regions[0].entry.arguments
                self.values[arguments[0]] = trip
                self._bind(arguments[1:], carried)
                carried = self._region(op.regions[0])
            self._bind(op.results, carried)
        elif op.kind == "while":
            carried = [self.values[v] for v in op.operands]
            trips = self._decide("loop")
            while True:
                self._bind(op.regions[0].entry.arguments, carried)
                passed = self._region(op.regions[0])[1:]
                if trips == 0:
                    self._bind(op.results, passed)
                    return
                trips -= 1
                self._bind(op.regions[1].entry.arguments, passed)
                carried = self._region(op.regions[1])
        else:
            raise BufferIRError(f"the interpreter does not know {op.kind!r}")

    # -- memory ------------------------------------------------------------------------

    def _new(self, value: Value, *, stack: bool = False) -> HeapObject:
        made = HeapObject(
            value.name, np.full(_elements(value), POISON, np.int64), stack=stack
        )
        if not stack:
            self.live[made] = None
            self.run_.allocations += 1
            self.bytes += made.data.size * 8
            self.run_.peak_bytes = max(self.run_.peak_bytes, self.bytes)
        return made

    def _report(self, kind: Misuse, name: str, op: str) -> None:
        path = tuple(self.run_.decisions)
        self.run_.findings.append(Finding(kind, name, op, path))

    def _touch(self, op: Operation, value: Value) -> HeapObject:
        found: HeapObject = self.values[value].object
        if found.freed:
            self._report(Misuse.USE_AFTER_FREE, found.name, op.kind)
        return found

    def _read(self, op: Operation, value: Value) -> HeapObject:
        found = self._touch(op, value)
        if found.data.size and found.data[0] == POISON:
            self.run_.uninitialized = True
        return found

    def _digest(self, op: Operation, numbers: Sequence[int]) -> int:
        total = zlib.crc32(str(op.attributes.get("tag", op.kind)).encode())
        for number in numbers:
            data = self._read(op, op.operands[number]).data
            part = int(data[0]) if data.size else 0
            total = (total * 1_000_003 + part) % _MODULUS
        return total

    def _opaque(
        self, op: Operation, reads: Sequence[int], writes: Sequence[int]
    ) -> None:
        buffers = [i for i in reads if op.operands[i].is_buffer]
        total = self._digest(op, buffers)
        for place, number in enumerate(writes):
            target = self._touch(op, op.operands[number])
            target.data[:] = (total + place) % _MODULUS
        for result in op.results:
            if not result.is_buffer:
                self.values[result] = total
            else:
                raise BufferIRError("an opaque operation cannot make buffers")

    def _free(self, op: Operation) -> None:
        if not self.frees:
            return
        handle: Handle = self.values[op.operands[0]]
        found = handle.object
        if found.stack:
            self._report(Misuse.FREE_OF_STACK, found.name, op.kind)
        elif found.argument:
            self._report(Misuse.FREE_OF_ARGUMENT, found.name, op.kind)
        elif found.freed:
            self._report(Misuse.DOUBLE_FREE, found.name, op.kind)
        elif not handle.whole:
            self._report(Misuse.FREE_OF_PART, found.name, op.kind)
        else:
            found.freed = True
            self.live.pop(found, None)
            self.bytes -= found.data.size * 8

    def _finish(self, returned: list[Any], arguments: list[HeapObject]) -> None:
        seen: set[HeapObject] = set()
        for value, type_ in zip(returned, self.function.result_types, strict=True):
            if not isinstance(value, Handle):
                continue
            found = value.object
            data = np.resize(found.data, _count(type_))
            self.run_.returned.append(data.tolist())
            if found.argument:
                self._report(Misuse.RETURNED_ARGUMENT, found.name, "return")
            elif found in seen:
                self._report(Misuse.RETURNED_TWICE, found.name, "return")
            elif found.freed:
                self._report(Misuse.RETURNED_FREED, found.name, "return")
            seen.add(found)
        self.run_.arguments = [a.data.tolist() for a in arguments]
        if self.frees:
            for left in self.live:
                if left not in seen:
                    self._report(Misuse.LEAK, left.name, "return")


def hash_of(value: int) -> int:
    """A number that depends on a scalar."""
    return (value * 2_654_435_761 + 12345) % _MODULUS


def _elements(value: Value) -> int:
    return _count(value.type)


def _count(type_: Type) -> int:
    """Elements that stand for a buffer's."""
    assert isinstance(type_, BufferType)
    return min(4, type_.element_count)


def explore(
    function: Function, *, max_paths: int = 200, trips: Sequence[int] = (0, 1, 2)
) -> Iterator[tuple[int, ...]]:
    """Scripts of decisions that cover the function's paths, shortest first.

    A script is extended wherever a run needs one more decision: branches by 0 and 1,
    loops by each trip count. Stops after `max_paths` complete scripts.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> list(explore(function))
    [()]
    """
    work: deque[tuple[int, ...]] = deque([()])
    complete = 0
    while work and complete < max_paths:
        script = work.popleft()
        probe = _Probe(function, script)
        options = probe.options()
        if options is None:
            complete += 1
            yield script
        else:
            choices = (0, 1) if options == "branch" else tuple(trips)
            work.extend((*script, choice) for choice in choices)


class _Probe(Interpreter):
    """Runs along a script and tells what the next decision would be about."""

    def __init__(self, function: Function, script: Sequence[int]) -> None:
        super().__init__(function, script, frees=False, strict_script=True)

    def options(self) -> str | None:
        """Kind of the decision that is missing; None when the script suffices."""
        try:
            self.run()
        except _Full as missing:
            return str(missing)
        return None
