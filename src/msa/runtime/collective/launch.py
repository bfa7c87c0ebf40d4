"""Running one thread for each rank, through the stages of an execution.

Source of the stages: `xla/service/gpu/gpu_executable.cc`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msa.runtime.arguments import callable_of, seconds
from msa.runtime.collective.acquire import (
    AcquireParams,
    AcquireTrace,
    acquire_collective_memory,
)
from msa.runtime.collective.cache import CollectiveMemoryCache
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.cliques import Clique, CliqueTable
from msa.runtime.collective.memory import CollectiveMemory
from msa.runtime.collective.requests import CollectiveMemoryRequests
from msa.runtime.status import InternalStatus, RendezvousTimeout

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What a rank returned, or the error that it raised.

    >>> Outcome(3, None).unwrap()
    3
    """

    value: R | None
    error: BaseException | None

    def unwrap(self) -> R:
        """The value; raises the rank's error."""
        if self.error is not None:
            raise self.error
        value: R = self.value  # type: ignore[assignment]
        return value


def launch(
    ranks: Sequence[int],
    body: Callable[[int], R],
    *,
    timeout: float | None = 60.0,
) -> list[Outcome[R]]:
    """Call `body(rank)` in a thread of its own for every rank and collect all.

    Raises:
        RendezvousTimeout: a thread is still running after `timeout` seconds.

    >>> [o.unwrap() for o in launch([0, 1], lambda rank: rank * 10)]
    [0, 10]
    """
    timeout = seconds(timeout, "launch", "timeout")
    callable_of(body, "launch", "the body")
    outcomes: list[Outcome[R] | None] = [None] * len(ranks)

    def run(place: int, rank: int) -> None:
        try:
            outcomes[place] = Outcome(body(rank), None)
        except BaseException as error:
            outcomes[place] = Outcome(None, error)

    threads = [
        threading.Thread(
            target=run, args=(place, rank), name=f"rank {rank}", daemon=True
        )
        for place, rank in enumerate(ranks)
    ]
    for thread in threads:
        thread.start()
    deadline = None if timeout is None else time.monotonic() + timeout
    for thread in threads:
        thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    late = tuple(t.name for t in threads if t.is_alive())
    if late:
        raise RendezvousTimeout(
            "launch",
            arrived=len(threads) - len(late),
            expected=len(threads),
            arrived_names=tuple(t.name for t in threads if not t.is_alive()),
            missing_names=late,
            everyone_arrived=False,
        )
    return [outcome for outcome in outcomes if outcome is not None]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a rank has after acquisition.

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
    >>> run(lambda stage, device: len(stage.cliques))
    [1, 1]
    """

    cliques: dict[CliqueKey, Clique]
    memory: CollectiveMemory
    trace: AcquireTrace


def execute_stages(
    table: CliqueTable,
    params: AcquireParams,
    requests: CollectiveMemoryRequests,
    body: Callable[[Stage], R],
    *,
    extra_cliques: Sequence[CliqueKey] = (),
    cache: CollectiveMemoryCache | None = None,
    local_devices: int | None = None,
) -> R:
    """Acquire cliques, acquire memory, meet, execute, let go.

    `requests` is the result of the prepare stage. The barrier before execution is
    held only when at least one clique was acquired.

    Raises:
        InternalStatus: the device assignment has no local device.

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
    >>> run(lambda stage, device: stage.memory.find_symmetric(key, 0)[0] is not None)
    [True, True]
    """
    keys = [*requests.requested_cliques(), *extra_cliques]
    cliques = table.acquire(params.device, dict.fromkeys(keys), run_id=params.run_id)
    trace = AcquireTrace()
    memory = acquire_collective_memory(params, cliques, requests, cache, trace)
    try:
        if cliques:
            count = table.world.count if local_devices is None else local_devices
            if count == 0:
                raise InternalStatus("the device assignment has no local device")
            table.table.barrier(
                "post-initialisation",
                params.run_id,
                count,
                domain="initialised",
                participant=f"device {params.device}",
                warn_timeout=table.timeouts.warn,
                terminate_timeout=table.timeouts.terminate,
            )
        return body(Stage(cliques, memory, trace))
    finally:
        memory.close()
