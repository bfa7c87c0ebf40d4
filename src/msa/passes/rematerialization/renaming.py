"""Letting later readers read a replacement, through new names where they used old."""

from __future__ import annotations

from typing import Final

from msa.errors import InternalError
from msa.hlo.instruction import Instruction
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.storage import Use
from msa.passes.rematerialization.tracker import MemoryTracker

NAMES: Final = ("bitcast", "get-tuple-element")
"""Opcodes that only name (a part of) what their operand holds."""


class Renaming:
    """Redirects readers of an instruction to a replacement of the same shape.

    A reader reaches the original directly, or through bitcasts and
    get-tuple-elements. Names that have not run are readers themselves; ones that
    have run are made again, once each, from the replacement.

    Attributes:
        reads: the new names, in order, and the original's buffer that each stands
            for.
        replaced: operands of readers, in order, and what is read instead.
    """

    __slots__ = (
        "_cloner",
        "_made",
        "_original",
        "_table",
        "_tracker",
        "reads",
        "replaced",
    )

    def __init__(self, tracker: MemoryTracker, item: Item, cloner: Cloner) -> None:
        self._tracker = tracker
        self._original = item.instruction
        self._cloner = cloner
        self._table = next(
            (n for n in item.defined if not tracker.buffers[n].index), -1
        )
        self._made: dict[tuple[Instruction, object], Instruction] = {}
        self.reads: dict[Instruction, int] = {}
        self.replaced: dict[Instruction, Instruction] = {}

    def redirect(self, use: Use, number: int, replacement: Instruction) -> None:
        """Let one reader of buffer `number` read the replacement.

        Tuples on the way are seen through: an element that is taken out of one again
        need not be put in.
        """
        chain: list[Instruction] = []
        x = use.user.operands[use.operand_number]
        while x is not self._original and x is not replacement:
            if x in self.reads:
                break
            if x.opcode not in NAMES:
                raise InternalError(f"{x.name} hides {self._original.name}")
            source = x.operands[0]
            if source.opcode == "tuple":
                x = source.operands[x.tuple_index]
            elif not self._tracker.items[x].placed:
                break  # the name itself reads the replacement
            else:
                chain.append(x)
                x = source
        if x is self._original:
            x = replacement
        if x is use.user.operands[use.operand_number]:
            return
        new = x
        for link in reversed(chain):
            new = self._name(link, new, number)
        self.replaced[use.user.operands[use.operand_number]] = new
        self._tracker.touch_operands(use.user)  # they lose a reader
        use.user.replace_operand(use.operand_number, new)

    def _name(self, link: Instruction, of: Instruction, number: int) -> Instruction:
        is_part = link.opcode == "get-tuple-element"
        key = (of, link.tuple_index if is_part else link.shape)
        made = self._made.get(key)
        if made is None:
            made = self._cloner.make(
                link, "", link.opcode, link.shape, [of], dict(link.attributes)
            )
            self._made[key] = made
            self.reads[made] = self._table if is_part else number
        return made

    def place_names(self, place: Item, fresh: dict[int, int]) -> None:
        """Schedule the new names right before `place`.

        `fresh` maps the original's buffers to those of the replacement.
        """
        for name, number in self.reads.items():
            item = self._tracker.items.insert_before(name, place)
            item.barred = True
            self._tracker.add_reader(item, [fresh[number]])
