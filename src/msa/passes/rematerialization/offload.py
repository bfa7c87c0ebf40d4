"""Keeping a value on the host until it is read again."""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.compress import put_after
from msa.passes.rematerialization.costs import ComputeTimes
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.options import HostMemory, RematerializationOptions
from msa.passes.rematerialization.renaming import Renaming
from msa.passes.rematerialization.storage import Use
from msa.passes.rematerialization.tracker import MemoryTracker

_CONTEXT: Final = Shape.array("u32", ())


def offload(
    tracker: MemoryTracker,
    item: Item,
    cloner: Cloner,
    options: RematerializationOptions,
    times: ComputeTimes,
    warnings: list[str],
) -> list[Instruction]:
    """Copy a value to the host now, and back in time for the next reader.

    The copy out ends before the current step and the copy back begins after it, as
    far from their other ends as the copies take. Returns the four instructions.
    """
    host = options.host
    assert host is not None
    number = item.defined[0]
    pending = tracker.pending(number)
    last = min((tracker.items[u.user] for u in pending), key=lambda x: x.label)
    size = tracker.buffers[number].bytes
    copies = _instructions(cloner, item.instruction, host)
    in_start, in_done = copies[2:]
    renaming = Renaming(tracker, item, cloner)
    for use in pending:
        renaming.redirect(use, number, in_done)
    _copy_out(tracker, item, copies, size / host.bytes_per_second_to, times, warnings)
    place = _back(tracker, last, size / host.bytes_per_second_from, times, warnings)
    start_item = tracker.items.insert_before(in_start, place)
    done_item = tracker.items.insert_before(in_done, last)
    start_item.barred = done_item.barred = True
    fresh = tracker.hand_over(number, start_item, size, pending)
    tracker.buffers[fresh].indirect = True
    tracker.add_reader(done_item, [fresh])
    for part in (in_start.shape, _CONTEXT):
        tracker.new_buffer(start_item, options.size_of(part), [Use(in_done, 0)])
    return list(copies)


def _instructions(
    cloner: Cloner, original: Instruction, host: HostMemory
) -> tuple[Instruction, Instruction, Instruction, Instruction]:
    device = original.shape
    away = device.with_memory_space(host.space)
    to_host = Shape.tuple_of(away, device, _CONTEXT)
    to_device = Shape.tuple_of(device, away, _CONTEXT)
    out_start = cloner.make(original, "_to_host", "copy-start", to_host, [original])
    out_done = cloner.make(original, "_on_host", "copy-done", away, [out_start])
    in_start = cloner.make(original, "_to_device", "copy-start", to_device, [out_done])
    in_done = cloner.make(original, "_on_device", "copy-done", device, [in_start])
    return out_start, out_done, in_start, in_done


def _copy_out(
    tracker: MemoryTracker,
    item: Item,
    copies: tuple[Instruction, ...],
    seconds: float,
    times: ComputeTimes,
    warnings: list[str],
) -> None:
    number = item.defined[0]
    start = put_after(tracker, copies[0], item, number)
    step, waited = start, 0.0
    while waited < seconds and step.next is not tracker.current:
        assert step.next is not None
        step = step.next
        waited += times.of(step)
    if waited < seconds:
        warnings.append(f"{copies[1].name} waits: too little runs beside the copy out")
    put_after(tracker, copies[1], step, number)


def _back(
    tracker: MemoryTracker,
    last: Item,
    seconds: float,
    times: ComputeTimes,
    warnings: list[str],
) -> Item:
    """The item before which the copy back starts."""
    place, waited = last, 0.0
    while waited < seconds:
        before = place.previous
        if before is None or before is tracker.current or before.placed:
            warnings.append(
                f"the copy back for {last.instruction.name} waits: too little runs "
                "beside it"
            )
            break
        place = before
        waited += times.of(place)
    return place
