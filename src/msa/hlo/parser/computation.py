"""Reading computations: header, instructions, root.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.parser.cursor import nearest_name, shown
from msa.hlo.parser.instruction import read_instruction
from msa.hlo.parser.lines import read_lines
from msa.hlo.parser.state import ReaderState, Scope, Task, run
from msa.hlo.shape import Shape

_PARAMETERS: Final = re.compile(
    r"\((?:[^()\"/]++|\((?:[^()\"/]++|\((?:[^()\"/]++|\([^()\"/]*+\))*+\))*+\))*+\)"
)

# `ENTRY %name (p: f32[2], …) -> f32[2] ` as XLA prints it, up to the brace.
_HEADER: Final = re.compile(
    r"(ENTRY )?%([A-Za-z_][A-Za-z0-9_.\-]*+) "
    r"\((?:[^()\"/]++|\((?:[^()\"/]++|\([^()\"/]*+\))*+\))*+\) -> "
    r"([a-z][a-z0-9]*+\[[0-9,]*+\]) (?=\{)"
)


def read_computation(state: ReaderState) -> tuple[Computation, bool]:
    """Read one computation; returns it and whether `ENTRY` marks it."""
    cursor = state.cursor
    start = cursor.skip()
    match = _HEADER.match(cursor.text, start)
    result: Shape | None
    if match is not None:
        is_entry, name, at = match[1] is not None, match[2], match.start(2)
        result = state.types.from_text(match[3])
        result_at, cursor.position = match.start(3), match.end()
    else:
        is_entry = cursor.accept_word("ENTRY")
        at = cursor.skip()
        name = cursor.name("a computation name")
        result, result_at = _read_signature(state)
    previous = state.places.get(name)
    if previous is not None:
        line, column = cursor.place(previous)
        cursor.fail(
            f"computation {shown(name)} was previously defined here: {line}:{column}",
            at=at,
        )
    state.places[name] = at
    computation = run(read_body(state, name), cursor)
    if result is not None and not result.compatible(computation.root.shape):
        cursor.fail(
            f"shape of computation {name}, {result}, is not compatible with that of "
            f"its root instruction {computation.root.name}, {computation.root.shape}",
            at=result_at,
        )
    if cursor.looking_at(","):
        _read_attributes(state, computation)
    state.finish(computation)
    return computation, is_entry


def _read_signature(state: ReaderState) -> tuple[Shape | None, int]:
    cursor = state.cursor
    if not cursor.looking_at("("):
        return None, 0
    _skip_parameters(state)
    cursor.expect("->", "after the parameters of a computation")
    at = cursor.skip()
    return state.types.read(cursor), at


def _read_attributes(state: ReaderState, computation: Computation) -> None:
    cursor = state.cursor
    while cursor.accept(","):
        at = cursor.skip()
        attribute = cursor.attribute_name()
        if attribute != "execution_thread":
            cursor.fail(
                f"unexpected attribute {shown(attribute)!r} of a computation",
                at=at,
                expected="execution_thread",
                nearest=nearest_name(attribute, ["execution_thread"]),
            )
        computation.execution_thread = cursor.string()


def _skip_parameters(state: ReaderState) -> None:
    """Names and shapes of a signature; they say nothing that the body does not."""
    cursor = state.cursor
    if cursor.match(_PARAMETERS) is not None:
        return
    cursor.expect("(")
    while not cursor.accept(")"):
        cursor.name("a parameter name")
        cursor.accept(":")
        state.types.read(cursor)
        if not cursor.accept(",") and not cursor.looking_at(")"):
            cursor.expect(")", "at the end of the parameters")


def read_inline_computation(state: ReaderState) -> Task:
    """Read `{ instructions }` in attribute place as a computation of its own."""
    computation = yield read_body(state, "_")
    computation.name = state.unique_computation_name("_")
    state.finish(computation)
    return computation


def read_body(state: ReaderState, name: str) -> Task:
    """Read `{ instruction … }`; returns the computation, not yet in the module."""
    cursor = state.cursor
    start = cursor.skip()
    scope = Scope(Computation(name))
    cursor.expect("{", "before the instructions of a computation")
    while True:
        read_lines(state, scope)
        if cursor.accept("}"):
            break
        if cursor.at_end():
            cursor.fail("unexpected end of text in a computation", expected="'}'")
        yield read_instruction(state, scope)
    computation = scope.computation
    if not computation.instructions:
        cursor.fail(f"computation {name} has no instructions", at=start)
    if not scope.explicit_root:
        computation.root = computation.instructions[-1]
    check_parameters(state, computation, start)
    return computation


def check_parameters(state: ReaderState, computation: Computation, at: int) -> None:
    """Order parameters; their numbers are 0, 1, … without gaps or repetitions."""
    computation.sort_parameters()
    numbers = [p.attributes["parameter_number"] for p in computation.parameters]
    if numbers == list(range(len(numbers))):
        return
    wrong = next(i for i, number in enumerate(numbers) if number != i)
    problem = f"parameter number {wrong} is missing"
    if numbers[wrong] < wrong:
        problem = f"parameter number {numbers[wrong]} appears twice"
    state.cursor.fail(f"{problem} in computation {shown(computation.name)}", at=at)
