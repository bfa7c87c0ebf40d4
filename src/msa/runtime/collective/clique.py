"""Clique keys: which devices communicate, and in which order.

Source: `xla/core/collectives/clique_key.h`, `xla/backends/gpu/collectives/`
`gpu_clique_key.h`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from msa.errors import shown
from msa.runtime.arguments import whole
from msa.runtime.status import InvalidArgument


@functools.total_ordering
@dataclass(frozen=True, slots=True, eq=True)
class CliqueKey:
    """An ordered list of global device ids that communicate.

    Attributes:
        devices: global device ids; a device's place here is its rank.
        num_local_participants: how many of them live in this process.
        communication_id: separates cliques over the same devices.
        incarnations: of the processes, in any order.

    >>> key = CliqueKey((2, 3), 2)
    >>> key.rank(3), key.rank(0), key.is_local
    (1, None, True)
    """

    devices: tuple[int, ...]
    num_local_participants: int
    communication_id: int = 0
    incarnations: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.devices, tuple):
            raise InvalidArgument(
                f"devices are a tuple of ids, not {shown(self.devices)}",
                where="CliqueKey",
            )
        for device in self.devices:
            whole(device, "CliqueKey", "a device id")
        if len(set(self.devices)) < len(self.devices):
            raise InvalidArgument(
                f"a device takes part once: {list(self.devices)}", where="CliqueKey"
            )
        whole(
            self.num_local_participants,
            "CliqueKey",
            "the number of local participants",
            most=len(self.devices),
        )
        whole(self.communication_id, "CliqueKey", "a communication id")

    @staticmethod
    def local(*devices: int, communication_id: int = 0) -> CliqueKey:
        """A clique whose devices all live in this process."""
        return CliqueKey(devices, len(devices), communication_id)

    def rank(self, device: int) -> int | None:
        """Rank of a device, or None when it is not a member."""
        return self.devices.index(device) if device in self.devices else None

    @property
    def is_local(self) -> bool:
        """Whether every member lives in this process."""
        return self.num_local_participants == len(self.devices)

    def __hash__(self) -> int:
        return hash((self.devices, self.communication_id, self.incarnations))

    def __lt__(self, other: CliqueKey) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[object, ...]:
        return (
            len(self.devices),
            self.devices,
            self.num_local_participants,
            self.communication_id,
            self.incarnations,
        )

    def is_subset_of(self, other: CliqueKey) -> bool:
        """Whether members and incarnations are among the other's."""
        return (
            self.communication_id == other.communication_id
            and set(self.devices) <= set(other.devices)
            and set(self.incarnations) <= set(other.incarnations)
        )

    def root_devices(self, count: int) -> tuple[int, ...]:
        """`count` devices that split the clique into nearly equal runs.

        >>> CliqueKey.local(0, 1, 2, 3).root_devices(3)
        (0, 2, 3)
        """
        size = len(self.devices)
        if not 1 <= count <= size:
            raise InvalidArgument(f"{count} roots asked of a clique of {size} devices")
        q, r = divmod(size, count)
        places = [
            i * (q + 1) if i < r else r * (q + 1) + (i - r) * q for i in range(count)
        ]
        return tuple(self.devices[place] for place in places)

    def __str__(self) -> str:
        ids = [str(d) for d in self.devices]
        if len(ids) > 10:
            text = ",".join(ids[:8]) + "..." + ",".join(ids[-2:])
        else:
            text = ",".join(ids)
        incarnations = ", ".join(map(str, self.incarnations))
        return (
            f"devices={len(ids)}:[{text}]; "
            f"local_participants={self.num_local_participants}; "
            f"communication_id={self.communication_id}; incarnations=[{incarnations}]"
        )
