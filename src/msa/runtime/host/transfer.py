"""Transfers of literals between host and device.

Source: `xla/service/generic_transfer_manager.cc`, `xla/service/gpu/`
`gpu_transfer_manager.cc`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.arguments import whole
from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.host.pool import HostBuffer, HostMemoryPool
from msa.runtime.host.streams import SimEvent, SimStream, byte_array
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    Unimplemented,
)

Array = npt.NDArray[Any]
Literal = Any
"""A numpy array, or a tuple of literals."""

DEFAULT_STAGING_BYTES: Final = 128 << 20
_SUB_BYTE: Final = (1, 2, 4)


def pack_sub_byte(values: Array, bits: int) -> npt.NDArray[np.uint8]:
    """Low bits of each element, element 0 in the lowest bits of byte 0.

    >>> [hex(b) for b in pack_sub_byte(np.array([1, 2, 3, 4, 5]), 4)]
    ['0x21', '0x43', '0x5']
    """
    each = 8 // bits
    flat = values.reshape(-1).astype(np.int64).astype(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros(-(-len(flat) // each) * each, np.uint8)
    padded[: len(flat)] = flat
    packed = np.zeros(len(padded) // each, np.uint8)
    for place in range(each):
        packed |= padded[place::each] << np.uint8(place * bits)
    return packed


def unpack_sub_byte(
    packed: npt.NDArray[np.uint8], bits: int, count: int, *, signed: bool
) -> Array:
    """The inverse of `pack_sub_byte`: one value in each byte."""
    each = 8 // bits
    mask = (1 << bits) - 1
    values = np.empty(len(packed) * each, np.uint8)
    for place in range(each):
        values[place::each] = (packed >> np.uint8(place * bits)) & mask
    values = values[:count]
    if not signed:
        return values
    shift = 8 - bits
    return (values << np.uint8(shift)).view(np.int8) >> np.int8(shift)


def device_bytes(shape: Shape) -> int:
    """Bytes that a leaf takes on a device: sub-byte types are packed."""
    bits = shape.element_type.bits
    if bits in _SUB_BYTE and shape.element_type.is_integral:
        return -(-shape.element_count * bits // 8)
    return shape.byte_size()


@dataclass(frozen=True, slots=True)
class ShapedBuffer:
    """Device memory of every node of a shape: tuples have an index table.

    >>> from msa.hlo import parse_shape
    >>> from msa.runtime.collective import DeviceAddress
    >>> ShapedBuffer(0, parse_shape("f32[4]"), {(): DeviceAddress(4096, 16)}).device
    0
    """

    device: int
    shape: Shape
    addresses: dict[ShapeIndex, DeviceAddress]

    @staticmethod
    def allocate(world: DeviceWorld, device: int, shape: Shape) -> ShapedBuffer:
        """Memory for a shape."""
        addresses = {
            index: world.allocate(
                device,
                8 * len(node.children) if node.is_tuple else device_bytes(node),
            )
            for index, node in shape.nodes()
        }
        return ShapedBuffer(device, shape, addresses)

    def free(self, world: DeviceWorld) -> None:
        """Give all of it back."""
        for address in self.addresses.values():
            world.free(address)


class StagingBuffer:
    """A span that runs a function once when it is dropped."""

    __slots__ = ("_buffer", "_on_done")

    def __init__(self, buffer: HostBuffer, on_done: Callable[[], None]) -> None:
        self._buffer = buffer
        self._on_done: Callable[[], None] | None = on_done

    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes."""
        return self._buffer.data

    def close(self) -> None:
        """Run the function; harmless when repeated."""
        done, self._on_done = self._on_done, None
        if done is not None:
            done()


class _Staging:
    """One device's pinned staging memory and its completion event."""

    __slots__ = ("buffer", "event", "lock")

    def __init__(self, buffer: HostBuffer) -> None:
        self.buffer = buffer
        self.event = SimEvent()
        self.lock = threading.Lock()


class TransferManager:
    """Copies literals and bytes; large ones through pinned staging memory.

    Parameters:
        world: the simulated devices.
        pool: where staging memory comes from.
        staging_bytes: size of each device's staging buffer, made at first use.

    >>> from msa.runtime.collective import DeviceWorld
    >>> manager = TransferManager(DeviceWorld(1))
    """

    def __init__(
        self,
        world: DeviceWorld,
        pool: HostMemoryPool | None = None,
        *,
        staging_bytes: int = DEFAULT_STAGING_BYTES,
    ) -> None:
        whole(staging_bytes, "TransferManager", "staging_bytes", least=1)
        self.world = world
        self.pool = pool or HostMemoryPool(1 << 30)
        self.staging_bytes = staging_bytes
        self.staged_chunks = 0
        self._staging: dict[int, _Staging] = {}
        self._lock = threading.Lock()
        self._closed = False

    # -- literals ------------------------------------------------------------------

    def transfer_to_device(
        self, stream: SimStream, literal: Literal, buffer: ShapedBuffer
    ) -> None:
        """Enqueue index tables, then every array leaf in the device's layout.

        A leaf whose layout differs is rearranged into a temporary that a callback
        after the copy keeps alive.

        Raises:
            InternalStatus: shapes differ, or the stream is another device's.
            FailedPrecondition: a destination is too small.
            Unimplemented: a dynamic shape of a sub-byte type.
        """
        if stream.device != buffer.device:
            raise InternalStatus(
                f"a stream of device {stream.device} cannot fill a buffer of device "
                f"{buffer.device}"
            )
        self._check_shape(literal, buffer.shape)
        for index, node in buffer.shape.nodes():
            address = buffer.addresses[index]
            if node.is_tuple:
                table = np.array(
                    [
                        buffer.addresses[(*index, i)].opaque
                        for i in range(len(node.children))
                    ],
                    np.uint64,
                )
                self._send(stream, table.view(np.uint8), address, 8 * len(table))
            elif node.is_array:
                raw = _encode(_leaf(literal, index), node)
                self._send(stream, raw, address, device_bytes(node))

    def _send(
        self,
        stream: SimStream,
        raw: npt.NDArray[np.uint8],
        address: DeviceAddress,
        size: int,
    ) -> None:
        if size == 0:
            return
        if size > address.size:
            raise FailedPrecondition(
                f"the transfer of {size} bytes is larger than its destination of "
                f"{address.size} bytes"
            )
        target = self.world.memory.resolve(
            DeviceAddress(address.opaque, size), stream.device
        )
        stream.memcpy("h2d", raw, target, size)
        stream.host_callback(lambda: _keep_alive(raw))

    def transfer_from_device(
        self,
        stream: SimStream,
        buffer: ShapedBuffer,
        done: Callable[[BaseException | None], None] | None = None,
        *,
        callback_is_safe: bool = False,
    ) -> Literal:
        """The literal; filled when the stream gets there.

        `done(error)` is called once. With `callback_is_safe` it runs on the stream
        and this call returns at once; else the stream is drained first.
        """
        leaves: dict[ShapeIndex, Array] = {}
        for index, node in buffer.shape.leaves():
            if not node.is_array:
                continue
            self._check_static(node)
            size = device_bytes(node)
            raw = np.empty(size, np.uint8)
            target = leaves[index] = _empty_leaf(node)
            if size:
                source = self.world.memory.resolve(
                    DeviceAddress(buffer.addresses[index].opaque, size),
                    stream.device,
                    write=False,
                )
                stream.memcpy("d2h", source, raw, size)
            stream.host_callback(functools.partial(_decode, raw, node, target))
        literal = _assemble(buffer.shape, leaves)
        if done is not None and callback_is_safe:
            stream.host_callback(lambda: done(None), failed=done)
            return literal
        try:
            stream.block_until_done()
        except Exception as error:
            if done is None:
                raise
            done(error)
            return literal
        if done is not None:
            done(None)
        return literal

    def _check_shape(self, literal: Literal, shape: Shape) -> None:
        for index, node in shape.nodes():
            value = _leaf(literal, index)
            if node.is_tuple:
                if not isinstance(value, tuple) or len(value) != len(node.children):
                    raise InternalStatus(f"the literal is no {node} at {index}")
            elif node.is_array:
                self._check_static(node)
                if np.shape(value) != node.dimensions:
                    raise InternalStatus(
                        f"the literal has shape {np.shape(value)} where the device "
                        f"buffer has {node.dimensions}"
                    )

    def _check_static(self, node: Shape) -> None:
        if node.element_type.bits in _SUB_BYTE and not node.is_static:
            raise Unimplemented(f"dynamic shapes of sub-byte types ({node})")

    # -- staging ---------------------------------------------------------------------

    def _staging_of(self, device: int) -> _Staging:
        with self._lock:
            if self._closed:
                raise FailedPrecondition("the transfer manager is closed")
            if device not in self._staging:
                self._staging[device] = _Staging(self.pool.allocate(self.staging_bytes))
            return self._staging[device]

    def copy_from_device(
        self,
        stream: SimStream,
        source: DeviceAddress,
        destination: npt.NDArray[np.uint8],
    ) -> int:
        """Device to pageable host memory in staged chunks; the number of chunks.

        Raises:
            FailedPrecondition: the destination is too short, or after `close`.
            InvalidArgument: the destination's elements are not bytes.
        """
        byte_array(destination, "copy_from_device")
        if source.size > len(destination):
            raise FailedPrecondition(
                f"the transfer of {source.size} bytes is larger than its destination "
                f"of {len(destination)} bytes"
            )
        staging = self._staging_of(stream.device)
        with stream.simulation.lock, staging.lock:
            stream.wait(staging.event)
            chunks = 0
            for start, size in self._chunks(source.size):
                part = self.world.memory.resolve(
                    source.slice(start, size), stream.device, write=False
                )
                stream.memcpy("d2h", part, staging.buffer.data, size)
                stream.host_callback(
                    functools.partial(
                        _copy, staging.buffer.data, destination[start:], size
                    )
                )
                chunks += 1
            stream.record(staging.event)
            self._count(chunks)
        return chunks

    def copy_to_device(
        self,
        stream: SimStream,
        source: npt.NDArray[np.uint8],
        destination: DeviceAddress,
    ) -> int:
        """Pageable host memory to device in staged chunks; the number of chunks.

        The source is read when the stream gets there: it must stay unchanged.

        Raises:
            FailedPrecondition: the destination is too short, or after `close`.
            InvalidArgument: the source's elements are not bytes.
        """
        byte_array(source, "copy_to_device")
        if len(source) > destination.size:
            raise FailedPrecondition(
                f"the transfer of {len(source)} bytes is larger than its destination "
                f"of {destination.size} bytes"
            )
        staging = self._staging_of(stream.device)
        with stream.simulation.lock, staging.lock:
            stream.wait(staging.event)
            chunks = 0
            for start, size in self._chunks(len(source)):
                part = self.world.memory.resolve(
                    destination.slice(start, size), stream.device
                )
                stream.host_callback(
                    functools.partial(_copy, source[start:], staging.buffer.data, size)
                )
                stream.memcpy("h2d", staging.buffer.data, part, size)
                chunks += 1
            stream.record(staging.event)
            self._count(chunks)
        return chunks

    def _count(self, chunks: int) -> None:
        with self._lock:
            self.staged_chunks += chunks

    def _chunks(self, total: int) -> list[tuple[int, int]]:
        step = self.staging_bytes
        return [(start, min(step, total - start)) for start in range(0, total, step)]

    def infeed(self, *_: object) -> None:
        """Not supported here (raises Unimplemented)."""
        raise Unimplemented("infeed and outfeed have no generic transfer")

    def close(self) -> None:
        """Give the staging memory back; nothing is staged afterwards."""
        with self._lock:
            self._closed = True
            staging, self._staging = self._staging, {}
        for one in staging.values():
            one.buffer.release()


def _copy(source: Any, destination: Any, size: int) -> None:
    destination[:size] = source[:size]


def _keep_alive(_: object) -> None:
    """The reference in the callback is the point."""


def _leaf(literal: Literal, index: ShapeIndex) -> Any:
    for i in index:
        if not isinstance(literal, tuple) or i >= len(literal):
            raise InvalidArgument(f"the literal has no element {index}")
        literal = literal[i]
    return literal


def _order(shape: Shape) -> tuple[int, ...]:
    layout = shape.as_array.layout
    rank = len(shape.dimensions)
    return layout.minor_to_major if layout else tuple(range(rank - 1, -1, -1))


def _encode(value: Any, shape: Shape) -> npt.NDArray[np.uint8]:
    """A leaf's bytes as they lie on the device."""
    array = np.asarray(value)
    laid_out = np.ascontiguousarray(array.transpose(tuple(reversed(_order(shape)))))
    bits = shape.element_type.bits
    if bits in _SUB_BYTE and shape.element_type.is_integral:
        return pack_sub_byte(laid_out, bits)
    if not _holds(laid_out.dtype, shape):
        raise InternalStatus(
            f"the literal has {laid_out.dtype} where the buffer has "
            f"{shape.element_type.name}"
        )
    return laid_out.view(np.uint8).reshape(-1)


_INTEGERS: Final = {"signed": "i", "unsigned": "u"}


def _holds(dtype: np.dtype[Any], shape: Shape) -> bool:
    """Whether a literal's elements are those of a shape (or raw, of their width)."""
    wanted = _element_dtype(shape)
    raw = dtype.kind == "V" or (wanted.kind == "b" and dtype == np.uint8)
    return dtype.itemsize == wanted.itemsize and (raw or dtype == wanted)


def _empty_leaf(shape: Shape) -> Array:
    return np.zeros(shape.dimensions, _element_dtype(shape))


def _element_dtype(shape: Shape) -> np.dtype[Any]:
    kind = shape.element_type
    width = kind.byte_width
    if kind.name == "pred":
        return np.dtype(np.bool_)
    if kind.family in _INTEGERS:
        return np.dtype(f"{_INTEGERS[kind.family]}{width}")
    if kind.name in ("f16", "f32", "f64"):
        return np.dtype(f"f{width}")
    if kind.is_complex:
        return np.dtype(f"c{width}")
    return np.dtype(f"u{width}")  # bf16 and the 8-bit floats: their bits


def _decode(raw: npt.NDArray[np.uint8], shape: Shape, target: Array) -> None:
    order = tuple(reversed(_order(shape)))
    laid_out = tuple(shape.dimensions[d] for d in order)
    bits = shape.element_type.bits
    if bits in _SUB_BYTE and shape.element_type.is_integral:
        signed = shape.element_type.family == "signed"
        values = unpack_sub_byte(raw, bits, shape.element_count, signed=signed)
    else:
        values = raw.view(target.dtype)
    target[...] = values.reshape(laid_out).transpose(np.argsort(order))


def _assemble(shape: Shape, leaves: dict[ShapeIndex, Array]) -> Literal:
    """Leaves as nested tuples; children are built before their parents."""
    nodes = list(shape.nodes())
    built: dict[ShapeIndex, Any] = {}
    for index, node in reversed(nodes):
        if node.is_tuple:
            built[index] = tuple(built[(*index, i)] for i in range(len(node.children)))
        else:
            built[index] = leaves.get(index)
    return built[()]
