"""Random modules: what their options promise, and that planners may rely on them."""

from __future__ import annotations

from collections import Counter

import pytest

import msa
from msa.analysis import AnalysisManager
from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.hlo.verifier import find_violations
from msa.testing import RandomModuleOptions, random_module

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
