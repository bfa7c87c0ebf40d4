"""Reading replica groups in their three spellings.

Source: `xla/hlo/parser/hlo_parser.cc`, `xla/hlo/ir/mesh_and_axis.h`.
"""

from __future__ import annotations

import math
import re
from typing import Final

from msa.hlo.parser.cursor import Cursor
from msa.hlo.replica_groups import (
    IotaGroups,
    ListGroups,
    MeshAxis,
    MeshGroups,
    ReplicaGroups,
)

_PLAIN: Final = re.compile(
    r"\{(?:\{[0-9]{1,18}(?:,[0-9]{1,18})*\}"
    r"(?:,\{[0-9]{1,18}(?:,[0-9]{1,18})*\})*)?\}"
)


def read_replica_groups(cursor: Cursor) -> ReplicaGroups:
    """Read `{{0,1},…}`, `[2,4]<=[8]T(…)` or `mesh[…] {…}`."""
    if cursor.looking_at("["):
        return read_iota(cursor)
    if cursor.peek_word() in ("mesh", "maximal_mesh"):
        return _read_mesh_groups(cursor)
    match = cursor.match(_PLAIN)
    if match is not None:
        groups = re.findall(r"\{([0-9,]+)\}", match[0])
        return ListGroups(tuple(tuple(map(int, g.split(","))) for g in groups))
    return ListGroups(_read_lists(cursor))


def _read_lists(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    groups: list[tuple[int, ...]] = []
    cursor.expect("{", "at the start of replica groups")
    while not cursor.accept("}"):
        if groups:
            cursor.expect(",", "between replica groups")
        cursor.expect("{", "at the start of a replica group")
        members: list[int] = []
        while not cursor.accept("}"):
            if members:
                cursor.expect(",", "between replica ids")
            members.append(cursor.integer("a replica id"))
        groups.append(tuple(members))
    return tuple(groups)


def _bracketed(cursor: Cursor, opening: str, closing: str) -> tuple[int, ...]:
    cursor.expect(opening)
    numbers = [cursor.integer()]
    while cursor.accept(","):
        numbers.append(cursor.integer())
    cursor.expect(closing)
    return tuple(numbers)


def read_iota(cursor: Cursor) -> IotaGroups:
    """`[G,S]<=[d0,…]T(p0,…)`."""
    start = cursor.skip()
    shape = _bracketed(cursor, "[", "]")
    cursor.expect("<=", "after the shape of replica groups")
    reshape, permutation = _read_transposed(cursor)
    if math.prod(shape) != math.prod(reshape) or min(shape + reshape) < 1:
        cursor.fail(
            f"replica groups {list(shape)} do not hold the devices of {list(reshape)}",
            at=start,
        )
    return IotaGroups.canonical(shape, reshape, permutation)


def _read_transposed(cursor: Cursor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    at = cursor.skip()
    reshape = _bracketed(cursor, "[", "]")
    permutation = tuple(range(len(reshape)))
    if cursor.looking_at("T("):
        cursor.expect("T")
        given = _bracketed(cursor, "(", ")")
        if sorted(given) != list(permutation):
            cursor.fail(
                f"T{given} is not a permutation of {len(reshape)} dimensions", at=at
            )
        permutation = given
    return reshape, permutation


def _read_mesh_groups(cursor: Cursor) -> MeshGroups:
    start = cursor.skip()
    mesh = read_mesh(cursor)
    axes: list[MeshAxis] = []
    cursor.expect("{", "before the axes of replica groups")
    while not cursor.accept("}"):
        if axes:
            cursor.expect(",", "between axes")
        axes.append(read_axis(cursor, mesh))
    groups = MeshGroups(
        mesh.mesh_axes, tuple(axes), mesh.device_ids, mesh.maximal_device
    )
    if len(set(axes)) != len(axes):
        cursor.fail("an axis appears twice", at=start)
    return groups


def read_mesh(cursor: Cursor) -> MeshGroups:
    """`mesh['x'=2,'y'=2], device_ids=(…)` or `maximal_mesh[device_id=3]`."""
    if cursor.accept_word("maximal_mesh"):
        cursor.expect("[")
        if cursor.attribute_name() != "device_id":
            cursor.fail("expected device_id=", expected="device_id=")
        device = cursor.integer("a device id")
        cursor.expect("]")
        return MeshGroups((), (), None, device)
    if not cursor.accept_word("mesh"):
        cursor.fail("expected a mesh", expected="mesh or maximal_mesh")
    axes: list[tuple[str, int]] = []
    cursor.expect("[")
    while not cursor.accept("]"):
        if axes:
            cursor.expect(",", "between mesh axes")
        name = cursor.string()
        cursor.expect("=", "after an axis name")
        axes.append((name, cursor.integer("an axis size")))
    size = math.prod(n for _, n in axes)
    devices: IotaGroups | tuple[int, ...] | None = None
    position = cursor.position
    if cursor.accept(",") and cursor.accept("device_ids="):
        devices = _read_device_ids(cursor, size)
    else:
        cursor.position = position
    return MeshGroups(tuple(axes), (), devices)


def _read_device_ids(cursor: Cursor, size: int) -> IotaGroups | tuple[int, ...] | None:
    at = cursor.skip()
    cursor.expect("(", "before device_ids")
    if cursor.looking_at("["):
        reshape, permutation = _read_transposed(cursor)
        devices: IotaGroups | tuple[int, ...]
        devices = IotaGroups.canonical((size,), reshape, permutation)
        count = math.prod(reshape)
    else:
        numbers = [cursor.integer("a device id")]
        while cursor.accept(","):
            numbers.append(cursor.integer("a device id"))
        devices, count = tuple(numbers), len(numbers)
    cursor.expect(")", "after device_ids")
    if count != size:
        cursor.fail(f"device_ids lists {count} devices, but the mesh has {size}", at=at)
    if isinstance(devices, IotaGroups) and len(devices.reshape) == 1:
        return None  # the order of the mesh itself
    return devices


def read_axis(cursor: Cursor, mesh: MeshGroups) -> MeshAxis:
    """`'x'` or `'x':(pre)size`, an axis of the mesh."""
    at = cursor.skip()
    sizes = dict(mesh.mesh_axes)
    if cursor.peek() not in ("'", '"'):
        index = cursor.integer("an axis name or index")
        if not 0 <= index < len(mesh.mesh_axes):
            cursor.fail(f"axis index {index} is out of bounds for mesh", at=at)
        name = mesh.mesh_axes[index][0]
    else:
        name = cursor.string()
    if name not in sizes:
        cursor.fail(f"{name!r} is not a valid axis name or index", at=at)
    if not cursor.accept(":"):
        return MeshAxis(name)
    cursor.expect("(")
    pre = cursor.integer("a sub-axis pre-size")
    cursor.expect(")")
    size = cursor.integer("a sub-axis size")
    if pre < 1 or size < 1 or sizes[name] % (pre * size):
        cursor.fail(f"sub-axis ({pre}){size} does not divide axis {name!r}", at=at)
    return MeshAxis(name, pre, size)
