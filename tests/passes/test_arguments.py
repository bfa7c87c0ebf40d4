"""Arguments of the wrong kind give typed errors, never bare ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import msa
import msa.dealloc as dealloc
import msa.passes as passes
from msa.errors import HloError, MsaError, OptionsError
from msa.passes import binding
from msa.passes.rematerialization import HostMemory
from msa.pipeline import PipelineOptions, run

TARGET = msa.Target.preset("tpu_v5e")
MODULE = msa.schedule(
    msa.parse(
        "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) ROOT a = f32[8] abs(n) }"
    )
)
FUNCTION = dealloc.parse_function("func @f() {\n^entry:\n  return\n}")
CALLS: dict[str, Callable[[Any], object]] = {
    "rematerialize": lambda x: passes.rematerialize(x, 1),
    "offload_to_host": passes.offload_to_host,
    "offload_report": lambda x: passes.offload_report(MODULE, x),
    "offload_report of": lambda x: passes.offload_report(x, HostMemory(1.0, 1.0)),
    "suggest": lambda x: passes.suggest(MODULE, x),
    "suggest of": lambda x: passes.suggest(x, TARGET),
    "bind": passes.bind_memory_spaces,
    "bind on": lambda x: passes.bind_memory_spaces(MODULE, x),
    "check_binding": lambda x: passes.check_binding(MODULE, x),
    "propagate": passes.propagate_memory_spaces,
    "check spaces": passes.check_memory_spaces,
    "Pipeline.run": passes.Pipeline("dce").run,
    "run": lambda x: run(x, TARGET),
    "run on": lambda x: run(MODULE, x),
    "run platform": lambda x: run(MODULE, TARGET, platform=x),
    "PipelineOptions": lambda x: PipelineOptions(assignment=x),
    "PipelineOptions binding": lambda x: PipelineOptions(binding=x),
    "BindingOptions": lambda x: binding.BindingOptions(coloring=x),
    "KernelBudget": lambda x: binding.KernelBudget(registers_per_thread=x),
    "KernelBudget alignment": lambda x: binding.KernelBudget(shared_alignment=x),
    "SymmetricFilter": binding.SymmetricFilter,
    "memory spaces": binding.parse_memory_spaces,
    "Platform": binding.Platform.preset,
    "place_in_function": dealloc.place_in_function,
    "place_deallocations": dealloc.place_deallocations,
    "check": dealloc.check,
    "check against": lambda x: dealloc.check(FUNCTION, x or 1),
    "parse_function": dealloc.parse_function,
    "unknown_ops": lambda x: dealloc.DeallocationOptions(unknown_ops=x),
    "alias mutation": lambda x: dealloc.DeallocationOptions(on_alias_mutation=x),
}
ABSURD = [None, -1, "", "x", [], {}, object(), float("nan"), b"\xff"]


@pytest.mark.parametrize("call", CALLS)
def test_absurd_arguments_are_refused(call: str) -> None:
    for value in ABSURD:
        with pytest.raises(MsaError):
            CALLS[call](value)


@pytest.mark.parametrize("value", [-1, "", "x", [], {}, object()])
def test_absurd_options_are_refused(value: Any) -> None:
    for call in (
        lambda: passes.bind_memory_spaces(MODULE, "gpu", value),
        lambda: run(MODULE, TARGET, value),
        lambda: dealloc.place_in_function(FUNCTION, value),
    ):
        with pytest.raises(MsaError):
            call()


@pytest.mark.parametrize(
    "settings",
    [
        {"block_size_limit": 0},
        {"block_size_limit": "many"},
        {"block_effort_factor": -1},
        {"min_remat_bytes": 1.5},
        {"recompute": "yes"},
        {"compact_shape": None},
        {"size_of": 4},
        {"host": 5},
        {"execution_threads": "main"},
        {"async_parallelism": ["main"]},
        {"async_parallelism": {"main": -1}},
        {"max_seconds": "long"},
        {"on_rematerialized": 1},
        {"costs": None, "nothing": 1},
    ],
    ids=str,
)
def test_settings_of_rematerialization(settings: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        passes.rematerialize(MODULE, 1 << 20, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"processes": 3},
        {"processes": ("a",)},
        {"space_limit": 5},
        {"temporary_space": "two"},
        {"rematerialization": [1]},
        {"rematerialization": {1: 2}},
    ],
    ids=str,
)
def test_settings_of_the_whole_flow(settings: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        PipelineOptions(**settings)


def test_unknown_computations_are_named() -> None:
    with pytest.raises(
        HloError, match=r"no computation 'ee'.*did you mean 'e'"
    ) as error:
        passes.propagate_memory_spaces(MODULE, "ee")
    assert error.value.where == "propagate_memory_spaces"
