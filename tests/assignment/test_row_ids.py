"""Every acceptance behaviour has a test that carries its id, or a reason not to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from assignment.row_ids import NOT_APPLICABLE, ROWS

HERE = Path(__file__).parent
_IN_NAME = re.compile(r"(?:^|_)([ab])(\d+)(?:_(\d+))?(?=_|$)")
_AS_ID = re.compile(r"([AB]\d+\.\d+)(?:$|-)")


def ids_of(tree: ast.AST) -> set[str]:
    """Ids in names of functions, and in strings that are ids of parameters."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for part, section, row in _IN_NAME.findall(node.name):
                found.add(f"{part.upper()}{section}" + (f".{row}" if row else ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = _AS_ID.match(node.value)
            if match:
                found.add(match[1])
    return found


def ids_with_tests() -> set[str]:
    files = [f for f in HERE.rglob("test_*.py") if f.name != Path(__file__).name]
    return set().union(*(ids_of(ast.parse(f.read_text())) for f in files))


def test_every_row_is_a_test_or_has_a_reason() -> None:
    missing = sorted(set(ROWS) - ids_with_tests() - set(NOT_APPLICABLE))
    assert missing == []


def test_reasons_are_only_given_for_rows_without_a_test() -> None:
    assert set(NOT_APPLICABLE) <= set(ROWS)
    assert not set(NOT_APPLICABLE) & ids_with_tests()
    assert all(len(reason.split()) > 5 for reason in NOT_APPLICABLE.values())


def test_ids_are_read() -> None:
    tree = ast.parse(
        "def test_x_a1_2_b10_3(): pass\n"
        "def test_y_b7(): pass\n"
        "def b10_1(): pass\n"
        "pytest.param(1, id='B4.5-off')\n"
    )
    assert ids_of(tree) == {"A1.2", "B10.3", "B7", "B10.1", "B4.5"}
