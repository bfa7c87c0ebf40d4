"""Machines: capacities, bandwidths and rates that plans are made for.

Presets carry public figures; where a maker publishes no figure for the fast memory's
bandwidth, the value is a documented estimate. Every preset says where its numbers
come from in `Target.preset`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msa.errors import TargetError, did_you_mean, shown
from msa.units import parse_bandwidth, parse_bytes, parse_rate

#: Sums of two larger addresses could not be counted on in 64 bits.
_LARGEST: Final = 2**62
_SLOWEST: Final = 1e-18
_FASTEST: Final = 1e30
"""Rates whose times are numbers of single precision for any number of operations."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine with a large slow and a small fast memory.

    Attributes:
        name: for reports.
        alternate_memory_bytes: capacity of the fast memory, bytes.
        alignment_bytes: every offset in it is a multiple of this.
        default_memory_bandwidth: slow memory, bytes/s (reads and writes share it).
        alternate_read_bandwidth, alternate_write_bandwidth: fast memory, bytes/s.
        async_copy_bandwidth: bytes/s of copies between the two; 0 means the default
            memory's.
        flops_per_second: peak arithmetic, floating-point operations/s.
        transcendentals_per_second: peak of exp, tanh …, operations/s.

    Quantities may be given as text (`"16MiB"`, `"819GB/s"`, `"197Tflop/s"`).

    Raises:
        TargetError: a value is missing, not positive or contradictory.
        UnitError: a text is not a quantity.

    >>> Target.preset("tpu_v5e").replace(alternate_memory_bytes="16MiB").name
    'tpu_v5e'
    """

    name: str
    alternate_memory_bytes: int
    alignment_bytes: int
    default_memory_bandwidth: float
    alternate_read_bandwidth: float
    alternate_write_bandwidth: float
    flops_per_second: float
    transcendentals_per_second: float
    async_copy_bandwidth: float = 0.0

    def __post_init__(self) -> None:
        for field in ("alternate_memory_bytes", "alignment_bytes"):
            self._set(field, parse_bytes(getattr(self, field)))
        for field in _BANDWIDTHS:
            self._set(field, parse_bandwidth(getattr(self, field)))
        for field in ("flops_per_second", "transcendentals_per_second"):
            self._set(field, parse_rate(getattr(self, field)))
        if not self.async_copy_bandwidth:
            self._set("async_copy_bandwidth", self.default_memory_bandwidth)
        self._validate()

    def _set(self, field: str, value: float) -> None:
        object.__setattr__(self, field, value)

    def _validate(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("name", "alternate_memory_bytes"):
                continue
            if not (value > 0 and math.isfinite(value)):
                raise TargetError(f"{field.name} must be positive, got {value!r}")
            if isinstance(value, float) and not _SLOWEST <= value <= _FASTEST:
                raise TargetError(
                    f"{field.name} must be from {_SLOWEST:g} to {_FASTEST:g} per "
                    f"second, got {value!r}"
                )
        for name in ("alternate_memory_bytes", "alignment_bytes"):
            if getattr(self, name) > _LARGEST:
                raise TargetError(
                    f"{name} must be at most {_LARGEST}, got {shown(getattr(self, name))}"
                )
        if self.async_copy_bandwidth > self.default_memory_bandwidth:
            raise TargetError(
                f"async_copy_bandwidth ({self.async_copy_bandwidth:g}) exceeds "
                f"default_memory_bandwidth ({self.default_memory_bandwidth:g})",
                hint="copies cannot be faster than the memory that they read",
            )

    @property
    def async_copy_bandwidth_scaling_factor(self) -> float:
        """Copy bandwidth as a share of the default memory's, in (0, 1]."""
        return self.async_copy_bandwidth / self.default_memory_bandwidth

    def replace(self, **changes: Any) -> Target:
        """A copy with some fields changed; quantities may be text.

        Raises:
            TargetError: there is no such field.
        """
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise TargetError(
                    f"a target has no field {name!r}",
                    hint=did_you_mean(name, known, f"one of {sorted(known)}"),
                )
        if (
            "default_memory_bandwidth" in changes
            and "async_copy_bandwidth" not in changes
            and self.async_copy_bandwidth == self.default_memory_bandwidth
        ):
            changes["async_copy_bandwidth"] = 0.0
        return dataclasses.replace(self, **changes)

    @staticmethod
    def preset(name: str) -> Target:
        """A machine by name; `Target.presets()` lists them.

        Sources:
            tpu_v4: Google Cloud TPU v4 documentation (275 TFLOP/s bf16, 1228 GB/s
                HBM) and Jouppi et al., ISCA 2023 (128 MiB CMEM, 16 MiB VMEM a core);
                the CMEM capacity is used.
            tpu_v5e: Google Cloud TPU v5e documentation (197 TFLOP/s bf16, 819 GB/s
                HBM); 128 MiB VMEM; VMEM bandwidth ten times HBM's (estimate).
            tpu_v5p: Google Cloud TPU v5p documentation (459 TFLOP/s bf16, 2765
                GB/s HBM); VMEM as for v5e, scaled (estimate).
            tpu_v6e: Google Cloud TPU v6e documentation (918 TFLOP/s bf16, 1640
                GB/s HBM); VMEM as for v5e, scaled (estimate).
            trainium2: AWS NeuronCore-v3 documentation, one core of eight
                (83 TFLOP/s bf16, 362 GB/s of the chip's 2.9 TB/s HBM, 28 MiB SBUF);
                SBUF bandwidth estimated at ten times HBM's.
            h100: NVIDIA H100 SXM data sheet (989 TFLOP/s dense bf16, 3.35 TB/s
                HBM3, 132 SMs with 228 KiB shared memory each = 29.4 MiB); shared
                memory bandwidth 128 B/clock/SM at 1.83 GHz = 31 TB/s.
            edge_npu: Arm Ethos-U65 product brief, 512 MAC/cycle at 1 GHz
                (1.02 Tera-op/s), 512 KiB SRAM, one 64-bit LPDDR4 port at
                3.75 GB/s; SRAM port 16 B/cycle.

        Transcendental rates are estimates: about one thirty-second of the peak.

        Raises:
            TargetError: unknown name; the nearest one is suggested.
        """
        if name not in _PRESETS:
            raise TargetError(
                f"unknown target {name!r}; known: {', '.join(_PRESETS)}",
                hint=did_you_mean(name, _PRESETS, "one of these, or Target.load(file)"),
            )
        return Target(name, *_PRESETS[name])

    @staticmethod
    def presets() -> tuple[str, ...]:
        """Names of all presets."""
        return tuple(_PRESETS)

    @staticmethod
    def load(path: str | Path) -> Target:
        """Read a `.toml` or `.json` file with the fields of this class.

        A field `preset` names a machine whose values are the starting point.

        Raises:
            TargetError: the file cannot be read, or a field is unknown or missing.
        """
        path = Path(path)
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise TargetError(f"cannot read {str(path)!r}: {error.strerror}") from error
        try:
            fields = (
                tomllib.loads(raw.decode())
                if path.suffix == ".toml"
                else json.loads(raw)
            )
        except ValueError as error:
            raise TargetError(f"{path.name}: {error}") from error
        if not isinstance(fields, dict):
            raise TargetError(f"{path.name}: expected a table of fields")
        if "preset" in fields:
            return Target.preset(str(fields.pop("preset"))).replace(**fields)
        return Target.from_dict({"name": path.stem, **fields})

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> Target:
        """A target from plain data (the inverse of `to_dict`)."""
        known = {field.name for field in dataclasses.fields(Target)}
        for name in fields:
            if name not in known:
                raise TargetError(
                    f"a target has no field {name!r}",
                    hint=did_you_mean(name, known, f"one of {sorted(known)}"),
                )
        missing = known - set(fields) - {"async_copy_bandwidth"}
        if missing:
            raise TargetError(f"missing fields: {', '.join(sorted(missing))}")
        return Target(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return dataclasses.asdict(self)


_BANDWIDTHS: Final = (
    "default_memory_bandwidth",
    "alternate_read_bandwidth",
    "alternate_write_bandwidth",
    "async_copy_bandwidth",
)
_PRESETS: Final[dict[str, tuple[Any, ...]]] = {
    "tpu_v4": (128 << 20, 1024, 1228e9, 12.28e12, 12.28e12, 275e12, 8.6e12),
    "tpu_v5e": (128 << 20, 1024, 819e9, 8.19e12, 8.19e12, 197e12, 6.2e12),
    "tpu_v5p": (128 << 20, 1024, 2765e9, 27.65e12, 27.65e12, 459e12, 14.3e12),
    "tpu_v6e": (128 << 20, 1024, 1640e9, 16.4e12, 16.4e12, 918e12, 28.7e12),
    "trainium2": (28 << 20, 64, 362e9, 3.62e12, 3.62e12, 83e12, 2.6e12),
    "h100": (132 * 228 << 10, 128, 3350e9, 30.9e12, 30.9e12, 989e12, 30.9e12),
    "edge_npu": (512 << 10, 16, 3.75e9, 16e9, 16e9, 1.02e12, 0.032e12),
}
