"""Values and the places where they appear and are read.

Source: `xla/service/hlo_value.h`, `xla/service/hlo_buffer.h`.
"""

from __future__ import annotations

from typing import NamedTuple

from msa.hlo.instruction import Instruction
from msa.hlo.shape import POINTER_BYTES, Shape, ShapeIndex


def index_text(index: ShapeIndex) -> str:
    """An index as written: `{}`, `{0,1}`."""
    return "{" + ",".join(map(str, index)) + "}"


class Position(NamedTuple):
    """A node of an instruction's result.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> str(Position(module.entry.root, ())), str(Position(module.entry.root, ()).shape)
    ('a{}', 'f32[256]{0}')
    """

    instruction: Instruction
    index: ShapeIndex  # type: ignore[assignment]  # hides tuple.index

    @property
    def shape(self) -> Shape:
        """The shape at this node."""
        return self.instruction.shape.subshape(self.index)

    def __str__(self) -> str:
        return f"{self.instruction.name}{index_text(self.index)}"


class Use(NamedTuple):
    """One operand slot that reads a value, and where in that operand it lies.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> str(Use(module.entry.root, 0, ()))
    'a:0{}'
    """

    instruction: Instruction
    operand_number: int
    operand_index: ShapeIndex

    @property
    def operand(self) -> Instruction:
        """The operand that holds the value."""
        return self.instruction.operands[self.operand_number]

    def __str__(self) -> str:
        place = index_text(self.operand_index)
        return f"{self.instruction.name}:{self.operand_number}{place}"


class Value:
    """One value of the dataflow analysis.

    Attributes:
        id: number in order of creation; numbers may have holes.
        positions: where it appears, the definition first.
        uses: operand slots that read it.
        is_phi: whether it merges values of several control-flow paths.
        live_out: whether it is part of the program's result.

    Compared by identity.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.analysis import DataflowAnalysis
    >>> [str(v.position) for v in DataflowAnalysis.run(module).values]
    ['p{}', 'n{}', 'a{}']
    """

    __slots__ = ("id", "is_phi", "live_out", "positions", "uses")

    def __init__(
        self,
        number: int,
        positions: tuple[Position, ...],
        uses: tuple[Use, ...] = (),
        *,
        is_phi: bool = False,
        live_out: bool = False,
    ) -> None:
        self.id = number
        self.positions = positions
        self.uses = uses
        self.is_phi = is_phi
        self.live_out = live_out

    @property
    def position(self) -> Position:
        """Where it is defined."""
        return self.positions[0]

    @property
    def instruction(self) -> Instruction:
        """The instruction that defines it."""
        return self.positions[0][0]

    @property
    def index(self) -> ShapeIndex:
        """Where in that instruction's result it is defined."""
        return self.positions[0][1]

    @property
    def shape(self) -> Shape:
        """The sub-shape at the definition."""
        instruction, index = self.positions[0]
        return instruction.shape.subshape(index) if index else instruction.shape

    def byte_size(self, pointer_bytes: int = POINTER_BYTES) -> int:
        """Bytes of the value itself (a tuple is its table of pointers)."""
        return self.shape.byte_size(pointer_bytes)

    def __str__(self) -> str:
        name = self.instruction.name
        if self.instruction.shape.is_tuple:
            name += index_text(self.index)
        return f"<{self.id} {name}{' (phi)' if self.is_phi else ''}>"

    def __repr__(self) -> str:
        return str(self)


class HloBuffer:
    """Values that must share their storage.

    Attributes:
        id: dense number.
        values: sorted by id.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.analysis import AliasAnalysis
    >>> [len(b.values) for b in AliasAnalysis.run(module).buffers]
    [1, 1, 1]
    """

    __slots__ = ("id", "values")

    def __init__(self, number: int, values: tuple[Value, ...]) -> None:
        self.id = number
        self.values = values

    @property
    def positions(self) -> tuple[Position, ...]:
        """Positions of all values, in order of their ids."""
        return tuple(p for value in self.values for p in value.positions)

    def __str__(self) -> str:
        return f"<buffer {self.id}: {', '.join(map(str, self.values))}>"

    def __repr__(self) -> str:
        return str(self)
