"""A schedule that grows: items in a doubly linked list with ordered labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msa.hlo.instruction import Instruction

_GAP: Final = 1 << 128


class Item:
    """An instruction of the schedule and the storage that it touches.

    Attributes:
        instruction: the instruction.
        label: grows along the schedule.
        previous, next: neighbours.
        placed: whether the walk has reached it.
        barred: never rematerialized (any more).
        inserted: made by the pass; always looked at, whatever its size.
        moved: a clone whose original nothing reads any more.
        defined, used: numbers of buffers, each once.
    """

    __slots__ = (
        "barred",
        "defined",
        "inserted",
        "instruction",
        "label",
        "moved",
        "next",
        "placed",
        "previous",
        "used",
    )

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.label = 0
        self.previous: Item | None = None
        self.next: Item | None = None
        self.placed = False
        self.barred = False
        self.inserted = False
        self.moved = False
        self.defined: list[int] = []
        self.used: list[int] = []

    def __repr__(self) -> str:
        return f"<Item {self.instruction.name}>"


class ItemList:
    """The items of one computation in the order of its schedule.

    Insertion is O(1) and comparing two places is comparing labels. Labels are dyadic:
    a new item gets the middle of its neighbours', and all are handed out anew when a
    gap is used up.

    Attributes:
        first: the first item.
        relabelled: how often labels were handed out anew.
    """

    __slots__ = ("_items", "first", "relabelled")

    def __init__(self, sequence: Iterable[Instruction]) -> None:
        self._items: dict[Instruction, Item] = {}
        self.first: Item | None = None
        self.relabelled = 0
        last: Item | None = None
        for number, instruction in enumerate(sequence):
            item = Item(instruction)
            item.label = (number + 1) * _GAP
            item.previous = last
            if last is None:
                self.first = item
            else:
                last.next = item
            last = item
            self._items[instruction] = item

    def __getitem__(self, instruction: Instruction) -> Item:
        return self._items[instruction]

    def get(self, instruction: Instruction) -> Item | None:
        """The item of an instruction, or None while it is not in the schedule."""
        return self._items.get(instruction)

    def __iter__(self) -> Iterator[Item]:
        item = self.first
        while item is not None:
            yield item
            item = item.next

    def insert_before(self, instruction: Instruction, successor: Item) -> Item:
        """A new item right before `successor`."""
        item = Item(instruction)
        item.inserted = True
        self._items[instruction] = item
        self._link(item, successor)
        return item

    def move_before(self, item: Item, successor: Item) -> None:
        """Take an item out and put it right before `successor`, which stays."""
        before, after = item.previous, item.next
        if before is None:
            self.first = after
        else:
            before.next = after
        if after is not None:
            after.previous = before
        self._link(item, successor)

    def _link(self, item: Item, successor: Item) -> None:
        before = successor.previous
        item.previous, item.next = before, successor
        successor.previous = item
        if before is None:
            self.first = item
        else:
            before.next = item
        low = 0 if before is None else before.label
        item.label = (low + successor.label) // 2
        if item.label == low:
            self._relabel()

    def insert_after(self, instruction: Instruction, predecessor: Item) -> Item:
        """A new item right after `predecessor`, which is not the last."""
        assert predecessor.next is not None
        return self.insert_before(instruction, predecessor.next)

    def _relabel(self) -> None:
        self.relabelled += 1
        for number, item in enumerate(self):
            item.label = (number + 1) * _GAP

    def sequence(self) -> list[Instruction]:
        """The schedule as it now is."""
        return [item.instruction for item in self]
