"""`msa diag` and `python -m msa.diag`: every kind, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import msa
from msa import diag
from msa.analysis import BufferAssignment
from msa.cli import main

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
LEAKY = "func @f() {\n^entry:\n  %a = alloc : buf<4xf32>\n  use reads() writes(%a)\n  return\n}\n"


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "small.hlo"
    path.write_text(MODULE)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("usage", "Space 0"),
        ("peak", "Entry Parameter Subshape"),
        ("timeline", "█"),
        ("leaks", "0 leaks"),
        ("audit", "0 violations"),
        ("roofline", "fuse with the producer"),
        ("loops", "no loops"),
    ],
)
def test_each_kind_DX13(
    kind: str, word: str, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diag", kind, module]) == 0
    assert word in capsys.readouterr().out
    assert diag.main([kind, module, "--json", "--space", "0", "--top", "3"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


LOOP = """\
HloModule looped, is_scheduled=true
body {
  p = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[1024,1024] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[1024,1024] negate(x)
  ROOT t = (s32[], f32[1024,1024]) tuple(next, y)
}
cond {
  p = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  x = f32[1024,1024] parameter(0)
  t = (s32[], f32[1024,1024]) tuple(zero, x)
  ROOT w = (s32[], f32[1024,1024]) while(t), condition=cond, body=body
}
"""


def test_loops_are_judged_by_an_iteration_PT4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reads and writes 4 MiB; at 819 GB/s that is 10.2 µs."""
    path = tmp_path / "loop.hlo"
    path.write_text(LOOP)
    assert main(["diag", "loops", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("w × 10: ")
    assert "bound by memory" in out
    assert main(["diag", "loops", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["loops"]
    assert row["memory"] == pytest.approx(2 * (4 << 20) / 819e9, rel=0.01)


def test_shortfalls_and_leaks_are_findings_DX13(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diag", "oom", module, "--limit", "1MiB"]) == 1
    assert "short" in capsys.readouterr().out
    assert main(["diag", "oom", module, "--limit", "1GiB"]) == 0
    assert "it fits" in capsys.readouterr().out
    leaky = tmp_path / "leaky.txt"
    leaky.write_text(LEAKY)
    assert main(["diag", "leaks", str(leaky)]) == 1
    assert "1 × buffer" in capsys.readouterr().out


def test_compare_DX13(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = tmp_path / "planned.hlo"
    assert main(["plan", module, "-o", str(planned)]) == 0
    capsys.readouterr()
    assert main(["diag", "compare", module, str(planned)]) == 0
    assert "values moved" in capsys.readouterr().out


def test_saved_results_DX13(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(BufferAssignment.run(msa.parse(MODULE)).to_dict()))
    assert main(["diag", "usage", str(path)]) == 0
    assert "allocation 0: 4.00MiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["oom", "MODULE"],
        ["compare", "MODULE"],
        ["peak", "missing.hlo"],
        ["usage", "missing.json"],
        ["nothing", "MODULE"],
        ["oom", "MODULE", "--limit", "much"],
    ],
)
def test_bad_input_DX13(
    arguments: list[str], module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [module if a == "MODULE" else a for a in arguments]
    assert main(["diag", *words]) == 2
    assert capsys.readouterr().err
