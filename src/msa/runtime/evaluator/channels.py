"""Messages from device to device: `send` and `recv` over numbered channels.

A `send` leaves its data in the channel and goes on; a `recv-done` waits for the oldest
message of its sender. Who sends to whom is stated in the frontend attribute
`_xla_send_recv_source_target_pairs`, by partition (by replica in modules with one
partition); a device that nobody sends to receives zeros. Without it, a channel leads
from each device to itself. Transfers to and from the host are no messages: what is
sent there is gone, and what comes from there is an infeed.

Source: `xla/backends/gpu/runtime/send_thunk.cc`, `recv_thunk.cc`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.collectives import Topology
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported
from msa.runtime.evaluator.values import Value, map_leaves, zeros

_PAIRS: Final = "_xla_send_recv_source_target_pairs"
_ALL_PAIRS: Final = re.compile(r"\s*\{\s*(\{\s*\d+\s*,\s*\d+\s*\}\s*,?\s*)*\}\s*")
_PAIR: Final = re.compile(r"(\d+)\s*,\s*(\d+)")

POINT_TO_POINT: Final = frozenset({"send", "recv-done"})
"""Opcodes at which a device meets a channel, unless the host is at its other end."""


def meets_channel(instruction: Instruction) -> bool:
    """Whether an instruction sends to, or waits for, another device."""
    return instruction.opcode in POINT_TO_POINT and not is_host_transfer(instruction)


def is_host_transfer(instruction: Instruction) -> bool:
    """Whether the host is at the other end."""
    return bool(instruction.attributes.get("is_host_transfer", False))


class Channels:
    """Messages on their way between the devices of one execution."""

    __slots__ = ("_messages", "_stating", "_topology")

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._messages: dict[tuple[int, int, int], deque[Value]] = {}
        self._stating: dict[Instruction, Instruction] = {}

    def serve(
        self, instruction: Instruction, device: int, operands: Sequence[Any]
    ) -> tuple[Value] | None:
        """The result of a `send` or `recv-done` in a tuple; None if it must wait.

        Raises:
            UnsupportedError: the pairs cannot be read, or it is not known which count.
        """
        channel = instruction.attributes.get("channel_id", 0)
        if instruction.opcode == "send":
            for target in self._partners(instruction, device, sends=True):
                key = (channel, device, target)
                self._messages.setdefault(key, deque()).append(operands[0])
            return ((operands[0], np.uint32(0), None),)
        stating = self._stating.get(instruction)
        if stating is None:
            stating = self._stating[instruction] = _states_pairs(instruction)
        sources = self._partners(stating, device, sends=False)
        if not sources:
            return ((map_leaves(instruction.shape.children[0], zeros), None),)
        waiting = self._messages.get((channel, sources[0], device))
        return ((waiting.popleft(), None),) if waiting else None

    def _partners(
        self, instruction: Instruction, device: int, *, sends: bool
    ) -> list[int]:
        """Devices that a device sends to, or that send to it, on a channel."""
        text = _stated_pairs(instruction)
        if text is None:
            return [device]
        if not _ALL_PAIRS.fullmatch(str(text)):
            raise unsupported(instruction, f"{_PAIRS} is {text!r}")
        partitions = self._topology.partitions
        replica, number = divmod(device, partitions)
        if partitions == 1:
            replica, number = 0, device
        found = []
        for pair in _PAIR.findall(str(text)):
            own, other = map(int, pair if sends else reversed(pair))
            partner = replica * partitions + other
            if own == number and partner < self._topology.devices:
                found.append(partner)
        return found


def _stated_pairs(instruction: Instruction) -> Any:
    """The text that says who sends to whom, None if it is not stated."""
    return dict(instruction.attributes.get("frontend_attributes", ())).get(_PAIRS)


def _states_pairs(done: Instruction) -> Instruction:
    """Where the pairs of a `recv-done` are stated: there, or at its `recv`.

    The `recv` may be far away, when loops or tuples carry its result; it is one of
    those of the channel, and which does not matter as long as they agree. Linear in
    the module then.

    Raises:
        UnsupportedError: they do not agree.
    """
    if _stated_pairs(done) is not None:
        return done
    if done.operands[0].opcode == "recv":
        return done.operands[0]
    channel = done.attributes.get("channel_id", 0)
    stating: dict[str, Instruction] = {}
    for computation in done.computation.module.computations:
        for instruction in computation.instructions:
            if (
                instruction.opcode == "recv"
                and instruction.attributes.get("channel_id", 0) == channel
            ):
                stating.setdefault(str(_stated_pairs(instruction)), instruction)
    if len(stating) > 1:
        first, second, *_ = stating.values()
        raise unsupported(
            done, f"it may end {first.name} or {second.name}, whose {_PAIRS} differ"
        )
    return next(iter(stating.values()), done)


@kernel("send")
def _send(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda data, _: (data, np.uint32(0), None)


@kernel("send-done")
def _send_done(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda _: None


@kernel("recv")
def _recv(instruction: Instruction, context: Context) -> Kernel:
    """The place where data will be; what the host sends is there at once."""
    shape = instruction.shape.children[0]

    def run(_: Any) -> Any:
        if is_host_transfer(instruction) and context.infeed is not None:
            return context.infeed(shape), np.uint32(0), None
        return map_leaves(shape, zeros), np.uint32(0), None

    return run


@kernel("recv-done")
def _recv_done(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda started: (started[0], None)
