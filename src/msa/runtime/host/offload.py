"""Host offload copies of a planned module, as transfers with real bytes.

Asynchronous copies between device memory and the host memory space go through a
transfer queue: the data sits in pinned host memory while it is away, moves when the
copy completes, and is waited for where the module waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.runtime.host.pool import HostBuffer, HostMemoryPool
from msa.runtime.host.queue import MemoryRange, Transfer, TransferQueue
from msa.runtime.host.streams import Simulation

HOST_SPACE: Final = 5
"""Memory space of pinned host memory in layouts."""


@dataclass(slots=True)
class HostCopies:
    """A mover for `msa.execute` that runs host copies through a queue.

    Parameters:
        pool: where the data lies while it is on the host.
        queue: what moves it.
        space: memory space of the host in layouts.

    Attributes:
        transfers: copies in order of their start, finished ones included.
    """

    pool: HostMemoryPool = field(default_factory=lambda: HostMemoryPool(1 << 34))
    queue: TransferQueue = field(default_factory=lambda: TransferQueue(Simulation()))
    space: int = HOST_SPACE
    transfers: list[Transfer] = field(default_factory=list)
    _pending: dict[int, Transfer] = field(default_factory=dict)
    _homes: dict[int, tuple[HostBuffer, Any]] = field(default_factory=dict)

    def start(self, instruction: Instruction, value: Any) -> Any:
        """Begin a copy that crosses to or from the host; others hand the value on."""
        source = instruction.operands[0].shape.memory_space
        target = instruction.shape.children[0].memory_space
        if (source == self.space) == (target == self.space):
            return value
        data = np.ascontiguousarray(value)
        result: Any
        if target == self.space:
            buffer = self.pool.allocate(data.nbytes)
            result = buffer.data.view(data.dtype).reshape(data.shape)
            self._homes[id(result)] = (buffer, result)
            transfer = self.queue.d2h(self._range(data), self._range(result))
        else:
            result = np.empty_like(data)
            transfer = self.queue.h2d(self._range(data), self._range(result))
        self.transfers.append(transfer)
        self._pending[id(result)] = transfer
        return result

    def finish(self, instruction: Instruction, value: Any) -> None:
        """Wait for the copy whose destination this is."""
        del instruction
        transfer = self._pending.pop(id(value), None)
        if transfer is not None:
            transfer.result()

    def _range(self, array: Any) -> MemoryRange:
        raw = array.reshape(-1).view(np.uint8)
        address = array.__array_interface__["data"][0]
        return MemoryRange(address, raw)

    def close(self) -> list[str]:
        """Copies never waited for; the host memory goes back to the pool."""
        lost = self.queue.close()
        self.queue.drain()
        for buffer, _ in self._homes.values():
            buffer.release()
        self._homes.clear()
        self._pending.clear()
        return lost
