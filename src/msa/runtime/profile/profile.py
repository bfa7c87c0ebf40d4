"""What a run measured, by the names of instructions."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msa.errors import FileFormatError
from msa.files import write_text
from msa.hlo.module import Module
from msa.runtime.perf.events import EventType, ProfilerSim

_NONE: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Profile:
    """Measured costs.

    Attributes:
        costs: microseconds of one run of an instruction, by name.
        latencies: microseconds between two instructions, by (source, target).
        traffic: bytes of memory that one run moved, by name, where it is known.
        copy_bandwidths: bytes/s of copies, by direction (`DefaultToAlternate` …).

    >>> profile = Profile({"dot.1": 120.0}, {("start", "done"): 40.0})
    >>> Profile.from_json(profile.to_json()) == profile
    True
    """

    costs: Mapping[str, float] = field(default_factory=lambda: _NONE)
    latencies: Mapping[tuple[str, str], float] = field(default_factory=lambda: _NONE)
    traffic: Mapping[str, float] = field(default_factory=lambda: _NONE)
    copy_bandwidths: Mapping[str, float] = field(default_factory=lambda: _NONE)

    # -- files ---------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data: lists of rows, sorted."""
        data: dict[str, Any] = {
            "costs": [
                {"name": name, "cost_us": cost}
                | ({"bytes": self.traffic[name]} if name in self.traffic else {})
                for name, cost in sorted(self.costs.items())
            ],
            "latencies": [
                {"source": source, "target": target, "latency_us": latency}
                for (source, target), latency in sorted(self.latencies.items())
            ],
        }
        if self.copy_bandwidths:
            data["copies"] = [
                {"direction": name, "bytes_per_second": rate}
                for name, rate in sorted(self.copy_bandwidths.items())
            ]
        return data

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON; also written to `path` if given."""
        return write_text(json.dumps(self.to_dict(), indent=1) + "\n", path)

    @staticmethod
    def from_json(text: str) -> Profile:
        """Read JSON.

        Raises:
            FileFormatError: it is not a profile.
        """
        try:
            data = json.loads(text)
            rows = data.get("costs", [])
            return Profile(
                {row["name"]: _positive(row["cost_us"]) for row in rows},
                {
                    (row["source"], row["target"]): _positive(row["latency_us"])
                    for row in data.get("latencies", [])
                },
                {
                    row["name"]: _positive(row["bytes"])
                    for row in rows
                    if "bytes" in row
                },
                {
                    row["direction"]: _positive(row["bytes_per_second"])
                    for row in data.get("copies", [])
                },
            )
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as e:
            raise FileFormatError(
                f"not a profile: {e!r}",
                hint='{"costs": [{"name": …, "cost_us": …}], "latencies": []}',
            ) from None

    @staticmethod
    def load(path: str | Path) -> Profile:
        """Read a file; see `from_json`."""
        try:
            return Profile.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise FileFormatError(
                f"cannot be read: {error}", where=str(path)
            ) from error

    # -- measured ------------------------------------------------------------

    @staticmethod
    def from_timeline(
        runs: Sequence[ProfilerSim], module: Module | None = None, *, device: int = 0
    ) -> Profile:
        """Medians over several recorded runs.

        A name that occurs several times in a run counts with its mean there. With the
        module, copies of asynchronous pairs give the latency from start to done.
        Copies that the program waited for give the bandwidth of their direction: the
        fastest of them, since others shared the memory with kernels.
        """
        costs: dict[str, list[float]] = {}
        traffic: dict[str, list[float]] = {}
        waits: dict[str, list[float]] = {}
        rates: dict[str, float] = {}
        for run in runs:
            kernels = _means(run, EventType.KERNEL, device)
            for name, (seconds, size) in kernels.items():
                costs.setdefault(name, []).append(seconds * 1e6)
                traffic.setdefault(name, []).append(size)
            for name, (seconds, _) in _means(run, EventType.COPY, device).items():
                waits.setdefault(name, []).append(seconds * 1e6)
            for event in run.of_type(EventType.COPY):
                if event.waited and event.seconds > 0 and event.device == device:
                    direction = event.details.split(" ")[0].removeprefix("kind:")
                    rate = max(event.bytes_read, event.bytes_written) / event.seconds
                    rates[direction] = max(rates.get(direction, 0.0), rate)
        return Profile(
            {name: statistics.median(rows) for name, rows in costs.items()},
            dict(_latencies(waits, module)),
            {name: statistics.median(rows) for name, rows in traffic.items()},
            rates,
        )


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{value!r} is not a cost")
    return number


def _means(
    run: ProfilerSim, kind: EventType, device: int
) -> dict[str, tuple[float, float]]:
    """Seconds and bytes of one run of each name, over all its runs."""
    sums: dict[str, list[float]] = {}
    for event in run.of_type(kind):
        if event.device != device or event.runs <= 0:
            continue
        row = sums.setdefault(event.name, [0.0, 0.0, 0.0])
        row[0] += event.seconds
        row[1] += event.bytes_read + event.bytes_written + event.fast_bytes
        row[2] += event.runs
    return {name: (s / n, size / n) for name, (s, size, n) in sums.items()}


def _latencies(
    waits: Mapping[str, Sequence[float]], module: Module | None
) -> Iterable[tuple[tuple[str, str], float]]:
    if module is None:
        return
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode.endswith("-done") and x.operands:
                start = x.operands[0]
                while start.opcode == "async-update":
                    start = start.operands[0]
                if start.name in waits:
                    yield (start.name, x.name), statistics.median(waits[start.name])
