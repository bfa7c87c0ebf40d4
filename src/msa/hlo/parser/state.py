"""What the parts of the reader share while one text is read.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from collections.abc import Container, Generator
from typing import Any

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.parser.cursor import MAX_DEPTH, Cursor, nearest_name, shown
from msa.hlo.parser.shapes import ShapeReader

Task = Generator[Any, Any, Any]
"""A step of reading that may ask for another: run by `run`, never by recursion."""


# One level of nested operands is two tasks, one of nested computations six.
_MAX_TASKS = 6 * MAX_DEPTH


def run(task: Task, cursor: Cursor) -> Any:
    """Run a task and everything it asks for on one explicit stack."""
    stack = [task]
    value: Any = None
    while stack:
        try:
            child = stack[-1].send(value)
        except StopIteration as stop:
            stack.pop()
            value = stop.value
            continue
        value = None
        if len(stack) >= _MAX_TASKS:
            cursor.fail("maximum recursion depth exceeded")
        stack.append(child)
    return value


def _unique(base: str, taken: Container[str], counters: dict[str, int]) -> str:
    number = counters.get(base, 0)
    name = f"{base}.{number}" if number else base
    while name in taken:
        number += 1
        name = f"{base}.{number}"
    counters[base] = number
    return name


class Scope:
    """Names of the computation that is being read.

    Attributes:
        computation: instructions read so far.
        names: instructions by name.
        paths: get-tuple-elements made for compact paths such as `x#1#0`.
        made_up: instructions whose names the text does not state.
        explicit_root: whether `ROOT` was seen.
        open: whether unknown operands become parameters (single instructions).
    """

    __slots__ = (
        "_counters",
        "computation",
        "explicit_root",
        "made_up",
        "names",
        "open",
        "paths",
    )

    def __init__(self, computation: Computation, *, open_: bool = False) -> None:
        self.computation = computation
        self.names: dict[str, Instruction] = {}
        self.paths: dict[tuple[Instruction, int], Instruction] = {}
        self.made_up: set[Instruction] = set()
        self.explicit_root = False
        self.open = open_
        self._counters: dict[str, int] = {}

    def unique_name(self, base: str) -> str:
        """`base`, or `base.N` with the first free N from 1; amortised O(1)."""
        return _unique(base, self.names, self._counters)

    def rename(self, instruction: Instruction) -> None:
        """Give a made-up name away to an instruction that the text names so."""
        name = instruction.name
        instruction.name = self.unique_name(name)
        del self.names[name]
        self.names[instruction.name] = instruction


class ReaderState:
    """The text, the module under construction and the caches.

    Attributes:
        cursor: place in the text.
        types: shape reader with its cache.
        module: the module under construction.
        computations: finished computations by name.
        places: position of each computation's name in the text.
        allow_unknown: keep unknown opcodes and attributes verbatim.
        configs: backend configs seen, known to be one balanced dict.
        metadata: metadata seen, known to be well-formed.
    """

    __slots__ = (
        "_counters",
        "_line",
        "_line_position",
        "allow_unknown",
        "async_starts",
        "computations",
        "configs",
        "cursor",
        "metadata",
        "module",
        "places",
        "tails",
        "types",
    )

    def __init__(self, cursor: Cursor, module: Module, *, allow_unknown: bool) -> None:
        self.cursor = cursor
        self.types = ShapeReader()
        self.module = module
        self.computations: dict[str, Computation] = {}
        self.places: dict[str, int] = {}
        self.allow_unknown = allow_unknown
        self.async_starts: dict[Computation, Instruction] = {}
        self.tails: dict[str, Any] = {}
        self.configs: set[str] = set()
        self.metadata: set[str] = set()
        self._counters: dict[str, int] = {}
        self._line = 1
        self._line_position = 0

    def line_at(self, position: int) -> int:
        """Line of a position; linear in total when positions mostly grow."""
        last = self._line_position
        if position >= last:
            self._line += self.cursor.text.count("\n", last, position)
        else:
            self._line -= self.cursor.text.count("\n", position, last)
        self._line_position = position
        return self._line

    def finish(self, computation: Computation, *, entry: bool = False) -> None:
        """Add a computation that was read completely."""
        name = computation.name
        if name in self.computations and self.computations[name] is not computation:
            # A made-up name came first: it stays, this one is renamed, and text that
            # uses the name means this one.
            computation.name = self.unique_computation_name(name)
            self.computations[computation.name] = computation
        self.computations[name] = computation
        self.module.add(computation, entry=entry)

    def unique_computation_name(self, base: str) -> str:
        """`base`, or `base.N` with the first free N from 1; amortised O(1)."""
        return _unique(base, self.computations, self._counters)

    def resolve_computation(self, name: str, at: int) -> Computation:
        """The computation of that name, which must have been read already."""
        computation = self.computations.get(name)
        if computation is None:
            self.cursor.fail(
                f"computation does not exist: {shown(name)}",
                at=at,
                expected="a computation defined above",
                nearest=nearest_name(name, self.computations),
            )
        return computation
