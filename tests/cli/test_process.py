"""The command line as a process: start-up, pipes, interruption, progress."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from msa.cli import console, files, progress

COMMAND = [sys.executable, "-m", "msa"]


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_help_is_quick() -> None:
    best = 9.0
    for _ in range(3):
        before = processor_seconds()
        subprocess.run([*COMMAND, "--help"], check=True, capture_output=True)
        best = min(best, processor_seconds() - before)
    assert best < 0.4


def test_help_loads_no_heavy_module() -> None:
    code = (
        "import sys; from msa.cli import main; main(['--help']);"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'networkx', 'msa.hlo')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    body = "\n".join(f"  a{i} = f32[8]{{0}} negate(a{i - 1})" for i in range(1, 4000))
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  a0 = f32[8]{0} parameter(0)\n"
        f"{body}\n  ROOT r = f32[8]{{0}} negate(a3999)\n}}\n"
    )
    opt = subprocess.Popen(
        [*COMMAND, "opt", str(path), "-p", ""],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert opt.stdout is not None
    opt.stdout.read(10)
    opt.stdout.close()
    assert opt.stderr is not None
    message = opt.stderr.read()
    opt.stderr.close()
    assert opt.wait(60) == 0
    assert message == b""


def test_interruption_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "plan.html"
    target.write_text("old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_result(str(target), "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_ctrl_c_ends_with_130_and_one_line(tmp_path: Path) -> None:
    pipe = tmp_path / "never"
    os.mkfifo(pipe)
    run = subprocess.Popen(
        [*COMMAND, "plan", str(pipe), "--html", str(tmp_path / "plan.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # What a shell starts in the background, these tests too, ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Opening to write succeeds once the command is waiting for the text.
    with pipe.open("w"):
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        try:
            out, err = run.communicate(timeout=240)
        finally:
            run.kill()
    assert run.returncode == 130
    assert (out, err) == (b"", b"msa: interrupted\n")
    assert [p.name for p in tmp_path.iterdir()] == ["never"]


def without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    without_rich(monkeypatch)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    screen = Terminal()
    with progress.Progress(screen) as show:
        now[0] = 0.9
        show("planning", 1, 10)
        assert screen.getvalue() == ""
        now[0] = 1.1
        show("planning", 5, 10)
        assert "5/10" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    with progress.Progress(stream) as show:
        now[0] = 5.0
        show("planning", 5, 10)
    assert stream.getvalue() == ""


def test_progress_with_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    screen = Terminal()
    with progress.Progress(screen) as show:
        show._start -= 5.0
        show("planning", 5, 10)
    assert "planning" in screen.getvalue()


@pytest.mark.parametrize("rich", [False, True])
def test_tables_on_a_terminal(rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if rich:
        pytest.importorskip("rich", reason="rich is not installed")
    else:
        without_rich(monkeypatch)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    console.print_table(("name", "bytes"), [("[x]", "16")], right={1})
    text = screen.getvalue()
    assert "[x]" in text
    assert "bytes" in text


def test_tables_in_a_pipe_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    console.print_table(("name", "bytes"), [("x", "16")], right={1})
    assert stream.getvalue() == "name  bytes\nx        16\n"
