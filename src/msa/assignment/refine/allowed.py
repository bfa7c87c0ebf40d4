"""What options, and the program, leave open to be decided anew."""

from __future__ import annotations

from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.problem import Problem


def may_refine(problem: Problem, options: Options) -> bool:
    """Whether nothing that was asked for fixes the decisions."""
    return not _fixed_by(problem, options)


def may_retime(options: Options) -> bool:
    """Whether copies may start and end at other times."""
    return (
        not _timed_by(options)
        and options.max_outstanding_prefetches < 0
        and options.max_outstanding_evictions < 0
        and not options.enforce_prefetch_fifo_order
    )


def search_hindrance(problem: Problem, options: Options) -> str:
    """Why a search decides nothing anew; empty: it does.

    >>> from msa.assignment import Options
    >>> from msa.assignment.options import InstructionCountPicker
    >>> search_hindrance(None, Options(effort=0))
    'effort=0'
    """
    if options.effort <= 0:
        return "effort=0"
    hindrance = _fixed_by(problem, options) or _timed_by(options)
    if not hindrance and options.size_fn is not None:
        return "size_fn is given"
    return hindrance


def _fixed_by(problem: Problem, options: Options) -> str:
    """What fixes where values are."""
    fixed = {
        "faithful=True": options.faithful,
        "always_spill_to_default_memory=True": options.always_spill_to_default_memory,
        "buffer_colorings are given": options.buffer_colorings,
        "synchronous copies or slices are replaced": options.sync_replacement,
        "block_prefetched_positions are given": options.block_prefetched_positions,
        "hlo_position_to_custom_call_prefetch_details are given": (
            options.hlo_position_to_custom_call_prefetch_details
        ),
        "enable_window_prefetch=True": options.enable_window_prefetch,
        "post_allocation_transformation_fn is given": (
            options.post_allocation_transformation_fn is not None
        ),
    }
    for what, is_so in fixed.items():
        if is_so:
            return what
    if problem.has_reserved:
        return "the program's caller keeps values in fast memory"
    return ""


def _timed_by(options: Options) -> str:
    """What fixes when things are copied."""
    if not isinstance(options.prefetch_interval_picker, CostAnalysisPicker):
        return "prefetch_interval_picker counts instructions"
    if not options.cost_analysis:
        return "cost_analysis=False"
    if options.preferred_prefetch_overrides:
        return "preferred_prefetch_overrides are given"
    if options.memory_bound_loop_optimizer_options.enabled:
        return "the memory-bound loop optimizer is enabled"
    return ""
