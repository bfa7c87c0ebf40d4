"""A small world for the tests: one buffer vector and one thread for each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msa.runtime.collective import (
    AcquireParams,
    BufferAllocations,
    CliqueKey,
    CliqueTable,
    CollectiveMemoryCache,
    CollectiveMemoryRequests,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Outcome,
    Stage,
    Timeouts,
    execute_stages,
    launch,
)
from msa.runtime.collective.kernels import RankContext

GRANULARITY = 4096
QUICK = Timeouts(warn=0.2, terminate=0.3)
PATIENT = Timeouts(warn=5.0, terminate=20.0)
HASTY = Timeouts(warn=0.15, terminate=0.15)


@dataclass
class Cluster:
    """Devices, buffers of each rank, caches of each rank."""

    world: DeviceWorld
    sizes: Sequence[Sequence[int]]
    timeouts: Timeouts = PATIENT
    consistency: Any = "checked"
    coalesce: Any = "none"
    buffers: list[BufferAllocations] = field(default_factory=list)
    caches: list[CollectiveMemoryCache] = field(default_factory=list)
    pool_bases: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.table = CliqueTable(self.world, timeouts=self.timeouts)
        for device in range(self.world.count):
            if not self.buffers[device:]:
                self.buffers.append(
                    BufferAllocations(
                        [
                            self.world.allocate(device, size, collective=True)
                            for size in self.sizes[device]
                        ]
                    )
                )
            self.caches.append(CollectiveMemoryCache(consistency=self.consistency))

    def wait(self, timeouts: Timeouts) -> None:
        """From now on, wait so long: where all take part, a busy machine needs time."""
        self.table.timeouts = timeouts
        for clique in self.table._live.values():
            clique.timeouts = timeouts

    def run(
        self,
        ask: Callable[[int, CollectiveMemoryRequests], None],
        body: Callable[[int, Stage], Any] = lambda _, stage: stage,
        *,
        run_id: int = 0,
        devices: Sequence[int] | None = None,
    ) -> list[Outcome[Any]]:
        """Prepare, acquire and execute on every device (or some)."""
        chosen = range(self.world.count) if devices is None else devices

        def rank(device: int) -> Any:
            requests = CollectiveMemoryRequests(self.buffers[device])
            ask(device, requests)
            base = self.pool_bases[device] if self.pool_bases else 0
            params = AcquireParams(self.world, device, run_id, self.coalesce, base)
            return execute_stages(
                self.table,
                params,
                requests,
                lambda stage: body(device, stage),
                cache=self.caches[device],
                local_devices=len(chosen),
            )

        return launch(chosen, rank)

    def close(self) -> None:
        """Destroy cliques and free everything; nothing may be left."""
        for cache in self.caches:
            cache.clear()
        self.table.destroy()
        for buffers in self.buffers:
            for index in range(len(buffers)):
                self.world.free(buffers.address(index))
        self.world.memory.check()
        assert self.world.live_allocations == []
        assert self.world.memory.mapped_ranges == 0


def cluster(
    count: int = 4, sizes: Sequence[int] = (8192, 8192), **options: Any
) -> Cluster:
    """Equal buffers on every device."""
    world = DeviceWorld(count, granularity=GRANULARITY)
    return Cluster(world, [sizes] * count, **options)


def all_of(count: int) -> CliqueKey:
    return CliqueKey.local(*range(count))


def ask_for(kinds: Sequence[Kind], clique: CliqueKey, indices: Sequence[int]) -> Any:
    def ask(_: int, requests: CollectiveMemoryRequests) -> None:
        for kind in kinds:
            requests.request_all(kind, clique, indices)

    return ask


def context(
    stage: Stage, clique: CliqueKey, device: int, run_id: int = 0
) -> RankContext:
    rank = clique.rank(device)
    assert rank is not None
    return RankContext(stage.cliques[clique], rank, stage.memory, run_id)


def address(value: int, size: int) -> DeviceAddress:
    return DeviceAddress(value, size)
