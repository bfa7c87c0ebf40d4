"""Keeping a value in a compact layout until it is read again."""

from __future__ import annotations

from msa.hlo.instruction import Instruction
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.renaming import Renaming
from msa.passes.rematerialization.storage import Use
from msa.passes.rematerialization.tracker import MemoryTracker


def compress(
    tracker: MemoryTracker,
    item: Item,
    cloner: Cloner,
    options: RematerializationOptions,
) -> list[Instruction]:
    """Copy a value to its compact layout now, and back before the next reader.

    Returns the two copies.
    """
    number = item.defined[0]
    original = item.instruction
    compact = options.compact_shape(original.shape)
    pending = tracker.pending(number)
    first = min((tracker.items[u.user] for u in pending), key=lambda x: x.label)
    small = cloner.make(original, "_compressed", "copy", compact, [original])
    large = cloner.make(original, "_uncompressed", "copy", original.shape, [small])
    renaming = Renaming(tracker, item, cloner)
    for use in pending:
        renaming.redirect(use, number, large)
    small_item = put_after(tracker, small, item, number)
    large_item = tracker.items.insert_before(large, first)
    large_item.barred = True
    size = tracker.buffers[number].bytes
    fresh = tracker.hand_over(number, large_item, size, pending)
    tracker.new_buffer(small_item, options.size_of(compact), [Use(large, 0)])
    renaming.place_names(first, {number: fresh})
    return [small, large]


def put_after(
    tracker: MemoryTracker, new: Instruction, item: Item, number: int
) -> Item:
    """Insert a reader of a buffer right after an item, as if it had run."""
    placed = tracker.items.insert_after(new, item)
    placed.barred = True
    placed.placed = True
    tracker.buffers[number].uses.append(Use(new, 0))
    placed.used.append(number)
    return placed
