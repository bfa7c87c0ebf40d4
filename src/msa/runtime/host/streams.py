"""Streams and events on a virtual clock: a discrete-event simulation.

Operations of one stream run in order; different streams meet through events only.
Each device has one engine for each direction of copies and one for compute, and an
engine runs one operation at a time, first come, first served. Data moves at the
instant in which an operation completes.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from msa.runtime.status import FailedPrecondition, InvalidArgument

Engine = Literal["h2d", "d2h", "d2d", "compute"]
CopyKind = Literal["h2d", "d2h", "d2d", "p2p"]


@dataclass(frozen=True, slots=True)
class TransferModel:
    """Latencies in seconds and bandwidths in bytes/s.

    With `share_bus`, a copy that starts while the other direction is busy gets
    `min(own, bus / 2)` for its whole length.
    """

    latency: float = 10e-6
    pinned_bandwidth: float = 25e9
    pageable_bandwidth: float = 6e9
    device_bandwidth: float = 800e9
    peer_bandwidth: float = 300e9
    share_bus: bool = False
    bus_bandwidth: float = 32e9

    def seconds(
        self, kind: CopyKind, size: int, *, pinned: bool = True, shared: bool = False
    ) -> float:
        """Duration of a copy.

        >>> round(TransferModel().seconds("h2d", 10**9) * 1e3, 3)
        40.01
        """
        if kind == "d2d":
            bandwidth = self.device_bandwidth
        elif kind == "p2p":
            bandwidth = self.peer_bandwidth
        else:
            bandwidth = self.pinned_bandwidth if pinned else self.pageable_bandwidth
            if shared and self.share_bus:
                bandwidth = min(bandwidth, self.bus_bandwidth / 2)
        return self.latency + size / bandwidth


@dataclass(slots=True)
class EngineCounters:
    """What an engine did: seconds busy, bytes moved, operations."""

    busy_seconds: float = 0.0
    bytes: int = 0
    operations: int = 0
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def achieved_bandwidth(self) -> float:
        """Bytes per busy second."""
        return self.bytes / self.busy_seconds if self.busy_seconds else 0.0


class SimEvent:
    """A marker in a stream; never recorded means complete.

    >>> isinstance(SimEvent(), SimEvent)
    True
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: _Record | None = None

    @property
    def done(self) -> bool:
        """Whether the most recent record is complete."""
        return self._latest is None or self._latest.done


class _Record:
    __slots__ = ("done", "waiters")

    def __init__(self) -> None:
        self.done = False
        self.waiters: list[SimStream] = []


@dataclass(slots=True)
class _Operation:
    name: str
    engine: Engine | None
    device: int
    effect: Callable[[], None] | None
    duration: Callable[[bool], float]
    size: int = 0
    record: _Record | None = None
    wait: _Record | None = None
    callback: bool = False
    finished: Callable[[float, float], None] | None = None
    failed: Callable[[BaseException], None] | None = None


class _CallbackGuard(threading.local):
    """Set while a host callback runs, when device functions are forbidden."""

    inside = False


_GUARD = _CallbackGuard()


class Simulation:
    """Clock, engines and streams of any number of devices.

    Threads may share it: `lock` is held while an operation is enqueued or completes.

    >>> Simulation().now
    0.0
    """

    def __init__(self, model: TransferModel | None = None) -> None:
        self.model = model or TransferModel()
        self.now = 0.0
        self.lock = threading.RLock()
        self.counters: dict[tuple[int, Engine], EngineCounters] = {}
        self.streams: list[SimStream] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._queues: dict[tuple[int, Engine], deque[tuple[SimStream, _Operation]]] = {}
        self._busy: set[tuple[int, Engine]] = set()
        self._sequence = 0

    def stream(self, device: int = 0) -> SimStream:
        """A new stream of a device."""
        made = SimStream(self, device)
        with self.lock:
            self.streams.append(made)
        return made

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        with self.lock:
            self._sequence += 1
            heapq.heappush(self._heap, (self.now + seconds, self._sequence, action))

    def step(self) -> bool:
        """Advance to the next completion; False when nothing is under way."""
        with self.lock:
            if not self._heap:
                return False
            self.now, _, action = heapq.heappop(self._heap)
            action()
            return True

    def run_until(self, done: Callable[[], bool]) -> bool:
        """Advance until `done()`; False when nothing is under way before that."""
        while True:
            with self.lock:  # what another thread completes must not be missed
                if done():
                    return True
                if not self.step():
                    return False

    def run(self) -> float:
        """Run until nothing is under way; the time."""
        while self.step():
            pass
        return self.now

    def submit(self, stream: SimStream, operation: _Operation) -> None:
        """An operation is ready: start it, or queue it at its engine."""
        if operation.engine is None:
            self.after(
                operation.duration(False), lambda: stream._complete(operation, self.now)
            )
            return
        place = (operation.device, operation.engine)
        self._queues.setdefault(place, deque()).append((stream, operation))
        self._serve(place)

    def _serve(self, place: tuple[int, Engine]) -> None:
        queue = self._queues[place]
        if place in self._busy or not queue:
            return
        stream, operation = queue.popleft()
        self._busy.add(place)
        opposite: dict[Engine, Engine] = {"h2d": "d2h", "d2h": "h2d"}
        other = opposite.get(place[1])
        shared = other is not None and (place[0], other) in self._busy
        start, seconds = self.now, operation.duration(shared)

        def finish() -> None:
            counters = self.counters.setdefault(place, EngineCounters())
            counters.busy_seconds += seconds
            counters.bytes += operation.size
            counters.operations += 1
            counters.spans.append((start, self.now))
            self._busy.discard(place)
            stream._complete(operation, start)
            self._serve(place)

        self.after(seconds, finish)


class SimStream:
    """A first-in-first-out queue of operations on one device.

    >>> stream = SimStream(Simulation(), device=0)
    >>> stream.device
    0
    """

    def __init__(self, simulation: Simulation, device: int) -> None:
        self.simulation = simulation
        self.device = device
        self.error: BaseException | None = None
        self._queue: deque[_Operation] = deque()
        self._running = False

    @property
    def ok(self) -> bool:
        """Whether no operation has failed."""
        return self.error is None

    @property
    def pending(self) -> int:
        """Operations not complete."""
        return len(self._queue) + self._running

    def kernel(self, function: Callable[[], None], seconds: float) -> None:
        """Run a function on the compute engine."""
        self._enqueue(
            _Operation("kernel", "compute", self.device, function, lambda _: seconds)
        )

    def memcpy(
        self,
        kind: CopyKind,
        source: Any,
        destination: Any,
        size: int,
        *,
        pinned: bool = True,
        blocking: bool = True,
        finished: Callable[[float, float], None] | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Copy bytes between two byte arrays when the operation completes.

        A pageable copy (not pinned) keeps the caller waiting, unless the caller sees to
        that itself (not `blocking`). `finished(start, end)`
        is called after the copy; `failed(error)` when it, or the stream before it,
        fails.

        Raises:
            FailedPrecondition: source or destination are shorter than `size`.
            InvalidArgument: an array whose elements are not bytes.
        """
        for array in (source, destination):
            byte_array(array, "memcpy")
        if len(source) < size or len(destination) < size:
            raise FailedPrecondition(
                f"cannot copy {size} bytes from {len(source)} to {len(destination)}"
            )

        def move() -> None:
            destination[:size] = source[:size]

        engine: Engine = "d2d" if kind == "p2p" else kind
        model = self.simulation.model
        self._enqueue(
            _Operation(
                f"copy {kind}",
                engine,
                self.device,
                move,
                lambda shared: model.seconds(kind, size, pinned=pinned, shared=shared),
                size,
                finished=finished,
                failed=failed,
            )
        )
        if blocking and not pinned and kind in ("h2d", "d2h"):
            self.block_until_done()

    def memset(self, destination: Any, value: int) -> None:
        """Fill a byte array."""

        def fill() -> None:
            destination[:] = value

        model, size = self.simulation.model, len(destination)
        self._enqueue(
            _Operation(
                "memset",
                "d2d",
                self.device,
                fill,
                lambda _: model.seconds("d2d", size),
                size,
            )
        )

    def host_callback(
        self,
        function: Callable[[], None],
        *,
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Run a host function on the stream's time line; it may not use devices.

        `failed(error)` is called instead when the stream broke before.
        """
        operation = _Operation("callback", None, self.device, function, lambda _: 0.0)
        operation.callback = True
        operation.failed = failed
        self._enqueue(operation)

    def record(self, event: SimEvent) -> None:
        """The event completes when everything before it has."""
        event._latest = mark = _Record()
        operation = _Operation("record", None, self.device, None, lambda _: 0.0)
        operation.record = mark
        self._enqueue(operation)

    def wait(self, event: SimEvent) -> None:
        """Wait for the event's most recent record; none means no waiting."""
        operation = _Operation("wait", None, self.device, None, lambda _: 0.0)
        operation.wait = event._latest
        self._enqueue(operation)

    def block_until_done(self) -> float:
        """Drain the stream; the virtual time.

        Raises:
            Exception: whatever a failed operation raised.
            FailedPrecondition: it waits for an event that nothing will complete.
        """
        _forbid_in_callback("block_until_done")
        if not self.simulation.run_until(lambda: not self.pending):
            raise FailedPrecondition(
                f"a stream of device {self.device} waits for an event that nothing "
                "completes"
            )
        if self.error is not None:
            raise self.error
        return self.simulation.now

    def _enqueue(self, operation: _Operation) -> None:
        _forbid_in_callback(operation.name)
        with self.simulation.lock:
            self._queue.append(operation)
            self._advance()

    def _advance(self) -> None:
        while self._queue and not self._running:
            operation = self._queue[0]
            if operation.wait is not None and not operation.wait.done:
                if self not in operation.wait.waiters:
                    operation.wait.waiters.append(self)
                return
            self._queue.popleft()
            if self.error is not None and operation.record is None:
                if operation.failed is not None:
                    operation.failed(self.error)
                continue  # a broken stream skips everything but its marks
            self._running = True
            self.simulation.submit(self, operation)

    def _complete(self, operation: _Operation, start: float) -> None:
        self._running = False
        if operation.effect is not None and self.error is None:
            _GUARD.inside = operation.callback
            try:
                operation.effect()
            except Exception as error:
                self.error = error
            finally:
                _GUARD.inside = False
        if self.error is not None:
            if operation.failed is not None and not operation.callback:
                operation.failed(self.error)
        elif operation.finished is not None:
            operation.finished(start, self.simulation.now)
        if operation.record is not None:
            operation.record.done = True
            for waiter in operation.record.waiters:
                waiter._advance()
        self._advance()


def byte_array(array: Any, where: str) -> None:
    """Check that a copy would not convert elements (raises InvalidArgument)."""
    dtype = getattr(array, "dtype", None)
    if dtype is not None and dtype.itemsize != 1:
        raise InvalidArgument(
            f"takes bytes, not elements of {dtype}",
            where=where,
            hint="array.view(np.uint8) are the bytes of a contiguous array",
        )


def _forbid_in_callback(what: str) -> None:
    if _GUARD.inside:
        raise FailedPrecondition(f"a host callback called a device function ({what})")
