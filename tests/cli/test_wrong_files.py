"""Files of another kind than the command reads: named, with what to try."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from msa.cli import main

HLO = "HloModule m\n\nENTRY e { ROOT p = f32[4] parameter(0) }\n"
CSV = "id,lower,upper,size\na,0,2,64\nb,2,4,64\n"


@pytest.mark.parametrize(
    ("command", "text", "said"),
    [
        ("plan", "", "such as compiled.as_text() prints"),
        ("plan", "hello\n", "is it HLO text"),
        ("plan", CSV, "for `msa pack`?"),
        ("plan", '{"buffers": []}', "for `msa pack`?"),
        ("pack", HLO, "`msa plan`"),
        ("pack", "", "a head line id,lower,upper,size"),
        ("pack", "id,lower,upper,size\n", "no buffers"),
        ("pack", "id,lower,upper,size\na,0,2,64,9\n", "id,start,end,size"),
        ("pack", '{"rows": []}', '{"buffers": [["a", 0, 2, 64]]}'),
    ],
)
def test_the_file_is_named_and_the_error_says_what_to_try(
    command: str,
    text: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "given"
    path.write_text(text)
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"msa: error: {path}")
    assert said in err


def test_a_typing_error_keeps_its_place_and_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "typo.hlo"
    path.write_text("ENTRY e { ROOT p = f32[4] paramater(0) }")
    assert main(["plan", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"msa: error: {path}:1:27: ")
    assert "did you mean 'parameter'?" in err


def test_text_from_a_pipe_is_called_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n"))
    assert main(["plan", "-"]) == 2
    assert capsys.readouterr().err.startswith("msa: error: standard input:1:1: ")


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows"])
def test_packed_rows_are_read_whatever_their_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(CSV.encode()))
    assert main(["pack", str(path)]) == 0
    assert capsys.readouterr().out.startswith("height      64 B")


def test_a_broken_packed_file_is_an_error_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode())[:20])
    assert main(["pack", str(path)]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "pack"])
def test_a_missing_file_names_its_nearest_neighbour(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.hlo").write_text(HLO)
    assert main([command, str(tmp_path / "modle.hlo")]) == 2
    err = capsys.readouterr().err
    assert "no such file" in err.lower()
    assert "did you mean 'model.hlo'?" in err
    assert main([command, str(tmp_path / "nowhere" / "model.hlo")]) == 2
    assert f"there is no folder {tmp_path / 'nowhere'}" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "text"), [("plan", HLO), ("pack", CSV)])
def test_standard_input_may_be_packed(
    command: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = []
    for data in (text.encode(), gzip.compress(text.encode())):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main([command, "-"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"abc" * 99)[:15]))
    )
    assert main([command, "-"]) == 2
    assert "standard input: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("end", range(HLO.index("{") + 1, len(HLO) - 2, 7))
def test_a_text_cut_off_is_called_so(
    end: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.hlo"
    path.write_text(HLO[:end])
    assert main(["plan", str(path)]) == 2
    assert "was the file cut off?" in capsys.readouterr().err
