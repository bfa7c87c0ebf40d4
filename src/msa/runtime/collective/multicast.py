"""Multicast objects: a store reaches all devices, a load-reduce combines them.

Source: `xla/stream_executor/gpu/multicast_memory.h`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from msa.errors import shown
from msa.hlo.arguments import expect
from msa.runtime.arguments import whole
from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.devices import (
    LARGEST_ALLOCATION,
    DeviceWorld,
    PhysicalAllocation,
    round_up,
)
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    OutOfRange,
)

Array = npt.NDArray[Any]

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
"""Element types of the multimem operations; bf16 travels as its 16 bits."""

_OPERATIONS: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def bf16_to_f32(bits: Array) -> Array:
    """Widen bf16 bits (uint16) to float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: Array) -> Array:
    """Round float32 to the nearest bf16, ties to even, as bits (uint16)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


class MulticastMemory:
    """One object over `num_devices` devices; made by `create_multicast_memory`.

    Life: every device subscribes, every device maps its memory, operations run
    through any device's multimem address, `close` unbinds.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2, granularity=4096)
    >>> memory = create_multicast_memory(world, 4096, 2)
    >>> memory.subscribe(0)
    >>> memory.subscribe(1)
    >>> memory.close()
    """

    def __init__(self, world: DeviceWorld, size: int, num_devices: int) -> None:
        size = whole(size, "multicast", "the size", most=LARGEST_ALLOCATION)
        num_devices = whole(num_devices, "multicast", "the number of devices")
        if not world.supports_multicast:
            raise FailedPrecondition("this platform has no multicast memory")
        if size <= 0 or num_devices <= 1:
            raise InvalidArgument(
                f"multicast needs a size and at least two devices, not {size} bytes "
                f"over {num_devices}"
            )
        self.world = world
        self.size = size
        self.num_devices = num_devices
        self.padded_size = round_up(size, world.granularity)
        self.handle = world.memory.new_handle()
        self._subscribed: list[int] = []
        self._bound: dict[int, tuple[PhysicalAllocation, int, int]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def subscribe(self, device: int) -> None:
        """Add a device to the team."""
        whole(device, "subscribe", "the device", most=self.world.count - 1)
        with self._lock:
            self._open()
            if device in self._subscribed:
                raise InternalStatus(f"device {device} is subscribed already")
            if len(self._subscribed) == self.num_devices:
                raise InvalidArgument(
                    f"all {self.num_devices} devices are subscribed; device {device} "
                    "is one too many"
                )
            self._subscribed.append(device)

    def map(self, location: DeviceAddress, device: int) -> DeviceAddress:
        """Bind a device's memory and return its multimem address."""
        expect(
            location,
            DeviceAddress,
            where="map",
            what="a DeviceAddress",
            error=InvalidArgument,
        )
        if location.is_null:
            raise InvalidArgument("the null address cannot be bound")
        memory, step = self.world.memory, self.world.granularity
        with self._lock:
            self._open()
            if len(self._subscribed) < self.num_devices:
                raise FailedPrecondition(
                    f"{len(self._subscribed)} of {self.num_devices} devices are "
                    "subscribed; all must be before memory is mapped"
                )
            if device not in self._subscribed:
                raise FailedPrecondition(f"device {device} is not subscribed")
            if device in self._bound:
                raise FailedPrecondition(f"device {device} is mapped already")
            entry = memory.lookup(location.opaque, 1)
            physical = entry.physical
            if physical is None or not physical.collective:
                raise InvalidArgument(
                    f"{location.opaque:#x} is not collective memory",
                    hint="allocate it with collective=True",
                )
            offset = entry.offset + location.opaque - entry.address
            if offset % step:
                raise InternalStatus(
                    f"invalid value: offset {offset} of the location on device "
                    f"{device} is not a multiple of the granularity {step}"
                )
            if offset + self.padded_size > physical.size:
                raise InternalStatus(
                    f"invalid value: {self.padded_size} bytes at offset {offset} "
                    f"leave the allocation of {physical.size} on device {device}"
                )
            address = memory.reserve(-1, self.padded_size, step)
            mapped = memory.map(
                address, self.padded_size, None, multicast=self, site=physical.site
            )
            mapped.rights[device] = True
            self._bound[device] = (physical, offset, address)
            physical.bound.add(self)
            return DeviceAddress(address, self.size)

    def _open(self) -> None:
        if self._closed:
            raise FailedPrecondition("the multicast object is closed")

    def close(self) -> None:
        """Unbind, unmap and release per device ascending, then the handle."""
        memory = self.world.memory
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for device in sorted(self._bound):
                physical, _, address = self._bound[device]
                memory.note("unbind", device, self.handle)
                physical.bound.discard(self)
                memory.note("unmap", device, address)
                memory.unmap(address)
                memory.note("release range", device, address)
            memory.note("release handle", -1, self.handle)
            self._bound.clear()

    # -- operations --------------------------------------------------------------

    def _views(self, offset: int, dtype: np.dtype[Any], count: int) -> list[Array]:
        """Each device's elements at an object offset, by ascending ordinal."""
        offset = whole(offset, "multimem", "the offset")
        size = dtype.itemsize * whole(count, "multimem", "the count")
        if offset % dtype.itemsize:
            raise InvalidArgument(
                f"offset {offset} is not aligned to {dtype.itemsize} bytes"
            )
        if offset + size > self.padded_size:
            raise OutOfRange(
                f"bytes [{offset}, {offset + size}) are not inside a multicast object "
                f"of {self.padded_size} bytes"
            )
        if len(self._bound) < self.num_devices:
            raise FailedPrecondition(
                f"{len(self._bound)} of {self.num_devices} devices are mapped"
            )
        views = []
        for device in sorted(self._bound):
            physical, start, _ = self._bound[device]
            begin = start + offset
            views.append(physical.data[begin : begin + size].view(dtype))
        return views

    def load_reduce(self, offset: int, count: int, dtype: str, operation: str) -> Array:
        """Combine all devices' elements in ascending device order."""
        with self._lock:
            kind = element_type(dtype, operation)
            views = [view.copy() for view in self._views(offset, kind, count)]
        return combine(views, dtype, operation)

    def store(self, offset: int, values: Array, dtype: str) -> None:
        """Write the same elements to every device."""
        kind, count = _type_named(dtype), _length(values, dtype)
        with self._lock:
            for view in self._views(offset, kind, count):
                view[:] = values

    def reduce(self, offset: int, values: Array, dtype: str, operation: str) -> None:
        """`memory = memory op values` on every device, atomic."""
        kind, count = element_type(dtype, operation), _length(values, dtype)
        with self._lock:
            for view in self._views(offset, kind, count):
                view[:] = combine([view, values], dtype, operation)


def create_multicast_memory(
    world: DeviceWorld, size: int, num_devices: int
) -> MulticastMemory:
    """A multicast object of at least `size` bytes for `num_devices` devices.

    Raises:
        FailedPrecondition: the platform has none.
        InvalidArgument: no bytes, or fewer than two devices.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2, granularity=4096)
    >>> create_multicast_memory(world, 4096, 2).close()
    """
    return MulticastMemory(world, size, num_devices)


def element_type(dtype: str, operation: str) -> np.dtype[Any]:
    """The numpy type of an operation's elements (raises InvalidArgument)."""
    if dtype not in DTYPES or operation not in _OPERATIONS:
        raise InvalidArgument(f"no multimem {operation!r} on {dtype!r}")
    if operation in ("and", "or", "xor") and dtype[0] not in "iu":
        raise InvalidArgument(f"{operation!r} needs integers, not {dtype}")
    return DTYPES[dtype]


def combine(parts: list[Array], dtype: str, operation: str) -> Array:
    """Reduce in list order; 16-bit floats accumulate in float32."""
    function = _OPERATIONS[operation]
    wide = [_widen(part, dtype) for part in parts]
    total = wide[0]
    with np.errstate(over="ignore", invalid="ignore"):
        for part in wide[1:]:
            total = function(total, part)
        if dtype == "bf16":
            return f32_to_bf16(total)
        return total.astype(DTYPES[dtype])


def _widen(part: Array, dtype: str) -> Array:
    if dtype == "bf16":
        return bf16_to_f32(part)
    return part.astype(np.float32) if dtype == "f16" else part


def _object_at(
    world: DeviceWorld, address: DeviceAddress, by: int, *, write: bool
) -> tuple[MulticastMemory, int]:
    entry = world.memory.lookup(address.opaque, address.size)
    if entry.multicast is None:
        raise InvalidArgument(f"{address.opaque:#x} is not a multimem address")
    world.memory.check_rights(entry, by, write=write)
    return entry.multicast, address.opaque - entry.address


def _type_named(dtype: str) -> np.dtype[Any]:
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidArgument(
            f"no multimem operations on {shown(dtype)}", hint=f"one of {[*DTYPES]}"
        )
    return DTYPES[dtype]


def _length(values: Array, dtype: str) -> int:
    """How many elements are stored; they are not converted (InvalidArgument)."""
    kind = _type_named(dtype)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != kind:
        has = (
            f"{values.dtype} of shape {values.shape}"
            if isinstance(values, np.ndarray)
            else shown(values)
        )
        raise InvalidArgument(
            f"a multimem store of {dtype} takes a flat array of {kind}, not {has}",
            hint="f32_to_bf16 gives the bits of bf16" if dtype == "bf16" else "",
        )
    return len(values)


def _range(address: int, count: int, dtype: str) -> DeviceAddress:
    size = _type_named(dtype).itemsize
    address = whole(address, "multimem", "the address")
    count = whole(count, "multimem", "the count")
    if address % size:
        raise InvalidArgument(f"{address:#x} is not aligned to {size} bytes ({dtype})")
    return DeviceAddress(address, size * count)


def multimem_ld_reduce(
    world: DeviceWorld, address: int, count: int, dtype: str, operation: str, by: int
) -> Array:
    """Load-reduce `count` elements over all devices of the mapped object.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2, granularity=4096)
    >>> memory = create_multicast_memory(world, 4096, 2)
    >>> memory.subscribe(0)
    >>> memory.subscribe(1)
    >>> ranges = [
    ...     memory.map(world.allocate(d, 4096, collective=True), d) for d in (0, 1)]
    >>> multimem_st(world, ranges[0].opaque, np.full(2, 4, np.int32), "i32", 0)
    >>> multimem_ld_reduce(world, ranges[0].opaque, 2, "i32", "add", 0).tolist()
    [8, 8]
    """
    place = _range(address, count, dtype)
    memory, offset = _object_at(world, place, by, write=False)
    return memory.load_reduce(offset, count, dtype, operation)


def multimem_st(
    world: DeviceWorld, address: int, values: Array, dtype: str, by: int
) -> None:
    """Store elements to all devices of the mapped object.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2, granularity=4096)
    >>> memory = create_multicast_memory(world, 4096, 2)
    >>> memory.subscribe(0)
    >>> memory.subscribe(1)
    >>> ranges = [
    ...     memory.map(world.allocate(d, 4096, collective=True), d) for d in (0, 1)]
    >>> multimem_st(world, ranges[0].opaque, np.full(2, 3, np.int32), "i32", 0)
    >>> multimem_ld_reduce(world, ranges[0].opaque, 2, "i32", "add", 0).tolist()
    [6, 6]
    """
    place = _range(address, _length(values, dtype), dtype)
    memory, offset = _object_at(world, place, by, write=True)
    memory.store(offset, values, dtype)


def multimem_red(
    world: DeviceWorld, address: int, values: Array, dtype: str, operation: str, by: int
) -> None:
    """Reduce elements into the memory of all devices of the mapped object.

    >>> from msa.runtime.collective import DeviceWorld
    >>> world = DeviceWorld(2, granularity=4096)
    >>> memory = create_multicast_memory(world, 4096, 2)
    >>> memory.subscribe(0)
    >>> memory.subscribe(1)
    >>> ranges = [
    ...     memory.map(world.allocate(d, 4096, collective=True), d) for d in (0, 1)]
    >>> multimem_st(world, ranges[0].opaque, np.full(2, 3, np.int32), "i32", 0)
    >>> multimem_red(world, ranges[0].opaque, np.full(2, 1, np.int32), "i32", "add", 0)
    >>> multimem_ld_reduce(world, ranges[0].opaque, 2, "i32", "add", 0).tolist()
    [8, 8]
    """
    place = _range(address, _length(values, dtype), dtype)
    memory, offset = _object_at(world, place, by, write=True)
    memory.reduce(offset, values, dtype, operation)
