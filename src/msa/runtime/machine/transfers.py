"""Asynchronous copies that land at an adversarial moment."""

from __future__ import annotations

import itertools
import random
from typing import Final

from msa.runtime.machine.blocks import Reference

TIMINGS: Final = ("eager", "late", "random")
"""At the start; at the done; in pieces at random steps in between."""

_PIECES: Final = 4
_CHANCE: Final = 0.2


class Transfer:
    """A copy of `size` cells between its start and its done.

    Attributes:
        name: the copy-start.
        source, target: where it reads and writes; the source is read piece by piece,
            at the moment when the piece is written.
    """

    __slots__ = ("name", "pieces", "source", "target")

    def __init__(
        self,
        name: str,
        source: Reference,
        target: Reference,
        size: int,
        timing: str,
        chance: random.Random,
    ) -> None:
        self.name = name
        self.source = source
        self.target = target
        self.pieces: list[tuple[int, int]] = [(0, size)]
        if timing == "random" and size > 1:
            count = min(_PIECES, size)
            cuts = sorted(chance.sample(range(1, size), count - 1))
            bounds = [0, *cuts, size]
            self.pieces = list(itertools.pairwise(bounds))
            chance.shuffle(self.pieces)
        elif timing == "eager":
            self.finish()

    def advance(self) -> None:
        """Copy one piece."""
        start, end = self.pieces.pop()
        source = self.source.life.block.cells()
        self.target.life.block.cells()[start:end] = source[start:end]

    def finish(self) -> None:
        """Copy what is left."""
        while self.pieces:
            self.advance()

    def tick(self, chance: random.Random) -> None:
        """Perhaps copy a piece at some step between start and done."""
        if len(self.pieces) > 1 and chance.random() < _CHANCE:
            self.advance()
