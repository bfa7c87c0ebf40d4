"""`msa completion`: a script that completes commands and options."""

from __future__ import annotations

import argparse
import sys

EXAMPLES = ('eval "$(msa completion bash)"',)

_BASH = """\
_msa() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word")); return
  fi
  case "$command" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _msa msa
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=["bash", "zsh"])


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from msa.cli.app import build_parser

    parser = build_parser()
    subparsers = next(
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    cases = [
        f'    {name}) local options="{" ".join(_flags(sub))}" ;;'
        for name, sub in subparsers.choices.items()
    ]
    script = _BASH.format(commands=" ".join(subparsers.choices), cases="\n".join(cases))
    if options.shell == "zsh":
        script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    sys.stdout.write(script)
    return 0


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    return [s for action in parser._actions for s in action.option_strings]
