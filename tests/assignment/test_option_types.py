"""Options of the wrong kind, and answers of users' functions, are refused by name."""

from __future__ import annotations

import dataclasses
import math
import typing

import pytest

import msa
from msa.assignment.allocation import MemorySpace
from msa.assignment.options import (
    BufferColoring,
    CostAnalysisPicker,
    InstructionCountPicker,
    MemoryBoundLoopOptimizerOptions,
    Options,
    SlicedPrefetchOptions,
)
from msa.errors import OptionsError, TargetError

ODD = (math.nan, math.inf, -math.inf, 10**30, "x", 1.5, -7, None, (), [], {}, object())
KINDS = typing.get_type_hints(Options)
NAMES = [field.name for field in dataclasses.fields(Options)]


def accepted(name: str) -> list[object]:
    """The odd values that an option takes."""
    return [value for value in ODD if not refusal(name, value)]


def refusal(name: str, value: object) -> str:
    """What the error says, which has to name the option; "" if it is taken."""
    try:
        Options(**{name: value})
    except OptionsError as error:
        return str(error) if name in str(error) else ""
    return ""


@pytest.mark.parametrize("name", [n for n in NAMES if KINDS[n] is bool])
def test_a_flag_takes_no_other_value(name: str) -> None:
    assert accepted(name) == []


@pytest.mark.parametrize("name", [n for n in NAMES if KINDS[n] is int])
def test_a_number_takes_whole_numbers_of_64_bits(name: str) -> None:
    free = {"seed", "replicated_split_dimension", "any_split_dimension"}
    assert accepted(name) == ([-7] if name in free else [])
    with pytest.raises(OptionsError, match=name):
        Options(**{name: True})


@pytest.mark.parametrize("name", [n for n in NAMES if KINDS[n] is float])
def test_a_ratio_takes_finite_numbers(name: str) -> None:
    assert accepted(name) == [1.5]


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("_fn")])
def test_a_function_is_one_or_none(name: str) -> None:
    assert accepted(name) == [None]


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("strategy", []),
        ("alternate_memory_benefit_scaling_factor_for_large_buffers", []),
        ("window_prefetch_mode", []),
        ("buffer_interval_comparator", []),
        ("prefetch_interval_picker", []),
        ("sliced_prefetch_options", []),
        ("memory_bound_loop_optimizer_options", []),
        ("max_size_in_bytes", [None]),
        ("alignment_in_bytes", [None]),
        ("async_copy_bandwidth_scaling_factor", [1.5, None]),
        ("repacker", [None]),
        ("autotuning_config", [None, ()]),
        ("preferred_prefetch_overrides", [()]),
        ("msa_sort_order_overrides", [()]),
        ("buffer_colorings", [()]),
        ("block_prefetched_positions", [()]),
        ("hlo_position_to_custom_call_prefetch_details", [{}]),
    ],
)
def test_others_take_what_they_are_declared_as(name: str, taken: list[object]) -> None:
    assert accepted(name) == taken


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"prefetch_interval_picker": CostAnalysisPicker(math.nan)},
            "min_overlap_to_async_copy_ratio",
        ),
        (
            {"prefetch_interval_picker": CostAnalysisPicker(0.1, 1.0, -3.0)},
            "max_overlap_to_mem_size_async_copy_ratio",
        ),
        ({"prefetch_interval_picker": InstructionCountPicker(-1, 3)}, "min_overlap"),
        ({"sliced_prefetch_options": SlicedPrefetchOptions(-3)}, "max_slices"),
        (
            {
                "sliced_prefetch_options": SlicedPrefetchOptions(
                    2, preferred_slice_size=-7
                )
            },
            "preferred_slice_size",
        ),
        (
            {
                "memory_bound_loop_optimizer_options": MemoryBoundLoopOptimizerOptions(
                    True, math.nan
                )
            },
            "desired_copy_ratio",
        ),
        ({"autotuning_config": (0, "one")}, r"autotuning_config\[1\]"),
        (
            {"buffer_colorings": (BufferColoring("n", (), MemorySpace.DEFAULT), 3)},
            r"buffer_colorings\[1\]",
        ),
        ({"block_prefetched_positions": (("p",),)}, r"positions\[0\] must have 2"),
    ],
)
def test_parts_are_named(changes: dict[str, typing.Any], named: str) -> None:
    with pytest.raises(OptionsError, match=named):
        Options(**changes)


@pytest.fixture(scope="module")
def module() -> msa.Module:
    return msa.schedule(
        msa.parse("ENTRY e { p = f32[64] parameter(0) ROOT n = f32[64] negate(p) }")
    )


TARGET = msa.Target.preset("tpu_v5e")


@pytest.mark.parametrize("name", ["size_fn", "reserved_scoped_memory_fn"])
@pytest.mark.parametrize("answer", [None, math.nan, -5, 10**30, "many"])
def test_answers_in_bytes(module: msa.Module, name: str, answer: object) -> None:
    options = Options(**{name: lambda *_: answer})
    with pytest.raises(OptionsError, match=name):
        msa.assign(module, TARGET, options)


def test_options_are_options(module: msa.Module) -> None:
    with pytest.raises(OptionsError, match="takes Options, not dict"):
        msa.assign(module, TARGET, {"strategy": "search"})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["alternate_memory_bytes", "alignment_bytes"])
def test_targets_stay_within_64_bits(module: msa.Module, name: str) -> None:
    with pytest.raises(TargetError, match=name):
        TARGET.replace(**{name: 2**62 + 1})
    plan = msa.assign(
        module, TARGET.replace(**{name: 2**62}), Options(strategy="search")
    )
    plan.verify()
