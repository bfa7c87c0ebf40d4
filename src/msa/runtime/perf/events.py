"""What happened on simulated devices: kernels, copies, allocations, marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msa.errors import OptionsError
from msa.runtime.perf.device import DeviceDescription


class EventType(StrEnum):
    """Kinds of events."""

    KERNEL = "kernel"
    COPY = "copy"
    MEMSET = "memset"
    ALLOCATE = "allocate"
    FREE = "free"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class ProfilerEvent:
    """Something that happened; seconds, bytes, operations.

    Attributes:
        type, name: what.
        start, end: seconds; equal for points in time.
        device: number; `stream`: of the device.
        bytes_read, bytes_written: traffic of the device's default memory.
        bytes_received, bytes_sent: traffic of `link`, if it has one.
        flops: operations.
        fast_bytes: traffic of fast memory.
        details: text for people (see `copy_details`, `residency_details`).
        blocks, threads, shared_memory, registers: of a kernel's launch.
        link: `NVLink`, `PCIe` or empty.
        runs: how often it happened in that time, one after another.
        waited: the program waited for the end, so the whole time was needed.

    >>> ProfilerEvent(EventType.KERNEL, "dot", 1.0, 3.0).seconds
    2.0
    """

    type: EventType
    name: str
    start: float
    end: float
    device: int = 0
    stream: int = 0
    bytes_read: float = 0.0
    bytes_written: float = 0.0
    bytes_received: float = 0.0
    bytes_sent: float = 0.0
    flops: float = 0.0
    fast_bytes: float = 0.0
    details: str = ""
    blocks: int = 0
    threads: int = 0
    shared_memory: int = 0
    registers: int = 0
    link: str = ""
    runs: float = 1.0
    waited: bool = False

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


def copy_details(kind: str, size: int, destination: int) -> str:
    """What a copy did.

    >>> copy_details("HostToDevice", 4096, 1)
    'kind:HostToDevice size:4096 dest:1'
    """
    return f"kind:{kind} size:{size} dest:{destination}"


def residency_details(kind: str, size: int, address: int) -> str:
    """Where an allocation lives.

    >>> residency_details("device", 256, 0x1000)
    'kind:device size:256 address:0x1000'
    """
    return f"kind:{kind} size:{size} address:{address:#x}"


@dataclass(slots=True)
class ProfilerSim:
    """Collects events of simulated devices.

    Attributes:
        devices: their descriptions, by number.
        max_events: events beyond are counted, not kept.
        events: what was kept, in order of recording.
        dropped: how many were not.

    >>> profiler = ProfilerSim([DeviceDescription.preset("a100_40")], max_events=1)
    >>> profiler.kernel("dot", 0.0, 1e-3, bytes_read=4096)
    >>> profiler.copy("HostToDevice", 0.0, 1e-4, 4096)
    >>> len(profiler.events), profiler.dropped
    (1, 1)
    """

    devices: list[DeviceDescription]
    max_events: int = 1 << 20
    events: list[ProfilerEvent] = field(default_factory=list)
    dropped: int = 0

    def record(self, event: ProfilerEvent) -> None:
        """Keep an event, or count it when there is no room.

        Raises:
            OptionsError: it ends before it starts, or its device is unknown.
        """
        if event.end < event.start:
            raise OptionsError(f"{event.name} ends before it starts")
        if not 0 <= event.device < len(self.devices):
            raise OptionsError(
                f"{event.name} ran on device {event.device} of {len(self.devices)}"
            )
        if len(self.events) >= self.max_events:
            self.dropped += 1
        else:
            self.events.append(event)

    def kernel(self, name: str, start: float, end: float, **figures: Any) -> None:
        """Record a kernel; figures are fields of `ProfilerEvent`."""
        self.record(ProfilerEvent(EventType.KERNEL, name, start, end, **figures))

    def copy(
        self,
        kind: str,
        start: float,
        end: float,
        size: int,
        *,
        name: str = "",
        destination: int = 0,
        **figures: Any,
    ) -> None:
        """Record a copy of `size` bytes, such as `HostToDevice` or `DeviceToDevice`.

        Which memory it reads and writes is told by `bytes_read` and the like.
        """
        details = copy_details(kind, size, destination)
        self.record(
            ProfilerEvent(
                EventType.COPY, name or kind, start, end, details=details, **figures
            )
        )

    def memset(self, start: float, end: float, size: int, **figures: Any) -> None:
        """Record filling `size` bytes."""
        self.record(
            ProfilerEvent(
                EventType.MEMSET, "memset", start, end, bytes_written=size, **figures
            )
        )

    def allocate(
        self, kind: str, time: float, size: int, address: int, **figures: Any
    ) -> None:
        """Record an allocation."""
        self._residency(EventType.ALLOCATE, kind, time, size, address, figures)

    def free(
        self, kind: str, time: float, size: int, address: int, **figures: Any
    ) -> None:
        """Record a release."""
        self._residency(EventType.FREE, kind, time, size, address, figures)

    def _residency(
        self,
        event: EventType,
        kind: str,
        time: float,
        size: int,
        address: int,
        figures: dict[str, Any],
    ) -> None:
        details = residency_details(kind, size, address)
        self.record(ProfilerEvent(event, kind, time, time, details=details, **figures))

    def mark(self, name: str, start: float, end: float) -> None:
        """Record what the host was doing."""
        self.record(ProfilerEvent(EventType.MARK, name, start, end))

    def of_type(self, *types: EventType) -> Iterable[ProfilerEvent]:
        """Events of some types, in order of recording."""
        return (event for event in self.events if event.type in types)

    # -- export --------------------------------------------------------------

    def planes(self) -> dict[str, dict[str, list[ProfilerEvent]]]:
        """Plane (device or host) → line (stream) → events in order of time."""
        planes: dict[str, dict[str, list[ProfilerEvent]]] = {}
        for event in self.events:
            if event.type is EventType.MARK:
                plane, line = "/host", "marks"
            else:
                plane = f"/device:{event.device}"
                memory = event.type in (EventType.ALLOCATE, EventType.FREE)
                line = "memory" if memory else f"stream {event.stream}"
            planes.setdefault(plane, {}).setdefault(line, []).append(event)
        for lines in planes.values():
            for events in lines.values():
                events.sort(key=lambda e: (e.start, e.end))
        return {plane: planes[plane] for plane in sorted(planes)}

    def device_stats(self, device: int) -> dict[str, Any]:
        """Capabilities of a device, as timelines state them."""
        d = self.devices[device]
        vendors = {"CUDA": "Nvidia", "ROCM": "AMD", "oneAPI": "Intel"}
        return {
            "device_vendor": vendors.get(d.platform, d.platform),
            "clock_rate_khz": round(d.clock_rate_ghz * 1e6),
            "core_count": d.core_count,
            "memory_bandwidth": d.memory_bandwidth,
            "memory_size": d.device_memory_size,
            "compute_capability": d.capability,
        }
