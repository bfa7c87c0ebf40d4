"""Descriptions of devices: what rooflines and keys of tuned operations rest on.

Source: `xla/stream_executor/device_description.h`,
`xla/service/gpu/autotuning/autotuner_cache.cc` (the device string).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

from msa.errors import TargetError, shown
from msa.target import Target

GPU_PLATFORMS: Final = ("CUDA", "ROCM", "oneAPI")
PLATFORMS: Final = (*GPU_PLATFORMS, "CPU", "SIM")


_RATES: Final = (
    "core_count",
    "fpus_per_core",
    "clock_rate_ghz",
    "memory_bandwidth",
    "memory_transactions_per_clock",
    "dram_to_l2_transaction_size",
)
_SIZES: Final = (
    "l2_cache_size",
    "l1_cache_size_per_core",
    "shared_memory_per_block",
    "registers_per_core",
    "device_memory_size",
)
_SMALLEST: Final = 1e-30
_LARGEST: Final = 1e30
"""Numbers of devices between these: products and quotients of them stay finite."""


def _number(value: Any, what: str, device: Any, *, least: float) -> None:
    """Refuse what is no number from `least` to `_LARGEST`."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value <= _LARGEST:
        bound = "positive" if least else "at least 0"
        raise TargetError(
            f"{what} must be {bound} and at most {_LARGEST:g}, not {shown(value)}",
            where=str(device),
        )


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """Units that multiply matrices of one type.

    Attributes:
        units_per_core: how many.
        ops_per_clock: fused multiply-adds of one unit in a clock.
        clock_rate_ghz: 0 means the device's.

    >>> MatrixUnit(units_per_core=4, ops_per_clock=256).clock_rate_ghz
    0.0
    """

    units_per_core: int
    ops_per_clock: int
    clock_rate_ghz: float = 0.0

    def __post_init__(self) -> None:
        for name in ("units_per_core", "ops_per_clock"):
            _number(getattr(self, name), name, "MatrixUnit", least=_SMALLEST)
        _number(self.clock_rate_ghz, "clock_rate_ghz", "MatrixUnit", least=0)


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """What is known of a device.

    Attributes:
        name: for reports.
        platform: `CUDA`, `ROCM`, `oneAPI`, `CPU` or `SIM`.
        capability: `8.0`, `gfx90a`, `BMG_G21`; what distinguishes generations.
        core_count: cores (multiprocessors).
        fpus_per_core: scalar multiply-add units of a core.
        clock_rate_ghz: of the cores.
        memory_bandwidth: bytes/s of the default memory.
        l2_cache_size: bytes, shared by all cores.
        l1_cache_size_per_core: bytes.
        memory_transactions_per_clock: bytes that a core can request in a clock.
        dram_to_l2_transaction_size: bytes of a memory transaction.
        matrix_units: by element type.
        shared_memory_per_block: bytes.
        registers_per_core: count.
        device_memory_size: bytes.
        dnn_version: of the library of primitives.
        copy_bandwidths: bytes/s of the links to other memories, by name.

    Raises:
        TargetError: the platform is unknown or a rate is not positive.

    >>> DeviceDescription.preset("a100_40").to_text()
    'CUDA: 8.0, Cores: 108, GPU clock: 1.41 GHz, Memory bandwidth: 1555 GB/s, L2 cache: 40 MB, DNN version: 0.0.0'
    """

    name: str
    platform: str
    capability: str
    core_count: int
    fpus_per_core: int
    clock_rate_ghz: float
    memory_bandwidth: float
    l2_cache_size: int
    l1_cache_size_per_core: int = 0
    memory_transactions_per_clock: int = 32
    dram_to_l2_transaction_size: int = 64
    matrix_units: Mapping[str, MatrixUnit] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    shared_memory_per_block: int = 0
    registers_per_core: int = 0
    device_memory_size: int = 0
    dnn_version: tuple[int, int, int] = (0, 0, 0)
    copy_bandwidths: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )

    def __post_init__(self) -> None:
        if self.platform not in PLATFORMS:
            raise TargetError(
                f"unknown platform {self.platform!r}", hint=f"one of {PLATFORMS}"
            )
        for name in _RATES:
            _number(getattr(self, name), name, self.name, least=_SMALLEST)
        for name in _SIZES:
            _number(getattr(self, name), name, self.name, least=0)
        rates, units = self.copy_bandwidths, self.matrix_units
        if not isinstance(rates, Mapping) or not isinstance(units, Mapping):
            raise TargetError(
                "copy_bandwidths and matrix_units map names to numbers and units",
                where=str(self.name),
            )
        for link, rate in rates.items():
            _number(rate, f"the bandwidth of {link}", self.name, least=_SMALLEST)
        for element_type, unit in units.items():
            if not isinstance(unit, MatrixUnit):
                raise TargetError(
                    f"matrix_units of {element_type} is a MatrixUnit, not "
                    f"{shown(unit)}",
                    where=str(self.name),
                )

    def to_text(self) -> str:
        """The device as keys of tuned operations name it.

        What follows from the capability, and the size of the memory, are left out.
        Bandwidth is rounded to whole GB/s; other numbers have up to six digits.
        """
        version = ".".join(map(str, self.dnn_version))
        return ", ".join(
            (
                f"{self.platform}: {self.capability}",
                f"Cores: {self.core_count}",
                f"GPU clock: {self.clock_rate_ghz:g} GHz",
                f"Memory bandwidth: {round(self.memory_bandwidth / 1e9)} GB/s",
                f"L2 cache: {self.l2_cache_size / 2**20:g} MB",
                f"DNN version: {version}",
            )
        )

    @property
    def peak_flops(self) -> float:
        """Operations/s of all scalar units; a multiply-add counts 2."""
        return self.clock_rate_ghz * 2e9 * self.core_count * self.fpus_per_core

    def matrix_flops(self, element_type: str) -> float:
        """Operations/s on matrices of a type; the scalar units' if it has no unit."""
        unit = self.matrix_units.get(element_type)
        if unit is None:
            return self.peak_flops
        clock = unit.clock_rate_ghz or self.clock_rate_ghz
        return clock * 2e9 * unit.ops_per_clock * self.core_count * unit.units_per_core

    def replace(self, **changes: Any) -> DeviceDescription:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @staticmethod
    def preset(name: str) -> DeviceDescription:
        """A device by name; `DeviceDescription.presets()` lists them.

        Figures of GPUs are their makers' data sheets. `tpu_like` has one core with
        four 128 × 128 matrix units at 1.5 GHz, 819 GB/s and 128 MiB of fast memory;
        `cpu_like` has 16 cores with two 512-bit units at 3 GHz and 100 GB/s.

        Raises:
            TargetError: unknown name.
        """
        try:
            return _PRESETS[name]
        except KeyError:
            raise TargetError(
                f"unknown device {name!r}", hint=f"one of {list(_PRESETS)}"
            ) from None

    @staticmethod
    def presets() -> tuple[str, ...]:
        """Names of all presets."""
        return tuple(_PRESETS)

    @staticmethod
    def of_target(target: Target) -> DeviceDescription:
        """A target of the planner as a device of one core.

        Rates and bandwidth are the target's; the fast memory takes the place of the
        cache.
        """
        clock = 1.0
        units = max(1, round(target.flops_per_second / (2e9 * clock)))
        return DeviceDescription(
            name=target.name,
            platform="SIM",
            capability=target.name,
            core_count=1,
            fpus_per_core=units,
            clock_rate_ghz=clock,
            memory_bandwidth=target.default_memory_bandwidth,
            l2_cache_size=target.alternate_memory_bytes,
            memory_transactions_per_clock=max(
                1, -int(-target.default_memory_bandwidth // 1e9)
            ),
            copy_bandwidths=MappingProxyType(
                {"alternate": target.async_copy_bandwidth}
            ),
        )


def bandwidth_from_clocks(memory_clock_hz: float, bus_bits: int) -> float:
    """Bytes/s of memory that moves data twice a clock.

    Raises:
        TargetError: a number that is not positive.

    >>> round(bandwidth_from_clocks(877e6, 4096) / 1e9, 1)
    898.0
    """
    where = "bandwidth_from_clocks"
    _number(memory_clock_hz, "memory_clock_hz", where, least=_SMALLEST)
    _number(bus_bits, "bus_bits", where, least=_SMALLEST)
    return 2 * memory_clock_hz * bus_bits / 8


def clock_hz(rate: float, platform: str) -> float:
    """Hz of a clock as the platform reports it: CUDA in kHz, ROCm in MHz.

    >>> clock_hz(1410000, "CUDA") == clock_hz(1410, "ROCM") == 1.41e9
    True
    """
    scales = {"CUDA": 1e3, "ROCM": 1e6}
    if platform not in scales:
        raise TargetError(
            f"{platform!r} reports no clock", hint=f"one of {sorted(scales)}"
        )
    return rate * scales[platform]


def _units(**rows: tuple[int, int]) -> Mapping[str, MatrixUnit]:
    return MappingProxyType({name: MatrixUnit(*row) for name, row in rows.items()})


_A100: Final = DeviceDescription(
    name="a100_40",
    platform="CUDA",
    capability="8.0",
    core_count=108,
    fpus_per_core=64,
    clock_rate_ghz=1.41,
    memory_bandwidth=1555e9,
    l2_cache_size=40 << 20,
    l1_cache_size_per_core=192 << 10,
    matrix_units=_units(
        f16=(4, 256), bf16=(4, 256), f32=(4, 128), f64=(4, 16), s8=(4, 512)
    ),
    shared_memory_per_block=48 << 10,
    registers_per_core=65536,
    device_memory_size=40 << 30,
    copy_bandwidths=MappingProxyType({"NVLink": 600e9, "PCIe": 32e9}),
)
_PRESETS: Final[dict[str, DeviceDescription]] = {
    device.name: device
    for device in (
        _A100,
        _A100.replace(
            name="a100_80", memory_bandwidth=2039e9, device_memory_size=80 << 30
        ),
        DeviceDescription(
            name="mi200",
            platform="ROCM",
            capability="gfx90a",
            core_count=110,
            fpus_per_core=64,
            clock_rate_ghz=1.7,
            memory_bandwidth=1638e9,
            l2_cache_size=8 << 20,
            l1_cache_size_per_core=16 << 10,
            matrix_units=_units(f16=(4, 128), bf16=(4, 128), f32=(4, 32)),
            shared_memory_per_block=64 << 10,
            registers_per_core=65536,
            device_memory_size=64 << 30,
        ),
        DeviceDescription(
            name="rtx6000pro",
            platform="CUDA",
            capability="12.0",
            core_count=188,
            fpus_per_core=128,
            clock_rate_ghz=2.6,
            memory_bandwidth=1792e9,
            l2_cache_size=128 << 20,
            l1_cache_size_per_core=128 << 10,
            shared_memory_per_block=48 << 10,
            registers_per_core=65536,
            device_memory_size=96 << 30,
        ),
        DeviceDescription(
            name="bmg_g21",
            platform="oneAPI",
            capability="BMG_G21",
            core_count=20,
            fpus_per_core=128,
            clock_rate_ghz=2.85,
            memory_bandwidth=456e9,
            l2_cache_size=18 << 20,
            l1_cache_size_per_core=256 << 10,
            device_memory_size=12 << 30,
        ),
        DeviceDescription(
            name="tpu_like",
            platform="SIM",
            capability="tpu_like",
            core_count=1,
            fpus_per_core=4096,
            clock_rate_ghz=1.5,
            memory_bandwidth=819e9,
            l2_cache_size=128 << 20,
            memory_transactions_per_clock=1024,
            dram_to_l2_transaction_size=512,
            matrix_units=_units(bf16=(4, 16384), s8=(4, 32768)),
            device_memory_size=16 << 30,
        ),
        DeviceDescription(
            name="cpu_like",
            platform="CPU",
            capability="avx512",
            core_count=16,
            fpus_per_core=32,
            clock_rate_ghz=3.0,
            memory_bandwidth=100e9,
            l2_cache_size=32 << 20,
            l1_cache_size_per_core=32 << 10,
            memory_transactions_per_clock=64,
            dram_to_l2_transaction_size=64,
            device_memory_size=64 << 30,
        ),
    )
}
