"""Constants: values, canonical text, equality, narrow formats."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import HloError
from msa.hlo.float_formats import FORMATS, decode, decode_table, encode, round_to
from msa.hlo.literal import Literal, numpy_dtype
from msa.hlo.literal_text import read_literal
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.shapes import parse_shape
from msa.hlo.primitive import PRIMITIVE_TYPES


def literal(shape: str, text: str) -> Literal:
    return read_literal(Cursor(text), parse_shape(shape), None)


VALUES = [
    ("s32[]", "-42", np.int32(-42)),
    ("pred[3]", "{1,false,true}", np.array([True, False, True])),
    ("u64[]", "18446744073709551615", np.uint64(2**64 - 1)),
    ("s64[]", "-9223372036854775808", np.int64(-(2**63))),
    ("s4[2]", "{-8, 7}", np.array([-8, 7], np.int8)),
    ("u2[2]", "{0, 3}", np.array([0, 3], np.uint8)),
    ("f32[2,2]", "{ {1, 2}, {3, 4} }", np.array([[1, 2], [3, 4]], np.float32)),
    ("f32[2,0]", "{ {}, {} }", np.zeros((2, 0), np.float32)),
    ("f64[]", "0.1", np.float64(0.1)),
    ("f16[2]", "{0.1, -inf}", np.array([0.1, -math.inf], np.float16)),
    ("bf16[2]", "{0.1, 3}", np.array([0.10009765625, 3], np.float32)),
    ("f8e4m3fn[3]", "{448, 0.3, -2}", np.array([448, 0.3125, -2], np.float32)),
    ("f4e2m1fn[2]", "{6, -0.5}", np.array([6, -0.5], np.float32)),
    ("c64[2]", "{(1, 2), (-0.5, inf)}", np.array([1 + 2j, complex(-0.5, math.inf)], np.complex64)),
    ("f32[<=4]", "(2){1,2}", np.array([1, 2], np.float32)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "text", "value"), VALUES)
def test_values(shape, text, value):
    array = literal(shape, text).to_numpy()
    assert array.dtype == np.asarray(value).dtype
    np.testing.assert_array_equal(array, value)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("nan", 0x7FC00000),
        ("-nan", 0xFFC00000),
        ("nan(0x123)", 0x7F800123),
        ("-nan(0x7fffff)", 0xFFFFFFFF),
        ("-0.0", 0x80000000),
    ],
)
def test_bits_of_special_values(text, bits):
    assert int(literal("f32[]", text).to_numpy().view(np.uint32)) == bits


def test_tuples_and_tokens():
    value = literal(
        "(f32[], (s32[2], pred[]), ())", "(1, ({2, 3}, true), ())"
    ).to_numpy()
    assert value[0] == 1
    assert value[1][0].tolist() == [2, 3]
    assert bool(value[1][1]) is True
    assert value[2] == ()


CANONICAL = [
    ("f32[2]", "{1 2}", "{1, 2}"),
    ("f32[2,2]", "{ {1,2},{3,4}, }", "{ { 1, 2 }, { 3, 4 } }"),
    ("f32[2,1]", "{{1},{2}}", "{ {1}, {2} }"),
    ("f32[1,2,1]", "{{{1},{2}}}", "{ { {1}, {2} } }"),
    ("pred[2]", "{true, 0}", "{1, 0}"),
    ("pred[]", "1", "true"),
    ("f32[]", "-0", "0"),
    ("f32[]", "-0.0", "-0"),
    ("f32[]", "0.333333333", "0.333333343"),
    ("f32[]", "1e5", "100000"),
    ("f32[]", "123456789", "123456792"),
    ("f64[]", "0.1", "0.1"),
    ("f64[]", "0.333333333333333333", "0.33333333333333331"),
    ("bf16[]", "0.1", "0.1001"),
    ("f16[]", "0.1", "0.099976"),
    ("f8e5m2[]", "1.3", "1.2"),
    ("c64[]", "(1.0, -2)", "(1, -2)"),
    ("f32[]", "nan(0x123)", "nan(0x123)"),
    ("f32[4,2,1,1]", "{{{{1}},{{2}}},{{{3}},{{4}}},{{{5}},{{6}}},{{{7}},{{8}}}}",
     ("{ { /*i0=0*/ { /*i1=0*/ {1} }, { /*i1=1*/ {2} } }, { /*i0=1*/ { /*i1=0*/ {3} }, "
     "{ /*i1=1*/ {4} } }, { /*i0=2*/ { /*i1=0*/ {5} }, { /*i1=1*/ {6} } }, { /*i0=3*/ "
     "{ /*i1=0*/ {7} }, { /*i1=1*/ {8} } } }")),
    ("f32[20]", "{...}", "{...}"),
    ("(f32[], s32[2])", "(1.50,{1,2})", "(1.5, {1, 2})"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "text", "canonical"), CANONICAL)
def test_canonical_text(shape, text, canonical):
    value = literal(shape, text)
    assert value.canonical == canonical
    if canonical != "-0":  # an integer token, which has no negative zero
        assert literal(shape, canonical) == value
        assert hash(literal(shape, canonical)) == hash(value)


def test_equality_looks_through_spelling():
    assert literal("f32[2]", "{1, 2}") == literal("f32[2]", "{1.0,2e0}")
    assert literal("f32[2]", "{1, 2}") != literal("f32[2]", "{1, 3}")
    assert literal("f32[2]", "{1, 2}") != literal("s32[2]", "{1, 2}")


def test_elided():
    value = literal("f32[20]", "{...}")
    assert value.is_elided
    with pytest.raises(HloError, match="left out"):
        value.to_numpy()


def test_pickle():
    value = literal("f32[2]", "{1, 2}")
    assert pickle.loads(pickle.dumps(value)) == value


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5))
def test_floats_survive_canonical_text(numbers):
    shape = f"f32[{len(numbers)}]"
    value = literal(shape, "{" + ",".join(map(repr, numbers)) + "}")
    again = literal(shape, value.canonical)
    np.testing.assert_array_equal(again.to_numpy(), value.to_numpy())


def test_every_type_has_a_numpy_type():
    for name, kind in PRIMITIVE_TYPES.items():
        if kind.family != "special":
            assert numpy_dtype(kind).itemsize >= kind.byte_width, name


# -- narrow formats ----------------------------------------------------------

BYTE_FORMATS = [name for name in FORMATS if name != "bf16"]


@pytest.mark.parametrize("name", BYTE_FORMATS)
def test_codes_survive(name):
    table = decode_table(name)
    codes = np.arange(len(table))
    known = ~np.isnan(table)
    assert (encode(name, table.astype(np.float64))[known] == codes[known]).all()


@pytest.mark.parametrize(
    ("name", "largest", "smallest"),
    [
        ("f8e5m2", 57344.0, 2.0**-16),
        ("f8e4m3", 240.0, 2.0**-9),
        ("f8e4m3fn", 448.0, 2.0**-9),
        ("f8e4m3b11fnuz", 30.0, 2.0**-13),
        ("f8e3m4", 15.5, 2.0**-6),
        ("f8e5m2fnuz", 57344.0, 2.0**-17),
        ("f8e4m3fnuz", 240.0, 2.0**-10),
        ("f8e8m0fnu", 2.0**127, 2.0**-127),
        ("f6e3m2fn", 28.0, 2.0**-4),
        ("f6e2m3fn", 7.5, 2.0**-3),
        ("f4e2m1fn", 6.0, 0.5),
    ],
)
def test_range(name, largest, smallest):
    table = decode_table(name).astype(np.float64)
    finite = table[np.isfinite(table)]
    assert finite.max() == largest
    assert finite[finite > 0].min() == smallest


@pytest.mark.parametrize("name", BYTE_FORMATS)
@given(value=st.floats(-500, 500))
def test_rounding_is_to_the_nearest(name, value):
    table = decode_table(name).astype(np.float64)
    finite = np.unique(table[np.isfinite(table)])
    if not finite[0] <= value <= finite[-1] or (not FORMATS[name].signed and value < 0):
        return
    rounded = float(round_to(name, np.array([value]))[0])
    assert abs(rounded - value) == np.abs(finite - value).min()


def test_ties_go_to_even():
    # Halfway between 1.0 (mantissa 000) and 1.125 (001), and 1.125 and 1.25 (010).
    assert round_to("f8e4m3fn", np.array([1.0625, 1.1875])).tolist() == [1.0, 1.25]
    assert round_to("bf16", np.array([1 + 2**-8, 1 + 3 * 2**-8])).tolist() == [
        1.0,
        1.015625,
    ]


@pytest.mark.parametrize(
    ("name", "overflow"),
    [
        ("f8e5m2", math.inf),
        ("f8e4m3fn", math.nan),
        ("f4e2m1fn", 6.0),
        ("bf16", math.inf),
    ],
)
def test_overflow(name, overflow):
    np.testing.assert_equal(float(round_to(name, np.array([1e39]))[0]), overflow)


def test_not_a_number():
    assert np.isnan(round_to("f8e5m2", np.array([math.nan]))).all()
    assert np.isnan(decode("f8e4m3fnuz", np.array([0x80], np.uint16))).all()
    assert np.signbit(round_to("f4e2m1fn", np.array([math.nan]))).all()
