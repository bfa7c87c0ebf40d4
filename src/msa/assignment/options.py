"""Options of memory space assignment.

Names are XLA's (`xla/service/memory_space_assignment/options.h`). Defaults are
those of the recorded reference plans: prefetch overlap ratios 0.8 / 1.5 / 10, order
by memory boundedness, unlimited copies, one attempt per buffer, no repacking, one
cross-program prefetch. Functions take the analyses' objects (values, positions,
uses, instructions) and are asked while the problem is built, unless stated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msa.assignment.allocation import MemorySpace
from msa.assignment.filters import MsaSortOrderOverride, PreferredPrefetchOverride
from msa.hlo.layout import SplitConfig

Strategy = Literal["greedy", "search"]


@dataclass(frozen=True, slots=True)
class CostAnalysisPicker:
    """Prefetch by estimated run time: overlap is a multiple of the copy's time.

    Attributes:
        min_overlap_to_async_copy_ratio: a prefetch with less overlap is not made.
        preferred_overlap_to_async_copy_ratio: the search starts from this.
        max_overlap_to_mem_size_async_copy_ratio: longest stay in alternate memory, as
            a multiple of the time to copy all of it.

    >>> CostAnalysisPicker(preferred_overlap_to_async_copy_ratio=2.0).min_overlap_to_async_copy_ratio
    0.8
    """

    min_overlap_to_async_copy_ratio: float = 0.8
    preferred_overlap_to_async_copy_ratio: float = 1.5
    max_overlap_to_mem_size_async_copy_ratio: float = 10.0


@dataclass(frozen=True, slots=True)
class InstructionCountPicker:
    """Prefetch by instruction counts: overlap between `min_overlap` and `max_overlap`.

    >>> InstructionCountPicker(min_overlap=2, max_overlap=10).max_overlap
    10
    """

    min_overlap: int
    max_overlap: int


@dataclass(frozen=True, slots=True)
class SlicedPrefetchOptions:
    """Prefetches in slices; off while `max_slices` is below 2.

    Attributes:
        max_slices: at most so many slices.
        min_bytes: smaller values are not sliced.
        fail_on_non_alignment_boundary_slice_proposal: refuse slices off alignment.
        all_slice_time_permutations_threshold: up to so many slices, all orders of
            slice starts are tried.
        preferred_slice_size: bytes; positive means equal slices of a byte view.

    >>> SlicedPrefetchOptions(max_slices=4, min_bytes=1 << 20).max_slices
    4
    """

    max_slices: int = 0
    min_bytes: int = 0
    fail_on_non_alignment_boundary_slice_proposal: bool = False
    all_slice_time_permutations_threshold: int = 0
    preferred_slice_size: int = 0


@dataclass(frozen=True, slots=True)
class MemoryBoundLoopOptimizerOptions:
    """Equal decisions for all iterations of an unrolled, memory-bound loop.

    >>> MemoryBoundLoopOptimizerOptions(enabled=True, min_num_iterations=3).enabled
    True
    """

    enabled: bool = False
    desired_copy_ratio: float = 0.0
    allow_unsatisfied_fully_pipelined_prefetch: bool = False
    min_num_iterations: float = 0.0


@dataclass(frozen=True, slots=True)
class BufferColoring:
    """A place that must be in one of the memories.

    Attributes:
        instruction: name of the defining or using instruction.
        index: node of its output, or of the operand.
        space: the memory.
        operand: operand number for a use; None for a position.

    >>> from msa.assignment.allocation import MemorySpace
    >>> BufferColoring("fusion.1", (), MemorySpace.ALTERNATE).operand is None
    True
    """

    instruction: str
    index: tuple[int, ...]
    space: MemorySpace
    operand: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to do and how; frozen, validated on construction.

    Attributes:
        strategy: `greedy` (XLA's algorithm in one pass) or `search`.
        effort: how much work `search` does, per step of the program; 0 is the
            greedy plan.
        seed: of everything random in `search`.
        faithful: reproduce XLA's quirks in `greedy`, bit for bit.
        max_size_in_bytes, alignment_in_bytes: override the target's, if given.
        buffer_interval_comparator: `memory_boundedness`, `spatial`, or a function from
            an interval to a sort key.
        prefetch_interval_picker: when copies may start and how long values may stay.
        cost_analysis: estimate run times; without it copies take a nominal time.

    The other options have the meaning that XLA gives them; `docs/` lists them all.

    Raises:
        OptionsError: a value is out of range, or two options exclude each other.

    >>> Options(max_retries=2).max_retries
    2
    >>> Options(max_retries=0)
    Traceback (most recent call last):
    ...
    msa.errors.OptionsError: max_retries must be at least 1, got 0
    """

    strategy: Strategy = "greedy"
    effort: int = 8
    seed: int = 0
    faithful: bool = False

    default_memory_space: int = 0
    alternate_memory_space: int = 1
    dus_view_color: int | None = None
    view_source_default_memory_only: bool = False
    max_size_in_bytes: int | None = None
    alignment_in_bytes: int | None = None

    buffer_interval_comparator: (
        Literal["memory_boundedness", "spatial"] | Callable[[Any], Any]
    ) = "memory_boundedness"
    prefetch_interval_picker: CostAnalysisPicker | InstructionCountPicker = field(
        default_factory=CostAnalysisPicker
    )
    cost_analysis: bool = True
    while_execution_count: int = 5
    alternate_memory_benefit_scaling_factor_for_large_buffers: Literal[
        "SQRT", "NO_SCALE"
    ] = "SQRT"
    pipeline_overhead_window_size_mib: float = 0.0
    async_copy_bandwidth_scaling_factor: float | None = None

    size_fn: Callable[[Any], int] | None = None
    shape_size_fn: Callable[[Any], int] | None = None
    get_equivalent_s8_shape_fn: Callable[[Any], Any] | None = None
    is_allowed_in_alternate_mem_fn: Callable[[Any], bool] | None = None
    is_use_allowed_in_alternate_mem_fn: Callable[[Any], bool] | None = None
    is_position_allowed_in_alternate_mem_fn: Callable[[Any], bool] | None = None
    reserved_scoped_memory_fn: Callable[[Any, Any, Any], int] | None = None
    position_requires_contiguous_allocation_fn: Callable[[Any], bool] | None = None
    op_span_size_fn: Callable[[Any, Any, int], int] | None = None
    notify_operand_appended_fn: Callable[[Any, int, Any], None] | None = None
    is_async_slice_implemented_fn: Callable[[Any], bool] | None = None
    allocation_result_modifier_testing_fn: Callable[[Any, Any, int], Any] | None = None
    allocation_request_modifier_testing_fn: Callable[[Any], None] | None = None
    post_allocation_transformation_fn: Callable[[Any], Any] | None = None
    propose_slice_fn: Callable[[Any, SlicedPrefetchOptions], Any] | None = None
    get_inefficient_allocation_sites_fn: Callable[[Any], Any] | None = None
    is_window_prefetchable_instruction_fn: Callable[[Any], bool] | None = None
    async_instruction_bw_adjustment_factor_fn: Callable[[Any], float | None] | None = (
        None
    )
    custom_fusion_block_prefetch_operand_index_fn: (
        Callable[[Any], int | None] | None
    ) = None
    dump_fn: Callable[[str, str], None] | None = None

    determine_split_dimension_fn: Callable[[Any, Any], SplitConfig | None] | None = None
    init_split_tree_fn: Callable[[Any, Any], None] | None = None
    bitcast_split_fn: Callable[[Any, int], int] | None = None
    replicated_split_dimension: int = -1
    any_split_dimension: int = -2

    reduce_scoped_memory_limit: bool = False
    allocate_reserved_scoped_memory_at_same_offset: bool = True
    post_module_scoped_alternate_memory_size_in_bytes: int = 0
    expanded_scoped_alternate_memory_mode: Literal["DISABLED", "ENABLED"] = "DISABLED"

    max_outstanding_prefetches: int = -1
    max_outstanding_evictions: int = -1
    while_use_extra_outstanding_prefetch_limit: int = 0
    extend_async_copies_limit_for_sync_mem_op_conversion: int = 0
    enforce_prefetch_fifo_order: bool = False

    max_retries: int = 1
    max_repacks: int = 0
    repacker: Any = None
    repack_after_every_allocation: bool = False
    verify: bool = False

    enable_cross_program_prefetch: bool = True
    default_cross_program_prefetch_heuristic: bool = False
    enable_cross_program_prefetch_freeing: bool = True
    max_cross_program_prefetches: int = 1
    cross_program_prefetch_permissive_mode: bool = False

    enable_while_redundant_eviction_elimination: bool = True
    autotuning_config: tuple[int, ...] | None = None
    use_repeated_instance_for_preferred_prefetch_time: bool = False
    enable_sync_copy_replacement: bool = False
    enable_sync_slice_replacement: bool = False
    enable_sync_custom_fusion_replacement: bool = False
    inefficient_use_to_copy_ratio: float = 0.0
    preferred_prefetch_overrides: tuple[PreferredPrefetchOverride, ...] = ()
    sliced_prefetch_options: SlicedPrefetchOptions = field(
        default_factory=SlicedPrefetchOptions
    )
    memory_bound_loop_optimizer_options: MemoryBoundLoopOptimizerOptions = field(
        default_factory=MemoryBoundLoopOptimizerOptions
    )
    always_spill_to_default_memory: bool = False
    enable_window_prefetch: bool = False
    window_prefetch_max_operands: int = 1024
    window_prefetch_min_span_size: int = 4096
    window_prefetch_mode: Literal["WindowExposure", "WindowPrefetch"] = "WindowExposure"
    msa_sort_order_overrides: tuple[MsaSortOrderOverride, ...] = ()
    allocate_colored_buffers_early: bool = True
    buffer_colorings: tuple[BufferColoring, ...] = ()
    max_outstanding_block_prefetches: int = 0
    reserved_bytes_for_block_prefetches: int = 0
    block_prefetched_positions: tuple[tuple[str, tuple[int, ...]], ...] = ()
    hlo_position_to_custom_call_prefetch_details: Mapping[Any, Any] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        from msa.assignment.option_rules import check_options
        from msa.assignment.option_types import check_types

        check_types(self)
        check_options(self)

    def replace(self, **changes: Any) -> Options:
        """A copy with some options changed.

        Raises:
            OptionsError: there is no such option, or the result is not valid.
        """
        from msa.assignment.option_rules import unknown_option

        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise unknown_option(name, known)
        return dataclasses.replace(self, **changes)

    def to_text(self) -> str:
        """One `name: value` per line, for logs."""
        from msa.assignment.option_rules import describe

        return describe(self)

    @property
    def slicing(self) -> bool:
        """Whether prefetches may be sliced."""
        return self.sliced_prefetch_options.max_slices > 1

    @property
    def sync_replacement(self) -> bool:
        """Whether synchronous copies or slices may become asynchronous."""
        return (
            self.enable_sync_copy_replacement
            or self.enable_sync_slice_replacement
            or self.enable_sync_custom_fusion_replacement
        )
