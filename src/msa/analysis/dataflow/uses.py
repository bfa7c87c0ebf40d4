"""Positions and uses of values, read off the values at each node.

Source: `xla/service/hlo_value.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msa.analysis.dataflow.state import FlowState
from msa.analysis.shape_nodes import node_indices
from msa.analysis.values import Position, Use, Value
from msa.hlo.instruction import Instruction

_PASS_ELEMENTS: Final = frozenset({"get-tuple-element", "copy"})
"""They read the table of a tuple only; elements pass through."""

_PASS_ALL: Final = frozenset({"domain", "tuple"})
"""They read nothing."""

_TRANSPARENT: Final = _PASS_ELEMENTS | _PASS_ALL
_MANY_OPERANDS: Final = 8


def collect_positions(state: FlowState, live: Sequence[bool]) -> list[list[Position]]:
    """Positions of each value: the definition, then others in module order."""
    positions: list[list[Position]] = []
    for value, (instruction, place) in enumerate(state.definitions):
        if live[value]:
            index = node_indices(instruction.shape)[place] if place else ()
            positions.append([Position(instruction, index)])
        else:
            positions.append([])
    definitions = state.definitions
    all_sets = state.sets
    for computation in state.module.computations:
        for instruction in computation.instructions:
            sets = all_sets[instruction.id]
            if len(sets) == 1 and len(sets[0]) == 1:
                (value,) = sets[0]
                if definitions[value][0] is not instruction:
                    positions[value].append(Position(instruction, ()))
                continue
            indices = node_indices(instruction.shape)
            for place, ids in enumerate(sets):
                for value in ids:
                    if definitions[value][0] is not instruction:
                        positions[value].append(Position(instruction, indices[place]))
    return positions


class UseFinder:
    """Finds the uses of a value from its positions.

    Users that only pass elements on are set aside once per instruction, so wide
    tuples with a reader per element do not cost the square of their width.
    """

    __slots__ = ("_readers", "_slots")

    def __init__(self) -> None:
        self._readers: dict[Instruction, tuple[Instruction, ...]] = {}
        self._slots: dict[Instruction, dict[Instruction, list[int]]] = {}

    def uses(self, positions: Sequence[Position]) -> tuple[Use, ...]:
        """Uses in order of positions, then users, then operand slots."""
        if len(positions) == 1:
            (instruction, index) = positions[0]
            if not instruction._users:
                return ()
            if not index:
                return self._plain_uses(instruction)
        roots = {x for x, _ in positions if x.computation.root is x}
        found: list[Use] = []
        for instruction, index in positions:
            for user in self._candidates(instruction, index, roots):
                found.extend(
                    Use(user, slot, index) for slot in self._at(user, instruction)
                )
        return tuple(found)

    def _plain_uses(self, instruction: Instruction) -> tuple[Use, ...]:
        """Uses of a whole result that is nowhere else: what passes all on reads none."""
        found: list[Use] = []
        for user in instruction._users:
            if user.opcode in _PASS_ALL:
                continue
            operands = user.operands
            if len(operands) <= _MANY_OPERANDS:
                for slot, operand in enumerate(operands):
                    if operand is instruction:
                        found.append(Use(user, slot, ()))
            else:
                found += [Use(user, slot, ()) for slot in self._at(user, instruction)]
        return tuple(found)

    def _candidates(
        self, instruction: Instruction, index: tuple[int, ...], roots: set[Instruction]
    ) -> Sequence[Instruction]:
        users = instruction._users
        if not index:
            return [u for u in users if u.opcode not in _PASS_ALL or u in roots]
        readers = self._readers.get(instruction)
        if readers is None:
            # A transparent root is kept: whether it counts depends on the value.
            readers = tuple(
                u
                for u in users
                if u.opcode not in _TRANSPARENT or u.computation.root is u
            )
            self._readers[instruction] = readers
        return [u for u in readers if u.opcode not in _TRANSPARENT or u in roots]

    def _at(self, user: Instruction, operand: Instruction) -> Sequence[int]:
        operands = user.operands
        if len(operands) == 1:
            return (0,)
        if len(operands) <= _MANY_OPERANDS:
            return [i for i, x in enumerate(operands) if x is operand]
        slots = self._slots.get(user)
        if slots is None:
            slots = {}
            for i, x in enumerate(operands):
                slots.setdefault(x, []).append(i)
            self._slots[user] = slots
        return slots[operand]


def build_values(state: FlowState, live: Sequence[bool]) -> dict[int, Value]:
    """All values in order of their ids."""
    finder = UseFinder()
    root = state.module.entry.root
    values: dict[int, Value] = {}
    for number, positions in enumerate(collect_positions(state, live)):
        if not live[number]:
            continue
        values[number] = Value(
            number,
            tuple(positions),
            finder.uses(positions),
            is_phi=state.is_phi[number],
            live_out=positions[0][0] is root
            if len(positions) == 1
            else any(x is root for x, _ in positions),
        )
    return values
