"""The best thing to do at a step over the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from msa.passes.rematerialization.costs import (
    ComputeTimes,
    compress_cost,
    move_saving,
    offload_cost,
    recompute_cost,
)
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.rules import why_not_recomputable
from msa.passes.rematerialization.tracker import MemoryTracker


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy (`move`, `recompute`, `compress`, `offload`) for a block of items.

    Attributes:
        strategy: what to do.
        block: consecutive items; one unless recomputed.
        cost: smaller is better.
        saved: bytes that leave the current step.
    """

    strategy: str
    block: tuple[Item, ...]
    cost: int
    saved: int


class CheapestSingles:
    """The cheapest single item, without looking at all of them each time.

    Costs change only when something happens to a buffer that an item creates or
    reads; the tracker says which items those are. A heap holds the newest cost of
    each, and older entries are skipped when they come up.
    """

    __slots__ = (
        "_entries",
        "_heap",
        "_limit",
        "_number",
        "_relabelled",
        "_selection",
        "_tracker",
    )

    def __init__(self, selection: Selection, tracker: MemoryTracker) -> None:
        self._selection = selection
        self._tracker = tracker
        self._heap: list[tuple[int, int, int, Choice]] = []
        self._entries: dict[Item, int] = {}
        self._number = 0
        self._limit = -1
        self._relabelled = 0

    def best(self, limit: int) -> Choice | None:
        """The cheapest choice at the current step; the first item wins ties.

        Logarithmic in what is live, for each item touched since the last call.
        """
        self._refresh(limit)
        aside = []
        found: Choice | None = None
        while self._heap and found is None:
            entry = heappop(self._heap)
            item = entry[3].block[0]
            if self._entries.get(item) != entry[2]:
                continue
            aside.append(entry)
            if self._is_free(item):
                found = entry[3]
        for entry in aside:
            heappush(self._heap, entry)
        return found

    def _is_free(self, item: Item) -> bool:
        tracker = self._tracker
        if item is tracker.current or item.barred:
            return False
        return not any(tracker.in_use(number) for number in item.defined)

    def _refresh(self, limit: int) -> None:
        tracker = self._tracker
        items = tracker.touched
        relabelled = tracker.items.relabelled
        if limit != self._limit or relabelled != self._relabelled:
            self._limit, self._relabelled = limit, relabelled
            self._heap.clear()
            self._entries.clear()
            items = tracker.live
        for item in items:
            self._entries.pop(item, None)
            if item not in tracker.live or not item.placed:
                continue
            if not self._selection.is_candidate(item):
                continue
            choice = self._selection.single(item, limit)
            if choice is not None:
                self._number += 1
                self._entries[item] = self._number
                heappush(self._heap, (choice.cost, item.label, self._number, choice))
        tracker.touched = {}


class Selection:
    """Looks for choices along one walk.

    Only items that hold live buffers can save anything, and only blocks that contain
    one of them are looked at; the others are not visited.

    Attributes:
        effort: evaluations so far.
    """

    __slots__ = (
        "_effort",
        "_options",
        "_peak",
        "_recomputable",
        "_singles",
        "_times",
        "_tracker",
    )

    def __init__(
        self,
        tracker: MemoryTracker,
        options: RematerializationOptions,
        peak: int,
        times: ComputeTimes,
    ) -> None:
        self._tracker = tracker
        self._options = options
        self._peak = peak
        self._times = times
        self._recomputable: dict[Item, bool] = {}
        self._effort = 0
        # Other strategies depend on the time that passes, not on events alone.
        alone = options.recompute and not options.compress and options.host is None
        self._singles = CheapestSingles(self, tracker) if alone else None

    @property
    def effort(self) -> int:
        """Evaluations so far."""
        return self._effort

    def best(self, least: int, most: int, limit: int) -> Choice | None:
        """The cheapest choice with `least` to `most` items; the first wins ties."""
        if most == 1 and self._singles is not None:
            self._effort += len(self._tracker.live)
            return self._singles.best(limit)
        return self.scan(least, most, limit)

    def scan(self, least: int, most: int, limit: int) -> Choice | None:
        """`best` by looking at everything. Linear in what is live."""
        found: Choice | None = None
        for start in self._starts(most):
            block = self._block(start, least)
            if block is None:
                continue
            for choice in self._choices(block, most, limit):
                if found is None or choice.cost < found.cost:
                    found = choice
        return found

    def _starts(self, most: int) -> list[Item]:
        starts: dict[Item, None] = {}
        for item in self._tracker.live:
            back: Item | None = item
            for _ in range(most):
                if back is None:
                    break
                if self._is_start(back):
                    starts[back] = None
                back = back.previous
        return sorted(starts, key=lambda x: x.label)

    def _is_start(self, item: Item) -> bool:
        if item.inserted:
            return True
        least = self._options.min_remat_bytes
        buffers = self._tracker.buffers
        return not least or sum(buffers[n].counted for n in item.defined) >= least

    def _usable(self, item: Item) -> bool:
        if not item.placed or item is self._tracker.current or item.barred:
            return False
        return self.is_candidate(item)

    def is_candidate(self, item: Item) -> bool:
        """Whether an item may be computed again, at whatever step."""
        known = self._recomputable.get(item)
        if known is None:
            known = not why_not_recomputable(item.instruction)
            self._recomputable[item] = known
        return known and not item.barred

    def single(self, item: Item, limit: int) -> Choice | None:
        """The cheapest way to recompute one item, if the current step lets it."""
        found: Choice | None = None
        if not self._is_start(item):
            return None
        if self._is_unique(item):
            saved = move_saving(self._tracker, item)
            if saved > 0:
                found = Choice("move", (item,), 0, saved)
        cost = recompute_cost(self._tracker, [item], limit, at_current=False)
        if cost is not None and (found is None or cost[0] < found.cost):
            found = Choice("recompute", (item,), *cost)
        return found

    def _block(self, start: Item, length: int) -> list[Item] | None:
        """So many usable items from `start` on, or None."""
        block: list[Item] = []
        item: Item | None = start
        while len(block) < length:
            if item is None or not self._usable(item):
                return None
            block.append(item)
            item = item.next
        return block

    def _choices(self, block: list[Item], most: int, limit: int) -> Iterator[Choice]:
        if len(block) == 1:
            yield from self._single(block[0], limit)
        if not self._options.recompute:
            return
        if len(block) == 1 and self._is_unique(block[0]):
            self._effort += 1
            saved = move_saving(self._tracker, block[0])
            if saved > 0:
                yield Choice("move", tuple(block), 0, saved)
        while True:
            self._effort += 1
            cost = recompute_cost(self._tracker, block, limit)
            if cost is not None:
                yield Choice("recompute", tuple(block), *cost)
            following = block[-1].next
            if len(block) >= most or following is None or not self._usable(following):
                return
            block.append(following)

    def _is_unique(self, item: Item) -> bool:
        """Whether what an item creates cannot be created twice."""
        buffers = self._tracker.buffers
        return any(
            buffers[n].indirect or len(buffers[n].index) > 1 for n in item.defined
        )

    def _single(self, item: Item, limit: int) -> Iterator[Choice]:
        options = self._options
        if options.compress:
            self._effort += 1
            cost = compress_cost(self._tracker, item, limit, self._peak, options)
            if cost is not None:
                yield Choice("compress", (item,), *cost)
        if options.host is not None:
            self._effort += 1
            cost = offload_cost(self._tracker, item, limit, options, self._times)
            if cost is not None:
                yield Choice("offload", (item,), *cost)
