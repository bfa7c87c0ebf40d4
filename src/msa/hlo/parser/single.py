"""Reading a text that is one instruction, with its operands' shapes given in place.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.module import Module
from msa.hlo.parser.instruction import read_right_side
from msa.hlo.parser.state import ReaderState, Scope, run

_NAMED: Final = re.compile(r"%?([A-Za-z_][A-Za-z0-9_.\-]*+)(?:\s|/\*.*?\*/)*=(?!=)")
_ENTRY_NAME: Final = "_"


def read_single(state: ReaderState) -> Module:
    """Read `[name =] [shape] opcode(operands), attributes`.

    Unknown operands become parameters in order of appearance.
    """
    cursor = state.cursor
    module = state.module
    module.name = _ENTRY_NAME
    entry = Computation(_ENTRY_NAME)
    state.computations[_ENTRY_NAME] = entry
    scope = Scope(entry, open_=True)
    cursor.accept_word("ROOT")
    at = cursor.skip()
    match = cursor.match(_NAMED)
    name = match[1] if match else _ENTRY_NAME
    run(read_right_side(state, scope, name, at), cursor)
    entry.root = entry.instructions[-1]
    module.add(entry, entry=True)
    # XLA adds the entry before the computations that it calls.
    module.computations.insert(0, module.computations.pop())
    if not cursor.at_end() and not cursor.looking_at("HloModule"):
        cursor.fail(
            "unexpected text after the instruction", expected="the end of the text"
        )
    from msa.hlo.parser.reader import make_schedule

    module.schedule = make_schedule(module)
    return module
