"""Groups of devices that take part in a collective, in their three spellings.

Source: `xla/hlo/ir/replica_group.h`, `xla/hlo/ir/tile_assignment.h`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from msa.errors import HloError

MOST_DEVICES: Final = 1 << 20
"""Devices of the largest groups that are listed one by one."""

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Groups written out; no group at all means one group of all participants."""

    groups: Groups = ()

    def expand(self, count: int) -> Groups:
        """The groups; `count` participants when none is written."""
        return self.groups or (tuple(range(count)),)

    def __str__(self) -> str:
        return "{" + ",".join(_braced(group) for group in self.groups) + "}"


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """`[G,S]<=[dims]T(perm)`: rows of a transposed, reshaped range.

    >>> IotaGroups((4, 2), (2, 4), (1, 0)).expand(8)
    ((0, 4), (1, 5), (2, 6), (3, 7))
    """

    shape: tuple[int, ...]
    reshape: tuple[int, ...]
    permutation: tuple[int, ...]

    @staticmethod
    def canonical(
        shape: tuple[int, ...], reshape: tuple[int, ...], permutation: tuple[int, ...]
    ) -> IotaGroups:
        """The same devices with the fewest reshaped dimensions.

        >>> str(IotaGroups.canonical((1, 8), (2, 2, 2), (2, 0, 1)))
        '[1,8]<=[4,2]T(1,0)'
        """
        kept = [i for i, size in enumerate(reshape) if size != 1]
        place = {old: new for new, old in enumerate(kept)}
        order = [place[p] for p in permutation if p in place]
        runs: list[list[int]] = []
        for p in order:
            if runs and runs[-1][-1] + 1 == p:
                runs[-1].append(p)
            else:
                runs.append([p])
        if not runs:
            return IotaGroups(shape, (1,), (0,))
        by_start = sorted(runs)
        sizes = tuple(math.prod(reshape[kept[i]] for i in run) for run in by_start)
        return IotaGroups(shape, sizes, tuple(by_start.index(run) for run in runs))

    def expand(self, count: int) -> Groups:
        """The groups, one per row."""
        del count
        _check_count(math.prod(self.reshape))
        devices = np.arange(math.prod(self.reshape)).reshape(self.reshape)
        rows = devices.transpose(self.permutation).reshape(self.shape[0], -1)
        return tuple(tuple(map(int, row)) for row in rows)

    def __str__(self) -> str:
        text = f"[{_joined(self.shape)}]<=[{_joined(self.reshape)}]"
        if self.permutation != tuple(range(len(self.reshape))):
            text += f"T({_joined(self.permutation)})"
        return text


def _check_count(count: int) -> None:
    if count > MOST_DEVICES:
        raise HloError(
            f"groups of {count} devices are too many to list",
            hint=f"at most {MOST_DEVICES} devices are",
        )


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A whole mesh axis, or part `(pre_size, size)` of one."""

    name: str
    pre_size: int = 0
    size: int = 0

    def __str__(self) -> str:
        quoted = "'" + self.name.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return f"{quoted}:({self.pre_size}){self.size}" if self.size else quoted


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """Devices on a named mesh; a group varies `axes` and fixes the others.

    Attributes:
        mesh_axes: names and sizes, most major first.
        axes: axes along which the members of a group differ.
        device_ids: text in the parentheses of `device_ids=(…)`, or empty.
        maximal_device: the only device of a maximal mesh, or None.

    >>> mesh = MeshGroups((("x", 2), ("y", 2)), (MeshAxis("y"),))
    >>> str(mesh), mesh.expand(4)
    ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3)))
    """

    mesh_axes: tuple[tuple[str, int], ...]
    axes: tuple[MeshAxis, ...]
    device_ids: IotaGroups | tuple[int, ...] | None = None
    maximal_device: int | None = None

    def devices(self) -> tuple[int, ...]:
        """Device ids in the row-major order of the mesh."""
        if self.maximal_device is not None:
            return (self.maximal_device,)
        if self.device_ids is None:
            count = math.prod(size for _, size in self.mesh_axes)
            _check_count(count)
            return tuple(range(count))
        if isinstance(self.device_ids, tuple):
            return self.device_ids
        return tuple(d for row in self.device_ids.expand(0) for d in row)

    def expand(self, count: int) -> Groups:
        """The groups, in the order of the fixed coordinates."""
        del count
        if self.maximal_device is not None:
            return ((self.maximal_device,),)
        parts: list[tuple[str, int, int]] = []  # axis, pre-size, size
        for name, size in self.mesh_axes:
            parts.extend(self._split(name, size))
        varied = []
        for axis in self.axes:
            for i, (name, pre, size) in enumerate(parts):
                if name == axis.name and (
                    not axis.size
                    or axis.pre_size <= pre < axis.pre_size * axis.size
                    or (pre == axis.pre_size and size == axis.size)
                ):
                    varied.append(i)
        fixed = [i for i in range(len(parts)) if i not in varied]
        sizes = [size for _, _, size in parts]
        devices = np.array(self.devices()).reshape(sizes).transpose(fixed + varied)
        rows = devices.reshape(math.prod(sizes[i] for i in fixed), -1)
        return tuple(tuple(map(int, row)) for row in rows)

    def _split(self, name: str, size: int) -> list[tuple[str, int, int]]:
        """Cut one axis at the borders of the sub-axes that are used."""
        cuts = {1, size}
        for axis in self.axes:
            if axis.name == name and axis.size:
                cuts.update((axis.pre_size, axis.pre_size * axis.size))
        ordered = sorted(cuts)
        parts = []
        for low, high in pairwise(ordered):
            if high % low:
                raise HloError(f"sub-axes of {name!r} do not divide its size {size}")
            parts.append((name, low, high // low))
        return parts or [(name, 1, size)]

    def __str__(self) -> str:
        if self.maximal_device is not None:
            head = f"maximal_mesh[device_id={self.maximal_device}]"
        else:
            axes = ",".join(f"{MeshAxis(n)}={s}" for n, s in self.mesh_axes)
            head = f"mesh[{axes}]"
        if isinstance(self.device_ids, tuple):
            head += f", device_ids=({_joined(self.device_ids)})"
        elif self.device_ids is not None:
            text = f"[{_joined(self.device_ids.reshape)}]"
            if self.device_ids.permutation != tuple(
                range(len(self.device_ids.reshape))
            ):
                text += f"T({_joined(self.device_ids.permutation)})"
            head += f", device_ids=({text})"
        return f"{head} {{{','.join(map(str, self.axes))}}}"


ReplicaGroups = ListGroups | IotaGroups | MeshGroups
"""Any spelling of replica groups; all have `expand(count)` and print themselves."""


def _joined(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def _braced(values: tuple[int, ...]) -> str:
    return "{" + _joined(values) + "}"
