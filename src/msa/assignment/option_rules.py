"""What options must satisfy, and how they are written."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msa.errors import OptionsError, did_you_mean, shown

if TYPE_CHECKING:
    from msa.assignment.options import Options

_AT_LEAST = {
    "effort": 0,
    "max_retries": 1,
    "max_repacks": 0,
    "while_execution_count": 1,
    "pipeline_overhead_window_size_mib": 0,
    "post_module_scoped_alternate_memory_size_in_bytes": 0,
    "while_use_extra_outstanding_prefetch_limit": 0,
    "extend_async_copies_limit_for_sync_mem_op_conversion": 0,
    "inefficient_use_to_copy_ratio": 0,
    "window_prefetch_max_operands": 0,
    "window_prefetch_min_span_size": 0,
    "max_outstanding_block_prefetches": 0,
    "reserved_bytes_for_block_prefetches": 0,
    "default_memory_space": 0,
    "alternate_memory_space": 0,
    "max_outstanding_prefetches": -1,
    "max_outstanding_evictions": -1,
    "max_cross_program_prefetches": -1,
}

_POSITIVE = (
    "max_size_in_bytes",
    "alignment_in_bytes",
    "async_copy_bandwidth_scaling_factor",
)

#: Of each of them no number may be negative.
_GROUPS = (
    "prefetch_interval_picker",
    "sliced_prefetch_options",
    "memory_bound_loop_optimizer_options",
)

_SPLITTING = (
    "determine_split_dimension_fn",
    "init_split_tree_fn",
    "shape_size_fn",
    "bitcast_split_fn",
)


def check_options(options: Options) -> None:
    """Raise `OptionsError` for a value out of range or two options that conflict."""
    for name, least in _AT_LEAST.items():
        value = getattr(options, name)
        if value < least:
            raise OptionsError(f"{name} must be at least {least}, got {value!r}")
    for name in _POSITIVE:
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise OptionsError(f"{name} must be positive, got {value!r}")
    for group in _GROUPS:
        part = getattr(options, group)
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if value < 0:
                raise OptionsError(
                    f"{group}.{field.name} must be at least 0, got {value!r}"
                )
    repacker = options.repacker
    if repacker is not None and not callable(getattr(repacker, "repack", None)):
        raise OptionsError(
            f"repacker must have a method repack, got {shown(repacker)}",
            hint="msa.heap.BestFitRepacker is one",
        )
    _check_picker(options)
    _check_conflicts(options)


def _check_picker(options: Options) -> None:
    from msa.assignment.options import CostAnalysisPicker

    picker = options.prefetch_interval_picker
    if isinstance(picker, CostAnalysisPicker):
        least = picker.min_overlap_to_async_copy_ratio
        preferred = picker.preferred_overlap_to_async_copy_ratio
        if least > preferred:
            raise OptionsError(
                f"min_overlap_to_async_copy_ratio ({least:g}) exceeds "
                f"preferred_overlap_to_async_copy_ratio ({preferred:g})"
            )
        if not options.cost_analysis:
            _conflict(
                "prefetch_interval_picker=CostAnalysisPicker",
                "cost_analysis=False",
                "give an InstructionCountPicker",
            )
    elif picker.min_overlap > picker.max_overlap:
        raise OptionsError(
            f"min_overlap ({picker.min_overlap}) exceeds "
            f"max_overlap ({picker.max_overlap})"
        )


def _check_conflicts(options: Options) -> None:
    if options.default_memory_space == options.alternate_memory_space:
        _conflict("default_memory_space", "alternate_memory_space", "use two colours")
    if options.default_memory_space:
        raise OptionsError(
            f"default_memory_space must be 0, got {options.default_memory_space}: "
            f"layouts that name no memory are in memory 0"
        )
    if (
        options.buffer_interval_comparator == "memory_boundedness"
        and not options.cost_analysis
    ):
        _conflict(
            'buffer_interval_comparator="memory_boundedness"',
            "cost_analysis=False",
            'order by "spatial"',
        )
    if options.strategy == "search" and options.faithful:
        _conflict('strategy="search"', "faithful=True", 'use strategy="greedy"')
    splitting = [name for name in _SPLITTING if getattr(options, name) is not None]
    if "determine_split_dimension_fn" in splitting:
        if len(splitting) < len(_SPLITTING):
            missing = next(n for n in _SPLITTING if n not in splitting)
            _conflict("determine_split_dimension_fn", f"{missing}=None", "give both")
        if options.sliced_prefetch_options.max_slices:
            _conflict("determine_split_dimension_fn", "sliced_prefetch_options", "")
        if options.enable_window_prefetch:
            _conflict("determine_split_dimension_fn", "enable_window_prefetch", "")
        if options.strategy == "search":
            _conflict(
                "determine_split_dimension_fn",
                'strategy="search"',
                'use strategy="greedy"',
            )
    if options.memory_bound_loop_optimizer_options.enabled and not (
        options.cost_analysis
    ):
        _conflict("memory_bound_loop_optimizer_options", "cost_analysis=False", "")
    if options.enable_window_prefetch and options.op_span_size_fn is None:
        _conflict(
            "enable_window_prefetch", "op_span_size_fn=None", "give a span function"
        )
    if (
        options.hlo_position_to_custom_call_prefetch_details
        and not options.reserved_bytes_for_block_prefetches
    ):
        _conflict(
            "hlo_position_to_custom_call_prefetch_details",
            "reserved_bytes_for_block_prefetches=0",
            "reserve bytes for them",
        )
    if options.block_prefetched_positions and not (
        options.reserved_bytes_for_block_prefetches
    ):
        _conflict(
            "block_prefetched_positions",
            "reserved_bytes_for_block_prefetches=0",
            "reserve bytes for them",
        )
    capacity = options.max_size_in_bytes
    reserved = options.reserved_bytes_for_block_prefetches
    if capacity is not None and reserved > capacity:
        _conflict(
            f"reserved_bytes_for_block_prefetches ({reserved})",
            f"max_size_in_bytes ({capacity})",
            "",
        )


def _conflict(first: str, second: str, hint: str) -> None:
    raise OptionsError(f"{first} and {second} exclude each other", hint=hint)


def unknown_option(name: str, known: set[str]) -> OptionsError:
    """The error for an option that does not exist, with the nearest that does."""
    hint = did_you_mean(name, known, "dataclasses.fields(msa.Options) lists them")
    return OptionsError(f"there is no option {name!r}", hint=hint)


def describe(options: Options) -> str:
    """One `name: value` per line; functions and objects as present or nullptr."""
    lines = []
    for field in dataclasses.fields(options):
        value: Any = getattr(options, field.name)
        if isinstance(value, bool):
            text = str(int(value))
        elif callable(value):
            text = "present"
        elif value is None:
            text = "nullopt" if field.name == "autotuning_config" else "nullptr"
        elif isinstance(value, tuple | dict):
            text = f"{len(value)} elements"
        else:
            text = str(value)
        lines.append(f"{field.name}: {text}")
    return "\n".join(lines)
