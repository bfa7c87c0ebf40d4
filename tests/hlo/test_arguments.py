"""Arguments of the wrong kind give typed errors that say what was expected."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

import msa
from msa import hlo
from msa.errors import FileFormatError, HloError, HloParseError, MsaError
from msa.hlo import Builder, PrintOptions, Shape

TEXT = "ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }"
NOTHING_AT_ALL: list[Any] = [
    None,
    True,
    -1,
    10**30,
    3.5,
    float("nan"),
    b"\xff\xfe",
    [],
    {},
    ("a",),
    {"f32"},
    object(),
    lambda: 0,
    type,
]
"""What no function here takes, except where a test says so."""


def op(**options: Any) -> Any:
    main = Builder("m").entry()
    return main.op("add", main.parameter("f32[4]"), options.pop("y"), **options)


def main_of() -> Any:
    return Builder("m").entry()


def shape() -> Shape:
    return Shape.array("f32", (4,))


CALLS: dict[str, Callable[[Any], Any]] = {
    "parse": msa.parse,
    "parse_modules": hlo.parse_modules,
    "parse_shape": hlo.parse_shape,
    "load": msa.load,
    "verify": hlo.verify,
    "print_module": hlo.print_module,
    "print_computation": hlo.print_computation,
    "print_instruction": hlo.print_instruction,
    "canonical_text": hlo.canonical_text,
    "fingerprint": hlo.fingerprint,
    "source_location": hlo.source_location,
    "options": lambda x: hlo.print_module(msa.parse(TEXT), options=x or 5),
    "subcomputations": lambda x: PrintOptions(subcomputations=x),
    "element type": lambda x: Shape.array(x, (4,)),
    "layout": lambda x: Shape.array("f32", (4,), x or 5),
    "tuple_of": Shape.tuple_of,
    "buffer_of": Shape.buffer_of,
    "with_layout": lambda x: shape().with_layout(x or 5),
    "Builder": Builder,
    "computation": lambda x: Builder("m").computation(x),
    "entry_layout": lambda x: Builder("m").entry_layout([x], "f32[]"),
    "parameter": lambda x: main_of().parameter(x),
    "opcode": lambda x: main_of().op(x),
    "start": lambda x: main_of().start(x),
    "operand": lambda x: op(y=x),
    "convert": lambda x: main_of().convert(x, "f32"),
    "reshape": lambda x: main_of().reshape(x, (4,)),
    "broadcast": lambda x: main_of().broadcast(x, (4,)),
    "done": lambda x: main_of().done(x),
    "root": lambda x: main_of().root(x),
    "order": lambda x: main_of().order(x, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_at_all_is_refused_by_name(name: str) -> None:
    for value in NOTHING_AT_ALL:
        with pytest.raises(MsaError) as caught:
            CALLS[name](value)
        assert str(caught.value)


SIZES: list[Any] = [None, 5, 3.5, "ab", [None], [3.5], [-3], {"x": 1}, object()]


@pytest.mark.parametrize("sizes", SIZES, ids=repr)
def test_dimensions_are_sizes(sizes: Any) -> None:
    with pytest.raises(HloError, match="dimensions are sizes of at least 0"):
        Shape.array("f32", sizes)


NUMBERS: list[Any] = [None, True, "1", 1.5, [1], object()]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_numbers_are_whole(value: Any) -> None:
    builder = Builder("m")
    for call in (
        shape().with_memory_space,
        hlo.Layout.row_major,
        lambda x: PrintOptions(indent=x),
        builder.donate,
        lambda x: builder.alias((), x),
        lambda x: builder.alias((x,), 0),
        lambda x: Builder("m", replica_count=x),
    ):
        with pytest.raises(HloError, match="takes"):
            call(value)


def test_numbers_have_bounds() -> None:
    for call in (hlo.Layout.row_major, lambda x: PrintOptions(indent=x)):
        for value in (-1, 10**30):
            with pytest.raises(HloError):
                call(value)


@pytest.mark.parametrize("value", [None, object(), "x", [1, [2]], {1}, lambda: 0])
def test_constants_are_numbers(value: Any) -> None:
    with pytest.raises(HloError):
        Builder("m").entry().constant(value, "f32[2]")


@pytest.mark.parametrize("value", [object(), {object()}, {"a": object()}, 5j])
def test_configurations_are_json(value: Any) -> None:
    main = Builder("m").entry()
    x = main.parameter("f32[4]")
    with pytest.raises(HloError, match="backend_config: cannot be written as JSON"):
        main.negate(x, backend_config=value)


def test_callees_are_computations() -> None:
    main = Builder("m").entry()
    x = main.parameter("f32[4]")
    with pytest.raises(HloError, match="call, to_apply: takes a computation"):
        main.call(x, to_apply=5)


# -- texts -------------------------------------------------------------------


def test_bytes_are_text() -> None:
    module = msa.parse(TEXT)
    for data in (TEXT.encode(), bytearray(TEXT.encode()), memoryview(TEXT.encode())):
        assert msa.parse(data) == module
        assert hlo.parse_modules(data) == [module]
    assert hlo.parse_shape(b"f32[4]") == shape()


def test_the_message_says_what_to_try() -> None:
    with pytest.raises(HloError, match=r"parse: takes HLO text, not None .*msa.load"):
        msa.parse(None)  # type: ignore[arg-type]
    with pytest.raises(HloError, match=r"no UTF-8.*msa.load"):
        msa.parse(b"\xff")
    with pytest.raises(FileFormatError, match=r"takes a path, not 5 .*standard"):
        msa.load(5)  # type: ignore[arg-type]


def test_objects_that_cannot_be_shown() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(HloError, match="not Shy"):
        msa.parse(Shy())  # type: ignore[arg-type]


def test_strange_paths(tmp_path: Any) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert msa.load(str(tmp_path / "m.hlo").encode()).entry.name == "e"  # type: ignore[arg-type]
    with pytest.raises(FileFormatError, match="cannot be read"):
        msa.load("a\0b")
    with pytest.raises(HloError, match="load: takes a module's name"):
        msa.load(tmp_path, name=5)  # type: ignore[arg-type]


def test_standard_input_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stdin in (None, closed, io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8")):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(FileFormatError, match="standard input: cannot be read"):
            msa.load("-")


# -- places of broken rules --------------------------------------------------

ABSURD = {
    "f32[4]{0:T(0)}": "a tile size is less than 1",
    "f32[4]{0:T(-1)}": "a tile size is less than 1",
    "f32[4,4]{1,0:T(*,0)}": "a tile size is less than 1",
    "f32[4]{0:T(9223372036854775807)}": "more than 2**63 bytes",
    "f32[4]{0:S(99999999999)}": "memory space 99999999999 is not in 0..127",
    "f32[4]{0:S(128)}": "memory space 128 is not in 0..127",
    "f32[4]{0:S(-1)}": "memory space -1",
    "f32[4]{0:E(129)}": "an element size of 129 bits",
    "f32[4]{0:E(-1)}": "an element size of -1 bits",
    "f32[4]{0:L(0)}": "a tail padding alignment of 0",
    "f32[4]{0:L(9223372036854775807)}": "a tail padding alignment",
    "f32[4]{0:M(-1)}": "the bytes before the elements are negative",
    "f32[4]{0:#(f32)}": "indices and pointers are integers, not f32",
    "f32[4]{0:*(pred)}": "indices and pointers are integers, not pred",
    "f32[4]{0:SC(0:2)(0:3)}": "splits dimension 0 twice",
    "f32[4]{0:SC(1:2)}": "splits dimension 1 of rank 1",
    "f32[4]{0:SC(-1:2)}": "splits dimension -1 of rank 1",
    "f32[4]{0:SC(0:3,2)}": "do not rise from 1",
    "f32[4]{0:SC(0:0)}": "do not rise from 1",
    "f32[4]{0:SC(0:-1)}": "do not rise from 1",
    "f32[4]{0:SC(0:4)}": "a shard starts at 4, beyond the size 4",
    "f32[8,2]{0,1:SC(0:2)}": "a shard starts at 2, beyond the size 2",
}


@pytest.mark.parametrize("text", ABSURD)
def test_absurd_layouts_are_shown_in_place(text: str) -> None:
    source = f"ENTRY e {{\n  q = f32[] parameter(0)\n  ROOT p = {text} parameter(1)\n}}"
    assert msa.parse(source, verify=False).to_text()
    with pytest.raises(msa.HloVerifyError) as caught:
        msa.parse(source)
    error = caught.value
    assert len(error.violations) == 1
    assert ABSURD[text] in error.violations[0]
    assert (error.line, error.source_line) == (3, source.splitlines()[2])
    assert error.source_line[error.column - 1 :].startswith(text[text.index("{") :])
    assert str(error).splitlines()[-1] == " " * (error.column - 1) + "^"


REASONABLE = """
f32[4]{0:T(8,128)} f32[4]{0:T()} f32[4]{0:E(64)} s4[4]{0:E(8)} f32[4]{0:S(127)}
f32[8,2]{0,1:SC(0:1)(1:3,7)} f32[4]{0:L(4096)} f32[<=4]{0:M(8)} f32[?]{0:T(128)}
f32[4,4]{1,0:T(*,128)} f32[4]{0:#(u32)*(s8)} f32[0]{0:T(8)} f32[]{:T(128)}
f32[4]{0:T(99999999999999)}
"""


@pytest.mark.parametrize("text", REASONABLE.split())
def test_unusual_layouts_are_fine(text: str) -> None:
    assert msa.parse(f"ENTRY e {{ ROOT p = {text} parameter(0) }}")


def test_absurd_layout_of_the_entry() -> None:
    layout = "entry_computation_layout={(f32[4]{0:T(0)})->f32[4]{0}}"
    source = f"HloModule m, {layout}\nENTRY e {{ ROOT p = f32[4] parameter(0) }}"
    with pytest.raises(
        msa.HloVerifyError, match="entry layout, parameter 0: layout of"
    ):
        msa.parse(source)


def test_the_place_of_a_broken_rule() -> None:
    source = "ENTRY e {\n  p = f32[4] parameter(0)\n\tROOT n = f32[3] negate(p)\n}"
    with pytest.raises(msa.HloVerifyError) as caught:
        msa.parse(source)
    assert (caught.value.line, caught.value.column) == (3, 7)
    assert caught.value.source_line == "\tROOT n = f32[3] negate(p)"
    with pytest.raises(msa.HloVerifyError) as later:
        hlo.verify(msa.parse(source, verify=False))
    assert (later.value.line, later.value.source_line) == (0, "")


def test_negative_order_is_no_layout() -> None:
    with pytest.raises(HloParseError, match="not a permutation"):
        msa.parse("ENTRY e { ROOT p = f32[4]{-1} parameter(0) }")


# -- values that XLA's reader takes ------------------------------------------


def test_one_value_is_the_first_element() -> None:
    text = "ENTRY e { ROOT c = TYPE constant(VALUE) }"
    for kind, value, want in (
        ("f32[2]", "5.5", [5.5, 0]),
        ("s32[1]", "7", [7]),
        ("pred[2,2]", "true", [[True, False], [False, False]]),
        ("c64[2]", "(1, 2)", [1 + 2j, 0]),
    ):
        module = msa.parse(text.replace("TYPE", kind).replace("VALUE", value))
        literal = module.entry.root.attributes["literal"]
        assert literal.to_numpy().tolist() == want
        assert msa.parse(module.to_text()) == module
    for kind in ("f32[0]", "f32[1048577]", "f32[1073741824,8]"):
        with pytest.raises(HloParseError, match="expects nested array"):
            msa.parse(text.replace("TYPE", kind).replace("VALUE", "1"))


def test_payloads_in_complex_numbers() -> None:
    text = "ENTRY e { ROOT c = c64[] constant((nan(0x1), -nan(0x3fffff))) }"
    module = msa.parse(text)
    value = module.entry.root.attributes["literal"].to_numpy()
    assert value.reshape(1).view("uint32").tolist() == [0x7F800001, 0xFFBFFFFF]
    with pytest.raises(HloParseError, match="does not fit"):
        msa.parse(text.replace("0x1)", "0x800000)"))


def test_a_broadcast_without_shape_prepends_sizes() -> None:
    text = "ENTRY e { p = f32[8] parameter(0) ROOT b = broadcast(p), dimensions={3} }"
    assert str(msa.parse(text, verify=False).entry.root.shape) == "f32[3,8]{1,0}"
