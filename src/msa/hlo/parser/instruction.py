"""Reading one instruction in full generality.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msa.errors import HloError
from msa.hlo.instruction import Instruction
from msa.hlo.literal_text import read_literal
from msa.hlo.naming import KEYWORDS, sanitize_name
from msa.hlo.opcode import OPCODES, VARIADIC, OpcodeInfo
from msa.hlo.parser.cursor import nearest_name, shown
from msa.hlo.parser.recomputed import RECOMPUTED, recomputed_shape
from msa.hlo.parser.state import ReaderState, Scope, Task
from msa.hlo.parser.tail import Tail, read_tail
from msa.hlo.primitive import PRED
from msa.hlo.shape import Shape

_SHAPE_START: Final = re.compile(r"\(|b\(|[A-Za-z_][A-Za-z0-9_]*\s*\[")
_REFERENCE: Final = re.compile(r"(%?)([A-Za-z_][A-Za-z0-9_.\-]*+)")
_OPCODE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*+")


def read_instruction(state: ReaderState, scope: Scope) -> Task:
    """Read `[ROOT] name = [shape] opcode(operands), attributes`."""
    cursor = state.cursor
    start = cursor.skip()
    is_root = cursor.accept_word("ROOT")
    at = cursor.skip()
    name = cursor.name("an instruction name")
    cursor.expect("=", "after an instruction name")
    check_name(state, scope, name, at)
    instruction = yield read_right_side(state, scope, name, at)
    if is_root:
        if scope.explicit_root:
            cursor.fail("one computation should have only one ROOT", at=start)
        scope.explicit_root = True
        scope.computation.root = instruction
    return instruction


def check_name(state: ReaderState, scope: Scope, name: str, at: int) -> None:
    """Refuse illegal names and names that the computation has already."""
    text = state.cursor.text
    if (
        name in KEYWORDS
        and text[at] != "%"
        and not text.startswith(":", at + len(name))
    ):
        state.cursor.fail(
            f"expects a name, got the keyword {name}", at=at, hint=f"%{name}"
        )
    legal = sanitize_name(name)
    if legal != name:
        state.cursor.fail(
            f"illegal instruction name: {shown(name)}; suggest renaming to: {shown(legal)}",
            at=at,
        )
    previous = scope.names.get(name)
    if previous is not None and previous in scope.made_up:
        scope.rename(previous)
    elif previous is not None:
        state.cursor.fail(
            f"instruction {shown(name)} was previously defined here: line {previous.line}",
            at=at,
        )


def at_shape(state: ReaderState) -> bool:
    """Whether a shape comes next (rather than an opcode or a name)."""
    cursor = state.cursor
    return _SHAPE_START.match(cursor.text, cursor.skip()) is not None


def read_right_side(state: ReaderState, scope: Scope, name: str, at: int) -> Task:
    """Read `[shape] opcode(operands), attributes` and add the instruction."""
    from msa.hlo.parser.async_sugar import read_async, split_sugar

    cursor = state.cursor
    shape = state.types.read(cursor) if at_shape(state) else None
    opcode_at = cursor.skip()
    match = cursor.match(_OPCODE)
    if match is None:
        cursor.fail("expected an opcode", expected="an opcode")
    opcode = match[0]
    info = OPCODES.get(opcode)
    if (info is None or opcode.startswith("async-")) and split_sugar(opcode):
        return (yield read_async(state, scope, name, at, shape, opcode))
    if info is None:
        if not state.allow_unknown:
            cursor.fail(
                f"Unknown opcode: {shown(opcode)}",
                at=opcode_at,
                expected="an opcode",
                nearest=nearest_name(opcode, OPCODES),
                hint="",
            )
        info = OpcodeInfo(opcode, VARIADIC, MappingProxyType({}))
    extra: dict[str, Any] = {}
    operands: tuple[Instruction, ...] = ()
    if opcode == "parameter":
        extra["parameter_number"] = _read_parameter_number(state, scope)
    elif opcode == "constant":
        extra["literal"] = _read_constant(state, shape, opcode_at)
    else:
        operands = yield read_operands(state, scope)
    tail = yield read_tail(state, scope, info)
    if extra:
        tail.attributes = MappingProxyType({**extra, **tail.attributes})
    return make_instruction(state, scope, info, name, shape, operands, tail, at)


def _read_parameter_number(state: ReaderState, scope: Scope) -> int:
    cursor = state.cursor
    cursor.expect("(", "before a parameter number")
    at = cursor.skip()
    number = cursor.integer("a parameter number")
    if number < 0:
        cursor.fail("parameter number must be >= 0", at=at)
    cursor.expect(")", "after a parameter number")
    return number


def _read_constant(state: ReaderState, shape: Shape | None, at: int) -> Any:
    cursor = state.cursor
    if shape is None:
        cursor.fail("cannot infer shape for opcode: constant", at=at)
    cursor.expect("(", "before a literal")
    literal = read_literal(cursor, shape, None)
    cursor.expect(")", "after a literal")
    return literal


# -- operands --------------------------------------------------------------------


def read_operands(state: ReaderState, scope: Scope) -> Task:
    """Read `(operand, …)`; returns the instructions."""
    cursor = state.cursor
    cursor.expect("(", "before operands")
    operands: list[Instruction] = []
    while not cursor.accept(")"):
        if operands:
            cursor.expect(",", "between operands")
        operand = _read_reference(state, scope)
        if operand is None:
            operand = yield _read_nested(state, scope)
        operands.append(operand)
    return tuple(operands)


def _read_reference(state: ReaderState, scope: Scope) -> Instruction | None:
    """`[shape] name{#int}` followed by a comma or parenthesis, else None."""
    cursor = state.cursor
    start = cursor.skip()
    shape = state.types.read(cursor) if at_shape(state) else None
    at = cursor.skip()
    match = cursor.match(_REFERENCE)
    if match is None:
        if scope.open and shape is not None and cursor.peek() in (",", ")"):
            return _open_parameter(state, scope, "", shape)
        cursor.position = start
        return None
    name = match[2]
    path: list[int] = []
    while cursor.accept("#"):
        path.append(cursor.integer("a tuple index"))
    if cursor.peek() not in (",", ")"):
        cursor.position = start
        return None
    operand = scope.names.get(name)
    if operand is None:
        if not scope.open:
            cursor.fail(
                f"instruction does not exist: {shown(name)}",
                at=at,
                expected="an instruction defined above",
                nearest=nearest_name(name, scope.names),
            )
        if shape is None:
            cursor.fail(
                f"operand {shown(name)} needs a shape: nothing defines it", at=at
            )
        operand = _open_parameter(state, scope, name, shape)
    for index in path:
        operand = _tuple_element(state, scope, operand, index, at)
    if shape is not None and not shape.compatible(operand.shape):
        cursor.fail(
            f"the declared operand shape {shape} is not compatible with the shape of "
            f"the operand instruction {operand.shape}",
            at=start,
        )
    return operand


def _tuple_element(
    state: ReaderState, scope: Scope, operand: Instruction, index: int, at: int
) -> Instruction:
    cursor = state.cursor
    if not operand.shape.is_tuple:
        cursor.fail("GTE operand must be tuple", at=at)
    if not 0 <= index < len(operand.shape.children):
        cursor.fail(f"GTE index {index} out of bounds", at=at)
    known = scope.paths.get((operand, index))
    if known is None:
        known = Instruction(
            scope.unique_name(f"{operand.name}_{index}"),
            "get-tuple-element",
            operand.shape.children[index],
            (operand,),
            MappingProxyType({"index": index}),
        )
        add_to_scope(state, scope, known, at)
        scope.made_up.add(known)
        scope.paths[operand, index] = known
    return known


def _open_parameter(
    state: ReaderState, scope: Scope, name: str, shape: Shape
) -> Instruction:
    number = len(scope.computation.parameters)
    parameter = Instruction(
        name or scope.unique_name(f"_{number}"),
        "parameter",
        shape,
        (),
        MappingProxyType({"parameter_number": number}),
    )
    add_to_scope(state, scope, parameter, state.cursor.position)
    return parameter


def _read_nested(state: ReaderState, scope: Scope) -> Task:
    """An instruction without a name and without attributes, in operand place."""
    cursor = state.cursor
    at = cursor.skip()
    shape = state.types.read(cursor) if at_shape(state) else None
    opcode_at = cursor.skip()
    match = cursor.match(_OPCODE)
    if match is None:
        cursor.fail("expected an operand", at=opcode_at, expected="an operand")
    info = OPCODES.get(match[0])
    if info is None or not cursor.looking_at("("):
        cursor.fail(
            f"instruction does not exist: {shown(match[0])}",
            at=opcode_at,
            expected="an instruction defined above",
            nearest=nearest_name(match[0], scope.names),
        )
    extra: dict[str, Any] = {}
    operands: tuple[Instruction, ...] = ()
    if info.name == "parameter":
        extra["parameter_number"] = _read_parameter_number(state, scope)
    elif info.name == "constant":
        extra["literal"] = _read_constant(state, shape, opcode_at)
    else:
        operands = yield read_operands(state, scope)
    if info.required:
        cursor.fail(
            f"a nested {info.name} cannot state its attribute {info.required[0]}",
            at=opcode_at,
        )
    name = scope.unique_name(f"{info.name}.anon")
    tail = Tail(MappingProxyType(extra))
    made = make_instruction(state, scope, info, name, shape, operands, tail, at)
    scope.made_up.add(made)
    return made


# -- making ------------------------------------------------------------------------


def add_to_scope(
    state: ReaderState, scope: Scope, instruction: Instruction, at: int
) -> None:
    """Append an instruction and make its name known."""
    instruction.line = state.line_at(at)
    scope.computation.append_read(instruction)
    scope.names[instruction.name] = instruction


def check_operand_count(
    state: ReaderState, info: OpcodeInfo, count: int, at: int
) -> None:
    """Refuse operand counts that the opcode does not take."""
    name = info.name
    if info.arity != VARIADIC and count != info.arity:
        state.cursor.fail(
            f"{name} expects {info.arity} operands, but has {count} operands", at=at
        )
    if name in ("reduce", "reduce-window") and (count % 2 or not count):
        state.cursor.fail(
            f"{name} expects an even number of operands, but has {count} operands",
            at=at,
        )
    if name == "scatter" and (count % 2 == 0 or count < 3):
        state.cursor.fail(
            f"scatter expects an odd number of operands, but has {count} operands",
            at=at,
        )


def make_instruction(
    state: ReaderState,
    scope: Scope,
    info: OpcodeInfo,
    name: str,
    shape: Shape | None,
    operands: tuple[Instruction, ...],
    tail: Tail,
    at: int,
) -> Instruction:
    """Check counts, work out the shape where it is missing, and add."""
    check_operand_count(state, info, len(operands), at)
    called = tail.callees(info)
    if info.name in RECOMPUTED:
        shape = recomputed_shape(state, info.name, shape, operands, at)
    elif shape is None:
        shape = infer(state, info, operands, tail, called, at)
    instruction = Instruction(
        name,
        info.name,
        shape,
        operands,
        _completed(state, info.name, operands, tail, at),
        called,
        tail.predecessors,
        tail.metadata,
        tail.backend_config,
    )
    add_to_scope(state, scope, instruction, at)
    return instruction


def _completed(
    state: ReaderState,
    opcode: str,
    operands: tuple[Instruction, ...],
    tail: Tail,
    at: int,
) -> Mapping[str, Any]:
    """Attributes with those that follow from the operands when text leaves them out."""
    attributes = tail.attributes
    if opcode == "map" and "dimensions" not in attributes and operands:
        rank = operands[0].shape.rank
        return MappingProxyType({"dimensions": tuple(range(rank)), **attributes})
    if opcode == "outfeed" and "outfeed_shape" not in attributes:
        return MappingProxyType({"outfeed_shape": operands[0].shape, **attributes})
    if opcode == "conditional":
        _check_branches(state, operands, tail, at)
    return attributes


def _check_branches(
    state: ReaderState, operands: tuple[Instruction, ...], tail: Tail, at: int
) -> None:
    if not operands:
        state.cursor.fail("conditional expects operands, but has 0 operands", at=at)
    by_predicate = operands[0].shape.element_type is PRED
    wanted = (
        {"true_computation", "false_computation"}
        if by_predicate
        else {"branch_computations"}
    )
    if set(tail.called) != wanted:
        kind = "pred" if by_predicate else "index"
        state.cursor.fail(
            f"a conditional on a {kind} names {' and '.join(sorted(wanted))}",
            at=at,
            expected=", ".join(sorted(wanted)),
        )


def infer(
    state: ReaderState,
    info: OpcodeInfo,
    operands: tuple[Instruction, ...],
    tail: Tail,
    called: tuple[Any, ...],
    at: int,
) -> Shape:
    """The result shape of an instruction whose text does not state it."""
    if info.shape_required or info.name not in OPCODES:
        state.cursor.fail(f"cannot infer shape for opcode: {info.name}", at=at)
    from msa.hlo.shape_inference import Signature, infer_shape

    try:
        shape = infer_shape(
            info.name,
            tuple(x.shape for x in operands),
            tail.attributes,
            tuple(map(Signature.of, called)),
        )
    except HloError as error:
        state.cursor.fail(error.message, at=at)
    if shape is None:
        state.cursor.fail(f"cannot infer shape for opcode: {info.name}", at=at)
    return shape
