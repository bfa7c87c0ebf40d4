"""Moving a change of layout down to where its value returns to the device.

Source: `xla/hlo/transforms/host_offload_legalize.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.passes.offload.layouts import (
    Change,
    layout_of,
    through_slice,
    through_view,
)
from msa.passes.offload.vocabulary import (
    MOVE_TO_DEVICE,
    MOVE_TO_HOST,
    Callers,
    Place,
    is_call_of,
    next_places,
)

VIEWS: Final = frozenset({"bitcast", "reshape"})
SLICES: Final = frozenset({"slice", "dynamic-slice"})
_SAME: Final = frozenset({"get-tuple-element", "opt-barrier", "tuple", "while"})


@dataclass(slots=True)
class Move:
    """What moving one copy down means.

    Attributes:
        copy: what moves.
        changes: by node that is passed: its shape without and with the change.
        ends: where the value leaves the host: a slice or a `MoveToDevice`.
        updates: updates in place of the value.
    """

    copy: Instruction
    changes: dict[Place, Change] = field(default_factory=dict)
    ends: dict[Instruction, Change] = field(default_factory=dict)
    updates: dict[Instruction, Change] = field(default_factory=dict)

    def apply(self) -> None:
        """Edit the module."""
        for (x, index), (before, _) in self.changes.items():
            if x is not self.copy:
                _set_layout(x, index, before)
        for end, (before, after) in self.ends.items():
            _set_layout(end, (), before)
            home = end.computation
            back = end
            if end.opcode in SLICES:
                back = _annotate(end, MOVE_TO_DEVICE, end.name)
            copy = home.create(f"{end.name}.layout", "copy", after, [back])
            _redirect(end, copy, {back, copy})
        for update, (before, _) in self.updates.items():
            _annotate_piece(update, before)
        self.copy.replace_all_uses_with(self.copy.operands[0])
        self.copy.computation.remove([self.copy])


def plan_move(copy: Instruction, callers: Callers) -> Move | None:
    """How a copy on the host moves down; None if it cannot.

    It cannot where the value is returned by the entry or read by anything but plain
    moves, slices, updates in place and `MoveToDevice`, or where a loop's state would
    have two layouts. Linear in the nodes passed.

    Raises:
        HostOffloadError: a bitcast stands in the way.
    """
    move = Move(copy)
    work: list[tuple[Place, Change]] = [
        ((copy, ()), (copy.operands[0].shape, copy.shape))
    ]
    while work:
        place, change = work.pop()
        if place in move.changes:
            if move.changes[place] != change:
                return None
            continue
        move.changes[place] = change
        x = place[0]
        if x.is_root and x.computation.is_entry:
            return None
        for user in x.users:
            following = _pass(move, place, user, change)
            if following is None:
                return None
            work.extend(following)
        # Steps through bitcasts change the shape: they have been taken above.
        work.extend(
            (p, change) for p in next_places(place, callers) if p[0].opcode != "bitcast"
        )
    return move if _loops_agree(move) else None


def _pass(
    move: Move, place: Place, user: Instruction, change: Change
) -> list[tuple[Place, Change]] | None:
    x = place[0]
    if user.opcode in _SAME:
        return []
    if user.opcode in VIEWS:
        return [((user, ()), through_view(change, user))]
    if user.operand_indices(x) != (0,):
        return None
    if user.opcode == "dynamic-update-slice":
        if annotation_of(user) is None:
            return None
        move.updates[user] = change
        return [((user, ()), change)]
    if user.opcode in SLICES or is_call_of(user, MOVE_TO_DEVICE):
        move.ends[user] = through_slice(change, user.shape)
        return []
    return None


def annotation_of(update: Instruction) -> Instruction | None:
    """The `MoveToHost` that sends an update's piece, seen through plain views."""
    piece = update.operands[1]
    while piece.opcode in (*VIEWS, "copy") and piece.user_count == 1:
        piece = piece.operands[0]
    return piece if is_call_of(piece, MOVE_TO_HOST) else None


def _loops_agree(move: Move) -> bool:
    """Whether a loop's state has one layout before, in and after the loop."""
    for x, index in move.changes:
        if x.opcode != "while":
            continue
        places = [
            (x, index),
            (x.while_body.parameters[0], index),
            (x.while_condition.parameters[0], index),
            _element(move, x.operands[0], index),
            _element(move, x.while_body.root, index),
        ]
        layouts = set()
        for node, at in places:
            change = move.changes.get((node, at))
            layouts.add(layout_of(change[0] if change else node.shape.subshape(at)))
        if len(layouts) > 1:
            return False
    return True


def _element(move: Move, x: Instruction, index: tuple[int, ...]) -> Place:
    """A node; what a moved copy held is held by its operand."""
    if (x, index) in move.changes or x.opcode != "tuple" or not index:
        return x, index
    return x.operands[index[0]], index[1:]


def _set_layout(x: Instruction, index: tuple[int, ...], like: Shape) -> None:
    old = x.shape.subshape(index)
    layout = layout_of(like).with_memory_space(old.memory_space)
    x.shape = x.shape.with_subshape(index, old.with_layout(layout))


def _redirect(old: Instruction, new: Instruction, but: set[Instruction]) -> None:
    """Let all readers of a value but some read another, and the root be that."""
    for user in old.users:
        if user not in but:
            for k in user.operand_indices(old):
                user.replace_operand(k, new)
    if old.is_root:
        old.computation.root = new


def _annotate_piece(update: Instruction, before: Shape) -> None:
    """Put the annotation of an update directly onto its piece, in its layout."""
    annotation = annotation_of(update)
    order = layout_of(before).minor_to_major
    if annotation is None or (
        annotation is update.operands[1]
        and layout_of(annotation.shape).minor_to_major == order
    ):
        return
    for user in annotation.users:
        for k in user.operand_indices(annotation):
            if user is update or _leads_to(user, update):
                user.replace_operand(k, annotation.operands[0])
    piece = update.operands[1]
    if layout_of(piece.shape).minor_to_major != order:
        shape = piece.shape.with_layout(layout_of(before))
        piece = update.computation.create(
            f"{piece.name}.layout", "copy", shape, [piece]
        )
    sent = _annotate(piece, MOVE_TO_HOST, annotation.name)
    update.replace_operand(1, sent)
    if annotation.is_dead:
        annotation.computation.remove([annotation])


def _leads_to(view: Instruction, update: Instruction) -> bool:
    while view.opcode in (*VIEWS, "copy") and view.user_count == 1:
        (view,) = view.users
    return view is update


def _annotate(value: Instruction, target: str, name: str) -> Instruction:
    return value.computation.create(
        f"{name}.moved",
        "custom-call",
        value.shape,
        (value,),
        {"custom_call_target": target},
    )


def swap_with_annotation(copy: Instruction) -> None:
    """Change the layout on the device, before the value is sent to the host.

    Nothing is done where the copy does not read an annotation of its own.
    """
    annotation = copy.operands[0]
    if not is_call_of(annotation, MOVE_TO_HOST) or annotation.user_count > 1:
        return
    computation = copy.computation
    source = annotation.operands[0]
    first = computation.create(f"{copy.name}.first", "copy", copy.shape, [source])
    sent = _annotate(first, MOVE_TO_HOST, annotation.name)
    copy.replace_all_uses_with(sent)
    computation.remove([copy])
    computation.remove([annotation])
