"""What a rematerialization would cost: smaller is better, None is infeasible."""

from __future__ import annotations

from collections.abc import Sequence

from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.tracker import MemoryTracker


def recompute_saving(
    tracker: MemoryTracker, block: Sequence[Item], *, at_current: bool = True
) -> int:
    """Bytes that leave the current step when a block is computed again later.

    What the block reads and nothing else keeps alive has to stay, and is taken off.
    Zero or less: not worth it, or not possible. Unless `at_current`, it does not
    matter whether the current step reads the block.
    """
    saved = 0
    inside = {number for item in block for number in item.defined}
    extended: set[int] = set()
    for item in block:
        for number in item.defined:
            buffer = tracker.buffers[number]
            if (
                buffer.indirect
                or buffer.live_out
                or len(buffer.index) > 1
                or (at_current and tracker.in_use(number))
            ):
                return 0
            if tracker.is_live(number):
                saved += buffer.counted
        for number in item.used:
            if number in inside or number in extended:
                continue
            if not tracker.is_live(number):
                extended.add(number)
                saved -= tracker.buffers[number].counted
            if tracker.is_overwritten(number):
                return 0  # its contents are gone
    return saved


def recompute_cost(
    tracker: MemoryTracker,
    block: Sequence[Item],
    limit: int,
    *,
    at_current: bool = True,
) -> tuple[int, int] | None:
    """Cost and saving of computing a block again for its later readers."""
    for item in block:
        for successor in item.instruction.control_successors:
            if tracker.items[successor].placed:
                return None
    saved = recompute_saving(tracker, block, at_current=at_current)
    if saved <= 0:
        return None
    if not any(_has_placed_reader(tracker, item) for item in block):
        return 0, saved  # moving is free
    return limit // saved, saved


def move_saving(tracker: MemoryTracker, item: Item) -> int:
    """Bytes that leave the current step when an item runs later instead.

    For results that cannot be created twice: nothing may have read them yet. Zero
    or less: not worth it, or not possible.
    """
    users = item.instruction.users
    if not users or _has_placed_reader(tracker, item):
        return 0
    if any(tracker.items[x].placed for x in item.instruction.control_successors):
        return 0
    saved = sum(
        tracker.buffers[number].counted
        for number in item.defined
        if tracker.is_live(number)
    )
    for number in item.used:
        if tracker.is_overwritten(number):
            return 0
        if not tracker.is_live(number):
            saved -= tracker.buffers[number].counted
    return saved


def _has_placed_reader(tracker: MemoryTracker, item: Item) -> bool:
    return any(tracker.items[user].placed for user in item.instruction.users)


def compress_cost(
    tracker: MemoryTracker,
    item: Item,
    limit: int,
    peak: int,
    options: RematerializationOptions,
) -> tuple[int, int] | None:
    """Cost and saving of keeping a value in its compact layout until it is read."""
    number = _waiting_array(tracker, item)
    if number is None or not tracker.is_live(number):
        return None
    if tracker.buffers[number].indirect or not tracker.has_pending(number):
        return None
    compact = options.size_of(options.compact_shape(item.instruction.shape))
    size = tracker.buffers[number].counted
    saved = size - compact
    if saved <= 0 or size + compact >= peak:
        return None  # both are live while one is made from the other
    return limit // saved, saved


def _waiting_array(tracker: MemoryTracker, item: Item) -> int | None:
    """The one array that an item created, if it can be put away now."""
    if len(item.defined) != 1 or item is tracker.current or not item.placed:
        return None
    number = item.defined[0]
    buffer = tracker.buffers[number]
    if buffer.live_out or not item.instruction.shape.is_array:
        return None
    return None if tracker.in_use(number) else number


def offload_bytes(tracker: MemoryTracker, item: Item) -> int:
    """Bytes that leave device memory when a value waits on the host; 0 if it cannot."""
    number = _waiting_array(tracker, item)
    if number is None or not tracker.is_live(number):
        return 0
    buffer = tracker.buffers[number]
    if buffer.indirect or any(
        use.user.opcode in ("bitcast", "tuple") for use in buffer.uses
    ):
        return 0
    return buffer.counted if tracker.has_pending(number) else 0


class ComputeTimes:
    """Seconds of instructions, to hide copies behind.

    Attributes:
        seconds: per instruction; what is not there takes no time.
    """

    __slots__ = ("seconds",)

    def __init__(self, seconds: dict[object, float]) -> None:
        self.seconds = seconds

    def of(self, item: Item) -> float:
        """Seconds of an item, never negative."""
        return max(0.0, self.seconds.get(item.instruction, 0.0))

    def window(self, tracker: MemoryTracker, item: Item) -> tuple[Item, Item, float]:
        """The last placed reader (or the item), the first reader to come, the time
        between them."""
        items = tracker.items
        readers = [items[u.user] for n in item.defined for u in tracker.buffers[n].uses]
        start = max(
            (r for r in readers if r.placed), key=lambda r: r.label, default=item
        )
        end = min((r for r in readers if not r.placed), key=lambda r: r.label)
        total = 0.0
        step = start.next
        while step is not None and step is not end:
            total += self.of(step)
            step = step.next
        return start, end, total


def offload_cost(
    tracker: MemoryTracker,
    item: Item,
    limit: int,
    options: RematerializationOptions,
    times: ComputeTimes,
) -> tuple[int, int] | None:
    """Cost and saving of keeping a value on the host until it is read."""
    host = options.host
    if host is None:
        return None
    saved = offload_bytes(tracker, item)
    if saved <= 0:
        return None
    start, _, available = times.window(tracker, item)
    available += times.of(start)
    copying = saved / host.bytes_per_second_to + saved / host.bytes_per_second_from
    if available <= 0 or available < copying:
        return None
    return limit // saved, saved
