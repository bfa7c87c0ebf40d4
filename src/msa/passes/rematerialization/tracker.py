"""Bytes live along a schedule, kept exact while instructions are inserted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import CONTROL_FLOW_OPCODES
from msa.passes.rematerialization.items import Item, ItemList
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.storage import (
    Buffer,
    Carried,
    Storage,
    Use,
    distinct,
)


class MemoryTracker:
    """The walk along one computation.

    What is live is decided by which readers have run, not by places: inserting items
    in front of ones that have not run changes nothing behind.

    Attributes:
        items: the schedule.
        buffers: by number.
        usage: bytes live now.
        current: the item that runs now, or None.
        live: items placed with counted buffers that are live, in no order.
        touched: items whose prospects may have changed since this was last emptied.
    """

    __slots__ = (
        "_live_buffers",
        "buffers",
        "current",
        "items",
        "live",
        "touched",
        "usage",
    )

    def __init__(
        self,
        computation: Computation,
        options: RematerializationOptions,
        carried: Iterable[Carried] = (),
    ) -> None:
        schedule = computation.module.schedule
        assert schedule is not None
        sequence = schedule.sequence(computation)
        host = options.host.space if options.host else None
        storage = Storage(sequence, computation.root, options.size_of, host)
        storage.share(computation, carried)
        self.items = ItemList(sequence)
        self.buffers: list[Buffer] = storage.buffers
        for item in self.items:
            item.defined = storage.defined[item.instruction]
            item.used = storage.used[item.instruction]
        self.usage = 0
        self.current: Item | None = None
        self.live: dict[Item, None] = {}
        self.touched: dict[Item, None] = {}
        self._live_buffers: set[int] = set()

    # -- the walk ------------------------------------------------------------

    def begin(self, item: Item) -> None:
        """Run an item: what it creates becomes live."""
        self.current = item
        item.placed = True
        self.touch_operands(item.instruction)
        for number in item.defined:
            self._revive(number)
        for number in item.used:
            buffer = self.buffers[number]
            self.touched[self.items[buffer.creator]] = None
            if item.instruction in buffer.writers:
                self._touch(buffer)

    def end(self) -> None:
        """Finish the current item: what it read last goes."""
        item = self.current
        assert item is not None
        for number in item.used:
            buffer = self.buffers[number]
            buffer.unfinished -= 1
            if not buffer.unfinished:
                self._drop(number)
        for number in item.defined:
            if not self.buffers[number].unfinished:
                self._drop(number)
        self.current = None

    def touch_operands(self, instruction: Instruction) -> None:
        """Note that instructions got or lost a reader, or that it ran."""
        for x in (*instruction.operands, *instruction.control_predecessors):
            item = self.items.get(x)
            if item is not None:
                self.touched[item] = None

    def _touch(self, buffer: Buffer) -> None:
        """Note that a buffer's creator and readers must be looked at again."""
        self.touched[self.items[buffer.creator]] = None
        for use in buffer.uses:
            self.touched[self.items[use.user]] = None

    def _revive(self, number: int) -> None:
        if number in self._live_buffers:
            return
        self._live_buffers.add(number)
        buffer = self.buffers[number]
        self._touch(buffer)
        self.usage += buffer.counted
        if buffer.counted:
            self.live[self.items[buffer.creator]] = None

    def _drop(self, number: int) -> None:
        if number not in self._live_buffers:
            return
        self._live_buffers.discard(number)
        buffer = self.buffers[number]
        self._touch(buffer)
        self.usage -= buffer.counted
        if buffer.counted:
            item = self.items[buffer.creator]
            if not any(
                n in self._live_buffers and self.buffers[n].counted
                for n in item.defined
            ):
                del self.live[item]

    # -- questions -----------------------------------------------------------

    def is_live(self, number: int) -> bool:
        """Whether a buffer holds something that is read later."""
        return number in self._live_buffers and self.buffers[number].unfinished > 0

    def in_use(self, number: int) -> bool:
        """Whether the current item reads a buffer."""
        return self.current is not None and number in self.current.used

    def pending(self, number: int) -> list[Use]:
        """Uses of a buffer by items that have not been placed."""
        items = self.items
        return [u for u in self.buffers[number].uses if not items[u.user].placed]

    def has_pending(self, number: int) -> bool:
        """Whether an item that has not been placed reads a buffer."""
        items = self.items
        return any(not items[u.user].placed for u in self.buffers[number].uses)

    def is_overwritten(self, number: int) -> bool:
        """Whether a buffer's contents are gone: a placed item wrote into it."""
        items = self.items
        return any(items[w].placed for w in self.buffers[number].writers)

    def writers(self, number: int) -> list[Item]:
        """Items that write into a buffer and have not been placed."""
        items = [self.items[w] for w in self.buffers[number].writers]
        return [item for item in items if not item.placed]

    # -- edits ---------------------------------------------------------------

    def run_later(self, item: Item, place: Item) -> None:
        """Move an item that nothing has read yet to right before `place`.

        It counts as not run: what it created goes, what it reads lives on.
        """
        item.placed = False
        self.items.move_before(item, place)
        for number in item.defined:
            self._drop(number)
        self.touched[item] = None
        self.touch_operands(item.instruction)
        for number in item.used:
            self.buffers[number].unfinished += 1
            self._touch(self.buffers[number])
            if self.items[self.buffers[number].creator].placed:
                self._revive(number)

    def add_reader(
        self, item: Item, numbers: Iterable[int], operands: Iterable[int] = (0,)
    ) -> None:
        """A new item that has not run reads buffers, which live on or come back."""
        for number in numbers:
            buffer = self.buffers[number]
            buffer.uses += [Use(item.instruction, k) for k in operands]
            self.touched[self.items[buffer.creator]] = None
            buffer.unfinished += 1
            item.used.append(number)
            if self.items[buffer.creator].placed:
                self._revive(number)

    def new_buffer(self, creator: Item, size: int, uses: list[Use]) -> int:
        """A new array that readers read which have not run; its number.

        It is live at once when its creator counts as run.
        """
        buffer = Buffer(creator.instruction, (), size)
        buffer.uses = uses
        buffer.unfinished = distinct(uses)
        self.buffers.append(buffer)
        number = len(self.buffers) - 1
        creator.defined.append(number)
        for user in {u.user for u in uses}:
            self.items[user].used.append(number)
        if creator.placed:
            self._revive(number)
        return number

    def hand_over(
        self, number: int, creator: Item, size: int, pending: list[Use]
    ) -> int:
        """A new buffer takes over the readers of `number` that have not run.

        Returns the number of the new buffer. The old one dies here. The new one is
        live at once when its creator counts as placed.
        """
        old = self.buffers[number]
        new = Buffer(creator.instruction, old.index, size)
        taken = set(pending)
        new.uses = pending
        new.unfinished = distinct(pending)
        new.indirect = old.indirect
        new.writers = [w for w in old.writers if not self.items[w].placed]
        self.buffers.append(new)
        fresh = len(self.buffers) - 1
        creator.defined.append(fresh)
        for user in {u.user for u in pending}:
            used = self.items[user].used
            used[:] = [fresh if n == number else n for n in used]
        old.uses = [u for u in old.uses if u not in taken]
        old.writers = [w for w in old.writers if self.items[w].placed]
        self._touch(old)
        self._touch(new)
        old.unfinished = len({u.user for u in old.uses if self._unfinished(u.user)})
        if not old.unfinished:
            self._drop(number)
        if creator.placed:
            self._revive(fresh)
        return fresh

    def _unfinished(self, instruction: Instruction) -> bool:
        item = self.items[instruction]
        return item is self.current or not item.placed


def called_peak(instruction: Instruction, peaks: Mapping[Computation, int]) -> int:
    """Most bytes live in what an instruction runs as part of the schedule.

    Branches exclude each other and a loop's condition and body alternate, so the
    greatest peak counts. Computations of other threads are not in `peaks`.
    """
    if instruction.opcode not in CONTROL_FLOW_OPCODES:
        return 0
    return max((peaks.get(c, 0) for c in instruction.called_computations), default=0)


def peak_of(
    computation: Computation,
    options: RematerializationOptions,
    peaks: Mapping[Computation, int],
) -> tuple[int, int]:
    """Most bytes live in a scheduled computation, and the step where.

    Linear; nothing is changed.
    """
    usages = timeline_of(computation, options, peaks)
    if not usages:
        return 0, 0
    best = max(range(len(usages)), key=usages.__getitem__)
    return usages[best], best


def timeline_of(
    computation: Computation,
    options: RematerializationOptions,
    peaks: Mapping[Computation, int],
) -> list[int]:
    """Bytes live at each step of a scheduled computation, callees included."""
    tracker = MemoryTracker(computation, options)
    usages = []
    for item in tracker.items:
        tracker.begin(item)
        usages.append(tracker.usage + called_peak(item.instruction, peaks))
        tracker.end()
    return usages
