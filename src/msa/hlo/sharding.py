"""Sharding annotations: checked when read, kept as text, printed in normal form.

Memory planning never looks inside a sharding, so its text is the value.

Source: `xla/hlo/ir/hlo_sharding.cc`, `xla/hlo/ir/named_sharding.cc`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NoReturn

from msa.errors import HloParseError
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.groups import read_axis, read_mesh
from msa.hlo.replica_groups import IotaGroups, MeshGroups

_PLAIN: Final = ("replicated", "manual", "unknown", "unreduced")
_NAMED_PARTS: Final = ("replicated", "unreduced", "manual")


def read_sharding_text(cursor: Cursor) -> str:
    """Read a sharding and return its text as written, comments left out.

    Raises:
        HloParseError: at the sharding, when it is malformed.
    """
    start = cursor.skip()
    text = cursor.balanced()
    try:
        canonical_sharding(text)
    except HloParseError as error:
        cursor.fail(error.message, at=start + error.column - 1, expected=error.expected)
    if "/*" in text or "\n" in text:
        return canonical_sharding(text)
    return text


@lru_cache(maxsize=4096)
def canonical_sharding(text: str) -> str:
    """A sharding in normal form, without metadata.

    Raises:
        HloParseError: the text is not a sharding.

    >>> canonical_sharding("{devices=[2,2,1]<=[4] last_tile_dim_replicate}")
    '{devices=[2,2]<=[4]}'
    """
    cursor = Cursor(text)
    cursor.expect("{")
    if not cursor.looking_at("{"):
        return _read_one(cursor)
    parts: list[str] = []
    while not cursor.accept("}"):
        if parts:
            cursor.expect(",", "between shardings")
        cursor.expect("{", "before a sharding")
        parts.append(_read_one(cursor))
    return "{" + ", ".join(parts) + "}"


def _read_one(cursor: Cursor) -> str:
    """The rest of one sharding after its opening brace."""
    if cursor.accept("}"):
        return "{}"
    if cursor.peek_word() in ("mesh", "maximal_mesh"):
        return _read_named(cursor)
    return _Tiled(cursor).text()


class _Tiled:
    """A sharding by tile assignment, or one of the plain kinds."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.kind = ""
        self.device: int | None = None
        self.tile: tuple[int, ...] = ()
        self.iota: IotaGroups | None = None
        self.devices: list[int] = []
        self.replicate_last = False
        self.last_types: list[str] = []
        self.group = ""
        self.start = cursor.skip()
        while not cursor.accept("}"):
            self._word()

    def _word(self) -> None:
        cursor = self.cursor
        at = cursor.skip()
        word = cursor.word("a sharding")
        if word in _PLAIN or word == "maximal":
            self.kind = self.kind or word
        elif word == "last_tile_dim_replicate":
            self.replicate_last = True
        elif word in ("shard_as", "shard_like"):
            self.group = f" {word} {cursor.integer()}"
        elif word == "device":
            cursor.expect("=")
            self.device = cursor.integer("a device")
        elif word == "devices":
            cursor.expect("=")
            self._assignment()
        elif word == "last_tile_dims":
            cursor.expect("=")
            self._types()
        elif word == "metadata":
            cursor.expect("=")
            cursor.balanced()
        else:
            cursor.fail(f"unexpected {word!r} in a sharding", at=at)

    def _assignment(self) -> None:
        cursor = self.cursor
        cursor.expect("[", "before the tile dimensions")
        sizes = [cursor.integer("a tile dimension")]
        while cursor.accept(","):
            sizes.append(cursor.integer("a tile dimension"))
        cursor.expect("]", "after the tile dimensions")
        if min(sizes) < 1:
            cursor.fail("tile dimensions are positive")
        self.tile = tuple(sizes)
        if cursor.accept("<="):
            self.iota = self._iota()
            return
        self.devices.append(cursor.integer("a device"))
        while cursor.accept(","):
            self.devices.append(cursor.integer("a device"))
        if len(self.devices) != math.prod(self.tile):
            cursor.fail(
                f"the device list of {len(self.devices)} does not match the tile "
                f"assignment size {math.prod(self.tile)}",
                at=self.start,
            )

    def _iota(self) -> IotaGroups:
        cursor = self.cursor
        cursor.expect("[")
        sizes = [cursor.integer()]
        while cursor.accept(","):
            sizes.append(cursor.integer())
        cursor.expect("]")
        order = list(range(len(sizes)))
        if cursor.accept("T("):
            order = [cursor.integer()]
            while cursor.accept(","):
                order.append(cursor.integer())
            cursor.expect(")")
        if sorted(order) != list(range(len(sizes))) or math.prod(sizes) != math.prod(
            self.tile
        ):
            cursor.fail(
                f"devices {sizes} do not match the tile assignment size "
                f"{math.prod(self.tile)}",
                at=self.start,
            )
        return IotaGroups.canonical(self.tile, tuple(sizes), tuple(order))

    def _types(self) -> None:
        cursor = self.cursor
        cursor.expect("{")
        while not cursor.accept("}"):
            if self.last_types:
                cursor.expect(",")
            at = cursor.skip()
            word = cursor.word("a subgroup type")
            if word not in _PLAIN:
                cursor.fail(f"{word!r} is no subgroup type", at=at)
            self.last_types.append(word)

    def fail(self, message: str) -> NoReturn:
        """Report at the start of this sharding."""
        self.cursor.fail(message, at=self.start)

    def text(self) -> str:
        """Normal form."""
        if self.kind == "maximal":
            device = self.device if self.device is not None else None
            if device is None and len(self.devices) == 1:
                device = self.devices[0]
            if device is None:
                self.fail("maximal shardings should have exactly one device assigned")
            return f"{{maximal device={device}{self.group}}}"
        if self.kind:
            if self.tile:
                self.fail(f"{self.kind} shardings have no devices")
            return f"{{{self.kind}{self.group}}}"
        if not self.tile:
            self.fail(
                "non-maximal shardings must have a tile assignment list including "
                "dimensions"
            )
        return self._tiled_text()

    def _tiled_text(self) -> str:
        tile, types = self._merged_types()
        rank = len(tile) - len(types)
        if rank < 0:
            self.fail("there are more subgroup types than tile dimensions")
        subgroups = self.replicate_last or bool(self.last_types)
        if subgroups and all(size == 1 for size in tile[:rank]) and len(types) <= 1:
            return f"{{{types[0] if types else 'replicated'}{self.group}}}"
        devices = ",".join(map(str, self.devices))
        if self.iota is not None:
            devices = str(self.iota).partition("]")[2]
        body = f"devices=[{','.join(map(str, tile))}]{devices}"
        if types == ["replicated"]:
            body += " last_tile_dim_replicate"
        elif types:
            body += f" last_tile_dims={{{', '.join(types)}}}"
        return f"{{{body}{self.group}}}"

    def _merged_types(self) -> tuple[list[int], list[str]]:
        """Tile dimensions and subgroup types, equal neighbours merged, ones dropped."""
        types = ["replicated"] if self.replicate_last else list(self.last_types)
        rank = len(self.tile) - len(types)
        tile = list(self.tile[: max(rank, 0)])
        sizes: list[int] = []
        merged: list[str] = []
        for kind, size in zip(types, self.tile[max(rank, 0) :], strict=False):
            if size == 1 and len(tile) + len(types) > 1 and math.prod(self.tile) > 1:
                continue
            if merged and merged[-1] == kind:
                sizes[-1] *= size
            else:
                merged.append(kind)
                sizes.append(size)
        return tile + sizes, merged


def _read_named(cursor: Cursor) -> str:
    mesh = read_mesh(cursor)
    parts = [str(MeshGroups(mesh.mesh_axes, (), mesh.device_ids, mesh.maximal_device))]
    parts[0] = parts[0].removesuffix(" {}")
    while cursor.accept(","):
        if cursor.looking_at("["):
            parts.append(_dimensions(cursor, mesh))
            continue
        at = cursor.skip()
        word = cursor.word("replicated, unreduced, manual or metadata")
        if word == "metadata":
            cursor.expect("=")
            cursor.balanced()
        elif word in _NAMED_PARTS:
            parts.append(word + _part(cursor, mesh))
        else:
            cursor.fail(f"unexpected {word!r} in a sharding", at=at)
    cursor.expect("}", "at the end of a sharding")
    return "{" + ", ".join(parts) + "}"


def _part(cursor: Cursor, mesh: MeshGroups) -> str:
    if not cursor.accept("="):
        return ""
    kind = "max" if cursor.accept_word("max") else ""
    if kind and not cursor.looking_at("{"):
        return f"={kind}"
    return f"={kind}{{{_axes(cursor, mesh)}}}"


def _dimensions(cursor: Cursor, mesh: MeshGroups) -> str:
    cursor.expect("[")
    found: list[str] = []
    while not cursor.accept("]"):
        if found:
            cursor.expect(",", "between dimensions")
        found.append("{" + _axes(cursor, mesh) + "}")
    return "[" + ", ".join(found) + "]"


def _axes(cursor: Cursor, mesh: MeshGroups) -> str:
    cursor.expect("{", "before axes")
    found: list[str] = []
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "between axes")
        if cursor.accept("?"):
            found.append("?")
        else:
            found.append(str(read_axis(cursor, mesh)))
    return ", ".join(found)
