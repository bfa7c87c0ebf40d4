"""Argument parsing and the outcome of a run: exit codes and error lines."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from msa.errors import CapacityError, ExecutionError, MsaError, PlanError
from msa.version import VERSION

DONE: Final = 0
NEGATIVE: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

COMMANDS: Final = {
    "plan": "decide which buffers live in fast memory and insert the copies",
    "report": "show peak memory, what is live there, and donations",
    "explain": "why a buffer lives where it lives",
    "simulate": "modelled time of a module as it stands",
    "prove": "execute the plan and compare it with the original",
    "diff": "compare the plans of two modules or targets",
    "sweep": "plan modules on many targets: the curve capacity → time",
    "pack": "pack buffers with lifetimes into memory",
    "opt": "run a pipeline of passes over a module",
    "diag": "memory usage, peaks, leaks, audits and what bandwidth limits",
    "completion": "print a completion script for a shell",
}
"""Command name → one line of help; each is a module of `msa.cli.commands`."""


EXAMPLES: Final = (
    "msa plan examples/gpt2_small_forward.hlo.gz --alternate-memory 16MiB --html plan.html",
    "msa plan --help",
)
"""Run as written in a clone of the project."""


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The argument parser; `only` skips the options of all other commands."""
    parser = argparse.ArgumentParser(
        prog="msa",
        description="Memory space assignment for tensor programs (HLO).",
        epilog=_epilog(
            EXAMPLES, "a negative answer: does not fit, differs, is not equal"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"msa {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if only is None or name == only:
            module = importlib.import_module(f"msa.cli.commands.{name}")
            sub.epilog = _epilog(module.EXAMPLES, getattr(module, "EXIT_ONE", ""))
            module.configure(sub)
            sub.set_defaults(run=module.run)
    return parser


def _epilog(examples: Sequence[str], negative: str) -> str:
    """Examples and exit codes, as every command's help ends."""
    codes = [f"  {DONE}    done"]
    if negative:
        codes.append(f"  {NEGATIVE}    {negative}")
    codes.append(f"  {BAD_INPUT}    bad input; the error says where and what to try")
    codes.append(f"  {INTERRUPTED}  interrupted")
    return "\n".join(
        ("examples:", *(f"  {line}" for line in examples), "", "exit codes:", *codes)
    )


def run(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    named = next((a for a in arguments if not a.startswith("-")), "")
    parser = build_parser(only=named if named in COMMANDS else "")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except (CapacityError, PlanError, ExecutionError) as error:
        _complain(error)
        return NEGATIVE
    except MsaError as error:
        _complain(error)
        return BAD_INPUT
    except OSError as error:
        return _os_error(error)
    except KeyboardInterrupt:
        sys.stderr.write("msa: interrupted\n")
        return INTERRUPTED
    return code


def _complain(error: MsaError) -> None:
    sys.stderr.write(f"msa: error: {error}\n")


def _os_error(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        # The reader of a pipe went away: nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    name = f" {str(error.filename)!r}" if error.filename else ""
    sys.stderr.write(f"msa: error: cannot use{name}: {error.strerror or error}\n")
    return BAD_INPUT
