"""The floors of the house: imports go down only, files hold one concept."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import msa

SOURCE = Path(msa.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
FLOORS = {
    "errors": 0,
    "collection": 0,
    "files": 0,
    "units": 0,
    "target": 0,
    "version": 0,
    "hlo": 1,
    "heap": 1,
    "analysis": 2,
    "assignment": 3,
    "passes": 3,
    "dealloc": 3,
    "runtime": 4,
    "testing": 4,
    "pipeline": 5,
    "report": 5,
    "integrations": 6,
    "cli": 6,
    "diag": 6,
    "__init__": 6,
    "__main__": 6,
}
# Rooms on one floor that must not know each other.
STRANGERS = {("hlo", "heap"), ("heap", "hlo"), ("passes", "dealloc")}
# Public classes show, prove or save themselves through higher floors; these
# imports sit inside methods, load on the call only, and are the whole list.
LATE_CALLS = {
    ("assignment", "runtime"),
    ("assignment", "report"),
    ("analysis", "report"),
    ("heap", "report"),
}
MAX_LINES = 600


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST, *, late: bool) -> set[str]:
    """Rooms imported at run time: at module level, or inside functions."""
    found: set[str] = set()
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend((child, inside) for child in node.orelse)
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inside = True
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute"
            names = [node.module]
            if node.module == "msa":
                names = [f"msa.{alias.name}" for alias in node.names]
        if inside == late:
            found.update(
                name.split(".")[1] for name in names if name.startswith("msa.")
            )
        stack.extend((child, inside) for child in ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    here = room(path)
    if FLOORS[here] == 6:
        return
    tree = ast.parse(path.read_text())
    for late in (False, True):
        for there in imported_rooms(tree, late=late) - {here}:
            if late and (here, there) in LATE_CALLS:
                continue
            assert FLOORS[there] <= FLOORS[here], f"{here} imports {there}"
            assert (here, there) not in STRANGERS, f"{here} imports {there}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_holds_one_concept(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= MAX_LINES, f"{path.name} has {lines} lines: redraw it"


def test_every_room_is_on_a_floor() -> None:
    assert {room(path) for path in FILES} <= set(FLOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_command_line_prints(path: Path) -> None:
    if room(path) in ("cli", "diag", "__main__"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{path}:{node.lineno}"


def test_the_checker_sees_an_upward_import() -> None:
    tree = ast.parse("from msa.runtime import execute\nimport msa.report.html")
    assert imported_rooms(tree, late=False) == {"runtime", "report"}
    tree = ast.parse("def f():\n    from msa.runtime import execute")
    assert imported_rooms(tree, late=False) == set()
    assert imported_rooms(tree, late=True) == {"runtime"}
