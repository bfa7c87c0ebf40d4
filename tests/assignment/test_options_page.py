"""The page of options: complete, with right defaults, and what it names exists."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from msa.assignment import options as module
from msa.assignment.options import Options

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "options.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| option", "| feature"))
]
FEATURES = [row for row in ROWS if len(row) == 4]
PARTS = [
    Options,
    module.SlicedPrefetchOptions,
    module.MemoryBoundLoopOptimizerOptions,
    module.CostAnalysisPicker,
    module.InstructionCountPicker,
]


def default_of(field: Any) -> str:
    """The default as the page writes it."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is dataclasses.MISSING:
        return "required"
    made = field.default_factory()
    return f"{type(made).__name__}()" if dataclasses.is_dataclass(made) else repr(made)


def test_every_option_is_there_with_its_default() -> None:
    table = {(row[0].strip("`"), row[1].strip("`")) for row in ROWS if len(row) == 3}
    expected = {
        (f.name, default_of(f)) for part in PARTS for f in dataclasses.fields(part)
    }
    assert table == expected


def test_every_option_belongs_to_a_feature() -> None:
    named = {name for row in FEATURES for name in re.findall(r"`(\w+)`", row[1])}
    assert named == {field.name for field in dataclasses.fields(Options)}


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row[0])
def test_code_and_test_of_a_feature_exist(row) -> None:
    _, _, code, test = row
    assert (ROOT / "src" / "msa" / "assignment" / code.strip("`")).is_file()
    path, _, name = test.strip("`").partition("::")
    tree = ast.parse((ROOT / path).read_text())
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert not name or name in functions
