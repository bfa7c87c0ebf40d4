"""Random modules: what their options promise, and that planners may rely on them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import msa
from msa.analysis import AnalysisManager
from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.errors import HloError
from msa.hlo.verifier import find_violations
from msa.runtime.proving.inputs import random_inputs
from msa.testing import RandomModuleOptions, random_module
from msa.testing.random_modules.options import DEFAULT_WEIGHTS

PLAIN = RandomModuleOptions.plain()
EVERYTHING = RandomModuleOptions(variety=0.5, nesting=1.0, sharing=1.0)


def forms(module: msa.Module) -> set[str]:
    """The less usual forms of results and loop state that a module has."""
    found: set[str] = set()
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode == "while":
                if any(child.is_tuple for child in x.shape.children):
                    found.add("nested state")
                given = x.operands[0]
                if given.opcode == "tuple" and len(set(given.operands)) < len(
                    given.operands
                ):
                    found.add("state read twice")
            if x.opcode in ("call", "conditional", "fusion"):
                for called in x.called_computations:
                    root = called.root
                    if root.opcode != "tuple":
                        continue
                    if len(set(root.operands)) < len(root.operands):
                        found.add(f"{x.opcode} gives one value twice")
                    if x.opcode == "call" and any(
                        o.opcode == "parameter" for o in root.operands
                    ):
                        found.add("call gives an argument")
    root = module.entry.root
    if root.opcode == "tuple":
        if len(set(root.operands)) < len(root.operands):
            found.add("program gives one value twice")
        if any(o.opcode == "bitcast" for o in root.operands):
            found.add("program gives a view")
        if any(o.shape.is_tuple for o in root.operands):
            found.add("nested results")
    return found


@pytest.mark.parametrize("options", [PLAIN, None, EVERYTHING], ids=str)
def test_modules_are_well_formed(options: RandomModuleOptions | None) -> None:
    for seed in range(25):
        module = random_module(seed, size=40, options=options)
        assert find_violations(module) == []
        assert module.schedule is not None
        assert module.schedule.check(module) == []
        assert msa.parse(module.to_text()) == module


@pytest.mark.parametrize(
    "options",
    [PLAIN, RandomModuleOptions(variety=0.5, nesting=1.0, sharing=0.0)],
    ids=["plain", "nested"],
)
def test_no_two_values_need_one_buffer_at_once(options: RandomModuleOptions) -> None:
    for seed in range(40):
        analyses = AnalysisManager(random_module(seed, size=40, options=options))
        assert not find_conflicts(
            analyses.dataflow, analyses.schedule, analyses.in_place
        )


def test_every_unusual_form_occurs() -> None:
    counts: Counter[str] = Counter()
    for seed in range(60):
        counts.update(forms(random_module(seed, size=60, options=EVERYTHING)))
    assert set(counts) == {
        "nested state",
        "nested results",
        "state read twice",
        "call gives one value twice",
        "call gives an argument",
        "conditional gives one value twice",
        "fusion gives one value twice",
        "program gives one value twice",
        "program gives a view",
    }


def test_plain_modules_have_usual_forms_only() -> None:
    for seed in range(60):
        found = forms(random_module(seed, size=60, options=PLAIN))
        assert found <= {"program gives a view"}


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": 0},
        {"outputs": 0},
        {"vector": 0},
        {"max_depth": -1},
        {"max_trips": -1},
        {"outputs": 1.5},
        {"variety": 1.5},
        {"nesting": -0.1},
        {"sharing": float("nan")},
        {"weights": {"while": -1}},
        {"weights": {"wile": 1}},
        {"weights": {"while": None}},
        {"weights": None},
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(HloError, match="RandomModuleOptions: "):
        RandomModuleOptions(**fields)


@pytest.mark.parametrize(
    "arguments", [("a",), (1.5,), (None,), (1, -1), (1, 2.5), (1, "x")], ids=str
)
def test_seed_and_size_are_whole_numbers(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(HloError, match="random_module: "):
        random_module(*arguments)


def test_options_are_of_their_type() -> None:
    with pytest.raises(HloError, match="takes RandomModuleOptions"):
        random_module(1, options={"vector": 4})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        RandomModuleOptions(weights={}),
        RandomModuleOptions(parameters=1, outputs=1, vector=1),
        RandomModuleOptions(max_depth=0, max_trips=0),
        RandomModuleOptions(variety=1, nesting=1, sharing=1),
        *(RandomModuleOptions(weights={step: 1}) for step in DEFAULT_WEIGHTS),
    ],
    ids=lambda options: ",".join(options.weights) if len(options.weights) < 2 else "",
)
def test_extreme_options_give_modules_that_run(options: RandomModuleOptions) -> None:
    for seed, size in enumerate((0, 1, 30)):
        module = random_module(seed, size, options=options)
        assert module.is_scheduled
        assert not find_violations(module)
        msa.execute(module, random_inputs(module, seed))
