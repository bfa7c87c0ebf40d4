"""How a value could be cut into slices that lie next to each other in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.assignment.allocation import Allocation, SliceBounds
from msa.assignment.options import SlicedPrefetchOptions
from msa.heap.chunk import align_up

if TYPE_CHECKING:
    from msa.assignment.request import AllocationRequest
    from msa.assignment.state import State


@dataclass(frozen=True, slots=True)
class SliceProposal:
    """One slice: where it is in the shape, and its bytes. In order of address."""

    bounds: tuple[SliceBounds, ...]
    size: int


def propose(
    state: State, request: AllocationRequest, source: Allocation
) -> tuple[SliceProposal, ...]:
    """Slices for a prefetch from `source`; none if it should be copied whole.

    The option `propose_slice_fn` decides; without it, `cut_evenly` does.
    """
    options = state.options.sliced_prefetch_options
    if (
        not state.options.slicing
        or request.replaces_slice
        or request.window
        or request.size < max(options.min_bytes, 1)
    ):
        return ()
    function = state.options.propose_slice_fn or cut_evenly
    step, index = source.position
    key = state.problem.keys[step] if state.problem.keys else None
    if key is None:
        proposed = function(request.source.value, options)
    else:
        proposed = function(key.shape.subshape(index), options)
    slices = tuple(proposed or ())
    if len(slices) < 2 or sum(s.size for s in slices) != request.size:
        return ()
    if options.fail_on_non_alignment_boundary_slice_proposal:
        offset = 0
        for piece in slices:
            if offset % state.alignment:
                return ()
            offset += piece.size
    return slices


def is_uniform(options: SlicedPrefetchOptions) -> bool:
    """Whether slices are of a byte view instead of the shape."""
    return options.max_slices > 0 and options.preferred_slice_size > 0


def cut_evenly(
    shape: Any, options: SlicedPrefetchOptions
) -> Sequence[SliceProposal] | None:
    """At most `max_slices` slices along the outermost dimension in memory.

    With a preferred size, slices of a one-dimensional byte view of that size. None if
    the shape cannot be cut so that every slice is contiguous.

    >>> from msa.hlo.primitive import F32
    >>> from msa.hlo.shape import Shape
    >>> options = SlicedPrefetchOptions(max_slices=3, min_bytes=8)
    >>> [s.size for s in cut_evenly(Shape.array(F32, (8, 8)), options)]
    [96, 96, 64]
    """
    total = shape.byte_size()
    if is_uniform(options):
        return _cut_bytes(total, options)
    dimensions = shape.dimensions
    layout = shape.layout
    if not shape.is_array or not dimensions or (layout is not None and layout.tiles):
        return None
    order = (
        tuple(reversed(range(len(dimensions))))
        if layout is None
        else layout.minor_to_major
    )
    outer = next((d for d in reversed(order) if dimensions[d] > 1), None)
    if outer is None or total % dimensions[outer]:
        return None
    row = total // dimensions[outer]
    rows = -(-dimensions[outer] // options.max_slices)
    cuts = []
    for start in range(0, dimensions[outer], rows):
        limit = min(start + rows, dimensions[outer])
        bounds = tuple(
            SliceBounds(start, limit) if d == outer else SliceBounds(0, size)
            for d, size in enumerate(dimensions)
        )
        cuts.append(SliceProposal(bounds, (limit - start) * row))
    return cuts


def _cut_bytes(total: int, options: SlicedPrefetchOptions) -> list[SliceProposal]:
    size = options.preferred_slice_size
    # Fewer, larger slices if there would be too many.
    size = max(size, align_up(-(-total // options.max_slices), size))
    return [
        SliceProposal(
            (SliceBounds(start, min(start + size, total)),),
            min(start + size, total) - start,
        )
        for start in range(0, total, size)
    ]
