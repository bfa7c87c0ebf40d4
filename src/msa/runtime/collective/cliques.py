"""Cliques: the live objects behind keys, and how a run acquires them.

Source: `xla/backends/gpu/runtime/collective_cliques.cc`,
`xla/backends/gpu/collectives/gpu_cliques.cc`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msa.runtime.arguments import seconds
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.collective.rendezvous import Rendezvous
from msa.runtime.collective.tied import TiedContainer
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    NotFound,
)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; None is for ever.

    >>> Timeouts(warn=1.0).terminate
    30.0
    """

    warn: float | None = 10.0
    terminate: float | None = 30.0

    def __post_init__(self) -> None:
        seconds(self.warn, "Timeouts", "warn")
        seconds(self.terminate, "Timeouts", "terminate")


class Clique:
    """Communicators of all ranks, and the memories tied to their life.

    >>> from msa.runtime.collective import (
    ...     AcquireParams, BufferAllocations, CliqueKey, CliqueTable,
    ...     CollectiveMemoryRequests, DeviceWorld, Kind, execute_stages, launch)
    >>> world, key = DeviceWorld(2, granularity=4096), CliqueKey.local(0, 1)
    >>> table = CliqueTable(world)
    >>> buffers = [
    ...     BufferAllocations([world.allocate(d, 4096, collective=True)]) for d in (0, 1)]
    >>> def run(body):
    ...     def rank(device):
    ...         requests = CollectiveMemoryRequests(buffers[device])
    ...         requests.request_all(Kind.SYMMETRIC, key, [0])
    ...         return execute_stages(
    ...             table, AcquireParams(world, device), requests,
    ...             lambda stage: body(stage, device), local_devices=2)
    ...     return [outcome.unwrap() for outcome in launch([0, 1], rank)]
    >>> run(lambda stage, device: stage.cliques[key].cancelled)
    [False, False]
    """

    def __init__(
        self,
        world: DeviceWorld,
        key: CliqueKey,
        table: Rendezvous,
        timeouts: Timeouts,
        *,
        require_symmetric_offsets: bool = True,
    ) -> None:
        self.world = world
        self.key = key
        self.table = table
        self.timeouts = timeouts
        self.require_symmetric_offsets = require_symmetric_offsets
        self.memories = TiedContainer()
        self.peer_access_enabled = key.is_local and world.peer_access_enabled(
            key.devices
        )
        self.cancelled = False
        self._registrations = [0] * len(key.devices)
        self._lock = threading.Lock()

    def same_domain(self, a: int, b: int) -> bool:
        """Whether two ranks can load and store each other's memory."""
        i, j = self.key.devices[a], self.key.devices[b]
        same_process = self.world.processes[i] == self.world.processes[j]
        return i == j or (same_process and self.world.can_access(i, j))

    def next_registration(self, rank: int) -> int:
        """Number of this rank's next collective registration."""
        if self.cancelled:
            raise FailedPrecondition(f"the communicator of {self.key} was cancelled")
        with self._lock:
            self._registrations[rank] += 1
            return self._registrations[rank]

    def meet(
        self,
        domain: str,
        what: Any,
        rank: int,
        value: T,
        function: Callable[[list[T]], R],
        *,
        count: int | None = None,
    ) -> R:
        """A rendezvous of the clique's (local) ranks under this clique's clock."""
        names = tuple(f"rank {r}" for r in range(len(self.key.devices)))
        return self.table.join(
            f"{domain} of {self.key}",
            (self.key, what),
            self.key.num_local_participants if count is None else count,
            function,
            value,
            domain=domain,
            participant=f"rank {rank}",
            participants=names,
            warn_timeout=self.timeouts.warn,
            terminate_timeout=self.timeouts.terminate,
        )

    def close(self) -> None:
        """Expire and take down everything tied to the clique."""
        self.cancelled = True
        self.memories.close()


class CliqueTable:
    """Live cliques of a world.

    Cliques are acquired by a rendezvous of their local ranks and destroyed in
    ascending key order.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2)
    >>> CliqueTable(world).world is world
    True
    """

    def __init__(
        self,
        world: DeviceWorld,
        *,
        table: Rendezvous | None = None,
        timeouts: Timeouts | None = None,
        require_symmetric_offsets: bool = True,
    ) -> None:
        self.world = world
        self.table = table or Rendezvous()
        self.timeouts = timeouts or Timeouts()
        self.require_symmetric_offsets = require_symmetric_offsets
        self._live: dict[CliqueKey, Clique] = {}
        self._lock = threading.Lock()

    def acquire(
        self,
        device: int,
        keys: Iterable[CliqueKey],
        *,
        synchronised: bool = True,
        run_id: int = 0,
    ) -> dict[CliqueKey, Clique]:
        """Acquire cliques, larger ones first; collective over each one's ranks.

        Raises:
            InternalStatus: the device is in none of them, or a participant failed to
                synchronise its device before.
            RendezvousTimeout: a rank is missing.
        """
        ordered = sorted(enumerate(keys), key=lambda k: (-len(k[1].devices), k[0]))
        return {
            key: self._acquire(device, key, synchronised, run_id) for _, key in ordered
        }

    def _acquire(
        self, device: int, key: CliqueKey, synchronised: bool, run_id: int
    ) -> Clique:
        rank = key.rank(device)
        if rank is None:
            raise InternalStatus(f"device {device} is not in the clique {key}")

        def create(arrivals: list[tuple[int, bool]]) -> Clique:
            bad = sorted(r for r, fine in arrivals if not fine)
            if bad:
                raise InternalStatus(
                    f"rank {bad[0]} failed to synchronise before joining {key}"
                )
            with self._lock:
                if key not in self._live:
                    self._live[key] = Clique(
                        self.world,
                        key,
                        self.table,
                        self.timeouts,
                        require_symmetric_offsets=self.require_symmetric_offsets,
                    )
                return self._live[key]

        names = tuple(f"rank {r}" for r in range(len(key.devices)))
        return self.table.join(
            f"acquire {key}",
            (key, run_id),
            key.num_local_participants
            if len({self.world.processes[d] for d in key.devices}) == 1
            else len(key.devices),
            create,
            (rank, synchronised),
            domain="acquire clique",
            participant=f"rank {rank}",
            participants=names,
            warn_timeout=self.timeouts.warn,
            terminate_timeout=self.timeouts.terminate,
        )

    def destroy(self, keys: Iterable[CliqueKey] | None = None) -> None:
        """Close cliques in ascending key order (all of them by default)."""
        with self._lock:
            doomed = sorted(self._live if keys is None else keys)
            cliques = [self._live.pop(key) for key in doomed if key in self._live]
        for clique in cliques:
            clique.close()


def clique_of(cliques: Mapping[CliqueKey, Clique], key: CliqueKey) -> Clique:
    """An acquired clique (raises NotFound)."""
    if key not in cliques:
        raise NotFound(f"the clique {key} was not acquired")
    return cliques[key]


def check_device_groups(groups: Iterable[tuple[int, ...]]) -> None:
    """Device groups must be sorted inside and by their first member.

    Raises:
        InvalidArgument: they are not.
    """
    previous = -1
    for group in groups:
        if list(group) != sorted(group) or (group and group[0] < previous):
            raise InvalidArgument(f"device groups are not sorted at {group}")
        previous = group[0] if group else previous
