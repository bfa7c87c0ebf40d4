"""Collective memory on simulated devices: symmetric, multicast and peer.

One Python thread plays each rank; they meet in real rendezvous and move real bytes
between numpy-backed memories.
"""

from __future__ import annotations

from msa.runtime.collective.acquire import (
    AcquireParams,
    AcquireTrace,
    acquire_collective_memory,
)
from msa.runtime.collective.allocations import (
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
)
from msa.runtime.collective.cache import CollectiveMemoryCache
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.cliques import Clique, CliqueTable, Timeouts
from msa.runtime.collective.devices import AddressSpace, DeviceWorld
from msa.runtime.collective.launch import Outcome, Stage, execute_stages, launch
from msa.runtime.collective.memory import CollectiveMemory, PeerMemory
from msa.runtime.collective.multicast import (
    MulticastMemory,
    create_multicast_memory,
    multimem_ld_reduce,
    multimem_red,
    multimem_st,
)
from msa.runtime.collective.rendezvous import Rendezvous, RendezvousFlag, StuckRecord
from msa.runtime.collective.requests import CollectiveMemoryRequests, Kind, Request
from msa.runtime.collective.symmetric import SymmetricMemory, Window, register_window
from msa.runtime.collective.tied import Strong, TiedContainer, TiedRef

__all__ = [
    "AcquireParams",
    "AcquireTrace",
    "AddressSpace",
    "AllocationSlice",
    "BufferAllocations",
    "Clique",
    "CliqueKey",
    "CliqueTable",
    "CollectiveMemory",
    "CollectiveMemoryCache",
    "CollectiveMemoryRequests",
    "DeviceAddress",
    "DeviceWorld",
    "Kind",
    "MulticastMemory",
    "Outcome",
    "PeerMemory",
    "Rendezvous",
    "RendezvousFlag",
    "Request",
    "Stage",
    "Strong",
    "StuckRecord",
    "SymmetricMemory",
    "TiedContainer",
    "TiedRef",
    "Timeouts",
    "Window",
    "acquire_collective_memory",
    "create_multicast_memory",
    "execute_stages",
    "launch",
    "multimem_ld_reduce",
    "multimem_red",
    "multimem_st",
    "register_window",
]
