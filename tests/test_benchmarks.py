"""The runner of benchmarks, on bundled modules, without recordings or XLA."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as runner
from benchmarks import ratios, stages
from benchmarks import wide as wide_runner
from benchmarks import wide_programs as wide


@pytest.fixture(autouse=True)
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSA_SHARED", raising=False)
    monkeypatch.setattr(ratios, "_ROUNDS", 1)


def recording(path: Path, seconds: dict[str, dict[str, float]]) -> Path:
    plan = {"run_seconds": 1.0, "setup_seconds": 0.5, "status": "OK"}
    modules: dict[str, Any] = {
        name: {"plans": {mib: plan | {"run_seconds": s} for mib, s in plans.items()}}
        for name, plans in seconds.items()
    }
    modules["without"] = {"status": "refused"}
    path.write_text(json.dumps(modules))
    return path


def test_recorded_seconds_are_of_reading_and_planning(tmp_path: Path) -> None:
    path = recording(tmp_path / "r.json", {"m": {"4": 2.0, "16": 3.0}})
    assert ratios.recorded(path) == {"m": {4: 2.5, 16: 3.5}, "without": {}}
    assert ratios.recorded(None) == {}


def test_ratios_only_where_there_is_something_to_compare_with() -> None:
    known = {"mlp_forward": {16: 0.25}}
    rows = ratios.measure("mlp_forward", [4, 16], known, None)
    assert [row["MiB"] for row in rows] == [4, 16]
    assert "of planner" not in rows[0]
    spent = rows[1]["read"] + rows[1]["plan"]
    assert rows[1]["of planner"] == pytest.approx(4.0 * spent)
    assert not any("of reader" in row for row in rows)
    assert ratios.summary(rows) == {"of planner": pytest.approx(4.0 * spent)}


def test_another_reader_is_timed_in_the_same_run() -> None:
    read: list[str] = []
    rows = ratios.measure("mlp_forward", [4, 16], {}, read.append)
    assert len(read) == 1
    assert read[0].startswith("HloModule")
    assert all(row["of reader"] > 0.0 for row in rows)


def test_table_of_ratios() -> None:
    times = {"read": 0.5, "plan": 1.0, "verify": 0.25}
    rows = [
        {"module": "a", "MiB": 4, **times, "of planner": 2.0, "of reader": 1.5},
        {"module": "b", "MiB": 4, **times, "of planner": 8.0},
        {"module": "c", "MiB": 4, **times},
    ]
    lines = [line.split() for line in ratios.table(rows).splitlines()]
    assert [
        "a",
        "4",
        "MiB",
        "0.500",
        "s",
        "1.000",
        "s",
        "0.250",
        "s",
        "2.0",
        "1.5",
    ] in (lines)
    assert ["geometric", "mean", "4.0", "1.5"] in lines  # sqrt(2 * 8)


def test_exponents_of_growth() -> None:
    rows = [
        {"instructions": n, **dict.fromkeys(stages.STAGES, n * n / 1e6)}
        for n in (1000, 2000, 4000)
    ]
    assert stages.growth(rows) == {s: pytest.approx(2.0) for s in stages.STAGES}
    assert stages.growth(rows[:2]) == {}


def test_runner_keeps_figures_and_compares_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    known = recording(tmp_path / "r.json", {"mlp_forward": {"16": 0.5}})
    arguments = ["mlp_forward", "--memory", "16", "--sizes", "30", "60", "120"]
    arguments += ["--recorded", str(known)]
    assert runner.main([*arguments, "--json", str(kept)]) == 0
    assert "growth" in capsys.readouterr().out
    figures = json.loads(kept.read_text())
    assert set(figures) == {"stages", "growth", "plans", "ratios"}
    assert all(row["peak_MiB"] > 1.0 for row in figures["stages"])

    assert runner.main([*arguments, "--against", str(kept)]) == 0
    shown = capsys.readouterr().out
    assert "worse" not in shown
    assert "growth, n^parse" in shown
    assert "seconds × XLA's, of planner" in shown

    for row in figures["plans"]:
        row["after"] /= 2.0
    kept.write_text(json.dumps(figures))
    assert runner.main([*arguments, "--against", str(kept)]) == 1
    assert "worse: ('mlp_forward', 16, 'greedy') 2.0000 × before" in (
        capsys.readouterr().out
    )


def test_the_kept_baseline_is_of_the_bundled_modules() -> None:
    path = Path(runner.__file__).with_name("baseline.json")
    figures = json.loads(path.read_text())
    now = runner.plans.measure("mlp_forward", [16], ["greedy"])
    before = [
        row
        for row in figures["plans"]
        if (row["module"], row["MiB"], row["strategy"]) == ("mlp_forward", 16, "greedy")
    ]
    assert [row["after"] for row in before] == [pytest.approx(now[0]["after"])]


@pytest.mark.parametrize("what", wide.PROGRAMS)
def test_wide_programs_are_planned(what: str) -> None:
    small, large = wide_runner.measure(what, 40 / wide.PROGRAMS[what][1])
    assert (small["number"], large["number"]) == (10, 40)
    assert "exponent" in large
    assert what in wide_runner.table([small, large])
