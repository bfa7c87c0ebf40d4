"""The problem of memory space assignment, free of any IR.

A `Problem` states what the algorithm may know of a scheduled program: its steps and
regions, its values with sizes, places and lives, what each access costs, and the
machine. Instructions ride along as opaque `keys`. So the algorithm can be tested
without a compiler, saved with a bug report, and used by other compilers.

Steps count the flattened schedule from 0; a step's number is its instruction's id.
Lives of values are inclusive `[start, end]` (as heap simulators state them); spans of
regions are half-open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from msa.assignment.allocation import Index, Position, Use
from msa.assignment.modelled import Modelled
from msa.errors import PlanError

#: Operations that only name storage of their operands.
TRIVIAL_OPCODES: Final = frozenset({"get-tuple-element", "tuple", "bitcast"})


@dataclass(frozen=True, slots=True)
class Machine:
    """What the algorithm knows of the machine; bytes, bytes/s.

    Attributes:
        capacity: bytes of alternate memory.
        alignment: of every offset.
        default_bandwidth, alternate_read_bandwidth, alternate_write_bandwidth: bytes/s.
        copy_scaling: bandwidth of asynchronous copies as a share of the default
            memory's, in (0, 1].
    """

    capacity: int
    alignment: int
    default_bandwidth: float
    alternate_read_bandwidth: float
    alternate_write_bandwidth: float
    copy_scaling: float = 1.0


@dataclass(frozen=True, slots=True)
class Region:
    """A computation of the schedule.

    Attributes:
        kind: `entry`, `body`, `condition`, `branch`, `call` or `async`.
        caller: step of the instruction that runs it; -1 for the entry.
        start, end: half-open span of steps.
        root: step of its result.
        parameters: steps of its parameters, by number.
        trip_count: how often one run of the caller runs it (loops), else 1.
    """

    name: str
    kind: str
    caller: int
    start: int
    end: int
    root: int
    parameters: tuple[int, ...]
    trip_count: float = 1.0


@dataclass(frozen=True, slots=True)
class Value:
    """One value and everything that names, reads or aliases it.

    Attributes:
        id: dense; orders values that are otherwise equal.
        buffer: number of the buffer (values that must share storage).
        size: bytes.
        positions: the defining one first, then those that forward it, in the
            order of the dataflow analysis.
        uses: reads, in the order of the dataflow analysis.
        live: inclusive first and last step.
        position_bytes, use_bytes: bytes moved by the instruction at each position
            (writes) and use (reads).
        placeable: may be in alternate memory at all (an array, not a scalar, no
            foreign memory space).
        definable: may be defined there (entry parameters usually may not).
        is_tuple, is_scalar, is_constant, live_out: what their names say.
        pinned: its shape asks for alternate memory from the start.
        reserved: the program's caller keeps it in alternate memory.
        banned_uses: numbers of uses that must read from default memory.
        banned_positions: numbers of positions that must be in default memory.
        contiguous_positions: numbers of positions that must stay in one memory, in one
            piece, from there to their last use.
        key: whatever the maker of the problem wants to find again.
    """

    id: int
    buffer: int
    size: int
    positions: tuple[Position, ...]
    uses: tuple[Use, ...]
    live: tuple[int, int]
    position_bytes: tuple[float, ...] = ()
    use_bytes: tuple[float, ...] = ()
    placeable: bool = True
    definable: bool = True
    is_tuple: bool = False
    is_scalar: bool = False
    is_constant: bool = False
    live_out: bool = False
    pinned: bool = False
    reserved: bool = False
    banned_uses: frozenset[int] = frozenset()
    banned_positions: frozenset[int] = frozenset()
    contiguous_positions: frozenset[int] = frozenset()
    key: Any = field(default=None, compare=False, repr=False)

    @property
    def position(self) -> Position:
        """Where it is defined."""
        return self.positions[0]


@dataclass(frozen=True, slots=True)
class CrossProgramCandidate:
    """A program input that may be fetched before the program starts.

    Attributes:
        value: the input.
        uses: reads through which it does not leave the program.
        annotated: the user asks for it.
        suitable: it is not an activation, is not live out, and so on.
    """

    value: int
    uses: tuple[Use, ...]
    annotated: bool = False
    suitable: bool = True


@dataclass(frozen=True, slots=True)
class SyncMove:
    """A synchronous copy or slice that could be an asynchronous copy.

    Attributes:
        kind: `copy`, `slice` (dynamic ones too) or `fusion`.
        source_operand: operand that is moved.
        control_successors: steps that must come after it.
    """

    kind: str
    source_operand: int = 0
    control_successors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A scheduled program on a machine, as the algorithm sees it.

    Attributes:
        name: of the program.
        machine: capacities and bandwidths.
        opcodes, names: per step.
        operands: per step, the steps of its operands (-1: not in the schedule).
        region_of: per step, the region that it belongs to.
        called: step → regions that it runs, in the order of the calling instruction.
        regions: the entry is the first.
        values: by id.
        buffers: value ids per buffer, ascending.
        compute_seconds, total_bytes: per step, with everything in default memory.
        scratch_bytes: step → scoped memory that it needs while it runs.
        cross_program: inputs that may be fetched ahead.
        result_elements: step → elements of its result, for readers of such inputs.
        copy_factors: step → how much copy bandwidth is left from there to another step.
        sync_moves: step → what a copy or slice there moves, if it can be replaced.
        views: steps whose result is a view of operand 0's storage.
        modelled: costs as they are simulated, if they differ from those above.
        keys: per step, opaque.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> problem.end, list(problem.opcodes), problem.machine.capacity
    (3, ['parameter', 'negate', 'abs'], 134217728)
    """

    name: str
    machine: Machine
    opcodes: Sequence[str]
    names: Sequence[str]
    operands: Sequence[tuple[int, ...]]
    region_of: Sequence[int]
    called: Mapping[int, tuple[int, ...]]
    regions: Sequence[Region]
    values: Sequence[Value]
    buffers: Sequence[tuple[int, ...]]
    compute_seconds: Sequence[float]
    total_bytes: Sequence[float]
    scratch_bytes: Mapping[int, int] = field(default_factory=dict)
    cross_program: Sequence[CrossProgramCandidate] = ()
    result_elements: Mapping[int, int] = field(default_factory=dict)
    copy_factors: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    sync_moves: Mapping[int, SyncMove] = field(default_factory=dict)
    views: frozenset[int] = frozenset()
    modelled: Modelled | None = None
    keys: Sequence[Any] = field(default=(), compare=False, repr=False)

    @property
    def end(self) -> int:
        """Number of steps."""
        return len(self.opcodes)

    @cached_property
    def value_at(self) -> dict[Position, int]:
        """Value id per position."""
        return {
            position: value.id for value in self.values for position in value.positions
        }

    @cached_property
    def has_reserved(self) -> bool:
        """Whether the program's caller keeps any value in alternate memory."""
        return any(value.reserved for value in self.values)

    @cached_property
    def while_levels(self) -> list[int]:
        """Per region, how many loops enclose it."""
        return self._levels(loops_only=True)

    @cached_property
    def nest_levels(self) -> list[int]:
        """Per region, how many regions enclose it."""
        return self._levels(loops_only=False)

    def _levels(self, *, loops_only: bool) -> list[int]:
        levels = [0] * len(self.regions)
        known = [region.caller < 0 for region in self.regions]
        for start in range(len(self.regions)):
            chain = []
            number = start
            while not known[number]:
                chain.append(number)
                known[number] = True
                number = self.region_of[self.regions[number].caller]
            for number in reversed(chain):
                region = self.regions[number]
                counts = not loops_only or region.kind in ("body", "condition")
                levels[number] = levels[self.region_of[region.caller]] + counts
        return levels

    @cached_property
    def runs_asynchronously(self) -> list[bool]:
        """Per region, whether it runs within an asynchronous operation.

        Its steps then stand for any time from the operation's start to its done.
        """
        found: list[bool | None] = [None] * len(self.regions)
        for number in range(len(self.regions)):
            chain = []
            here: int | None = number
            answer = False
            while here is not None:
                known, region = found[here], self.regions[here]
                if known is not None or region.kind == "async" or region.caller < 0:
                    answer = region.kind == "async" if known is None else known
                    found[here] = answer
                    break
                chain.append(here)
                here = self.region_of[region.caller]
            for member in chain:
                found[member] = answer
        return [bool(answer) for answer in found]

    @cached_property
    def simulated(self) -> tuple[list[float], list[float]]:
        """Per step, seconds of arithmetic and bytes accessed as they are simulated."""
        if self.modelled is None:
            return list(self.compute_seconds), [max(x, 0.0) for x in self.total_bytes]
        accessed = [max(x, 0.0) for x in self.modelled.accessed]
        return self.modelled.compute_seconds(), accessed

    @cached_property
    def outermost(self) -> list[int]:
        """Per step, the step of the entry that runs it; itself, in the entry."""
        callers = []
        for region in self.regions:
            caller = region.caller
            while caller >= 0 and self.region_of[caller] != 0:
                caller = self.regions[self.region_of[caller]].caller
            callers.append(caller)
        return [
            step if region == 0 else callers[region]
            for step, region in enumerate(self.region_of)
        ]

    @cached_property
    def trip_counts(self) -> list[float]:
        """Per region, how often it runs in one run of the program."""
        counts = [1.0] * len(self.regions)
        for number in sorted(
            range(len(self.regions)), key=lambda r: self.nest_levels[r]
        ):
            region = self.regions[number]
            outer = counts[self.region_of[region.caller]] if region.caller >= 0 else 1.0
            counts[number] = outer * region.trip_count
        return counts

    def is_trivial(self, step: int) -> bool:
        """Whether the instruction only names storage of its operands."""
        return self.opcodes[step] in TRIVIAL_OPCODES

    def text_of(self, step: int) -> Callable[[], str]:
        """Gives the instruction as text, if the key can be printed; else its name."""
        key = self.keys[step] if self.keys else None
        return lambda: self.names[step] if key is None else str(key)

    def fingerprint_of(self, step: int) -> str:
        """Text that is equal for instructions that do the same to equal shapes.

        Names, attributes and memory spaces do not matter. Without keys to ask,
        sizes stand for shapes.
        """
        key = self.keys[step] if self.keys else None
        if key is not None:
            shapes = [key.shape, *(operand.shape for operand in key.operands)]
            text = "|".join(shape.to_text(with_layout=False) for shape in shapes)
        else:
            steps = [step, *self.operands[step]]
            values = [self.value_at.get(Position(s)) for s in steps]
            sizes = [-1 if v is None else self.values[v].size for v in values]
            text = "|".join(map(str, sizes))
        return f"{self.opcodes[step]}|{text}"

    def describe(self, position: Position) -> str:
        """`name{index}`, as plans write positions."""
        index = ",".join(map(str, position.index))
        return f"{self.names[position.step]}{{{index}}}"

    def describe_use(self, use: Use) -> str:
        """`name:operand{index}`, as plans write uses."""
        index = ",".join(map(str, use.index))
        return f"{self.names[use.step]}:{use.operand}{{{index}}}"

    def check(self) -> None:
        """Raise `PlanError` if the parts do not fit together. Linear."""
        count = self.end
        for name in (
            "names",
            "operands",
            "region_of",
            "compute_seconds",
            "total_bytes",
        ):
            if len(getattr(self, name)) != count:
                raise PlanError(
                    f"problem {self.name!r}: {name} has not {count} entries"
                )
        for value in self.values:
            places = [p.step for p in value.positions] + [u.step for u in value.uses]
            if not places or not all(0 <= step < count for step in places):
                raise PlanError(f"value {value.id} names steps outside the schedule")
            if value.size < 0 or value.live[0] > value.live[1]:
                raise PlanError(f"value {value.id} has a negative size or life")
            if value.id not in self.buffers[value.buffer]:
                raise PlanError(f"value {value.id} is not in buffer {value.buffer}")
        if [value.id for value in self.values] != list(range(len(self.values))):
            raise PlanError("value ids are not dense")

    # -- files ---------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data without keys (the inverse of `from_dict`)."""
        from msa.assignment.problem_io import problem_to_dict

        return problem_to_dict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Problem:
        """A problem from plain data.

        Raises:
            PlanError: a field is missing or has the wrong form.
        """
        from msa.assignment.problem_io import problem_from_dict

        return problem_from_dict(data)


def index_of(data: Sequence[Any]) -> Index:
    """A shape index from plain data."""
    return tuple(int(i) for i in data)
