"""A transfer scheduler: priorities, hazards, statistics, leaks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msa.runtime.host.streams import CopyKind, SimStream, Simulation, byte_array
from msa.runtime.sites import Site, allocation_site, format_site
from msa.runtime.status import FailedPrecondition


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Bytes of a memory, with its address: what hazards are told from.

    >>> MemoryRange(4096, bytearray(8)).address
    4096
    """

    address: int
    data: Any

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.address + len(self.data)

    def overlaps(self, other: MemoryRange) -> bool:
        """Whether the two share a byte."""
        return self.address < other.end and other.address < self.end


@dataclass(eq=False, slots=True)
class Transfer:
    """A requested copy, and a future of its completion; times are virtual seconds.

    >>> source, destination = MemoryRange(0, bytearray(4)), MemoryRange(8, bytearray(4))
    >>> Transfer("h2d", source, destination, 0, True, 0.0, 1, ("f.py", 3)).cancelled
    False
    """

    kind: CopyKind
    source: MemoryRange
    destination: MemoryRange
    priority: int
    pinned: bool
    enqueued: float
    number: int
    site: Site
    start: float = -1.0
    end: float = -1.0
    cancelled: bool = False
    error: BaseException | None = None
    _run: Callable[[], None] = field(default=lambda: None)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.source.data)

    @property
    def done(self) -> bool:
        """Whether the data has arrived (or the copy was cancelled, or failed)."""
        return self.cancelled or self.end >= 0 or self.error is not None

    def result(self) -> None:
        """Wait until done (raises FailedPrecondition when cancelled, or its error)."""
        if self.cancelled:
            raise FailedPrecondition("the transfer was cancelled")
        self._run()
        if self.error is not None:
            raise self.error

    def conflicts(self, earlier: Transfer) -> bool:
        """Whether order matters: one writes what the other reads or writes."""
        return (
            self.source.overlaps(earlier.destination)
            or self.destination.overlaps(earlier.source)
            or self.destination.overlaps(earlier.destination)
        )


@dataclass(frozen=True, slots=True)
class TransferStatistics:
    """Of all completed transfers; delays in seconds, bandwidth in bytes/s."""

    bytes: int
    busy_seconds: float
    delay_p50: float
    delay_p95: float
    achieved_bandwidth: float
    pinned: int
    pageable: int


class TransferQueue:
    """Copies of one device: first come, first served within a priority.

    A request never overtakes another that touches an overlapping range; disjoint ones
    may. One copy of each direction is under way at a time. A request of a pageable copy
    (not pinned) returns when it is complete.

    >>> import numpy as np
    >>> queue = TransferQueue(Simulation())
    >>> host = MemoryRange(0, np.arange(4, dtype=np.uint8))
    >>> device = MemoryRange(1 << 40, np.zeros(4, np.uint8))
    >>> queue.h2d(host, device).result(); device.data.tolist()
    [0, 1, 2, 3]
    """

    def __init__(self, simulation: Simulation, device: int = 0) -> None:
        self.simulation = simulation
        self.device = device
        self._streams: dict[CopyKind, SimStream] = {}
        self._waiting: list[Transfer] = []
        self._running: dict[CopyKind, Transfer] = {}
        self._finished: list[Transfer] = []
        self._count = 0

    def h2d(
        self, host: MemoryRange, device: MemoryRange, priority: int = 0, *,
        pinned: bool = True,
    ) -> Transfer:  # fmt: skip
        """Host to device; higher priorities go first."""
        return self._request("h2d", host, device, priority, pinned)

    prefetch = h2d

    def d2h(
        self, device: MemoryRange, host: MemoryRange, priority: int = 0, *,
        pinned: bool = True,
    ) -> Transfer:  # fmt: skip
        """Device to host."""
        return self._request("d2h", device, host, priority, pinned)

    def d2d(
        self, source: MemoryRange, destination: MemoryRange, priority: int = 0
    ) -> Transfer:
        """Within the device."""
        return self._request("d2d", source, destination, priority, True)

    def _request(
        self,
        kind: CopyKind,
        source: MemoryRange,
        destination: MemoryRange,
        priority: int,
        pinned: bool,
    ) -> Transfer:
        for data in (source.data, destination.data):
            byte_array(data, kind)
        if len(source.data) > len(destination.data):
            raise FailedPrecondition(
                f"cannot copy {len(source.data)} bytes into {len(destination.data)}"
            )
        site = allocation_site()
        with self.simulation.lock:
            self._count += 1
            transfer = Transfer(
                kind,
                source,
                destination,
                priority,
                pinned,
                self.simulation.now,
                self._count,
                site,
            )
            transfer._run = lambda: self._wait_for(transfer)
            self._waiting.append(transfer)
            self._start()
        if not pinned:
            self._wait_for(transfer)
        return transfer

    def _start(self) -> None:
        """Start what may start: per direction, by priority, then arrival."""
        blocked: list[Transfer] = []
        ready: dict[CopyKind, Transfer] = {}
        running = list(self._running.values())
        for transfer in self._waiting:  # in order of arrival
            hazard = any(transfer.conflicts(t) for t in (*running, *blocked))
            best = ready.get(transfer.kind)
            if not hazard and (best is None or transfer.priority > best.priority):
                ready[transfer.kind] = transfer
            blocked.append(transfer)
        for kind, transfer in ready.items():
            if kind in self._running:
                continue
            self._waiting.remove(transfer)
            self._running[kind] = transfer
            stream = self._streams.get(kind)
            if stream is None:
                stream = self._streams[kind] = self.simulation.stream(self.device)
            stream.memcpy(
                kind,
                transfer.source.data,
                transfer.destination.data,
                transfer.size,
                pinned=transfer.pinned,
                blocking=False,
                finished=functools.partial(self._finish, transfer),
                failed=functools.partial(self._fail, transfer),
            )

    def _finish(self, transfer: Transfer, begin: float, end: float) -> None:
        transfer.start, transfer.end = begin, end
        del self._running[transfer.kind]
        self._finished.append(transfer)
        self._start()

    def _fail(self, transfer: Transfer, error: BaseException) -> None:
        """A copy that failed does not hold the others up."""
        transfer.error = error
        del self._running[transfer.kind]
        self._streams.pop(transfer.kind, None)  # broken: the next gets a new one
        self._start()

    def _wait_for(self, transfer: Transfer) -> None:
        if not self.simulation.run_until(lambda: transfer.done):
            raise FailedPrecondition("the transfer cannot complete")

    def cancel(self, transfer: Transfer) -> bool:
        """Withdraw a copy that has not started."""
        with self.simulation.lock:
            if transfer not in self._waiting:
                return False
            self._waiting.remove(transfer)
            transfer.cancelled = True
            self._start()
            return True

    def drain(self) -> float:
        """Complete everything; the virtual time."""
        if not self.simulation.run_until(lambda: not (self._waiting or self._running)):
            raise FailedPrecondition("transfers are stuck")
        return self.simulation.now

    def statistics(self) -> TransferStatistics:
        """Of what has completed."""
        done = self._finished
        delays = [t.start - t.enqueued for t in done] or [0.0]
        busy = sum(t.end - t.start for t in done)
        size = sum(t.size for t in done)
        return TransferStatistics(
            size,
            busy,
            float(np.percentile(delays, 50)),
            float(np.percentile(delays, 95)),
            size / busy if busy else 0.0,
            sum(t.pinned for t in done),
            sum(not t.pinned for t in done),
        )

    def overlap(self) -> float:
        """Share of copy time hidden behind compute, in [0, 1]; 1 without copies."""
        copies: list[tuple[float, float]] = []
        compute: list[tuple[float, float]] = []
        for (device, engine), counters in self.simulation.counters.items():
            if device == self.device:
                (compute if engine == "compute" else copies).extend(counters.spans)
        total = _length(copies)
        if not total:
            return 1.0
        covered = total + _length(compute) - _length(copies + compute)
        return covered / total

    def close(self) -> list[str]:
        """What is lost when the queue stops now: copies not complete."""
        lost = [*self._running.values(), *self._waiting]
        return [
            f"{t.kind} of {t.size} B requested at {format_site(t.site)}"
            for t in sorted(lost, key=lambda t: t.number)
        ]


def _length(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, reach = 0.0, float("-inf")
    for start, end in sorted(spans):
        if end > reach:
            total += end - max(start, reach)
            reach = end
    return total
