"""What the documentation shows runs: doctests, code blocks, notebooks, examples."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import msa

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(msa.__path__, "msa.")
    if found.name != "msa.__main__"
)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("name", ["msa", *MODULES])
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


NEED_EXTRAS = {"msa.integrations.jax": "jax", "msa.report.faces": "matplotlib"}
"""Modules with examples that plain doctest skips, and the package that these need."""


def skipped_examples(name: str) -> list[doctest.DocTest]:
    """Doctests of a module that have skipped examples."""
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [t for t in found if any(doctest.SKIP in e.options for e in t.examples)]


def test_only_examples_that_need_an_extra_are_skipped() -> None:
    assert {n for n in MODULES if skipped_examples(n)} == set(NEED_EXTRAS)


@pytest.mark.parametrize("name", NEED_EXTRAS)
def test_examples_that_need_an_extra(name: str) -> None:
    """Run as written where the extra is installed, in a process of their own."""
    pytest.importorskip(NEED_EXTRAS[name], reason=f"{NEED_EXTRAS[name]} not installed")
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "run_skipped_examples.py"), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    count = sum(len(test.examples) for test in skipped_examples(name))
    assert run.stdout.split() == ["0", "of", str(count), "failed"]


def run_blocks(blocks: list[str], folder: Path, name: str) -> None:
    """Run pieces of one program; what they print is swallowed."""
    space: dict[str, Any] = {"__name__": name}
    kept = list(sys.path)
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            for block in blocks:
                _run_block(block, name, space)
    finally:
        sys.path[:] = kept


def _run_block(block: str, name: str, space: dict[str, Any]) -> None:
    """Like a notebook cell: the last expression is shown."""
    exec(compile(block, name, "exec"), space)
    last = block.strip().splitlines()[-1]
    if last.isidentifier():
        shown = space[last]
        assert shown._repr_html_() if hasattr(shown, "_repr_html_") else repr(shown)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder that sees the examples, so that nothing is left behind."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "gpt2_small_forward.hlo.gz").symlink_to(
        ROOT / "examples" / "gpt2_small_forward.hlo.gz"
    )
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks(page: Path, folder: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
    run_blocks(blocks, folder, page.stem)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks(path: Path, folder: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert code
    assert not any(cell.get("outputs") for cell in cells)
    run_blocks(code, folder / "notebooks", path.stem)


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    if page.name == "reference.md":
        return
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


def test_the_toy_compiler() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "toy_compiler.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    # Made where they stay; the weights, which are read once, are fetched.
    assert "scaled: pinned at 0" in run.stdout
    assert "weights: copy" in run.stdout


def reference_maker() -> Any:
    spec = importlib.util.spec_from_file_location(
        "make_reference", ROOT / "docs" / "make_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return maker


def test_every_public_name_is_documented() -> None:
    text, missing = reference_maker().build()
    assert missing == []
    for name in msa.__all__:
        assert f"### msa.{name}" in text


def test_every_public_name_has_an_example() -> None:
    """In its own docstring or, for classes, in one of a method."""
    maker = reference_maker()
    bare = []
    for name in maker.PACKAGES:
        package = importlib.import_module(name)
        for item in maker.public_names(package):
            value = getattr(package, item)
            if inspect.ismodule(value) or not callable(value):
                continue
            texts = [inspect.getdoc(value) or ""]
            if inspect.isclass(value):
                texts += [
                    inspect.getdoc(getattr(value, member, None)) or ""
                    for member in vars(value)
                    if not member.startswith("_")
                ]
            if not any(">>>" in text for text in texts):
                bare.append(f"{name}.{item}")
    assert bare == []


def test_commands_in_the_documentation_exist() -> None:
    from msa.cli.app import COMMANDS, build_parser

    parser = build_parser()
    known = {
        option
        for action in parser._actions
        for sub in (getattr(action, "choices", None) or {}).values()
        for inner in sub._actions
        for option in inner.option_strings
    }
    for page in PAGES:
        for line in re.findall(r"(?:^|`)msa ([a-z].*?)(?:`|$)", page.read_text(), re.M):
            words = line.split()
            assert words[0] in COMMANDS, line
            flags = {w for w in words if re.fullmatch(r"--?[a-z][a-z-]*", w)}
            assert flags <= known, line
