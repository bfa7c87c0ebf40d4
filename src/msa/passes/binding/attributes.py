"""Memory spaces that custom calls ask for, as text."""

from __future__ import annotations

from typing import Final

from msa.hlo.arguments import expect
from msa.hlo.instruction import Instruction
from msa.passes.binding.errors import BindingError

OPERANDS: Final = "operands_memory_spaces"
RESULTS: Final = "results_memory_spaces"
ALLOWED: Final = (0, 1, 2)


def parse_memory_spaces(text: str) -> dict[int, int]:
    """Space by number from `{0:1,2:0}`; spaces around tokens are allowed.

    Raises:
        BindingError: braces are missing, a part is no pair of integers, or a space
            is none of 0, 1, 2.

    >>> parse_memory_spaces("{ 0 : 1, 1:0 }"), parse_memory_spaces("{}")
    ({0: 1, 1: 0}, {})
    """
    inside = expect(text, str, where="parse_memory_spaces", what="text").strip()
    if not (inside.startswith("{") and inside.endswith("}") and len(inside) > 1):
        raise BindingError(
            f"memory spaces are written {{number:space,…}}, not {text!r}"
        )
    inside = inside[1:-1].strip()
    found: dict[int, int] = {}
    for part in inside.split(",") if inside else ():
        pieces = part.split(":")
        try:
            number, space = (int(piece) for piece in pieces)
        except ValueError:
            raise BindingError(
                f"{part.strip()!r} is not number:space", where=repr(text)
            ) from None
        if space not in ALLOWED:
            raise BindingError(
                f"memory space {space} is none of {', '.join(map(str, ALLOWED))}",
                where=repr(text),
            )
        found[number] = space
    return found


def asked_for(x: Instruction, which: str) -> dict[int, int]:
    """What a custom call asks for its operands or results; empty for nothing."""
    if x.opcode != "custom-call":
        return {}
    given = dict(x.attributes.get("frontend_attributes") or {})
    text = given.get(which)
    return parse_memory_spaces(str(text)) if text is not None else {}
