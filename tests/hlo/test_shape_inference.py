"""Shape rules, one row each; the rows are in `shape_rows`."""

import re

import pytest

from hlo.shape_rows import CALLED, INFERRED, REJECTED, STATED
from msa.errors import ShapeInferenceError
from msa.hlo.opcode import COMMON_ATTRIBUTES, OPCODES
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.shapes import ShapeReader
from msa.hlo.parser.values import VALUE_READERS
from msa.hlo.replica_groups import IotaGroups
from msa.hlo.shape import Shape
from msa.hlo.shape_inference import OPERAND_COUNTS, RULES, Signature, infer_shape

TYPES = ShapeReader()


def shape(text: str) -> Shape:
    """A shape from text; arrays without layout are row-major."""
    return TYPES.from_text(text.strip())


def split(text: str) -> list[str]:
    """Parts between the commas that no bracket encloses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in (*parts, text[start:].strip()) if p]


def signature(name: str) -> Signature:
    parameters, result = CALLED[name].split(" -> ")
    return Signature(tuple(map(shape, split(parameters[1:-1]))), shape(result))


def attribute(opcode: str, name: str, text: str):
    spec = OPCODES[opcode].attributes.get(name) or COMMON_ATTRIBUTES[name]
    return VALUE_READERS[spec.kind](Cursor(text), TYPES)


def infer(operation: str, attributes: str, stated: str):
    opcode, operands = re.fullmatch(r"([\w-]+)\((.*)\)", operation).groups()
    values, called = {}, []
    for item in [] if attributes == "-" else split(attributes):
        name, text = item.split("=", 1)
        if name in OPCODES[opcode].called:
            called.extend(map(signature, split(text.strip("{}"))))
        else:
            values[name] = attribute(opcode, name, text)
    return infer_shape(
        opcode,
        tuple(map(shape, split(operands))),
        values,
        tuple(called),
        stated=None if stated == "-" else shape(stated),
    )


def rows(table: str):
    lines = [line.split(" | ") for line in table.strip().splitlines()]
    return [pytest.param(*fields, id=name) for name, *fields in lines]


@pytest.mark.parametrize(("operation", "attributes", "expected"), rows(INFERRED))
def test_inferred(operation, attributes, expected):
    result = infer(operation, attributes, "-")
    assert str(result) == str(shape(expected))
    assert infer(operation, attributes, expected) == result


@pytest.mark.parametrize(("operation", "attributes", "stated"), rows(STATED))
def test_stated(operation, attributes, stated):
    result = infer(operation, attributes, stated)
    assert result is not None
    assert result.compatible(shape(stated))


@pytest.mark.parametrize(
    ("operation", "attributes", "stated", "fragment"), rows(REJECTED)
)
def test_rejected(operation, attributes, stated, fragment):
    with pytest.raises(ShapeInferenceError, match=re.escape(fragment)) as caught:
        infer(operation, attributes, stated)
    assert operation.startswith(f"{caught.value.opcode}(")


def test_malformed_attributes():
    operands = shape("f32[2]"), shape("f32[]")
    with pytest.raises(ShapeInferenceError, match="malformed"):
        infer_shape("pad", operands, {"padding": (3,)})
    with pytest.raises(ShapeInferenceError, match="list of integers"):
        infer_shape("reduce", operands, {"dimensions": "1"}, (signature("add"),))
    groups = IotaGroups((3, 4), (8,), (0,))
    with pytest.raises(ShapeInferenceError, match="malformed"):
        infer_shape(
            "all-reduce", operands[:1], {"replica_groups": groups}, (signature("add"),)
        )


def test_every_opcode_has_a_rule():
    assert set(RULES) == set(OPCODES) == set(OPERAND_COUNTS)


def test_operand_counts_agree_with_the_opcode_table():
    for name, (least, most) in OPERAND_COUNTS.items():
        arity = OPCODES[name].arity
        if arity >= 0 and name != "dot":
            assert (least, most) == (arity, arity), name


def test_every_opcode_has_a_row():
    seen = {
        row.values[0].split("(")[0]
        for table in (INFERRED, STATED)
        for row in rows(table)
    }
    assert set(OPCODES) - seen == {"constant"}  # its literal is not an attribute


def test_unknown_opcodes_are_passed_over():
    assert infer_shape("frobnicate", (shape("f32[2]"),), {}) is None
