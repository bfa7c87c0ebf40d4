"""Filling device buffers piece by piece, in any order.

Source: `xla/pjrt/host_to_device_transfer_manager.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from msa.hlo.layout import Layout
from msa.hlo.shape import Shape
from msa.runtime.arguments import LARGEST, whole
from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.host.streams import SimStream, byte_array
from msa.runtime.host.transfer import _encode, device_bytes
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    OutOfRange,
    Unimplemented,
)

Done = Callable[[], None]


class TransferEvent:
    """Set once: to success or to an error; waiters are called at that moment.

    >>> isinstance(TransferEvent(), TransferEvent)
    True
    """

    __slots__ = ("_waiters", "error", "metadata", "ready")

    def __init__(self) -> None:
        self.ready = False
        self.error: BaseException | None = None
        self.metadata: dict[str, Any] = {}
        self._waiters: list[Callable[[BaseException | None], None]] = []

    def set(self, error: BaseException | None = None) -> None:
        """Complete the event; later calls change nothing."""
        if self.ready:
            return
        self.ready, self.error = True, error
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(error)

    def on_ready(self, waiter: Callable[[BaseException | None], None]) -> None:
        """Call `waiter(error)` when complete."""
        if self.ready:
            waiter(self.error)
        else:
            self._waiters.append(waiter)


@dataclass(slots=True)
class _Target:
    shape: Shape
    size: int
    allocated: TransferEvent = field(default_factory=TransferEvent)
    defined: TransferEvent = field(default_factory=TransferEvent)
    address: DeviceAddress | None = None
    in_flight: int = 0
    last_dispatched: bool = False
    retrieved: bool = False
    on_last: Done | None = None


@dataclass(frozen=True, slots=True)
class DeviceBuffer:
    """A buffer taken out of the manager; `defined` tells when it holds its data.

    >>> from msa.hlo import parse_shape
    >>> DeviceBuffer(None, parse_shape("f32[4]"), TransferEvent(), TransferEvent()).address is None
    True
    """

    address: DeviceAddress | None
    shape: Shape
    allocated: TransferEvent
    defined: TransferEvent


class AsyncTransferManager:
    """Buffers of one device that host data is streamed into.

    Device memory of a buffer is allocated when its first data arrives. A buffer is
    defined once its last piece was dispatched and all of its pieces have landed.

    >>> from msa.hlo import parse_shape
    >>> from msa.runtime.collective import DeviceWorld
    >>> from msa.runtime.host import SimStream, Simulation
    >>> stream = SimStream(Simulation(), device=0)
    >>> manager = AsyncTransferManager(DeviceWorld(1), stream, [parse_shape("f32[4]")])
    """

    def __init__(
        self,
        world: DeviceWorld,
        stream: SimStream,
        shapes: Sequence[Shape],
        layouts: Sequence[Layout | None] | None = None,
    ) -> None:
        if layouts is not None and len(layouts) != len(shapes):
            raise InvalidArgument(
                f"{len(shapes)} shapes but {len(layouts)} layouts were given"
            )
        for shape in shapes:
            if shape.is_tuple:
                raise Unimplemented(
                    f"tuples are not transferred asynchronously: {shape}"
                )
        chosen = [
            shape.with_layout(layout) if layout is not None else shape
            for shape, layout in zip(
                shapes, layouts or [None] * len(shapes), strict=True
            )
        ]
        self._world = world
        self._stream = stream
        self._targets = [_Target(shape, device_bytes(shape)) for shape in chosen]
        self._closed = False

    def buffer_size(self, number: int) -> int:
        """Bytes of a buffer on the device."""
        return self._target(number).size

    def buffer(self, number: int) -> DeviceBuffer:
        """A view of a buffer's state, without taking it out."""
        target = self._target(number)
        return DeviceBuffer(
            target.address, target.shape, target.allocated, target.defined
        )

    def retrieve(self, number: int) -> DeviceBuffer | None:
        """Take a buffer out; None the second time."""
        target = self._target(number)
        if target.retrieved:
            return None
        target.retrieved = True
        return self.buffer(number)

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Annotate the events of all buffers."""
        for target in self._targets:
            target.allocated.metadata.update(metadata)
            target.defined.metadata.update(metadata)

    # -- data ------------------------------------------------------------------------

    def transfer_literal(
        self, number: int, literal: npt.NDArray[Any], on_done: Done | None = None
    ) -> None:
        """The whole buffer at once, in the device's layout; once per buffer."""
        target = self._target(number)
        if np.shape(literal) != target.shape.dimensions:
            raise InvalidArgument(
                f"buffer {number} has shape {target.shape.dimensions}, not "
                f"{np.shape(literal)}"
            )
        raw = _encode(literal, target.shape)
        self.transfer_sub(number, raw, 0, len(raw), is_last=True, on_done=on_done)

    def transfer_raw(
        self, number: int, data: npt.NDArray[np.uint8], on_done: Done | None = None
    ) -> None:
        """The whole buffer as bytes."""
        self.transfer_sub(number, data, 0, len(data), is_last=True, on_done=on_done)

    def transfer_sub(
        self,
        number: int,
        data: npt.NDArray[np.uint8],
        offset: int,
        size: int,
        *,
        is_last: bool,
        on_done: Done | None = None,
    ) -> None:
        """Bytes `[offset, offset + size)` of a buffer; pieces may come in any order.

        Raises:
            InvalidArgument: after the last piece, or after an error was set, or data
                whose elements are not bytes.
            OutOfRange: the piece leaves the buffer.
            FailedPrecondition: after `close`.
        """
        byte_array(data, "transfer_sub")
        with self._stream.simulation.lock:
            self._dispatch(number, data, offset, size, is_last, on_done)

    def _dispatch(
        self,
        number: int,
        data: npt.NDArray[np.uint8],
        offset: int,
        size: int,
        is_last: bool,
        on_done: Done | None,
    ) -> None:
        if self._closed:
            raise FailedPrecondition("the transfer manager is closed")
        whole(offset, "transfer_sub", "the offset", least=-LARGEST)
        whole(size, "transfer_sub", "the size", least=-LARGEST)
        target = self._target(number)
        if target.last_dispatched:
            raise InvalidArgument(f"buffer {number} takes no data after its last piece")
        if offset < 0 or size < 0 or offset + size > target.size or size > len(data):
            raise OutOfRange(
                f"bytes [{offset}, {offset + size}) of buffer {number} with "
                f"{target.size} bytes"
            )
        if target.address is None:
            address = self._world.allocate(self._stream.device, target.size)
            target.address = address
            target.allocated.set()
        target.in_flight += 1
        target.last_dispatched = is_last
        if is_last:
            target.on_last = on_done
        if size == 0:
            self._landed(target, None, is_last, on_done)
            return
        view = self._world.memory.resolve(
            target.address.slice(offset, size), self._stream.device
        )
        self._stream.memcpy(
            "h2d",
            data,
            view,
            size,
            finished=lambda *_: self._landed(target, None, is_last, on_done),
            failed=lambda error: self._failed(target, error),
        )

    def fail_transfer(self, number: int, error: BaseException) -> None:
        """A piece in flight failed: the buffer is defined as failed at once."""
        self._failed(self._target(number), error)

    def _failed(self, target: _Target, error: BaseException) -> None:
        target.in_flight = max(0, target.in_flight - 1)
        target.defined.set(error)

    def set_buffer_error(self, number: int, error: BaseException) -> None:
        """Give a buffer up (InvalidArgument twice, or after the last piece)."""
        target = self._target(number)
        if target.last_dispatched:
            raise InvalidArgument(f"buffer {number} is complete or failed already")
        target.last_dispatched = True
        target.allocated.set(error)
        target.defined.set(error)

    def _landed(
        self,
        target: _Target,
        error: BaseException | None,
        is_last: bool,
        on_done: Done | None,
    ) -> None:
        target.in_flight -= 1
        if not is_last and on_done is not None:
            self._notify(target, on_done)
        if target.in_flight or not target.last_dispatched:
            return
        last, target.on_last = target.on_last, None
        if last is not None:
            self._notify(target, last)
        target.defined.set(error)

    def _notify(self, target: _Target, on_done: Done) -> None:
        """Call back; what that raises makes the buffer a failed one."""
        try:
            on_done()
        except Exception as error:
            target.defined.set(error)

    def _target(self, number: int) -> _Target:
        whole(number, "AsyncTransferManager", "the number of a buffer")
        if number >= len(self._targets):
            raise InvalidArgument(f"there is no buffer {number}")
        return self._targets[number]

    def close(self) -> list[int]:
        """Wait for pieces in flight; buffers that lack data fail. Their numbers."""
        if self._closed:
            return []
        self._closed = True
        failure: BaseException | None = None
        try:
            self._stream.block_until_done()
        except Exception as error:
            failure = error
        lost = []
        for number, target in enumerate(self._targets):
            if not target.defined.ready:
                lost.append(number)
                reason = failure or InternalStatus(
                    f"the manager was deleted before the transfers of buffer {number} "
                    "completed"
                )
                target.allocated.set(reason)
                target.defined.set(reason)
        return lost
