"""Every command: what it prints, what it writes, how it ends."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import msa
from msa.cli import app, main
from msa.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
MODULE = """\
HloModule small, is_scheduled=true

ENTRY main {
  a = f32[1024,1024]{1,0} parameter(0)
  w = f32[1024,1024]{1,0} parameter(1)
  b = f32[1024,1024]{1,0} negate(a)
  c = f32[1024,1024]{1,0} exponential(b)
  d = f32[1024,1024]{1,0} add(b, c)
  ROOT e = f32[1024,1024]{1,0} multiply(d, w)
}
"""
SMALL = MODULE.replace("1024,1024", "8,16")
BUFFERS = "id,lower,upper,size\na,0,2,2\nb,1,3,1\nc,2,3,2\n"


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "small.hlo"
    path.write_text(MODULE)
    return str(path)


def ends(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> tuple[str, str]:
    got = main(list(arguments))
    out, err = capsys.readouterr()
    assert got == code, err
    return out, err


def test_plan_prints_a_summary(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = ends(capsys, "plan", module, "--alternate-memory", "16MiB")
    assert "times as fast" in out
    assert err == ""


def test_plan_writes_every_kind_of_file(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {
        "-o": "out.hlo",
        "--html": "plan.html",
        "--json": "plan.json",
        "--csv": "copies.csv",
        "--perfetto": "trace.json",
    }
    arguments = [x for flag, n in names.items() for x in (flag, str(tmp_path / n))]
    out, _ = ends(capsys, "plan", module, *arguments, "-q")
    assert out == ""
    planned = msa.load(tmp_path / "out.hlo")
    assert "S(1)" in planned.to_text()
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "plan.json").read_text())["module"] == "small"
    rows = list(csv.DictReader((tmp_path / "copies.csv").read_text().splitlines()))
    assert rows
    assert {"kind", "source", "bytes"} <= set(rows[0])
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [*names.values(), "small.hlo"]
    )


@pytest.mark.parametrize("flag", ["-o", "--html", "--json", "--csv", "--perfetto"])
def test_a_dash_is_standard_output_and_nothing_else(
    flag: str, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "plan", module, flag, "-")
    assert "times as fast" not in out
    if flag == "-o":
        msa.parse(out)
    if flag in ("--json", "--perfetto"):
        json.loads(out)


def test_plan_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(MODULE))
    out, _ = ends(capsys, "plan", "-")
    assert out.splitlines()[0].split()[:2] == ["module", "small,"]


def test_plan_draws_and_lists(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ends(capsys, "plan", module, "--table", "--ascii")
    assert "offset" in out
    assert "|" in out


def test_report(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data = tmp_path / "m.html", tmp_path / "m.json"
    out, _ = ends(capsys, "report", module, "--html", str(page), "--json", str(data))
    assert "peak" in out.lower()
    assert "<html" in page.read_text()
    # Arguments 8 MiB, result 4 MiB, and b with c live together: d may reuse one.
    assert json.loads(data.read_text())["peak_bytes"] >= 16 << 20


def test_simulate_says_what_the_library_says(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "simulate", module, "--json")
    expected = msa.simulate(msa.parse(MODULE), msa.Target.preset("tpu_v5e"))
    assert json.loads(out)["elapsed_seconds"] == expected.elapsed_seconds
    out, _ = ends(capsys, "simulate", module)
    assert "waits for copies" in out


def test_explain(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ends(capsys, "explain", module, "b")
    assert out.startswith("b{}")
    out, _ = ends(capsys, "explain", module, "e", "--why-not")
    assert "e{}" in out
    _, err = ends(capsys, "explain", module, "bb", code=2)
    assert "did you mean 'b'?" in err


def test_prove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    out, _ = ends(capsys, "prove", str(path), "--seeds", "2")
    assert out == "equal on 2 seed(s): small\n"


def test_diff_ends_with_one_when_plans_differ(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "diff", module)
    assert "same" in out
    page = tmp_path / "diff.html"
    more = ("--alternate-memory", "1MiB", "--against-memory", "16MiB")
    out, _ = ends(capsys, "diff", module, *more, "--html", str(page), code=1)
    assert "16 MiB" in out
    assert "<html" in page.read_text()


def test_diff_of_captured_plans(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    for path, size in zip(paths, ("1MiB", "16MiB"), strict=True):
        more = ("--alternate-memory", size, "--capture", path, "-q")
        ends(capsys, "plan", module, *more)
    out, _ = ends(capsys, "diff", *paths, code=1)
    assert "16 MiB" in out
    ends(capsys, "diff", paths[0], paths[0])
    ends(capsys, "diff", paths[0], code=2)


@pytest.mark.parametrize("question", [(), ("--why-not",)])
def test_explain_writes_json_and_pages(
    module: str,
    question: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, data = tmp_path / "why.html", tmp_path / "why.json"
    files = ("--html", str(page), "--json", str(data))
    out, _ = ends(capsys, "explain", module, "b", *question, *files)
    found = json.loads(data.read_text())
    assert f"{found['text']}\n" == out
    assert found["question"] == ("why_not" if question else "explain")
    assert [value["value"] for value in found["values"]] == ["b{}"]
    assert page.read_text().startswith("<!doctype html>")
    out, _ = ends(capsys, "explain", module, "b", *question, "--json", "-")
    assert json.loads(out) == found
    for option in ("--json", "--html"):
        ends(capsys, "explain", module, option, "-", code=2)


def test_diff_writes_json(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--alternate-memory", "2048", "--against-memory", "8MiB", "--json", "-")
    out, _ = ends(capsys, "diff", module, *more, code=1)
    found = json.loads(out)
    assert (found["schema"], found["same"]) == ("msa.diff/1", False)
    sizes = (found[side]["alternate_memory_bytes"] for side in ("before", "after"))
    assert tuple(sizes) == (2048, 8 << 20)
    assert ["fast memory", "2 KiB", "8 MiB"] in found["figures"]
    out, _ = ends(capsys, "diff", module, "--json", "-")
    assert json.loads(out)["same"]


def test_explain_draws_the_neighbourhood(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "explain", module, "b", "--dot", "-")
    assert out.startswith("digraph")
    assert '"b" -> "c";' in out


def test_sweep(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "curve.csv"
    memory = ("--memory", "1MiB", "4MiB", "16MiB")
    more = ("--csv", str(table), "--jobs", "1")
    out, _ = ends(capsys, "sweep", module, *memory, *more)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [int(row["alternate_memory_bytes"]) >> 20 for row in rows] == [1, 4, 16]
    times = [float(row["after_seconds"]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert "16 MiB" in out


def test_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "buffers.csv"
    path.write_text(BUFFERS)
    page, offsets = tmp_path / "p.html", tmp_path / "o.csv"
    more = ("--html", str(page), "-o", str(offsets), "--ascii")
    out, _ = ends(capsys, "pack", str(path), *more)
    assert "3 B" in out  # a and b, or b and c, live together: 3 bytes
    assert "<html" in page.read_text()
    assert len(list(csv.DictReader(offsets.read_text().splitlines()))) == 3
    ends(capsys, "pack", str(path), "--capacity", "3")
    _, err = ends(capsys, "pack", str(path), "--capacity", "2", code=1)
    assert err.startswith("msa: error: ")


def test_pack_reads_and_writes_json_and_keeps_reserved_addresses_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # C5: 64 KiB are taken for all time, two tiles of 100 KiB follow each other.
    path, plan = tmp_path / "tiles.json", tmp_path / "plan.json"
    path.write_text('{"buffers": [["a", 0, 2, 102400], ["b", 2, 4, 102400]]}')
    more = ("--capacity", "192KiB", "--reserve", "0:64KiB", "-o", str(plan))
    out, _ = ends(capsys, "pack", str(path), *more)
    assert "164 KiB" in out
    packed = msa.HeapPlan.from_json(plan.read_text())
    packed.verify()
    assert packed.as_dict() == {"a": 65536, "b": 65536}
    _, err = ends(capsys, "pack", str(path), "--reserve", "lots", code=2)
    assert "0:64KiB" in err


def test_pack_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BUFFERS))
    out, _ = ends(capsys, "pack", "-", "-o", "-")
    assert out.splitlines()[0] == "id,lower,upper,size,offset"
    assert len(out.splitlines()) == 4


def test_opt(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ends(capsys, "opt", module, "-p", "dce")
    assert msa.parse(out) == msa.parse(MODULE)
    _, err = ends(capsys, "opt", module, "-p", "dcee", code=2)
    assert "did you mean 'dce'?" in err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "completion", shell)
    assert all(name in out for name in COMMANDS)
    assert "--alternate-memory" in out


def test_the_completion_script_is_valid_bash(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = ends(capsys, "completion", "bash")
    subprocess.run(["bash", "-n"], input=out, text=True, check=True)
    ask = 'COMP_WORDS=(msa pl); COMP_CWORD=1; _msa; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", out + ask], capture_output=True, text=True, check=True
    )
    assert done.stdout == "plan\n"


def test_explain_without_a_name_lists_the_names(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(capsys, "explain", module)
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert sorted(names) == [f"{x}{{}}" for x in "abcdew"]
    for name in names:
        ends(capsys, "explain", module, name)
    _, err = ends(capsys, "explain", module, "qqqqqq", code=2)
    assert "`msa explain MODULE` without a name lists them" in err
    assert err.count("(try:") == 1
    ends(capsys, "explain", module, "--dot", "-", code=2)


def test_diff_of_two_targets_and_of_two_strategies(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = ends(
        capsys, "diff", module, "--against-target", "tpu_v6e", "--html", "-", code=1
    )
    assert "tpu_v6e" in out
    memory = ("--alternate-memory", "4MiB")
    more = ("--against-target", "tpu_v4", "--against-memory", "4MiB")
    out, _ = ends(capsys, "diff", module, *memory, *more, code=1)
    assert re.search(r"^target +tpu_v5e +tpu_v4$", out, re.M)
    assert "fast memory  " not in out  # 4 MiB in both
    out, _ = ends(capsys, "diff", module, "--against-strategy", "search", code=1)
    assert re.search(r"^strategy +greedy +search$", out, re.M)
    ends(capsys, "diff", module, "--against-target", "tpu_v9", code=2)


def test_an_unknown_target_is_listed_once(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = ends(capsys, "plan", module, "--target", "zzz", code=2)
    assert err.count("edge_npu") == 1
    _, err = ends(capsys, "plan", module, "--target", "tpu_v5ee", code=2)
    assert err.endswith("; did you mean 'tpu_v5e'?\n")


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[int]]:
    """The examples and the exit codes in a command's help."""
    out, _ = ends(capsys, *name.split(), "--help")
    _, _, tail = out.partition("\nexamples:\n")
    examples, _, codes = tail.partition("\n\nexit codes:\n")
    return (
        [line.strip() for line in examples.splitlines()],
        [int(line.split()[0]) for line in codes.splitlines()],
    )


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_ends_with_examples_and_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    examples, codes = shown(name, capsys)
    assert examples
    assert all(line.startswith(("msa ", 'eval "$(msa ')) for line in examples)
    assert {0, 2, 130} <= set(codes) <= {0, 1, 2, 130}


EXAMPLES = [
    line
    for name in COMMANDS
    for line in importlib.import_module(f"msa.cli.commands.{name}").EXAMPLES
]


@pytest.mark.parametrize("line", [*EXAMPLES, *app.EXAMPLES])
def test_every_example_in_the_help_runs_as_written(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a folder with the examples, as a clone is; it ends with 0, or differs."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    if words[0] == "eval":
        script = f'msa() {{ "{sys.executable}" -m msa "$@"; }}\n{line}\ncomplete -p msa'
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=True
        )
        assert "-F _msa msa" in done.stdout
        return
    assert words[0] == "msa"
    assert main(words[1:]) == (1 if words[1] == "diff" else 0)
    assert capsys.readouterr().err == ""
    for flag, path in pairwise(words):
        if flag in ("-o", "--html", "--csv"):
            assert (tmp_path / path).stat().st_size > 0


def test_bare_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ends(capsys, "--help")
    assert all(name in out for name in COMMANDS)
    out, _ = ends(capsys, "--version")
    assert out == f"msa {msa.__version__}\n"


BAD_TEXT = MODULE.replace("negate(a)", "negate(aa)")


def test_bad_text_gives_one_line_and_a_caret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.hlo"
    path.write_text(BAD_TEXT)
    out, err = ends(capsys, "plan", str(path), code=2)
    assert out == ""
    first, text, caret = err.splitlines()
    assert first.startswith(f"msa: error: {path}:6:")
    assert text.index("aa)") == caret.index("^")


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "/nowhere/m.hlo"],
        ["plan", "MODULE", "--target", "tpu_v9"],
        ["plan", "MODULE", "--target", "/nowhere/t.toml"],
        ["plan", "MODULE", "--alternate-memory", "lots"],
        ["plan", "MODULE", "--effort", "-3"],
        ["plan", "MODULE", "--html", "/nowhere/plan.html"],
        ["plan", "MODULE", "--csv", "/nowhere/plan.csv"],
        ["report", "MODULE", "--json", "/nowhere/plan.json"],
        ["pack", "/nowhere/x.csv"],
        ["pack", "MODULE"],
        ["opt", "MODULE"],
        ["nonsense"],
        [],
    ],
    ids=" ".join,
)
def test_bad_input_ends_with_two_and_says_why(
    arguments: list[str], module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [module if x == "MODULE" else x for x in arguments]
    out, err = ends(capsys, *given, code=2)
    assert out == ""
    assert "error: " in err
    assert "Traceback" not in err
