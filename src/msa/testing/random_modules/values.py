"""Values of a module under construction, and who may still touch their storage.

A module handed to a planner must be free of hidden conflicts: an operation that
works in place, or a loop that overwrites what it carries, needs its operand for
itself. `Storage` keeps that promise while instructions are chosen at random.
"""

from __future__ import annotations

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape


class Lineage:
    """Successive versions of one buffer inside one computation.

    Attributes:
        born: place of the instruction that first defined it (-1 for parameters).
        last_use: place of the last instruction that reads any version.
        carried: whether it belongs to a parameter, a loop's element for instance.
    """

    __slots__ = ("born", "carried", "last_use")

    def __init__(self, born: int, *, carried: bool = False) -> None:
        self.born = born
        self.last_use = born
        self.carried = carried


class Storage:
    """One version of a buffer: what it holds between two overwrites.

    Attributes:
        lineage: the buffer.
        frozen: it may only be read (parameters that are not donated, constants).
        consumed: an in-place operation or a loop has overwritten it.
        readers: asynchronous operations that are still reading it.
    """

    __slots__ = ("consumed", "frozen", "lineage", "readers")

    def __init__(self, lineage: Lineage, *, frozen: bool = False) -> None:
        self.lineage = lineage
        self.frozen = frozen
        self.consumed = False
        self.readers = 0

    @property
    def is_owned(self) -> bool:
        """Whether it may be overwritten."""
        return not (self.frozen or self.consumed or self.readers)


class Variable:
    """An array-shaped instruction and the storage it names."""

    __slots__ = ("instruction", "storage")

    def __init__(self, instruction: Instruction, storage: Storage) -> None:
        self.instruction = instruction
        self.storage = storage

    @property
    def shape(self) -> Shape:
        """Shape of the array."""
        return self.instruction.shape

    @property
    def is_readable(self) -> bool:
        """Whether the value still exists."""
        return not self.storage.consumed
