"""Acquisition: from requests to mapped memory, together with all ranks.

Source: `xla/backends/gpu/runtime/collective_memory.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msa.runtime.collective.allocations import BufferAllocations, DeviceAddress
from msa.runtime.collective.cache import CollectiveMemoryCache, MulticastEntry
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.cliques import Clique, clique_of
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.collective.memory import CollectiveMemory
from msa.runtime.collective.merging import Coalesce, Run, plan_runs
from msa.runtime.collective.multicast import create_multicast_memory
from msa.runtime.collective.requests import CollectiveMemoryRequests, Kind, Request
from msa.runtime.collective.symmetric import register_window
from msa.runtime.collective.tied import Strong
from msa.runtime.status import InternalStatus, InvalidArgument, Unimplemented


@dataclass(frozen=True, slots=True)
class AcquireParams:
    """Who acquires.

    Attributes:
        world: the simulated devices.
        device: this thread's global device id.
        run_id: separates executions in rendezvous.
        coalesce: how allocations are joined before registration.
        pool_base: start of this rank's collective pool, 0 when there is none;
            offsets from it must agree where symmetric offsets are required.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2)
    >>> AcquireParams(world, device=1).coalesce
    'none'
    """

    world: DeviceWorld
    device: int
    run_id: int = 0
    coalesce: Coalesce = "none"
    pool_base: int = 0


@dataclass(slots=True)
class AcquireTrace:
    """What one rank did, in order; waits are not part of the record.

    >>> AcquireTrace().registrations
    0
    """

    events: list[tuple[str, CliqueKey, tuple[int, ...]]] = field(default_factory=list)
    registrations: int = 0
    layout_fallbacks: int = 0


def acquire_collective_memory(
    params: AcquireParams,
    cliques: Mapping[CliqueKey, Clique],
    requests: CollectiveMemoryRequests,
    cache: CollectiveMemoryCache | None = None,
    trace: AcquireTrace | None = None,
) -> CollectiveMemory:
    """Map everything that was requested: symmetric, then multicast, then peer.

    A collective call: every local rank of every requested clique must make it (for
    symmetric memory the ranks of other processes too).

    Raises:
        InternalStatus: this device is not in a requested clique.
        NotFound: a clique was not acquired.
        Unimplemented: multicast or peer memory on a clique of several processes.
        InvalidArgument: ranks disagree about indices or sizes.
        IndexError: a requested allocation does not exist.
        RendezvousTimeout: a rank never came.

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
    >>> def again(stage, device):
    ...     requests = CollectiveMemoryRequests(buffers[device])
    ...     requests.request_all(Kind.PEER, key, [0])
    ...     params = AcquireParams(world, device, run_id=1)
    ...     memory = acquire_collective_memory(params, stage.cliques, requests)
    ...     return memory.find_peer(key, 1 - device, 0).size
    >>> run(again)
    [4096, 4096]
    """
    acquisition = _Acquisition(
        params,
        requests.buffers,
        cliques,
        cache or CollectiveMemoryCache(consistency="trust"),
        trace or AcquireTrace(),
    )
    try:
        for request in requests.ordered(Kind.SYMMETRIC):
            acquisition.symmetric(request)
        for request in requests.ordered(Kind.MULTICAST):
            acquisition.multicast(request)
        for request in requests.ordered(Kind.PEER):
            acquisition.peer(request)
    except BaseException:
        acquisition.memory.close()
        raise
    return acquisition.memory


@dataclass(frozen=True, slots=True)
class _Part:
    """What one rank brings to a meeting."""

    rank: int
    device: int
    indices: tuple[int, ...]
    addresses: tuple[DeviceAddress, ...]
    runs: tuple[Run, ...]
    cache: CollectiveMemoryCache
    error: Exception | None = None


class _Acquisition:
    def __init__(
        self,
        params: AcquireParams,
        buffers: BufferAllocations,
        cliques: Mapping[CliqueKey, Clique],
        cache: CollectiveMemoryCache,
        trace: AcquireTrace,
    ) -> None:
        self.params = params
        self.buffers = buffers
        self.cliques = cliques
        self.cache = cache
        self.trace = trace
        self.memory = CollectiveMemory(buffers)

    def _enter(self, kind: Kind, request: Request) -> tuple[Clique, int]:
        key = request.clique
        rank = key.rank(self.params.device)
        if rank is None:
            raise InternalStatus(
                f"device {self.params.device} is not in the clique {key}"
            )
        if kind is not Kind.SYMMETRIC and not key.is_local:
            raise Unimplemented(
                f"{kind.value} memory on device {self.params.device} does not support "
                f"multi-process cliques ({key})",
                hint="symmetric memory may span processes",
            )
        self.trace.events.append((kind.value, key, request.allocations))
        return clique_of(self.cliques, key), rank

    def _part(self, request: Request, rank: int) -> _Part:
        """A rank's part; a local failure travels along, so that nobody waits."""
        addresses: list[DeviceAddress] = []
        runs: list[Run] = []
        error: Exception | None = None
        try:
            addresses = [self.buffers.address(i) for i in request.allocations]
            runs = plan_runs(
                self.params.world,
                self.buffers,
                request.allocations,
                self.params.coalesce,
            )
        except Exception as caught:
            error = caught
        return _Part(
            rank,
            self.params.device,
            request.allocations,
            tuple(addresses),
            tuple(runs),
            self.cache,
            error,
        )

    # -- symmetric ---------------------------------------------------------------

    def symmetric(self, request: Request) -> None:
        """Register windows, one for each run, that the cache does not hold."""
        clique, rank = self._enter(Kind.SYMMETRIC, request)
        part = self._part(request, rank)
        runs, usable = clique.meet(
            "layout", ("symmetric", self.params.run_id), rank, part, _agree_on_runs,
            count=len(clique.key.devices),
        )  # fmt: skip
        if not usable:
            self.trace.layout_fallbacks += 1
        mine = part.runs if usable else _separate(part)
        assert len(runs) == len(mine)
        found = [self.cache.find("symmetric", clique.key, run.address) for run in mine]
        if self.cache.consistency == "checked":
            found = self._vote(clique, rank, found)
        for run, hit in zip(mine, found, strict=True):
            if hit is None:
                strong = self._register(clique, rank, run)
                shift = 0
            else:
                strong, shift = hit
            self.memory.keep(strong)
            for index, offset, _ in run.members:
                self.memory.add_symmetric(
                    clique.key, index, strong.value, shift + offset
                )
        hits = sum(hit is not None for hit in found)
        self.cache.count(hits=hits, misses=len(found) - hits)

    def _vote(
        self,
        clique: Clique,
        rank: int,
        found: list[tuple[Strong[Any], int] | None],
    ) -> list[tuple[Strong[Any], int] | None]:
        """A hit counts only when all ranks have it."""
        votes: list[tuple[bool, ...]] = clique.meet(
            "cache vote",
            self.params.run_id,
            rank,
            tuple(hit is not None for hit in found),
            list,
            count=len(clique.key.devices),
        )
        agreed: list[tuple[Strong[Any], int] | None] = []
        for i, hit in enumerate(found):
            column = [vote[i] for vote in votes]
            if any(column) and not all(column):
                self.cache.count(inconsistent=1)
            if hit is not None and not all(column):
                hit[0].close()
            agreed.append(hit if all(column) else None)
        return agreed

    def _register(self, clique: Clique, rank: int, run: Run) -> Strong[Any]:
        window = register_window(clique, rank, run.address, self.params.pool_base)
        self.trace.registrations += 1
        ref = clique.memories.tie(window, lambda w: w.close())
        strong = self.cache.add("symmetric", clique.key, run.address, ref)
        if strong is None:
            raise InternalStatus(f"the clique {clique.key} was closed meanwhile")
        return strong

    # -- multicast -----------------------------------------------------------------

    def multicast(self, request: Request) -> None:
        """One meeting for the clique; the leader makes or finds all objects."""
        clique, rank = self._enter(Kind.MULTICAST, request)
        part = self._part(request, rank)
        made = clique.meet(
            "multicast",
            self.params.run_id,
            rank,
            part,
            lambda parts: _make_multicasts(clique, parts),
        )
        self.trace.registrations += made.registrations
        if made.fallback:
            self.trace.layout_fallbacks += 1
        mine = _separate(part) if made.fallback else part.runs
        for run, entry in zip(mine, made.entries, strict=True):
            strong = entry.share()
            self.memory.keep(strong)
            for index, offset, _ in run.members:
                self.memory.add_multicast(
                    clique.key,
                    index,
                    strong.value.memory,
                    strong.value.multimem[rank],
                    offset,
                )
        clique.meet(
            "multicast taken", self.params.run_id, rank, None, lambda _: made.release()
        )

    # -- peer ----------------------------------------------------------------------

    def peer(self, request: Request) -> None:
        """Exchange addresses."""
        clique, rank = self._enter(Kind.PEER, request)
        part = self._part(request, rank)
        table: dict[int, dict[int, DeviceAddress]] = clique.meet(
            "peer", self.params.run_id, rank, part, _exchange
        )
        for index, by_rank in table.items():
            self.memory.add_peer(clique.key, index, by_rank)


def _sorted_parts(parts: Sequence[_Part]) -> list[_Part]:
    """Parts by rank; raises what a rank brought, or their disagreement."""
    ordered = sorted(parts, key=lambda part: part.rank)
    for part in ordered:
        if part.error is not None:
            raise part.error
    first = ordered[0]
    for part in ordered[1:]:
        if part.indices != first.indices:
            different = sorted(set(part.indices) ^ set(first.indices))
            raise InvalidArgument(
                f"ranks {first.rank} and {part.rank} requested different allocations; "
                f"only one of them asked for {different}"
            )
    return ordered


def _check_sizes(parts: Sequence[_Part]) -> None:
    for place, index in enumerate(parts[0].indices):
        sizes = {part.rank: part.addresses[place].size for part in parts}
        if len(set(sizes.values())) > 1:
            rows = ", ".join(f"rank {rank}: {size}" for rank, size in sizes.items())
            raise InvalidArgument(
                f"ranks have different sizes for allocation {index} ({rows})"
            )


def _separate(part: _Part) -> tuple[Run, ...]:
    return tuple(
        Run(address.opaque, address.size, ((index, 0, address.size),))
        for index, address in zip(part.indices, part.addresses, strict=True)
    )


def _same_layout(parts: Sequence[_Part]) -> bool:
    layouts = {tuple(run.members for run in part.runs) for part in parts}
    return len(layouts) == 1


def _agree_on_runs(parts: list[_Part]) -> tuple[tuple[Run, ...], bool]:
    ordered = _sorted_parts(parts)
    _check_sizes(ordered)
    if _same_layout(ordered):
        return ordered[0].runs, True
    return _separate(ordered[0]), False


class _Multicasts:
    """Objects of one meeting, held until every rank has taken its share."""

    def __init__(self, fallback: bool) -> None:
        self.fallback = fallback
        self.registrations = 0
        self.entries: list[_Held] = []

    def release(self) -> None:
        """The meeting's own references are no longer needed."""
        for entry in self.entries:
            entry.strong.close()


@dataclass(slots=True)
class _Held:
    strong: Strong[MulticastEntry]

    def share(self) -> Strong[MulticastEntry]:
        """One more strong reference."""
        return self.strong.share()


def _make_multicasts(clique: Clique, parts: list[_Part]) -> _Multicasts:
    ordered = _sorted_parts(parts)
    _check_sizes(ordered)
    same = _same_layout(ordered)
    made = _Multicasts(fallback=not same)
    rows = [part.runs if same else _separate(part) for part in ordered]
    cache = ordered[0].cache
    try:
        for place in range(len(rows[0])):
            bound = tuple(runs[place].address for runs in rows)
            strong = _cached(cache, clique.key, bound)
            if strong is None:
                entry = _bind(clique, ordered, bound)
                made.registrations += 1
                ref = clique.memories.tie(entry, lambda e: e.close())
                strong = cache.add("multicast", clique.key, bound[0], ref)
                if strong is None:
                    raise InternalStatus(f"the clique {clique.key} was closed")
            made.entries.append(_Held(strong))
    except BaseException:
        made.release()
        raise
    return made


def _cached(
    cache: CollectiveMemoryCache, key: CliqueKey, bound: tuple[DeviceAddress, ...]
) -> Strong[MulticastEntry] | None:
    """A live object under rank 0's address that binds just these addresses."""
    found = cache.find("multicast", key, bound[0])
    if found is not None:
        strong, offset = found
        if offset == 0 and strong.value.bound == bound:
            cache.count(hits=1)
            return strong
        strong.close()
    cache.count(misses=1)
    return None


def _bind(
    clique: Clique, parts: Sequence[_Part], bound: tuple[DeviceAddress, ...]
) -> MulticastEntry:
    memory = create_multicast_memory(clique.world, bound[0].size, len(parts))
    try:
        for part in parts:
            memory.subscribe(part.device)
        multimem = tuple(
            memory.map(address, part.device)
            for part, address in zip(parts, bound, strict=True)
        )
    except BaseException:
        memory.close()
        raise
    return MulticastEntry(memory, bound, multimem)


def _exchange(parts: list[_Part]) -> dict[int, dict[int, DeviceAddress]]:
    ordered = _sorted_parts(parts)
    return {
        index: {part.rank: part.addresses[place] for part in ordered}
        for place, index in enumerate(ordered[0].indices)
    }
