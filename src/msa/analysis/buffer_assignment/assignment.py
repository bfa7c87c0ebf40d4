"""Buffer assignment: every value of a program gets a byte range of an allocation.

Source: `xla/service/buffer_assignment.{h,cc}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.analysis.buffer_assignment.allocation import BufferAllocation, Slice
from msa.analysis.buffer_assignment.assigner import Assigner, Strategy
from msa.analysis.buffer_assignment.combine import combine_temporaries, isolate
from msa.analysis.buffer_assignment.computations import allocation_classes
from msa.analysis.buffer_assignment.options import BufferAssignmentOptions
from msa.analysis.buffer_assignment.peak import allocation_load, values_at
from msa.analysis.buffer_assignment.temporaries import assign_temporaries
from msa.analysis.live_ranges import LiveRanges
from msa.analysis.operand_sharing import OperandSharing
from msa.errors import HloError, PlanError

if TYPE_CHECKING:
    from msa.analysis.alias import AliasAnalysis
    from msa.analysis.values import Position, Value
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module
    from msa.hlo.shape import ShapeIndex


@dataclass(frozen=True, slots=True)
class AssignmentStatistics:
    """Bytes by kind of allocation. A parameter that lives out is in both kinds.

    `fragmentation` is the share of temporary bytes beyond the largest load.
    """

    parameters: int
    constants: int
    outputs: int
    temporaries: int
    thread_local: int
    total: int
    fragmentation: float


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """What an assignment takes of one memory space.

    Attributes:
        total: bytes of its allocations.
        count: of its allocations.
        peak: most bytes of values that are needed at one step.
    """

    total: int
    count: int
    peak: int


class BufferAssignment:
    """Allocations, and where each value lies.

    Attributes:
        module: what was assigned; it is not changed.
        allocations: in index order.
        live: the live ranges that it rests on.
        options: how it was made.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> assignment = BufferAssignment.run(module)
    >>> sorted((a.kind, a.size) for a in assignment.allocations)
    [('output', 1024), ('parameter', 1024)]
    >>> assignment.verify()
    """

    __slots__ = ("_home", "allocations", "live", "module", "options")

    def __init__(
        self,
        module: Module,
        allocations: list[BufferAllocation],
        home: dict[int, BufferAllocation],
        live: LiveRanges,
        options: BufferAssignmentOptions,
    ) -> None:
        self.module = module
        self.allocations = allocations
        self.live = live
        self.options = options
        self._home = home

    @staticmethod
    def run(
        module: Module,
        options: BufferAssignmentOptions | None = None,
        *,
        live: LiveRanges | None = None,
    ) -> BufferAssignment:
        """Assign the buffers of a scheduled module.

        Raises:
            ScheduleError: the module has no schedule.
            HloError: a computation is both scheduled and embedded, or the call
                graph is not flat.
        """
        options = options or BufferAssignmentOptions()
        live = live or LiveRanges.run(module)
        if not live.alias.dataflow.call_graph.is_flattened:
            raise HloError(
                f"several places of {module.name!r} call the same computation",
                hint="msa.analysis.prepare(module) gives each its own",
            )
        strategies = list(Strategy)
        if options.sharing == "standard":
            strategies = [Strategy.STANDARD]
        assigners = [_assign(module, live, options, s) for s in strategies]
        assigner = min(assigners, key=_temporary_bytes)
        if options.enable_fallback and _exceeds(assigner):
            plain = BufferAssignmentOptions(
                **{
                    name: getattr(options, name)
                    for name in options.__slots__
                    if name not in ("buffer_order", "enable_fallback")
                }
            )
            assigner = _assign(module, live, plain, Strategy.STANDARD)
        return BufferAssignment(
            module, assigner.allocations, assigner.home, live, options
        )

    # -- queries -------------------------------------------------------------

    @property
    def alias(self) -> AliasAnalysis:
        """The buffers behind the values."""
        return self.live.alias

    def has_allocation(self, value: Value) -> bool:
        """Whether a value has storage."""
        return value.id in self._home

    def allocation_of(self, value: Value) -> BufferAllocation:
        """The allocation of a value (raises PlanError when it has none)."""
        home = self._home.get(value.id)
        if home is None:
            raise PlanError(f"{value} has no allocation")
        return home

    def slice_of(self, value: Value) -> Slice:
        """The byte range of a value (raises PlanError when it has none)."""
        return self.allocation_of(value).slice_of(value.id)

    def all_slices(
        self, instruction: Instruction, index: ShapeIndex = ()
    ) -> tuple[Slice, ...]:
        """Byte ranges of all values that a node may hold, sorted."""
        values = self.alias.dataflow.values_at(instruction, index)
        slices = {self.slice_of(v) for v in values if self.has_allocation(v)}
        return tuple(sorted(slices, key=lambda s: (s.allocation, s.offset, s.size)))

    def unique_slice(self, instruction: Instruction, index: ShapeIndex = ()) -> Slice:
        """The byte range of a node.

        Raises:
            PlanError: the node has none, or several are possible.
        """
        slices = self.all_slices(instruction, index)
        if len(slices) != 1:
            raise PlanError(
                f"{instruction.name} {index} has {len(slices)} slices, not one"
            )
        return slices[0]

    def shares_slice(self, a: Position, b: Position) -> bool:
        """Whether two nodes lie in the same bytes, surely."""
        first, second = self.all_slices(*a), self.all_slices(*b)
        return len(first) == 1 and first == second

    def disjoint_slices(self, a: Instruction, b: Instruction) -> bool:
        """Whether no node of one shares a byte with a node of the other.

        Nodes without storage make the answer no.
        """
        first = [self.all_slices(a, index) for index, _ in a.shape.nodes()]
        second = [self.all_slices(b, index) for index, _ in b.shape.nodes()]
        if not all(first) or not all(second):
            return False
        return not any(
            x.overlaps(y)
            for slices in first
            for x in slices
            for others in second
            for y in others
        )

    def bytes_of(self, kind: str) -> int:
        """Bytes of all allocations of a kind (see `BufferAllocation.kind`)."""
        return sum(a.size for a in self.allocations if a.kind == kind)

    @property
    def temporary_bytes(self) -> int:
        """Bytes that belong to the program alone."""
        return self.bytes_of("temporary")

    def total_by_color(self) -> dict[int, int]:
        """Bytes of all allocations per memory space."""
        totals: dict[int, int] = {}
        for allocation in self.allocations:
            totals[allocation.color] = totals.get(allocation.color, 0) + allocation.size
        return totals

    def by_color(self) -> dict[int, SpaceUse]:
        """Bytes, allocations and peak per memory space.

        O(values log values + steps) per memory space.

        >>> import msa
        >>> module = msa.schedule(msa.parse('''
        ... ENTRY e { p = f32[256] parameter(0) n = f32[256]{0:S(1)} negate(p)
        ...           ROOT a = f32[256] abs(n) }'''))
        >>> use = BufferAssignment.run(module).by_color()
        >>> use[1].total, use[1].count, use[0].total, use[0].count
        (1024, 1, 2048, 2)
        """
        steps = len(self.live.schedule) + 1
        counts: dict[int, int] = {}
        loads: dict[int, Any] = {}
        for allocation in self.allocations:
            color = allocation.color
            counts[color] = counts.get(color, 0) + 1
            load = allocation_load(allocation, self.live, steps)
            loads[color] = loads[color] + load if color in loads else load
        totals = self.total_by_color()
        return {
            color: SpaceUse(totals[color], count, int(loads[color].max(initial=0)))
            for color, count in counts.items()
        }

    def indefinite_bytes(self, color: int) -> int:
        """Bytes of a memory space that are taken for the whole run."""
        return sum(
            a.size for a in self.allocations if a.color == color and not a.is_temporary
        )

    def statistics(self) -> AssignmentStatistics:
        """Bytes by kind."""
        kinds = {"parameter": 0, "constant": 0, "thread-local": 0, "temporary": 0}
        outputs = 0
        ideal = 0
        steps = len(self.live.schedule) + 1
        for a in self.allocations:
            if a.kind in kinds:
                kinds[a.kind] += a.size
            if a.maybe_live_out:
                outputs += a.size
            if a.is_temporary:
                ideal += int(allocation_load(a, self.live, steps).max(initial=0))
        temporaries = kinds["temporary"]
        return AssignmentStatistics(
            parameters=kinds["parameter"],
            constants=kinds["constant"],
            outputs=outputs,
            temporaries=temporaries,
            thread_local=kinds["thread-local"],
            total=sum(a.size for a in self.allocations),
            fragmentation=1 - ideal / temporaries if temporaries else 0.0,
        )

    # -- forms ---------------------------------------------------------------

    def colored_module(self) -> Module:
        """A copy of the module whose layouts name the memory space of each value."""
        copy = self.module.clone()
        twins = {
            old: new
            for ours, theirs in zip(
                self.module.computations, copy.computations, strict=True
            )
            for old, new in zip(ours.instructions, theirs.instructions, strict=True)
        }
        for value in self.alias.dataflow.values:
            if not self.has_allocation(value):
                continue
            color = self.options.color_of(value)
            for x, index in value.positions:
                twin = twins[x]
                node = twin.shape.subshape(index)
                if node.is_array and node.memory_space != color:
                    twin.shape = twin.shape.with_subshape(
                        index, node.with_memory_space(color)
                    )
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `load_allocations` reads it."""
        return {
            "module": self.module.name,
            "allocations": [_allocation_dict(a) for a in self.allocations],
        }

    def verify(self) -> None:
        """Check everything that must hold of an assignment, from live ranges anew.

        Raises:
            PlanError: with every violation.
        """
        from msa.analysis.buffer_assignment.verify import verify_assignment

        problems = verify_assignment(self)
        if problems:
            shown = "\n  ".join(problems[:20])
            raise PlanError(f"{len(problems)} violations:\n  {shown}")

    def __repr__(self) -> str:
        return f"<BufferAssignment {self.module.name}: {len(self.allocations)}>"


def _temporary_bytes(assigner: Assigner) -> int:
    return sum(a.size for a in assigner.allocations if a.is_temporary)


def _assign(
    module: Module,
    live: LiveRanges,
    options: BufferAssignmentOptions,
    strategy: Strategy,
) -> Assigner:
    sharing = OperandSharing(live.alias.dataflow, pairs=live.alias.pairs)
    assigner = Assigner(live, sharing, options, strategy)
    classes = allocation_classes(module)
    assigner.assign_presets()
    assigner.assign_all(classes.global_, thread_local=False)
    assign_temporaries(assigner)
    fused = {
        x.fused_computation
        for c in module.computations
        for x in c.instructions
        if x.opcode == "fusion"
    }
    local = [c for c in classes.thread_local if c not in fused]
    assigner.assign_all(local, thread_local=True)
    combine_temporaries(assigner)
    steps = len(live.schedule) + 1
    for allocation in assigner.allocations:
        if allocation.is_temporary:
            load = allocation_load(allocation, live, steps)
            if len(load) and load.max() > 0:
                allocation.peak = values_at(allocation, live, int(load.argmax()))
            isolate(assigner, allocation)
    return assigner


def _exceeds(assigner: Assigner) -> bool:
    """Whether a colour takes more than its limit allows."""
    options = assigner.options
    for color, limit in options.color_limit.items():
        if limit <= 0:
            continue
        total = sum(a.size for a in assigner.allocations if a.color == color)
        if total > max(0, limit - options.fallback_margin_bytes):
            return True
    return False


def _allocation_dict(a: BufferAllocation) -> dict[str, Any]:
    flags: Iterable[str] = (
        "aliased_with_output",
        "is_constant",
        "is_tuple",
        "is_thread_local",
        "maybe_live_out",
        "preset",
    )
    row: dict[str, Any] = {
        "index": a.index,
        "size": a.size,
        "color": a.color,
        "page": a.page,
        "parameter": [a.parameter[0], list(a.parameter[1])] if a.parameter else None,
        "assigned": [[v, offset, size] for v, (offset, size) in a.assigned.items()],
        "peak": list(a.peak),
        "cross_color": list(a.cross_color),
    }
    row.update((name, True) for name in flags if getattr(a, name))
    return row


def load_allocations(data: Any) -> list[BufferAllocation]:
    """Allocations from `BufferAssignment.to_dict`.

    Raises:
        FileFormatError: offsets or sizes are negative, a slice lies outside of its
            allocation, or indices do not count up from 0.
    """
    from msa.analysis.buffer_assignment.reading import read_allocations

    return read_allocations(data)
