"""Pages in headless Chromium: they draw, answer keys, and log no error.

Skipped where Chromium is not installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import msa
from msa.report import capture_module, capture_plan
from msa.report.capture import PlanCapture
from msa.report.page import plan_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt2_small_forward.hlo.gz"
TARGET = msa.Target.preset("tpu_v5e")
MODULE = """\
HloModule m, is_scheduled=true

ENTRY main {
  a = f32[1024]{0} parameter(0)
  b = f32[1024]{0:S(1)} negate(a)
  ROOT d = f32[1024]{0} add(b, b)
}
"""

READY_MS = 15_000
"""Bound for busy machines; an idle one needs well under 3000."""


def visit(page: str, folder: Path, width: int = 1280) -> str:
    """The page's DOM after its scripts ran; fails on anything in the console."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    run = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},1800",
            "--enable-logging=stderr",
            "--virtual-time-budget=2000",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    assert said == []
    return run.stdout


def attribute(dom: str, name: str) -> str:
    match = re.search(rf'<html[^>]* data-{name}="([^"]*)"', dom)
    assert match is not None, f"the page did not set data-{name}"
    return match[1]


def with_script(page: str, script: str) -> str:
    """The page with a few lines that act as its user, and note what they see."""
    return page.replace("</body>", f"<script>{script}</script></body>")


@pytest.fixture(scope="module")
def gpt2() -> PlanCapture:
    target = TARGET.replace(alternate_memory_bytes="16MiB")
    return capture_plan(msa.assign(msa.load(EXAMPLE), target))


def many_buffers(count: int) -> PlanCapture:
    """A capture with `count` stays, made by hand so that no planning is needed."""
    capture = capture_module(msa.parse(MODULE), TARGET, chunks={"b{}": (0, 4096)})
    (row,) = capture["buffers"]
    steps = capture["steps"]
    for column in steps.values():
        column *= count // 3 + 4  # type: ignore[operator]
    capture["occupancy"] *= count // 3 + 4
    capture["buffers"] = [
        {
            **row,
            "name": f"fusion.{n}{{}}",
            "value": f"fusion.{n}{{}}",
            "start": n,
            "end": n + 1 + n % 7,
            "offset": 4096 * (n % 64),
        }
        for n in range(count)
    ]
    capture["alternate_peak_bytes"] = 64 * 4096
    return capture


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_of_a_real_plan(gpt2: PlanCapture, tmp_path: Path, width: int) -> None:
    dom = visit(plan_page(gpt2), tmp_path, width)
    assert int(attribute(dom, "ready")) < READY_MS
    assert f"{len(gpt2['copies'])} copies" in dom
    assert gpt2["losses"][0]["value"] in dom


def test_ten_thousand_buffers(tmp_path: Path) -> None:
    dom = visit(plan_page(many_buffers(10_000)), tmp_path)
    assert int(attribute(dom, "ready")) < READY_MS
    assert "10000 stays in fast memory" in dom


def test_nothing_in_fast_memory(tmp_path: Path) -> None:
    bare = capture_module(msa.parse(MODULE.replace(":S(1)", "")), TARGET)
    visit(plan_page(bare), tmp_path)


USER = """
const note = document.documentElement.dataset;
const press = (key) => document.getElementById("map-canvas").dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
press("n"); note.first = document.querySelector("#detail b").textContent;
press("n"); note.second = document.querySelector("#detail b").textContent;
press("p"); note.back = document.querySelector("#detail b").textContent;
press("Escape"); note.none = document.querySelector("#detail b") ? "no" : "yes";
press("+"); press("ArrowRight"); press("Home");
const search = document.getElementById("search");
search.value = "fusion.123{"; search.dispatchEvent(new Event("input"));
note.found = document.getElementById("found").textContent;
note.rows = document.querySelectorAll("#buffers tbody tr").length;
search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
note.chosen = document.querySelector("#detail b").textContent;
note.overflow = document.documentElement.scrollWidth > innerWidth ? "yes" : "no";
"""


def test_keys_and_search(tmp_path: Path) -> None:
    dom = visit(with_script(plan_page(many_buffers(300)), USER), tmp_path)
    assert attribute(dom, "first") == "fusion.0{}"
    assert attribute(dom, "second") == "fusion.1{}"
    assert attribute(dom, "back") == "fusion.0{}"
    assert attribute(dom, "none") == "yes"
    assert attribute(dom, "found") == "1 in fast memory"
    assert attribute(dom, "rows") == "1"
    assert attribute(dom, "chosen") == "fusion.123{}"
    assert attribute(dom, "overflow") == "no"


def test_a_narrow_page_does_not_scroll_sideways(
    gpt2: PlanCapture, tmp_path: Path
) -> None:
    script = (
        "document.documentElement.dataset.overflow ="
        " document.documentElement.scrollWidth > innerWidth ? 'yes' : 'no';"
    )
    dom = visit(with_script(plan_page(gpt2), script), tmp_path, 400)
    assert attribute(dom, "overflow") == "no"


CLIPPED = """
const cut = [...document.querySelectorAll(SELECTOR)].filter(
  (box) => box.scrollWidth > box.clientWidth).map((box) => box.parentElement.id);
document.documentElement.dataset.cut = cut.join(" ") || "none";
"""


@pytest.mark.parametrize("width", [1280, 1240, 700, 400])
def test_no_column_of_the_why_tables_is_cut_off(
    gpt2: PlanCapture, tmp_path: Path, width: int
) -> None:
    """Not by long names and places either."""
    losses = [
        {
            **row,
            "value": "a_fusion_of_very_many_operations_with_a_long_name.1234{0,1}",
            "source": "/home/someone/project/models/transformer_block.py:1234",
        }
        for row in gpt2["losses"][:3]
    ]
    capture: Any = {**gpt2, "losses": [*losses, *gpt2["losses"]]}
    script = CLIPPED.replace("SELECTOR", '"#wins .scroll, #losses .scroll"')
    dom = visit(with_script(plan_page(capture), script), tmp_path, width)
    assert attribute(dom, "cut") == "none"


def test_no_table_of_a_narrow_page_is_cut_off(
    gpt2: PlanCapture, tmp_path: Path
) -> None:
    script = CLIPPED.replace("SELECTOR", '".scroll"')
    dom = visit(with_script(plan_page(gpt2), script), tmp_path, 400)
    assert attribute(dom, "cut") == "none"


def test_the_page_of_a_difference(tmp_path: Path) -> None:
    module = msa.load(EXAMPLE)
    first = msa.assign(module, TARGET.replace(alternate_memory_bytes="4MiB"))
    second = msa.assign(module, TARGET.replace(alternate_memory_bytes="16MiB"))
    dom = visit(first.diff(second).html(), tmp_path)
    assert int(attribute(dom, "ready")) < READY_MS


def test_the_page_of_a_memory_report(tmp_path: Path) -> None:
    dom = visit(msa.analyze(msa.load(EXAMPLE)).html(), tmp_path)
    assert "At the peak" in dom
