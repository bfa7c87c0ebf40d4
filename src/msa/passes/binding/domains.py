"""Memories of a platform, and which number in a layout means which.

The number in a layout, `S(n)`, is not the number of a physical memory kind at run
time: a GPU's collective memory is `S(1)` in layouts and kind 2 at run time. The
tables here are the only bridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from msa.errors import OptionsError
from msa.target import Target


class Kind(Enum):
    """Kinds of memory."""

    HBM = "hbm"
    VMEM = "vmem"
    SHARED = "shared"
    REGISTER = "register"
    CONSTANT = "constant"
    HOST_PINNED = "host-pinned"
    HOST_UNPINNED = "host-unpinned"
    COLLECTIVE = "collective"
    TEMP = "temp"


class Access(Enum):
    """Ways to touch a memory.

    >>> [access.value for access in Access]
    ['kernel-read', 'kernel-write', 'copy', 'collective', 'host', 'argument']
    """

    KERNEL_READ = "kernel-read"
    KERNEL_WRITE = "kernel-write"
    COPY = "copy"
    COLLECTIVE = "collective"
    HOST = "host"
    ARGUMENT = "argument"


_DEVICE: Final = frozenset(Access) - {Access.HOST}
_KERNEL_ONLY: Final = frozenset({Access.KERNEL_READ, Access.KERNEL_WRITE})


@dataclass(frozen=True, slots=True)
class MemoryDomain:
    """A memory.

    Attributes:
        kind: what it is.
        space: its number in layouts, or None for one that exists only inside kernels.
        read_bandwidth, write_bandwidth: bytes/s.
        capacity: bytes; None for unlimited here.
        alignment: of what lies in it, bytes.
        physical_kind: its number at run time, or None.
        allows: how it may be touched: by kernels, copies, collectives, the host, and
            whether an argument of the program may lie in it.
    """

    kind: Kind
    space: int | None
    read_bandwidth: float
    write_bandwidth: float
    capacity: int | None = None
    alignment: int = 256
    physical_kind: int | None = None
    allows: frozenset[Access] = _DEVICE


@dataclass(frozen=True, slots=True)
class Platform:
    """The memories of a machine.

    Attributes:
        name: `tpu`, `gpu`, `cpu` or one's own.
        domains: those that layouts name, by number.
        inside: those that exist only inside kernels, by kind.
        names: of spaces, for reports.

    >>> gpu = Platform.preset("gpu")
    >>> gpu.domain(1).kind.value, gpu.domain(1).physical_kind, gpu.space_name(5)
    ('collective', 2, 'host')
    >>> Platform.preset("tpu").domain(1).kind.value
    'vmem'
    """

    name: str
    domains: Mapping[int, MemoryDomain]
    inside: Mapping[Kind, MemoryDomain] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    def domain(self, space: int) -> MemoryDomain:
        """The memory that a layout's number means.

        Raises:
            OptionsError: the platform has no such memory.
        """
        found = self.domains.get(space)
        if found is None:
            raise OptionsError(
                f"the platform {self.name!r} has no memory space {space}; it has "
                f"{', '.join(map(str, self.domains))}"
            )
        return found

    def space_name(self, space: int, *, legacy: bool = False) -> str:
        """A space in reports; `legacy` gives the names of XLA's buffer reports."""
        if legacy:
            return _LEGACY.get(space, f"color_{space}")
        return self.names.get(space, f"S({space})")

    def with_memory(self, domain: MemoryDomain, name: str = "") -> Platform:
        """This platform with one more memory, under its number in layouts.

        Raises:
            OptionsError: the number is missing, or taken by another memory.

        >>> gpu = Platform.preset("gpu")
        >>> gpu.with_memory(MemoryDomain(Kind.VMEM, 3, 1e12, 1e12)).domain(3).kind.value
        'vmem'
        """
        space = domain.space
        if space is None or space in self.domains:
            raise OptionsError(
                f"the platform {self.name!r} cannot take another memory as {space}; "
                f"its numbers are {', '.join(map(str, self.domains))}",
                hint="give the memory a number that is free",
            )
        names = {space: name or domain.kind.value}
        return replace(
            self,
            domains={**self.domains, space: domain},
            names={**self.names, **names},
        )

    def kind(self, kind: Kind) -> MemoryDomain | None:
        """The memory of a kind, if the platform has one."""
        if kind in self.inside:
            return self.inside[kind]
        return next((d for d in self.domains.values() if d.kind is kind), None)

    @staticmethod
    def preset(name: str, target: Target | None = None) -> Platform:
        """A built-in platform, with a target's bandwidths.

        Raises:
            OptionsError: there is no such platform.
        """
        makers = {"tpu": _tpu, "gpu": _gpu, "cpu": _cpu}
        if not isinstance(name, str) or name not in makers:
            raise OptionsError(f"unknown platform {name!r}; known: {', '.join(makers)}")
        return makers[name](target or Target.preset("tpu_v5e"))


_LEGACY: Final = MappingProxyType(
    {0: "default", 1: "vmem", 2: "smem", 3: "hbm", 4: "host", 5: "cmem"}
)
_HOST_BANDWIDTH: Final = 32e9
"""Bytes/s of a PCIe 4.0 link with 16 lanes, an estimate for hosts."""


_HOST: Final = frozenset({Access.COPY, Access.HOST, Access.ARGUMENT})


def _host(*, kernel_reads: bool) -> dict[int, MemoryDomain]:
    return {
        number: MemoryDomain(
            kind,
            number,
            _HOST_BANDWIDTH,
            _HOST_BANDWIDTH,
            physical_kind=5,
            allows=_HOST | (_KERNEL_ONLY if kernel_reads else frozenset()),
        )
        for number, kind in ((5, Kind.HOST_PINNED), (6, Kind.HOST_UNPINNED))
    }


def _tpu(target: Target) -> Platform:
    slow = target.default_memory_bandwidth
    fast = MemoryDomain(
        Kind.VMEM,
        1,
        target.alternate_read_bandwidth,
        target.alternate_write_bandwidth,
        target.alternate_memory_bytes,
        target.alignment_bytes,
    )
    domains = {0: MemoryDomain(Kind.HBM, 0, slow, slow, physical_kind=0), 1: fast}
    return Platform(
        "tpu",
        domains | _host(kernel_reads=False),
        names={0: "hbm", 1: "vmem", 5: "host", 6: "unpinned host"},
    )


def _gpu(target: Target) -> Platform:
    slow = target.default_memory_bandwidth
    domains = {
        0: MemoryDomain(Kind.HBM, 0, slow, slow, physical_kind=0),
        1: MemoryDomain(Kind.COLLECTIVE, 1, slow, slow, physical_kind=2),
        2: MemoryDomain(
            Kind.TEMP,
            2,
            slow,
            slow,
            physical_kind=0,
            allows=_DEVICE - {Access.ARGUMENT},
        ),
    }
    # Estimates: on-chip memories by the target's fast memory, registers faster still.
    fast = target.alternate_read_bandwidth
    inside = {
        Kind.CONSTANT: MemoryDomain(
            Kind.CONSTANT,
            None,
            fast,
            fast,
            64 << 10,
            allows=frozenset({Access.KERNEL_READ, Access.COPY}),
        ),
        Kind.SHARED: MemoryDomain(
            Kind.SHARED, None, fast, fast, 48 << 10, 16, allows=_KERNEL_ONLY
        ),
        Kind.REGISTER: MemoryDomain(
            Kind.REGISTER, None, 8 * fast, 8 * fast, 1020, 4, allows=_KERNEL_ONLY
        ),
    }
    return Platform(
        "gpu",
        domains | _host(kernel_reads=True),
        inside,
        {0: "device", 1: "collective", 2: "temp", 5: "host", 6: "unpinned host"},
    )


def _cpu(target: Target) -> Platform:
    slow = target.default_memory_bandwidth
    memory = MemoryDomain(
        Kind.HBM,
        0,
        slow,
        slow,
        alignment=64,
        physical_kind=0,
        allows=frozenset(Access),
    )
    # The host is the device: whatever a layout asks for is the one memory.
    domains = dict.fromkeys((0, 5, 6), memory)
    return Platform("cpu", domains, names={0: "memory", 5: "memory", 6: "memory"})
