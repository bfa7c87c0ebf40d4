"""Before and after: what a pass or a plan did to memory and time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from msa.analysis import BufferAssignment, simulate
from msa.analysis.copy_insertion import prepare
from msa.analysis.simulation.program import moved_shapes
from msa.hlo.module import Module
from msa.hlo.shape import Shape
from msa.runtime.diag.loads import usage_of
from msa.runtime.diag.sizes import human_bytes
from msa.runtime.diag.totals import statistics
from msa.runtime.perf.simulated import record_simulation
from msa.target import Target
from msa.units import format_seconds


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """One module. Bytes and seconds.

    Attributes:
        peak, total: in use at once, and of all allocations.
        fragmentation: of temporaries.
        by_space: bytes of allocations per memory space.
        copies: `direction → (count, bytes)` of asynchronous copies.
        seconds: modelled time; default_traffic, alternate_traffic: bytes moved.
        spaces: value → memory space.
    """

    peak: int
    total: int
    fragmentation: int
    by_space: dict[int, int]
    copies: dict[str, tuple[int, int]]
    seconds: float
    default_traffic: float
    alternate_traffic: float
    spaces: dict[str, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two modules side by side.

    Attributes:
        before, after: their figures.
        moved: `(value, from, to)` of values that changed their memory space.
    """

    before: MemoryFigures
    after: MemoryFigures
    moved: tuple[tuple[str, int, int], ...]

    @property
    def copies_added(self) -> dict[str, tuple[int, int]]:
        """Count and bytes of copies by direction, the earlier ones subtracted."""
        found = {}
        for name in sorted({*self.before.copies, *self.after.copies}):
            old = self.before.copies.get(name, (0, 0))
            new = self.after.copies.get(name, (0, 0))
            found[name] = (new[0] - old[0], new[1] - old[1])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "copies_added": self.copies_added}

    def to_text(self) -> str:
        """For a terminal."""
        a, b = self.before, self.after
        rows = [
            ("peak", human_bytes(a.peak), human_bytes(b.peak)),
            ("allocated", human_bytes(a.total), human_bytes(b.total)),
            (
                "temp fragmentation",
                human_bytes(a.fragmentation),
                human_bytes(b.fragmentation),
            ),
            ("time", format_seconds(a.seconds), format_seconds(b.seconds)),
            (
                "default traffic",
                human_bytes(a.default_traffic),
                human_bytes(b.default_traffic),
            ),
            (
                "alternate traffic",
                human_bytes(a.alternate_traffic),
                human_bytes(b.alternate_traffic),
            ),
        ]
        lines = [f"{name:<20}{old:>12} → {new}" for name, old, new in rows]
        lines += [
            f"copies {name}: {count:+d}, {human_bytes(size)}"
            for name, (count, size) in self.copies_added.items()
        ]
        lines.append(f"{len(self.moved)} values moved to another memory")
        return "\n".join(lines)


def compare(before: Module, after: Module, target: Target) -> Comparison:
    """Compare two modules, such as a program before and after a pass.

    Unscheduled ones are scheduled first. Values are matched by the name of their
    instruction.

    >>> import msa
    >>> text = '''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { p = f32[1024,1024]{1,0} parameter(0)
    ...           n = f32[1024,1024]{1,0%s} negate(p)
    ...           ROOT a = f32[1024,1024]{1,0} abs(n) }'''
    >>> before, after = msa.parse(text % ""), msa.parse(text % ":S(1)")
    >>> result = compare(before, after, msa.Target.preset("tpu_v5e"))
    >>> result.moved, result.after.seconds < result.before.seconds
    ((('n{}', 0, 1),), True)
    """
    old, new = memory_figures(before, target), memory_figures(after, target)
    moved = tuple(
        (name, space, new.spaces[name])
        for name, space in sorted(old.spaces.items())
        if new.spaces.get(name, space) != space
    )
    return Comparison(old, new, moved)


def memory_figures(module: Module, target: Target) -> MemoryFigures:
    """The figures of one module; see `compare`."""
    ready = module if module.is_scheduled else prepare(module)
    assignment = BufferAssignment.run(ready)
    recorded = record_simulation(simulate(ready, target))
    summary = statistics(assignment)
    return MemoryFigures(
        int(usage_of(assignment).max(initial=0)),
        summary.total.bytes,
        summary.temporary_fragmentation,
        assignment.total_by_color(),
        _copies(ready),
        simulate(ready, target).elapsed_seconds,
        sum(e.bytes_read + e.bytes_written for e in recorded.events),
        sum(e.fast_bytes for e in recorded.events),
        {
            str(v.position): v.shape.memory_space
            for v in assignment.alias.dataflow.values
            if v.shape.is_array
        },
    )


def _copies(module: Module) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode not in ("copy-start", "async-start"):
                continue
            moved = moved_shapes(x)
            if moved is None:
                continue
            name = _direction(*moved)
            if x.attributes.get("cross_program_prefetch_index") is not None:
                name += ", cross-program"
            count, size = found.get(name, (0, 0))
            found[name] = (count + 1, size + moved[1].byte_size())
    return found


def _direction(source: Shape, result: Shape) -> str:
    names = {0: "default", 1: "alternate", 5: "host"}
    first, second = (
        names.get(s.memory_space, f"space {s.memory_space}") for s in (source, result)
    )
    return f"{first} to {second}"
