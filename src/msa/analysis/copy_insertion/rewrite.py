"""Putting copies into slots: rebuilding the tuples on the way.

Source: `xla/hlo/ir/hlo_computation.cc` (DeepCopyInstruction).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msa.analysis.copy_insertion.constraints import ROOT, Slot
from msa.hlo.shape import Shape

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module
    from msa.hlo.shape import ShapeIndex


def put_copies(module: Module, slots: Iterable[Slot]) -> int:
    """Copy what is read at the slots, right before it is read.

    Changes the module and its schedule in place; tuples that nothing reads any more
    are removed. Linear in the module.

    Returns:
        the number of copy instructions that were added.
    """
    wanted: dict[tuple[Instruction, int], set[ShapeIndex]] = {}
    for slot in slots:
        wanted.setdefault((slot.instruction, slot.operand), set()).add(slot.part)
    before: dict[Instruction, list[Instruction]] = {}
    at_end: dict[Computation, list[Instruction]] = {}
    stale: list[Instruction] = []
    copies = 0
    for (reader, operand), indices in wanted.items():
        computation = reader.computation
        source = reader if operand == ROOT else reader.operands[operand]
        made = _Rebuild(source, indices)
        new = made.run()
        copies += made.copies
        if operand == ROOT:
            at_end.setdefault(computation, []).extend(made.added)
            computation.root = new
        else:
            before.setdefault(reader, []).extend(made.added)
            reader.replace_operand(operand, new)
        stale.append(source)
    dead = _remove_unread(stale)
    _reschedule(module, before, at_end, dead)
    return copies


class _Rebuild:
    """Makes one result anew with copies at some of its nodes."""

    __slots__ = ("_computation", "_indices", "_nodes", "_source", "added", "copies")

    def __init__(self, source: Instruction, indices: set[ShapeIndex]) -> None:
        self._source = source
        self._computation = source.computation
        self._indices = indices
        self._nodes: dict[ShapeIndex, Instruction] = {(): source}
        self.added: list[Instruction] = []
        self.copies = 0

    def run(self) -> Instruction:
        changed: dict[ShapeIndex, Instruction] = {}
        paths = {index[:k] for index in self._indices for k in range(len(index) + 1)}
        # Deepest first: elements exist before the tuples that hold them.
        for index in sorted(paths, key=lambda i: (-len(i), i)):
            node = self._node(index)
            if not node.shape.is_tuple:
                changed[index] = self._add("copy", node.shape, (node,), {})
                self.copies += 1
                continue
            elements = [
                changed.get((*index, i)) or self._node((*index, i))
                for i in range(len(node.shape.children))
            ]
            shape = Shape.tuple_of(*(x.shape for x in elements))
            changed[index] = self._add("tuple", shape, tuple(elements), {})
        return changed[()]

    def _node(self, index: ShapeIndex) -> Instruction:
        """An instruction whose result is a node of the source."""
        depth = len(index)
        while index[:depth] not in self._nodes:
            depth -= 1
        for k in range(depth, len(index)):
            whole = self._nodes[index[:k]]
            if whole.opcode == "tuple":
                part = whole.operands[index[k]]
            else:
                shape = whole.shape.children[index[k]]
                part = self._add(
                    "get-tuple-element", shape, (whole,), {"index": index[k]}
                )
            self._nodes[index[: k + 1]] = part
        return self._nodes[index]

    def _add(
        self,
        opcode: str,
        shape: Shape,
        operands: tuple[Instruction, ...],
        attributes: dict[str, int],
    ) -> Instruction:
        of = operands[0] if operands else self._source
        made = self._computation.create(
            opcode if opcode != "copy" else f"copy.{of.name}",
            opcode,
            shape,
            operands,
            attributes,
            metadata_text=of.metadata_text,
        )
        self.added.append(made)
        return made


def _remove_unread(stale: list[Instruction]) -> set[Instruction]:
    """Remove tuples and elements that lost their last reader."""
    dead: dict[Computation, list[Instruction]] = {}
    gone: set[Instruction] = set()
    work = list(stale)
    while work:
        x = work.pop()
        if x in gone or not x.is_dead or x.control_predecessors or x.control_successors:
            continue
        if x.opcode not in ("tuple", "get-tuple-element"):
            continue
        gone.add(x)
        dead.setdefault(x.computation, []).append(x)
        work.extend(x.operands)
        x.detach()
    for computation, instructions in dead.items():
        computation.remove(instructions)
    return gone


def _reschedule(
    module: Module,
    before: dict[Instruction, list[Instruction]],
    at_end: dict[Computation, list[Instruction]],
    dead: set[Instruction],
) -> None:
    schedule = module.schedule
    touched = {x.computation for x in before} | set(at_end)
    touched |= {x.computation for x in dead}
    for computation in module.computations:
        if computation not in touched:
            continue
        order: list[Instruction] = []
        sequence: Iterable[Instruction] = computation.instructions
        if schedule is not None and computation in schedule:
            sequence = schedule.sequence(computation)
        added = {x for xs in before.values() for x in xs}
        added.update(at_end.get(computation, ()))
        for x in sequence:
            if x in added or x in dead:
                continue
            order.extend(before.get(x, ()))
            order.append(x)
        order.extend(at_end.get(computation, ()))
        if schedule is not None and computation in schedule:
            schedule.set_sequence(computation, order)
        # Text without a schedule keeps operands first too.
        computation.instructions[:] = order
