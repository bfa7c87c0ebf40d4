"""Counts and bytes of a buffer assignment, and what fragmentation costs.

Source: `xla/service/buffer_assignment.cc` (Stats).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from msa.analysis.buffer_assignment import BufferAssignment, allocation_classes
from msa.runtime.diag.loads import load_of
from msa.runtime.diag.sizes import human_bytes, percent


@dataclass(frozen=True, slots=True)
class Tally:
    """How many allocations, and their bytes."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Allocations by kind; a parameter that lives out is counted in both kinds.

    Attributes:
        parameters, constants, maybe_live_out, temporaries, total: of allocations.
        temporary_fragmentation: bytes of temporaries beyond a perfect packing of
            them, or -1 if that is not known.
        total_fragmentation: bytes of all allocations beyond what the program needs
            at once, or -1 if a computation has no schedule.
    """

    parameters: Tally
    constants: Tally
    maybe_live_out: Tally
    temporaries: Tally
    total: Tally
    temporary_fragmentation: int
    total_fragmentation: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is not known is left out."""
        data = asdict(self)
        for name in ("temporary_fragmentation", "total_fragmentation"):
            if data[name] < 0:
                del data[name]
        return data

    def to_text(self) -> str:
        """One aligned line per item."""
        rows = [
            ("parameter allocation", self.parameters),
            ("constant allocation", self.constants),
            ("maybe_live_out allocation", self.maybe_live_out),
            ("preallocated temp allocation", self.temporaries),
            ("total allocation", self.total),
        ]
        lines = [
            f"{name:<31}{row.count:>6}{human_bytes(row.bytes):>12}"
            for name, row in rows
        ]
        for name, size, whole in (
            ("temp fragmentation", self.temporary_fragmentation, self.temporaries),
            ("total fragmentation", self.total_fragmentation, self.total),
        ):
            if size >= 0:
                share = percent(size, whole.bytes)
                lines.append(f"{name:<37}{human_bytes(size):>12} ({share:.2f}%)")
        return "\n".join(lines)


def statistics(assignment: BufferAssignment) -> Statistics:
    """Count the allocations of an assignment.

    Linear in values and steps of each allocation.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.analysis import BufferAssignment
    >>> statistics(BufferAssignment.run(module)).total.bytes
    2048
    """
    every = [a for a in assignment.allocations if not a.is_thread_local]
    temporary = [a for a in every if a.is_temporary]
    held = sum(a.size for a in temporary)
    needed = int(load_of(assignment, temporary).max(initial=0))
    total = sum(a.size for a in every)
    least = -1
    if _fully_scheduled(assignment):
        least = int(load_of(assignment, every).max(initial=0))
    return Statistics(
        _tally(a.size for a in every if a.is_parameter),
        _tally(a.size for a in every if a.is_constant),
        _tally(a.size for a in every if a.maybe_live_out),
        _tally(a.size for a in temporary),
        _tally(a.size for a in every),
        held - needed,
        total - least if least >= 0 else -1,
    )


def _tally(sizes: Any) -> Tally:
    rows = list(sizes)
    return Tally(len(rows), sum(rows))


def _fully_scheduled(assignment: BufferAssignment) -> bool:
    module = assignment.module
    schedule = module.schedule
    return schedule is not None and all(
        c in schedule for c in allocation_classes(module).global_
    )
