"""Computing values again."""

from __future__ import annotations

from collections.abc import Sequence

from msa.hlo.instruction import Instruction
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.renaming import NAMES, Renaming
from msa.passes.rematerialization.storage import Use
from msa.passes.rematerialization.tracker import MemoryTracker


def recompute(
    tracker: MemoryTracker,
    block: Sequence[Item],
    cloner: Cloner,
    options: RematerializationOptions,
) -> list[Item]:
    """Compute a block again after the current step, last item first.

    Readers that have not run read the clones. Returns the clones; those that are
    `moved` took the place of an original that nothing reads any more.
    """
    made = []
    for item in reversed(block):
        pending = {number: tracker.pending(number) for number in item.defined}
        if any(pending.values()):
            made.append(_again(tracker, item, pending, cloner, options))
    return made


def move(tracker: MemoryTracker, item: Item) -> None:
    """Run an item that nothing has read yet later, before its first reader.

    Twice at most: two items could take turns for ever.
    """
    x = item.instruction
    tracker.run_later(item, _place(tracker, item, x, x.users, by_size=True))
    item.barred = item.moved
    item.moved = True


def _again(
    tracker: MemoryTracker,
    item: Item,
    pending: dict[int, list[Use]],
    cloner: Cloner,
    options: RematerializationOptions,
) -> Item:
    original = item.instruction
    clone = cloner.clone(original)
    renaming = Renaming(tracker, item, cloner)
    for number, uses in pending.items():
        for use in uses:
            renaming.redirect(use, number, clone)
    readers = [u.user for uses in pending.values() for u in uses]
    by_size = options.algorithm == "peak-priority"
    place = _place(tracker, item, clone, readers, by_size=by_size)
    new = tracker.items.insert_before(clone, place)
    tracker.touch_operands(clone)
    for number in item.used:
        tracker.add_reader(new, [number], _operand_numbers(tracker, item, number))
    fresh = {
        number: tracker.hand_over(number, new, tracker.buffers[number].bytes, uses)
        for number, uses in pending.items()
    }
    renaming.place_names(place, fresh)
    new.moved = is_unread(original)
    new.barred = new.moved and item.moved
    if options.on_rematerialized is not None:
        for old, replacement in ({original: clone} | renaming.replaced).items():
            options.on_rematerialized(old, replacement)
    return new


def _place(
    tracker: MemoryTracker,
    item: Item,
    clone: Instruction,
    readers: Sequence[Instruction],
    *,
    by_size: bool,
) -> Item:
    """The earliest item that must come after an item's clone."""
    items = tracker.items
    before = [items[user] for user in readers]
    before += [items[x] for x in item.instruction.control_successors]
    for number in item.used:
        before += tracker.writers(number)  # afterwards the contents are gone
    for operand in dict.fromkeys(clone.operands):
        if _must_not_wait(tracker, item, operand, by_size):
            before += [
                items[user]
                for user in operand.users
                if user is not clone and not items[user].placed
            ]
    return min(before, key=lambda x: x.label)


def _must_not_wait(
    tracker: MemoryTracker,
    item: Item,
    operand: Instruction,
    by_size: bool,
) -> bool:
    """Whether keeping an operand for the clone would cost memory.

    Not when its storage is there anyway and, by size, not when the clone is larger.
    """
    buffers = tracker.buffers
    creator = operand
    while creator.opcode in NAMES:
        creator = creator.operands[0]
    held = [n for n in item.used if buffers[n].creator is creator] or item.used
    counted = sum(buffers[n].counted for n in held)
    if not counted or not by_size:
        return counted > 0
    return counted >= sum(buffers[n].bytes for n in item.defined)


def _operand_numbers(tracker: MemoryTracker, item: Item, number: int) -> list[int]:
    """Through which operands an item reads a buffer."""
    uses = tracker.buffers[number].uses
    return [u.operand_number for u in uses if u.user is item.instruction]


def is_unread(instruction: Instruction) -> bool:
    """Whether nothing reads an instruction but names that nothing reads. Linear."""
    return all(
        not x.is_root and (x is instruction or x.opcode in NAMES)
        for x in names_of(instruction)
    )


def names_of(instruction: Instruction) -> list[Instruction]:
    """An instruction and its readers, and through names also theirs. Linear."""
    found = [instruction]
    seen = {instruction}
    for x in found:
        if x is instruction or x.opcode in NAMES:
            for user in x.users:
                if user not in seen:
                    seen.add(user)
                    found.append(user)
    return found
