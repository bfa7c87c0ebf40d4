"""What rematerialization may do, and how hard it may look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msa.analysis.costs import CostOptions
from msa.errors import OptionsError, shown
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.units import parse_bytes

ALGORITHMS: Final = ("always", "peak-priority")
_COUNTS: Final = {"block_size_limit": 1, "block_effort_factor": 0, "min_remat_bytes": 0}


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of the host, where values can wait.

    Attributes:
        bytes_per_second_to, bytes_per_second_from: copies to the host and back.
        space: memory space of the host in layouts.
        rates: operations per second by property of the cost analysis (`flops`,
            `transcendentals`, `bytes accessed`); they say what copies hide behind.
    """

    bytes_per_second_to: float
    bytes_per_second_from: float
    space: int = 5
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rates = (self.bytes_per_second_to, self.bytes_per_second_from)
        if not all(isinstance(r, int | float) and r > 0 for r in rates):
            raise OptionsError(
                "copies to and from the host need a bandwidth over 0, not "
                f"{shown(rates)}"
            )


@dataclass(frozen=True, slots=True)
class RematerializationOptions:
    """Settings of `rematerialize`.

    Attributes:
        memory_limit_bytes: the most bytes that may be live, arguments not counted;
            text such as `"16MiB"` is read.
        recompute: values may be computed again.
        compress: values may wait in the layout that `compact_shape` gives.
        host: where values may wait instead of in device memory; None for nowhere.
        compact_shape: the same array in a smaller layout (or the same).
        size_of: bytes of a shape; a tuple is its table of pointers.
        algorithm: `always` walks each computation once and acts wherever the limit
            is passed; `peak-priority` acts at the highest peak, again and again.
        block_size_limit: most instructions recomputed together.
        block_effort_factor: evaluations of blocks of several instructions, per
            evaluation of single ones, at one step.
        stop_at_floor: do no work for a limit below the proved floor, but only down to
            the floor.
        min_remat_bytes: smaller results are not looked at.
        async_parallelism: per execution thread, how many of its computations run
            beside the program at once.
        execution_threads: computations of other threads are left alone; empty
            means all.
        costs: how operations are counted (what an action adds).
        on_rematerialized: called with each original and its clone, and then with each name
            of (a part of) the original that was read and what is read instead.
        max_seconds: a warning is given once when more time is spent.

    >>> RematerializationOptions(memory_limit_bytes=1 << 20).recompute
    True
    """

    memory_limit_bytes: int
    recompute: bool = True
    compress: bool = False
    host: HostMemory | None = None
    compact_shape: Callable[[Shape], Shape] = lambda shape: shape
    size_of: Callable[[Shape], int] = Shape.byte_size
    algorithm: str = "always"
    block_size_limit: int = 8
    block_effort_factor: int = 8
    stop_at_floor: bool = False
    min_remat_bytes: int = 0
    async_parallelism: Mapping[str, int] = field(default_factory=dict)
    execution_threads: tuple[str, ...] = ()
    costs: CostOptions | None = None
    on_rematerialized: Callable[[Instruction, Instruction], None] | None = None
    max_seconds: float = 180.0

    def __post_init__(self) -> None:
        limit = parse_bytes(self.memory_limit_bytes)
        object.__setattr__(self, "memory_limit_bytes", limit)
        if self.algorithm not in ALGORITHMS:
            raise OptionsError(
                f"algorithm is one of {', '.join(ALGORITHMS)}, not {self.algorithm!r}"
            )
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise OptionsError(
                    f"{name} is a whole number, at least {least}, not {shown(value)}"
                )
        for name in ("recompute", "compress", "stop_at_floor"):
            if not isinstance(getattr(self, name), bool):
                raise OptionsError(f"{name} is True or False")
        for name in ("compact_shape", "size_of"):
            if not callable(getattr(self, name)):
                raise OptionsError(f"{name} is a function of a shape")
        if self.host is not None and not isinstance(self.host, HostMemory):
            raise OptionsError(
                f"host is a HostMemory or None, not {shown(self.host)}",
                hint="HostMemory(bytes_per_second_to=..., bytes_per_second_from=...)",
            )
        if self.on_rematerialized is not None and not callable(self.on_rematerialized):
            raise OptionsError("on_rematerialized is a function of two instructions")
        self._check_threads()

    def _check_threads(self) -> None:
        threads = self.execution_threads
        if isinstance(threads, str) or not isinstance(
            threads, tuple | list | frozenset
        ):
            raise OptionsError(
                f"execution_threads is a tuple of names, not {shown(threads)}",
                hint='("main",)',
            )
        beside = self.async_parallelism
        counts = beside.values() if isinstance(beside, Mapping) else [-1]
        if not all(isinstance(n, int) and n >= 0 for n in counts):
            raise OptionsError(
                f"async_parallelism maps threads to whole numbers, not {shown(beside)}"
            )
        if not isinstance(self.max_seconds, int | float) or not self.max_seconds >= 0:
            raise OptionsError(
                f"max_seconds is a number of seconds, not {shown(self.max_seconds)}"
            )

    @property
    def does_nothing(self) -> bool:
        """Whether every strategy is switched off."""
        return not (self.recompute or self.compress or self.host)

    def covers(self, thread: str) -> bool:
        """Whether computations of an execution thread are looked at."""
        return not self.execution_threads or thread in self.execution_threads
