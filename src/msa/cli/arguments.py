"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msa.assignment import Options
    from msa.target import Target


def add_module(parser: argparse.ArgumentParser, name: str = "module") -> None:
    """The positional module argument."""
    parser.add_argument(
        name, metavar="MODULE", help="HLO text, .gz, a dump folder, or - for stdin"
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    """`--target` and `--alternate-memory`."""
    parser.add_argument(
        "--target",
        default="tpu_v5e",
        help="preset name or a .toml/.json file (default: %(default)s)",
    )
    parser.add_argument(
        "--alternate-memory",
        metavar="SIZE",
        help="capacity of the fast memory, such as 16MiB",
    )


def add_strategy(parser: argparse.ArgumentParser) -> None:
    """`--strategy`, `--effort`, `--seed` and `--faithful`."""
    parser.add_argument("--strategy", choices=["greedy", "search"])
    parser.add_argument("--effort", type=int, help="evaluations of the search")
    parser.add_argument("--seed", type=int, help="seed of the search")
    parser.add_argument(
        "--faithful", action="store_true", help="reproduce XLA's quirks (greedy)"
    )


def named_target(name: str) -> Target:
    """A preset by name, or the target in a file."""
    from msa.target import Target

    if name.endswith((".toml", ".json")):
        return Target.load(name)
    return Target.preset(name)


def target_of(options: argparse.Namespace) -> Target:
    """The target that the arguments describe."""
    target = named_target(options.target)
    if options.alternate_memory is not None:
        target = target.replace(alternate_memory_bytes=options.alternate_memory)
    return target


def planning_options(options: argparse.Namespace) -> Options:
    """The planning options that the arguments describe."""
    from msa.assignment import Options

    changes = {
        name: value
        for name in ("strategy", "effort", "seed")
        if (value := getattr(options, name)) is not None
    }
    if options.faithful:
        changes["faithful"] = True
    return Options(**changes)
