"""Traces, maps, notebook cells, pictures, whole files."""

from __future__ import annotations

import importlib.util
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import msa
from msa.errors import FileFormatError, UnsupportedError
from msa.files import write_whole
from msa.report import capture_module
from msa.report.ascii_map import ascii_map
from msa.report.capture import PlanCapture
from msa.report.notebook import map_svg, plan_fragment
from msa.report.page import plan_page
from msa.report.perfetto import to_perfetto
from msa.report.plots import plot_plan

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt2_small_forward.hlo.gz"
TARGET = msa.Target.preset("tpu_v5e")
MODULE = """\
HloModule m, is_scheduled=true

ENTRY main {
  a = f32[1024]{0} parameter(0)
  b = f32[1024]{0:S(1)} negate(a)
  c = f32[1024]{0:S(1)} exponential(b)
  ROOT d = f32[1024]{0} add(b, c)
}
"""


@pytest.fixture
def capture() -> PlanCapture:
    chunks = {"b{}": (0, 4096), "c{}": (4096, 4096)}
    return capture_module(msa.parse(MODULE), TARGET, chunks=chunks)


def test_ascii_map_is_drawn_to_scale(capture: PlanCapture) -> None:
    # Four steps in four columns: b lives in [1, 4) below, c in [2, 4) above.
    lines = ascii_map(capture, width=4, height=2).splitlines()
    assert "address" in lines[0]
    assert "step" in lines[0]
    assert lines[1:3] == ["8 KiB |..bb|", "    0 |.aaa|"]
    assert lines[4:] == ["a  b{} (4 KiB)", "b  c{} (4 KiB)"]


def test_rows_of_the_ascii_map_say_their_address(capture: PlanCapture) -> None:
    """8 KiB in 16 rows: every fifth is at five times 512 B, the top is the height."""
    lines = ascii_map(capture, width=4, height=16).splitlines()[1:17]
    labels = [line.partition("|")[0].strip() for line in reversed(lines)]
    assert labels == ["0", *[""] * 4, "2.5 KiB", *[""] * 4, "5 KiB", *[""] * 4, "8 KiB"]


def test_the_ascii_map_counts_what_it_does_not_name() -> None:
    bare = capture_module(msa.parse(MODULE), TARGET, chunks={"b{}": (0, 4096)})
    (row,) = [row for row in bare["buffers"] if row["offset"] >= 0]
    bare["buffers"] = [
        {**row, "value": f"v{n}{{}}", "offset": 4096 * n} for n in range(14)
    ]
    assert ascii_map(bare).splitlines()[-1] == "*  2 other buffers"


def test_an_empty_map_says_so() -> None:
    bare = capture_module(msa.parse(MODULE.replace(":S(1)", "")), TARGET)
    assert ascii_map(bare) == "Nothing is placed in fast memory."
    assert "Nothing is placed" in map_svg(bare)
    assert plan_page(bare).startswith("<!doctype html>")


def test_the_notebook_cell_is_well_formed(capture: PlanCapture) -> None:
    cell = ET.fromstring(plan_fragment(capture))
    names = {element.tag.rpartition("}")[2] for element in cell.iter()}
    assert "svg" in names
    assert "script" not in names


def test_names_cannot_break_the_page() -> None:
    evil = "</script><script>alert(1)</script>"
    text = MODULE.replace(
        "negate(a)", f'negate(a), metadata={{op_name="{evil}@CAPTURE@"}}'
    )
    capture = capture_module(msa.parse(text), TARGET)
    page = plan_page(capture)
    assert page.count("</script>") == 2
    start = page.index('id="capture">') + len('id="capture">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["buffers"][0]["op_name"] == f"{evil}@CAPTURE@"


def test_the_page_needs_no_network(capture: PlanCapture) -> None:
    page = plan_page(capture)
    assert "http://" not in page
    assert "https://" not in page
    assert "@" not in page[: page.index('id="capture"')].replace("@media", "")


# The trace event format: phases and the keys that each must have.
REQUIRED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "pid", "tid", "ts", "dur"},
    "C": {"name", "pid", "ts", "args"},
    "b": {"name", "cat", "id", "pid", "ts"},
    "e": {"name", "cat", "id", "pid", "ts"},
}


def test_the_trace_follows_the_chrome_format() -> None:
    module = msa.load(EXAMPLE)
    plan = msa.assign(module, TARGET.replace(alternate_memory_bytes="16MiB"))
    from msa.report import capture_plan

    trace = json.loads(to_perfetto(capture_plan(plan)))
    events = trace["traceEvents"]
    opened: dict[int, float] = {}
    for event in events:
        assert set(event) >= REQUIRED[event["ph"]]
        assert event.get("ts", 0.0) >= 0.0
        assert event.get("dur", 0.0) >= 0.0
        if event["ph"] == "b":
            opened[event["id"]] = event["ts"]
        if event["ph"] == "e":
            assert event["ts"] >= opened.pop(event["id"])
    assert not opened
    end = max(event["ts"] + event["dur"] for event in events if event["ph"] == "X")
    assert end == pytest.approx(plan.estimate.after_seconds * 1e6, rel=1e-9)


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is there"
)
def test_without_matplotlib_the_error_says_what_to_do(capture: PlanCapture) -> None:
    with pytest.raises(UnsupportedError, match=r"msa\[viz\]"):
        plot_plan(capture)


def test_a_plot_has_a_rectangle_per_stay(capture: PlanCapture) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = plot_plan(capture)
    assert len(figure.axes[0].patches) == 2


def test_files_are_whole_or_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_whole(path, "one")
    write_whole(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o666 & ~_mask()
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_whole(tmp_path / "no" / "x.txt", "three")
    assert list(tmp_path.iterdir()) == [path]


def _mask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask
