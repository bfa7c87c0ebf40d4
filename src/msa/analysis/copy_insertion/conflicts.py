"""Where storage cannot be shared as demanded: the slots that need a copy."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from msa.analysis.copy_insertion.constraints import (
    ROOT,
    Constraint,
    Slot,
    find_constraints,
)
from msa.analysis.copy_insertion.hazards import reads_elsewhere
from msa.analysis.copy_insertion.lifetimes import Lifetimes
from msa.analysis.operand_sharing import OperandSharing
from msa.hlo.opcode import is_elementwise

if TYPE_CHECKING:
    from msa.analysis.dataflow import DataflowAnalysis
    from msa.analysis.flatten import FlattenedSchedule
    from msa.analysis.in_place import InPlacePairs
    from msa.analysis.values import Value
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Alias

Piece = tuple[int, int, int]
"""(start, end, value id): when a value needs the storage of its class."""


class Conflict(NamedTuple):
    """A slot that needs a copy.

    Attributes:
        slot: where.
        value: what is read there.
        reason: why its storage cannot be handed on, for people.
    """

    slot: Slot
    value: Value
    reason: str


class _Classes:
    """Values joined so far, each class with its pieces in order of time.

    Invariant: pieces of a class overlap at most where one value is computed in
    place of another, in branches that exclude each other, or in one asynchronous
    operation, where they follow each other (`_overlapping` holds the classes with
    such pieces of the latter two kinds).
    """

    def __init__(
        self,
        dataflow: DataflowAnalysis,
        lifetimes: Lifetimes,
        sharing: OperandSharing,
        pairs: InPlacePairs,
    ) -> None:
        self._dataflow = dataflow
        self._lifetimes = lifetimes
        self._pairs = pairs
        self._sharing = sharing
        self._parent: dict[int, int] = {}
        self._pieces: dict[int, list[Piece]] = {
            v: [(start, end, v)] for v, (start, end) in lifetimes.spans.items()
        }
        self._overlapping: set[int] = set()
        self._excluded = False
        self._read_only = {v.id for v in dataflow.values if lifetimes.is_read_only(v)}

    def find(self, value: int) -> int:
        parent = self._parent
        while (up := parent.get(value, value)) != value:
            parent[value] = parent.get(up, up)
            value = up
        return value

    def join(self, a: Value, b: Value, *, always: bool = False) -> str:
        """Unite two classes; when they cannot be, say why and change nothing."""
        one, two = self.find(a.id), self.find(b.id)
        if one == two:
            return ""
        if not always:
            for root in (one, two):
                if root in self._read_only:
                    return "its storage must not be written"
            clash = self._clash(one, two)
            if clash:
                return clash
            if self._excluded:
                self._overlapping.update((one, two))
        small, large = sorted(
            (one, two), key=lambda r: (len(self._pieces.get(r, ())), -r)
        )
        self._parent[small] = large
        for marks in (self._read_only, self._overlapping):
            if small in marks:
                marks.add(large)
        target = self._pieces.setdefault(large, [])
        for piece in self._pieces.pop(small, ()):
            target.insert(bisect_left(target, piece), piece)
        return ""

    def _clash(self, one: int, two: int) -> str:
        self._excluded = False
        if len(self._pieces.get(one, ())) > len(self._pieces.get(two, ())):
            one, two = two, one
        mine, theirs = self._pieces.get(one, []), self._pieces.get(two, [])
        nested = two in self._overlapping
        for piece in mine:
            at = bisect_left(theirs, (piece[1],))
            while at:
                at -= 1
                other = theirs[at]
                if other[1] <= piece[0]:
                    if nested:
                        continue
                    break
                first, second = sorted((piece, other))
                ends = self._lifetimes.ends_within(first[2], second[2])
                if ends is not None:
                    self._excluded = True
                    first = (first[0], ends[0], first[2])
                    second = (second[0], ends[1], second[2])
                    if first[1] <= second[0]:
                        continue
                if self._meets(first, second):
                    continue
                if self._exclusive(first, second):
                    self._excluded = True
                else:
                    old = self._dataflow.value(first[2])
                    new = self._dataflow.value(second[2])
                    return f"{old.position} is still needed when {new.position} is made"
        return ""

    def _meets(self, first: Piece, second: Piece) -> bool:
        """Whether the later value is computed in place of the earlier one."""
        if first[1] != second[0] + 1 or first[0] == second[0]:
            return False
        if first[2] in self._lifetimes.held:
            return False
        old = self._dataflow.value(first[2])
        new = self._dataflow.value(second[2])
        return takes_over(self._sharing, self._pairs, old, new)

    def _exclusive(self, first: Piece, second: Piece) -> bool:
        """Whether the earlier value is only needed when the later is not made.

        That is so when the later one belongs to a branch of a conditional, and the
        earlier one is needed then for other branches only.
        """
        old = self._dataflow.value(first[2])
        new = self._dataflow.value(second[2])
        computation = new.instruction.computation
        graph = self._dataflow.call_graph
        while (caller := graph.parent_call(computation)) is not None:
            if caller.opcode == "conditional":
                branch = caller.called_computations.index(computation)
                end, held = self._lifetimes.end_in_branch(old, caller, branch)
                if end <= second[0]:
                    return True
                meets = end == second[0] + 1 and not held
                if meets and takes_over(self._sharing, self._pairs, old, new):
                    return True
            computation = caller.computation
        return False


def takes_over(
    sharing: OperandSharing, pairs: InPlacePairs, old: Value, new: Value
) -> bool:
    """Whether `new` may be written over `old`, which its instruction reads last."""
    x = new.instruction
    slots = [
        (use.operand_number, use.operand_index)
        for use in old.uses
        if use.instruction is x
    ]
    if not slots:
        return False
    first, index = slots[0]
    if len(slots) == 1 and ((first, index), new.index) in pairs(x):
        return not reads_elsewhere(x, first, index, new.index)
    if not sharing.can_share(x.operands[first], index, x, new.index):
        return False
    if len(slots) > 1:
        return all(not at and is_elementwise(x, slot) for slot, at in slots)
    if x.opcode == "fusion" and is_elementwise(x, first):
        return True
    return not reads_elsewhere(x, first, index, new.index)


def find_conflicts(
    dataflow: DataflowAnalysis, flat: FlattenedSchedule, pairs: InPlacePairs
) -> list[Conflict]:
    """The slots of a scheduled module that need a copy, each once.

    Near linear: every class is merged into the larger one.
    """
    lifetimes = Lifetimes(dataflow, flat)
    sharing = OperandSharing(dataflow, pairs=pairs)
    classes = _Classes(dataflow, lifetimes, sharing, pairs)
    conflicts: dict[Slot, Conflict] = {}
    kept = set()
    for conflict in _result_conflicts(dataflow, lifetimes):
        conflicts.setdefault(conflict.slot, conflict)
        kept.add(conflict.slot)
    for constraint in find_constraints(dataflow, pairs, set(flat.spans)):
        slot = constraint.slot
        if slot in kept:
            continue
        reason = _unsafe(constraint)
        if not reason:
            reason = classes.join(constraint.old, constraint.new, always=slot is None)
        if reason and slot is not None:
            conflicts.setdefault(slot, Conflict(slot, constraint.old, reason))
    return list(conflicts.values())


def _unsafe(constraint: Constraint) -> str:
    if constraint.kind != "in place" or constraint.slot is None:
        return ""
    x, operand, index = constraint.slot
    if reads_elsewhere(x, operand, index, constraint.new.index):
        return f"{x.name} also reads other parts of what it overwrites"
    return ""


def _result_conflicts(
    dataflow: DataflowAnalysis, lifetimes: Lifetimes
) -> list[Conflict]:
    """Leaves of the program's result that are arguments, constants or twins."""
    module = dataflow.module
    root = module.entry.root
    stated = {a.output_index: a for a in module.aliases}
    seen: set[int] = set()
    found: list[Conflict] = []
    for index, shape in root.shape.nodes():
        values = dataflow.values_at(root, index)
        slot = Slot(root, ROOT, index)
        if shape.is_token or shape.is_opaque:
            continue
        reason = ""
        for value in values:
            if lifetimes.is_read_only(value):
                reason = "a result may not be an argument or a constant itself"
            elif value.id in seen:
                reason = "it is part of the result twice"
            elif _is_given_to_another(value.instruction, value.index, index, stated):
                reason = "the argument's storage is given to another result"
        if len(values) > 1:
            reason = "several values may be here"
        seen.update(v.id for v in values)
        if reason and values:
            found.append(Conflict(slot, values[0], reason))
    return found


def _is_given_to_another(
    x: Instruction,
    at: tuple[int, ...],
    index: tuple[int, ...],
    stated: dict[tuple[int, ...], Alias],
) -> bool:
    if x.opcode != "parameter" or not x.computation.is_entry:
        return False
    alias = stated.get(index)
    return alias is None or (alias.parameter_number, alias.parameter_index) != (
        x.parameter_number,
        at,
    )
