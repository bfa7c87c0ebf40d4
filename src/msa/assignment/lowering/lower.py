"""Lowering: from an allocation sequence to a module with copies and memory spaces.

Reference: `MemorySpaceAssignment::Process` and `Run` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msa.analysis.costs import CostOptions
from msa.analysis.manager import AnalysisManager
from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
    PinnedAllocation,
    Position,
    ScopedAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.lowering.coloring import (
    Placed,
    decolor_inputs,
    export_and_color,
)
from msa.assignment.lowering.copies import lower_copy, lower_pinned
from msa.assignment.lowering.copy_schedule import schedule_copies
from msa.assignment.lowering.loops import complete_parent, lower_parent
from msa.assignment.lowering.needed import needed_allocations
from msa.assignment.lowering.sequence import set_schedule
from msa.assignment.lowering.simplify import simplify
from msa.assignment.lowering.slices import lower_sliced_copy, lower_window
from msa.assignment.lowering.spill import spill_everywhere
from msa.assignment.lowering.state import LoweringState, Place
from msa.assignment.options import Options
from msa.errors import PlanError
from msa.heap.chunk import Chunk
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module


@dataclass(frozen=True, slots=True)
class Lowered:
    """A module with its values placed.

    Attributes:
        module: the new module; it shares nothing mutable with the input.
        chunks: defining place of each buffer in alternate memory → where it is.
        scoped: instruction → its scratch while it runs.
        post_module: scratch after the last instruction, or None.
        copies: allocation → pairs (start, done) that move its bytes.
        places: allocation → where it lives in the new module.
        analyses: of the new module.
    """

    module: Module
    chunks: dict[Place, Chunk]
    scoped: dict[Instruction, Chunk]
    post_module: Chunk | None
    copies: dict[Allocation, list[tuple[Instruction, Instruction]]]
    places: dict[Allocation, Place]
    analyses: AnalysisManager = field(repr=False)

    @property
    def peak_bytes(self) -> int:
        """Highest address used in alternate memory."""
        ends = [chunk.end for chunk in (*self.chunks.values(), *self.scoped.values())]
        if self.post_module is not None:
            ends.append(self.post_module.end)
        return max(ends, default=0)


_LOWER: dict[type[Allocation], Callable[[LoweringState, Any], None]] = {
    PinnedAllocation: lower_pinned,
    MirroredAllocation: lower_pinned,
    CopyAllocation: lower_copy,
    SlicedCopyAllocation: lower_sliced_copy,
    WindowPrefetchedAllocation: lower_window,
    ParentAllocation: lower_parent,
}


def lower(
    module: Module,
    flattened: Sequence[Instruction],
    allocations: Sequence[Allocation],
    options: Options,
    fetched_inputs: Sequence[Position] = (),
    *,
    cost_options: CostOptions | None = None,
) -> Lowered:
    """Lower an allocation sequence onto a clone of `module`. Linear but for sorting.

    `flattened` is the module's flattened schedule, to which steps refer;
    `fetched_inputs` are all positions of inputs that are fetched before it begins;
    `cost_options` are those of the new module's analyses.

    Raises:
        PlanError: the sequence contradicts itself.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> from msa.assignment import Options, run_greedy
    >>> lowered = lower(module, problem.keys, run_greedy(problem).allocations, Options())
    >>> lowered.peak_bytes
    1024
    """
    state = LoweringState(module, flattened, options)
    decolor_inputs(
        state.module,
        (Place(state.steps[x.step], x.index) for x in fetched_inputs),
        options.alternate_memory_space,
    )
    sequence = list(allocations)
    if options.always_spill_to_default_memory:
        sequence = spill_everywhere(sequence, state.steps)
    needed = needed_allocations(sequence)
    state.redirect(needed)
    _check_pins(needed, state)
    placed, scoped, post_module = _process(state, needed)
    copies = schedule_copies(state)
    removed = simplify(state)
    set_schedule(state, removed, copies)
    # Colors change neither values nor storage sharing: the analyses stay true.
    analyses = AnalysisManager(state.module, cost_options=cost_options)
    chunks = export_and_color(
        [item for item in placed if item.place.instruction not in removed],
        analyses.alias,
        options,
    )
    return Lowered(
        state.module,
        chunks,
        {i: chunk for i, chunk in scoped.items() if i not in removed},
        post_module,
        state.copy_of,
        state.places,
        analyses,
    )


def _process(
    state: LoweringState, needed: Sequence[Allocation]
) -> tuple[list[Placed], dict[Instruction, Chunk], Chunk | None]:
    """Edit the clone; what is in alternate memory, where."""
    placed: list[Placed] = []
    scoped: dict[Instruction, Chunk] = {}
    post_module: Chunk | None = None
    for allocation in needed:
        if isinstance(allocation, ScopedAllocation):
            assert allocation.chunk is not None
            if allocation.is_post_module:
                post_module = allocation.chunk
            else:
                scoped[state.steps[allocation.position.step]] = allocation.chunk
            continue
        _LOWER[type(allocation)](state, allocation)
        if allocation.is_alternate and allocation.chunk is not None:
            if isinstance(allocation, SlicedCopyAllocation):
                pairs = state.copy_of[allocation]
                placed += [
                    Placed(Place(done), piece.chunk)
                    for piece, (_, done) in zip(allocation.slices, pairs, strict=True)
                ]
            placed.append(
                Placed(state.places[allocation], allocation.chunk, allocation.split)
            )
    state.apply_edits()
    for allocation in needed:
        if isinstance(allocation, ParentAllocation):
            complete_parent(state, allocation)
    return placed, scoped, post_module


def _check_pins(needed: Sequence[Allocation], state: LoweringState) -> None:
    """No place is pinned twice: its memory would be ambiguous."""
    pinned: dict[Position, Allocation] = {}
    for allocation in needed:
        if not isinstance(allocation, PinnedAllocation):
            continue
        other = pinned.setdefault(allocation.position, allocation)
        if other is not allocation:
            place = Place(
                state.steps[allocation.position.step], allocation.position.index
            )
            raise PlanError(
                f"pinned twice: in steps [{other.start}, {other.end}] and "
                f"[{allocation.start}, {allocation.end}]",
                where=f"step {allocation.position.step}, {place.text}",
            )
