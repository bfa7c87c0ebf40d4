"""Reading whole texts: modules, snippets without header, single instructions.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from typing import Final

from msa.collection import collection_paused
from msa.hlo.computation import Computation
from msa.hlo.module import Module
from msa.hlo.parser.computation import read_computation
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.header import read_header
from msa.hlo.parser.state import ReaderState
from msa.hlo.schedule import Schedule

_NAME_THEN_BRACE: Final = re.compile(r"%?[A-Za-z_][A-Za-z0-9_.\-]*")


def read_modules(text: str, *, allow_unknown: bool, several: bool) -> list[Module]:
    """Read the module in a text, or all of them when `several`."""
    with collection_paused(keep=True):
        cursor = Cursor(text)
        modules = [_read_text(cursor, allow_unknown)]
        while not cursor.at_end():
            if not several:
                cursor.fail(
                    "unexpected text after the module", expected="the end of the text"
                )
            modules.append(_read_text(cursor, allow_unknown))
        return modules


def _read_text(cursor: Cursor, allow_unknown: bool) -> Module:
    module = Module("")
    state = ReaderState(cursor, module, allow_unknown=allow_unknown)
    scheduled = False
    if cursor.at_end():
        cursor.fail("the text is empty", expected="HloModule, ENTRY or an instruction")
    if cursor.accept_word("HloModule"):
        scheduled = read_header(cursor, state.types, module)
    elif not _is_computation(cursor):
        from msa.hlo.parser.single import read_single

        return read_single(state)
    entry = _read_computations(state)
    if not module.name:
        module.name = f"module_{entry.name}"
    module.entry = entry
    if scheduled:
        module.schedule = make_schedule(module)
    return module


def _is_computation(cursor: Cursor) -> bool:
    if cursor.peek_word() == "ENTRY":
        return True
    position = cursor.position
    found = cursor.match(_NAME_THEN_BRACE) is not None and cursor.looking_at("{")
    cursor.position = position
    return found


def _read_computations(state: ReaderState) -> Computation:
    cursor = state.cursor
    entry: Computation | None = None
    last: Computation | None = None
    while not cursor.at_end() and not cursor.looking_at("HloModule"):
        at = cursor.skip()
        computation, is_entry = read_computation(state)
        if is_entry:
            if entry is not None:
                cursor.fail("expects only one ENTRY", at=at)
            entry = computation
        last = computation
    if entry is not None:
        return entry
    if last is None:
        cursor.fail("a module needs a computation", expected="a computation")
    return last


def make_schedule(module: Module) -> Schedule:
    """The schedule that the order of instructions in the text stands for."""
    embedded = module.embedded_computations()
    return Schedule(
        {c: tuple(c.instructions) for c in module.computations if c not in embedded}
    )
