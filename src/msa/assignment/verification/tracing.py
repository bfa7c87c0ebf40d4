"""Who made the value at a place, seen through everything that names or moves it."""

from __future__ import annotations

import hashlib
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex

_JOIN: Final = "ConcatBitcast"
_IDENTITIES: Final = frozenset(
    {"add-dependency", "bitcast", "copy", "domain", "opt-barrier"}
)
"""Opcodes whose result is their first operand's value."""
_MOVED: Final = frozenset({"dynamic-slice", "fusion", "slice"})

Place = tuple[Instruction, ShapeIndex]
Origin = tuple[str, ...]
"""Computation, instruction and index, as text; moves have their operands' too."""


class Tracer:
    """Origins of the values of one module.

    Loop state that a loop's body hands on unchanged is traced to what the loop is
    given, and so are results of calls and conditionals that are arguments; results
    that are one value count as the first of them. Copies of whole arrays are seen
    through, synchronous and asynchronous ones alike; a slice is the same slice
    whether it is asynchronous or not.
    """

    __slots__ = ("_begun", "_invariant", "_loops", "_moves", "_through")

    def __init__(self, module: Module) -> None:
        self._loops: dict[Computation, Instruction] = {}
        self._moves: dict[Instruction, Origin] = {}
        loops: list[Instruction] = []
        callers: list[Instruction] = []
        for computation in module.computation_post_order():
            within = [x for x in computation.instructions if x.opcode == "while"]
            if len(within) > 1:
                # What a loop is given comes before it, also where the list does not
                # follow the flow of values.
                within = [x for x in computation.post_order() if x.opcode == "while"]
            loops += within
            callers += (
                x
                for x in computation.instructions
                if x.opcode in ("call", "conditional")
            )
        for loop in loops:
            for called in loop.called_computations:
                self._loops[called] = loop
        # All leaves are taken to keep the value that they begin with, until one is
        # found that does not. What one hands on may hang on another one.
        self._invariant = {
            (loop, at) for loop in loops for at, _ in loop.shape.leaves()
        }
        self._through: dict[Instruction, dict[ShapeIndex, Place]] = {}
        # Where leaves that are kept come from in the loop's own computation, past the
        # loops before it: these are looked at first, and forget leaves before that.
        self._begun: dict[Place, Place] = {}
        while True:
            self._begun.clear()
            for caller in callers:
                self._through[caller] = self._passed(caller)
            if not sum(map(self._drop_changing, loops)):
                break

    def _drop_changing(self, loop: Instruction) -> bool:
        """Forget leaves of a loop's state whose value a trip changes, if any."""
        given, left = loop.operands[0], loop.while_body.root
        changing = []
        for at, _ in loop.shape.leaves():
            if (loop, at) not in self._invariant:
                continue
            if self._walk(given, at) == self._walk(left, at):
                self._begun[loop, at] = self._walk_inside(given, at)
            else:
                changing.append((loop, at))
        self._invariant.difference_update(changing)
        return bool(changing)

    def _walk_inside(self, instruction: Instruction, index: ShapeIndex) -> Place:
        """Back as far as nothing but earlier loops of the computation is passed."""
        while instruction.opcode != "parameter" and instruction not in self._through:
            step = self._step(instruction, index)
            if step is None:
                break
            instruction, index = step
        return instruction, index

    def _passed(self, caller: Instruction) -> dict[ShapeIndex, Place]:
        """Results that are arguments, or the same as an earlier result."""
        passed: dict[ShapeIndex, Place] = {}
        first: dict[tuple[Place, ...], ShapeIndex] = {}
        for at, _ in caller.shape.leaves():
            ends = tuple(self._walk(c.root, at) for c in caller.called_computations)
            sources = {
                self._walk(_argument(caller, number, end), index)
                if end.opcode == "parameter"
                else None
                for number, (end, index) in enumerate(ends)
            }
            source = sources.pop()
            if source is not None and not sources:
                passed[at] = source
            elif ends in first:
                passed[at] = caller, first[ends]
            else:
                first[ends] = at
        return passed

    def hands_on(self, instruction: Instruction, element: int) -> bool:
        """Whether it is a loop that leaves an element of its state as it was."""
        if instruction.opcode != "while":
            return False
        below = instruction.shape.children[element].leaves()
        return all((instruction, (element, *at)) in self._invariant for at, _ in below)

    def origin(self, instruction: Instruction, index: ShapeIndex) -> Origin:
        """Where the value at a node was made."""
        place, at = self._walk(instruction, index)
        if at or _moved_operation(place) is None:
            return place.computation.name, place.name, str(list(at))
        return self._of_move(place)

    def _of_move(self, move: Instruction) -> Origin:
        """What is moved and how; moves of moves are told by a digest of theirs."""
        known = self._moves
        stack = [move]
        while stack:
            top = stack[-1]
            found = _moved_operation(top)
            if top in known or found is None:
                stack.pop()
                continue
            operation, operands = found
            sources = [self._walk(operand, ()) for operand in operands]
            inner = [
                place
                for place, at in sources
                if not at and place not in known and _moved_operation(place) is not None
            ]
            if inner:
                stack += inner
                continue
            parts: list[str] = [operation.opcode, str(dict(operation.attributes))]
            parts += [c.name for c in operation.called_computations]
            for place, at in sources:
                if not at and place in known:
                    text = repr(known[place]).encode()
                    parts.append(hashlib.blake2b(text, digest_size=16).hexdigest())
                else:
                    parts += [place.computation.name, place.name, str(list(at))]
            known[top] = tuple(parts)
            stack.pop()
        return known[move]

    def _walk(self, instruction: Instruction, index: ShapeIndex) -> Place:
        while True:
            step = self._step(instruction, index)
            if step is None:
                return instruction, index
            instruction, index = step

    def _step(self, x: Instruction, index: ShapeIndex) -> Place | None:
        """One instruction back, or None at the place where the value is made."""
        opcode = x.opcode
        if opcode == "tuple" and index:
            return x.operands[index[0]], index[1:]
        if opcode == "get-tuple-element":
            return x.operands[0], (x.tuple_index, *index)
        if opcode in _IDENTITIES:
            return x.operands[0], index
        if opcode == "copy-done":
            start = x.operands[0]
            return (start.operands[0], index) if start.operands else None
        if opcode == "copy-start" and index[:1] == (1,):
            return x.operands[0], index[1:]
        if opcode == "async-start" and index[:1] == (0,) and index[1:]:
            # What it reads may be read through it too.
            slots = len(x.shape.children[0].children)
            if slots == len(x.operands):
                return x.operands[index[1]], index[2:]
        if opcode == "while" and (x, index) in self._invariant:
            return self._begun.get((x, index), (x.operands[0], index))
        if opcode == "parameter":
            loop = self._loops.get(x.computation)
            if loop is not None and (loop, index) in self._invariant:
                return loop.operands[0], index
        if x in self._through:
            return self._through[x].get(index)
        if x.attributes.get("custom_call_target") == _JOIN:
            return _whole_of_slices(x)
        return None


def _argument(caller: Instruction, number: int, parameter: Instruction) -> Instruction:
    """What a call, or branch `number` of a conditional, gives to a parameter."""
    if caller.opcode == "conditional":
        return caller.operands[1 + number]
    return caller.operands[parameter.parameter_number]


def _whole_of_slices(join: Instruction) -> Place | None:
    """The array whose slices are joined, if they are all of it, in order."""
    sources = set()
    pieces = []
    for done in join.operands:
        moved = _moved_operation(done)
        if moved is None or moved[0].opcode != "slice":
            return None
        sources.add(moved[1][0])
        pieces.append(moved[0].attributes["slice"])
    if len(sources) != 1:
        return None
    (source,) = sources
    return (source, ()) if _tile(pieces, source.shape.dimensions) else None


def _tile(
    pieces: list[tuple[tuple[int, int, int], ...]], dimensions: tuple[int, ...]
) -> bool:
    """Whether slices of stride 1 cover an array once, along its dimensions."""
    covered = 0
    for piece in pieces:
        count = 1
        for start, limit, stride in piece:
            if stride != 1:
                return False
            count *= limit - start
        covered += count
    total = 1
    for size in dimensions:
        total *= size
    return covered == total and len(set(pieces)) == len(pieces)


def _moved_operation(
    x: Instruction,
) -> tuple[Instruction, tuple[Instruction, ...]] | None:
    """The slice (or fusion) that an instruction is, or wraps, with its operands."""
    custom = x.opcode == "fusion" and x.attributes.get("kind") == "kCustom"
    if custom or x.opcode in ("dynamic-slice", "slice"):
        return x, x.operands
    if x.opcode == "async-done" and x.operands[0].opcode == "async-start":
        start = x.operands[0]
        if start.called_computations:
            root = start.called_computations[0].root
            if root.opcode in _MOVED:
                return root, start.operands
    return None
