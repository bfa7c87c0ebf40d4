"""The time of one kernel: arithmetic and memory traffic that overlap almost wholly.

Source: `xla/service/gpu/model/gpu_performance_model_base.cc`. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msa.runtime.perf.device import DeviceDescription

OVERLAP: Final = 0.95
"""Share of the shorter of compute and memory time that hides behind the longer."""

L2_SPEEDUP: Final = 2.5
L1_SPEEDUP: Final = 8.0
KERNEL_LAUNCH_SECONDS: Final = 1e-6
COLLECTIVE_LAUNCH_SECONDS: Final = 5e-6


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is spread: blocks, and threads of each."""

    blocks: int
    threads: int


def full_launch(device: DeviceDescription) -> Launch:
    """A launch that keeps every unit of the device busy."""
    return Launch(device.core_count, device.fpus_per_core)


def launch_for(elements: int, device: DeviceDescription) -> Launch:
    """One element a thread, in blocks that fill a core (of at least 128 threads)."""
    elements = max(1, elements)
    threads = min(elements, max(128, device.fpus_per_core))
    return Launch(-(-elements // threads), threads)


def flops_per_ns(device: DeviceDescription, launch: Launch) -> int:
    """Operations per nanosecond of the units that the launch occupies, truncated.

    >>> device = DeviceDescription.preset("a100_40")
    >>> flops_per_ns(device, full_launch(device))  # 1.41 × 2 × 108 × 64 = 19491.84
    19491
    """
    busy = min(launch.blocks, device.core_count)
    units = min(launch.threads, device.fpus_per_core)
    return int(device.clock_rate_ghz * 2 * busy * units)


def compute_seconds(flops: float, device: DeviceDescription, launch: Launch) -> float:
    """Seconds of arithmetic on the scalar units (at least one operation a ns)."""
    return flops / (max(1, flops_per_ns(device, launch)) * 1e9)


def matrix_seconds(flops: float, device: DeviceDescription, element_type: str) -> float:
    """Seconds of arithmetic on matrix units; a type without them uses all others."""
    if element_type not in device.matrix_units:
        return compute_seconds(flops, device, full_launch(device))
    return flops / device.matrix_flops(element_type)


def achievable_bandwidth(
    bandwidth: float, device: DeviceDescription, launch: Launch
) -> float:
    """Bytes/s that so many blocks can ask for: few cannot saturate a memory.

    >>> device = DeviceDescription.preset("a100_40").replace(clock_rate_ghz=1.0)
    >>> achievable_bandwidth(1555e9, device, Launch(2, 128))
    64000000000.0
    """
    requested = (
        launch.blocks
        * device.clock_rate_ghz
        * 1e9
        * device.memory_transactions_per_clock
    )
    return min(bandwidth, requested)


def utilization(
    device: DeviceDescription, element_bytes: float, coalesced: bool
) -> float:
    """Share of a memory transaction that is used.

    >>> utilization(DeviceDescription.preset("a100_40"), 4, coalesced=False)
    0.0625
    """
    if coalesced:
        return 1.0
    return min(1.0, element_bytes / device.dram_to_l2_transaction_size)


def read_seconds(
    device: DeviceDescription,
    launch: Launch,
    *,
    operand_bytes: float,
    accessed_bytes: float,
    element_bytes: float = 4,
    coalesced: bool = True,
) -> float:
    """Seconds of reading one operand.

    The first touch comes from memory, what is read again from a cache if it fits.
    """
    share = utilization(device, element_bytes, coalesced)
    net = min(operand_bytes, accessed_bytes)
    slow = device.memory_bandwidth * share
    again = slow
    if net < device.l2_cache_size:
        again = device.memory_bandwidth * L2_SPEEDUP
        if net < device.l1_cache_size_per_core * device.core_count:
            again *= L1_SPEEDUP
    rest = accessed_bytes - net
    seconds = net / achievable_bandwidth(slow, device, launch)
    return seconds + rest / achievable_bandwidth(again, device, launch)


def write_seconds(device: DeviceDescription, written_bytes: float) -> float:
    """Seconds of writing results."""
    return written_bytes / device.memory_bandwidth


def total_seconds(compute: float, memory: float) -> float:
    """Both together; 95 % of the shorter hides behind the longer.

    >>> round(total_seconds(10.0, 10.0), 9), round(total_seconds(1.0, 9.0), 9)
    (10.5, 9.05)
    """
    return compute + memory - OVERLAP * min(compute, memory)
