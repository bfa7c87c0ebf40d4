"""Options: defaults, ranges, conflicts that name both sides, filters."""

from __future__ import annotations

import dataclasses
import typing

import pytest

import msa
from msa.assignment import option_types
from msa.assignment.filters import (
    FIRST,
    LAST,
    HloOperandFilter,
    HloPositionMatcher,
    HloRandomFilter,
    MsaSortOrderOverride,
    PreferredPrefetchOverride,
)
from msa.assignment.options import (
    CostAnalysisPicker,
    InstructionCountPicker,
    MemoryBoundLoopOptimizerOptions,
    Options,
    SlicedPrefetchOptions,
)
from msa.errors import OptionsError


def test_defaults_are_those_of_the_reference_plans() -> None:
    options = Options()
    picker = options.prefetch_interval_picker
    assert isinstance(picker, CostAnalysisPicker)
    assert dataclasses.astuple(picker) == (0.8, 1.5, 10.0)
    assert options.buffer_interval_comparator == "memory_boundedness"
    assert options.while_execution_count == 5
    assert options.alternate_memory_benefit_scaling_factor_for_large_buffers == "SQRT"
    assert options.pipeline_overhead_window_size_mib == 0
    assert (options.max_outstanding_prefetches, options.max_outstanding_evictions) == (
        -1,
        -1,
    )
    assert (options.max_retries, options.max_repacks) == (1, 0)
    assert options.enable_cross_program_prefetch
    assert options.max_cross_program_prefetches == 1
    assert not options.slicing
    assert not options.enable_window_prefetch
    assert not options.sync_replacement
    assert not options.faithful


@pytest.mark.parametrize(
    "kind",
    [
        Options,
        CostAnalysisPicker,
        InstructionCountPicker,
        MemoryBoundLoopOptimizerOptions,
        SlicedPrefetchOptions,
        HloOperandFilter,
        MsaSortOrderOverride,
        PreferredPrefetchOverride,
    ],
)
def test_defaults_are_what_they_are_declared_as(kind: type) -> None:
    """They are not checked each time."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            option_types._check(field.default, hints[field.name], field.name)


def test_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().max_retries = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("effort", -1),
        ("max_retries", 0),
        ("max_repacks", -1),
        ("max_outstanding_prefetches", -2),
        ("max_cross_program_prefetches", -2),
        ("while_execution_count", 0),
        ("inefficient_use_to_copy_ratio", -0.1),
        ("max_size_in_bytes", 0),
        ("alignment_in_bytes", -8),
        ("strategy", "magic"),
        ("window_prefetch_mode", "Window"),
        ("expanded_scoped_alternate_memory_mode", "ON"),
        ("max_retries", "three"),
    ],
)
def test_out_of_range(name, value) -> None:
    with pytest.raises(OptionsError, match=name):
        Options(**{name: value})


def split(value, tree):
    return None


SPLITTING = {
    "determine_split_dimension_fn": split,
    "init_split_tree_fn": split,
    "shape_size_fn": len,
    "bitcast_split_fn": split,
}

CONFLICTS = [
    ({"cost_analysis": False}, "prefetch_interval_picker", "cost_analysis"),
    (
        {
            "cost_analysis": False,
            "prefetch_interval_picker": InstructionCountPicker(2, 10),
        },
        "buffer_interval_comparator",
        "cost_analysis",
    ),
    ({"alternate_memory_space": 0}, "default_memory_space", "alternate_memory_space"),
    ({"strategy": "search", "faithful": True}, "strategy", "faithful"),
    (
        {"determine_split_dimension_fn": split},
        "determine_split_dimension_fn",
        "init_split_tree_fn",
    ),
    (
        {
            **SPLITTING,
            "sliced_prefetch_options": SlicedPrefetchOptions(max_slices=2),
        },
        "determine_split_dimension_fn",
        "sliced_prefetch_options",
    ),
    (
        {
            **SPLITTING,
            "enable_window_prefetch": True,
        },
        "determine_split_dimension_fn",
        "enable_window_prefetch",
    ),
    (
        {**SPLITTING, "strategy": "search"},
        "determine_split_dimension_fn",
        "strategy",
    ),
    (
        {**SPLITTING, "bitcast_split_fn": None},
        "determine_split_dimension_fn",
        "bitcast_split_fn",
    ),
    ({"enable_window_prefetch": True}, "enable_window_prefetch", "op_span_size_fn"),
    (
        {"block_prefetched_positions": (("p", ()),)},
        "block_prefetched_positions",
        "reserved_bytes_for_block_prefetches",
    ),
    (
        {"hlo_position_to_custom_call_prefetch_details": {1: 2}},
        "hlo_position_to_custom_call_prefetch_details",
        "reserved_bytes_for_block_prefetches",
    ),
    (
        {"max_size_in_bytes": 8, "reserved_bytes_for_block_prefetches": 9},
        "reserved_bytes_for_block_prefetches",
        "max_size_in_bytes",
    ),
    (
        {"prefetch_interval_picker": CostAnalysisPicker(2.0, 1.0, 10.0)},
        "min_overlap_to_async_copy_ratio",
        "preferred_overlap_to_async_copy_ratio",
    ),
    (
        {"prefetch_interval_picker": InstructionCountPicker(5, 3)},
        "min_overlap",
        "max_overlap",
    ),
]


@pytest.mark.parametrize(("changes", "one", "two"), CONFLICTS)
def test_conflicts_name_both(changes, one, two) -> None:
    with pytest.raises(OptionsError) as caught:
        Options(**changes)
    assert one in str(caught.value)
    assert two in str(caught.value)


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_no_more_is_reserved_than_there_is(strategy: str) -> None:
    module = msa.schedule(
        msa.parse(
            "ENTRY e { p = f32[64] parameter(0) n = f32[64] negate(p) "
            "ROOT a = f32[64] abs(n) }"
        )
    )
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4096)
    options = Options(reserved_bytes_for_block_prefetches=4096)
    if strategy == "greedy":
        msa.assign(module, target, options)
    options = options.replace(reserved_bytes_for_block_prefetches=4097)
    with pytest.raises(OptionsError, match="reserved_bytes_for_block_prefetches"):
        msa.assign(module, target, options.replace(strategy=strategy))


def test_replace() -> None:
    assert Options().replace(seed=3).seed == 3
    with pytest.raises(OptionsError, match="max_retrys") as caught:
        Options().replace(max_retrys=3)
    assert "max_retries" in caught.value.hint
    with pytest.raises(OptionsError):
        Options().replace(max_retries=0)


def test_text_lists_every_option() -> None:
    text = Options(dump_fn=print).to_text().splitlines()
    assert len(text) == len(dataclasses.fields(Options))
    assert "max_retries: 1" in text
    assert "verify: 0" in text
    assert "dump_fn: present" in text
    assert "autotuning_config: nullopt" in text
    assert "buffer_colorings: 0 elements" in text


# -- filters -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"size_gte": 24}, True),
        ({"size_gte": 25}, False),
        ({"size_lte": 24}, True),
        ({"size_lte": 23}, False),
        ({"operand_number": 1}, True),
        ({"operand_number": 0}, False),
        ({"tuple_index": (2,)}, True),
        ({"tuple_index": ()}, False),
        ({"instruction_name_regex": "add.*"}, True),
        ({"instruction_name_regex": "add"}, False),
        ({"instruction_regex": ".*add\\(.*"}, True),
        ({"instruction_regex": "add"}, False),
    ],
)
def test_operand_filter(fields, matches) -> None:
    one = HloOperandFilter(**fields)
    assert (
        one.matches(24, "add.1", lambda: "add.1 = f32[] add(a, b)", 1, (2,)) is matches
    )


def test_bad_expression_is_an_options_error() -> None:
    with pytest.raises(OptionsError, match="regular expression"):
        HloOperandFilter(instruction_name_regex="(").matches(1, "x", str, 0, ())


def test_position_matcher() -> None:
    matcher = HloPositionMatcher(
        size_gte=8, size_lte=16, tuple_index=(1,), instruction_name_regex="neg[0-9]"
    )
    assert matcher.matches_place(8, "neg3", str, (1,))
    assert not matcher.matches_place(7, "neg3", str, (1,))
    assert not matcher.matches_place(17, "neg3", str, (1,))
    assert not matcher.matches_place(8, "neg3", str, ())
    assert not matcher.matches_place(8, "neg33", str, (1,))


def test_random_filter_selects_a_share_by_fingerprint() -> None:
    half = HloRandomFilter(7, 0.0, 0.5)
    chosen = [half.selects(f"f{i}") for i in range(400)]
    assert 120 < sum(chosen) < 280
    rest = HloRandomFilter(7, 0.5, 1.0)
    assert all(half.selects(f"f{i}") != rest.selects(f"f{i}") for i in range(400))


def test_override_priorities() -> None:
    matcher = HloPositionMatcher()
    assert MsaSortOrderOverride(matcher, assign_first=True).priority(3) == FIRST + 3
    assert MsaSortOrderOverride(matcher, assign_last=False).priority(3) == LAST - 3
    assert MsaSortOrderOverride(matcher, assign_value=-5).priority(3) == -5
    assert MsaSortOrderOverride(matcher).priority(3) is None


def test_prefetch_override_takes_one_rule() -> None:
    anything = HloOperandFilter()
    with pytest.raises(OptionsError, match="eagerness"):
        PreferredPrefetchOverride(anything, prefetch_eagerness=1.5)
    with pytest.raises(OptionsError, match="one of"):
        PreferredPrefetchOverride(
            anything,
            prefetch_eagerness=0.5,
            after_instruction=HloPositionMatcher(),
        )


def test_default_memory_has_no_other_number() -> None:
    with pytest.raises(OptionsError, match="default_memory_space"):
        Options(default_memory_space=2)
