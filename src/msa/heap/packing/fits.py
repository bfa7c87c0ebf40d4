"""Does a set of tiles fit into a fast memory, and how large may it be?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msa.errors import OptionsError, PackingError, shown
from msa.heap.chunk import align_up
from msa.heap.whole_number import SIZE_LIMIT, read_whole
from msa.target import Target
from msa.units import format_bytes, parse_bytes

#: Register tiles (rows × lanes of 32 bits) of machine families, by preset prefix.
_TILES: Final = {"tpu": (8, 128)}

_BITS: Final = {"pred": 8, "c64": 64, "c128": 128, "token": 0}


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the set.

    Attributes:
        name, shape, dtype: as given. copies: how many live at once.
        bytes: of one copy, unpadded. padded_bytes: as laid out, with alignment.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    copies: int
    bytes: int
    padded_bytes: int


@dataclass(frozen=True, slots=True)
class FitReport:
    """Whether a tile set fits. True in a boolean context if it does.

    Attributes:
        tiles: the set with sizes.
        needed, capacity: bytes.
        largest: the shapes of the largest set that fits when all leading dimensions
            grow or shrink in proportion, in whole rows; None if not even the
            smallest does.

    >>> import msa
    >>> report = msa.fits([("x", (8, 1024), "bf16")], capacity=1 << 20)
    >>> report.needed <= report.capacity
    True
    """

    tiles: tuple[Tile, ...]
    needed: int
    capacity: int
    largest: tuple[tuple[int, ...], ...] | None

    @property
    def fits(self) -> bool:
        """Whether the set fits as it is."""
        return self.needed <= self.capacity

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        lines = [
            f"{verdict}: {format_bytes(self.needed)} of {format_bytes(self.capacity)}"
        ]
        for tile in self.tiles:
            shape = ",".join(map(str, tile.shape))
            lines.append(
                f"  {tile.copies} x {tile.name} {tile.dtype}[{shape}]: "
                f"{tile.bytes} B, padded {tile.padded_bytes} B"
            )
        shown = self.largest and " ".join(str(list(s)) for s in self.largest)
        lines.append(f"  largest that fits: {shown or 'none'}")
        return "\n".join(lines)


def fits(
    tiles: Sequence[tuple[Any, ...]],
    *,
    copies: int = 1,
    target: Target | str | None = None,
    capacity: int | str | None = None,
    alignment: int | None = None,
    tile: tuple[int, int] | None = None,
) -> FitReport:
    """Whether tiles that live together fit into the alternate memory.

    Args:
        tiles: rows `(name, shape, dtype[, copies])`; dtypes as in HLO (`"bf16"`).
        copies: of every tile that states none (2 for double buffering).
        target: a machine or the name of a preset; gives capacity and alignment.
        capacity, alignment: bytes; override the target's.
        tile: rows and lanes of 32 bits to which the two minor dimensions are padded
            (narrower types pack more rows); by default (8, 128) for the TPU presets
            and none for other machines.

    Raises:
        OptionsError: neither target nor capacity is given, or one of the options is
            out of range.
        UnitError: the capacity is no size in bytes.
        PackingError: a row cannot be read.

    >>> report = fits([("x", (8, 1024), "bf16")], copies=2, capacity="64KiB")
    >>> report.fits, report.needed, report.largest
    (True, 32768, ((16, 1024),))
    """
    machine = Target.preset(target) if isinstance(target, str) else target
    if capacity is None and machine is None:
        raise OptionsError("fits needs a target or a capacity")
    if not isinstance(machine, (Target, type(None))):
        raise OptionsError(f"target is no machine: {shown(machine)}")
    room = parse_bytes(
        capacity
        if capacity is not None
        else machine.alternate_memory_bytes
        if machine
        else 0
    )
    if alignment is None:
        alignment = machine.alignment_bytes if machine else 1
    multiple = read_whole(alignment, "alignment", at_least=1, below=SIZE_LIMIT)
    if tile is None and machine is not None:
        tile = _TILES.get(machine.name.partition("_")[0])
    elif tile is not None:
        tile = _read_tile(tile)
    copies = read_whole(copies, "copies", at_least=1, below=SIZE_LIMIT)
    try:
        rows = [_read(row, copies) for row in tiles]
    except TypeError:
        raise PackingError(
            f"cannot read {shown(tiles)} as tiles", hint="[(name, shape, dtype), …]"
        ) from None

    def sized(shapes: Sequence[tuple[int, ...]]) -> tuple[Tile, ...]:
        return tuple(
            _tile(name, shape, dtype, count, tile, multiple)
            for (name, _, dtype, count), shape in zip(rows, shapes, strict=True)
        )

    shapes = [row[1] for row in rows]
    given = sized(shapes)
    return FitReport(
        given, _total(given), room, _largest(shapes, lambda s: _total(sized(s)), room)
    )


def _read(row: tuple[Any, ...], copies: int) -> tuple[str, tuple[int, ...], str, int]:
    readable = isinstance(row, (tuple, list)) and 3 <= len(row) <= 4
    if not readable or isinstance(row[1], (str, bytes)):
        raise PackingError(
            f"cannot read tile {shown(row)}", hint="(name, shape, dtype[, copies])"
        )
    where = f"tile {shown(row[0])}"

    def number(value: Any, what: str, at_least: int) -> int:
        return read_whole(
            value,
            what,
            at_least=at_least,
            below=SIZE_LIMIT,
            error=PackingError,
            where=where,
        )

    try:
        dimensions = list(row[1])
    except TypeError:
        raise PackingError(
            f"cannot read shape {shown(row[1])}", where=where, hint="such as (8, 128)"
        ) from None
    shape = tuple(number(d, "a dimension", 0) for d in dimensions)
    dtype = row[2] if isinstance(row[2], str) else shown(row[2])
    _bits(dtype)
    count = number(row[3], "copies", 1) if len(row) == 4 else copies
    name = row[0] if isinstance(row[0], str) else shown(row[0])
    return name, shape, dtype, count


def _read_tile(tile: Any) -> tuple[int, int]:
    if not isinstance(tile, (tuple, list)) or len(tile) != 2:
        raise OptionsError(f"cannot read tile {shown(tile)}", hint="such as (8, 128)")
    rows, lanes = (
        read_whole(side, "a side of the tile", at_least=1, below=SIZE_LIMIT)
        for side in tile
    )
    return rows, lanes


def _bits(dtype: str) -> int:
    """Bits of an element: the number in the name (`bf16`, `f8e4m3fn`, `s4`)."""
    if dtype in _BITS:
        return _BITS[dtype]
    digits = dtype.lstrip("bfsuc")
    width = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    if not 0 < len(width) < 4 or dtype[0] not in "bfsu":
        raise PackingError(
            f"unknown element type {shown(dtype)}",
            hint="a name as in HLO: f32, bf16, s8 …",
        )
    return int(width)


def _tile(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    copies: int,
    tile: tuple[int, int] | None,
    alignment: int,
) -> Tile:
    bits = _bits(dtype)
    plain = -(-math.prod(shape) * bits // 8)
    padded = list(shape)
    if tile is not None and padded:
        rows = tile[0] * max(1, 32 // bits) if bits else tile[0]
        padded[-1] = align_up(padded[-1], tile[1])
        if len(padded) > 1:
            padded[-2] = align_up(padded[-2], rows)
    size = -(-math.prod(padded) * bits // 8)
    return Tile(name, shape, dtype, copies, plain, align_up(size, alignment))


def _total(tiles: Sequence[Tile]) -> int:
    return sum(tile.copies * tile.padded_bytes for tile in tiles)


def _largest(
    shapes: list[tuple[int, ...]], needed: Any, room: int
) -> tuple[tuple[int, ...], ...] | None:
    """Bisect over the common number of leading rows; `needed` is monotone in it."""
    step = math.gcd(*(shape[0] for shape in shapes if shape))
    if not step:
        return None

    def scaled(rows: int) -> list[tuple[int, ...]]:
        return [
            (shape[0] // step * rows, *shape[1:]) if shape else shape
            for shape in shapes
        ]

    if needed(scaled(1)) > room:
        return None
    low, high = 1, 2
    while needed(scaled(high)) <= room:
        low, high = high, high * 2
        if high > 2**62:
            return tuple(scaled(low))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(scaled(middle)) <= room else (low, middle)
    return tuple(scaled(low))
