"""What must be refused, with the message and where it points."""

import pickle

import pytest

import msa
from hlo.reader_rows import module_text
from msa.errors import HloParseError, MsaError
from msa.hlo.attribute_text import is_json_dict

ENTRY = "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  %s\n}\n"
REDUCER = (
    "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
)


def entry(line: str) -> str:
    return ENTRY % line


ALIAS = (
    "HloModule m, input_output_alias={ %s }\nENTRY e { ROOT p = f32[2] parameter(0) }"
)
MESH = "ROOT r = f32[8] all-reduce(q), replica_groups=%s, to_apply=add_f32"

TEXTS = {
    "two-entries": (
        "ENTRY e { ROOT p = f32[] parameter(0) } ENTRY f { ROOT p = f32[] parameter(0) }",
        "expects only one ENTRY",
    ),
    "two-roots": (
        "ENTRY e { ROOT p = f32[] parameter(0) ROOT q = f32[] negate(p) }",
        "one computation should have only one ROOT",
    ),
    "duplicate-computation": (
        "HloModule m\ne { ROOT p = f32[] parameter(0) }\ne { ROOT p = f32[] parameter(0) }",
        "previously defined here: 2:1",
    ),
    "duplicate-instruction": (entry("p = f32[2] parameter(1)"), "previously defined here"),
    "unknown-operand": (entry("n = f32[2] negate(x)"), "instruction does not exist: x"),
    "unknown-inline-operand": (
        entry("n = f32[2] map(p), to_apply={ a = f32[] parameter(0) b = f32[] negate(x) }"),
        "does not exist: x",
    ),
    "unknown-computation": (
        entry("n = f32[2] call(p), to_apply=g"),
        "computation does not exist: g",
    ),
    "later-computation": (
        ("HloModule m ENTRY e { p = f32[] parameter(0) ROOT q = f32[] call(p), to_apply=f }"
        " f { ROOT p = f32[] parameter(0) }"),
        "computation does not exist: f",
    ),
    "negative-parameter": ("ENTRY e { p = f32[] parameter(-1) }", "parameter number must be >= 0"),
    "duplicate-parameter": (entry("q = f32[2] parameter(0)"), "parameter number 0 appears twice"),
    "missing-parameter": ("ENTRY e { p = f32[] parameter(1) }", "parameter number 0 is missing"),
    "layout-rank": (
        "ENTRY e { p = f32[1,2,3]{0} parameter(0) }",
        "Dimensions size is 3, but minor to major size is 1.",
    ),
    "alias-index": (ALIAS % "{0, a}: (0, {})", "Expects '}' at the end of ShapeIndex"),
    "alias-letters": (ALIAS % "{a}: (0, {})", "Expects '}' at the end of ShapeIndex"),
    "alias-two-colons": (ALIAS % "{0}:: (0, {})", "expected '('"),
    "alias-no-colon": (ALIAS % "{0} (0, {})", "expected ':'"),
    "alias-parameter": (ALIAS % "{0}: (x, {})", "a parameter number"),
    "alias-kind": (ALIAS % "{0}: (0, {}, perhaps)", "may-alias or must-alias"),
    "unknown-attribute": (entry("n = f32[2] negate(p), foo=1"), "permitted: sharding"),
    "repeated-attribute": (
        entry("n = f32[2] slice(p), slice={[0:2]}, slice={[0:2]}"),
        "attribute 'slice' appears twice",
    ),
    "missing-attribute": (entry("n = f32[2] slice(p)"), "attribute slice is expected"),
    "unknown-metadata": (entry("n = f32[2] negate(p), metadata={foo=1}"), "'foo'; permitted"),
    "literal-few": ("ENTRY e { p = f32[3] constant({1,2}) }", "expects 3 elements"),
    "literal-many": ("ENTRY e { p = f32[2] constant({1,2,3}) }", "but sees more"),
    "literal-rank": (
        "ENTRY e { p = f32[2,2] constant({1,2,3,4}) }",
        "expects nested array in rank 2",
    ),
    "literal-deep": ("ENTRY e { p = f32[2] constant({{1},{2}}) }", "rank 1, but sees larger"),
    "literal-dots": ("ENTRY e { p = f32[2,2] constant({{...},{1,2}}) }", "at nest level 1"),
    "literal-parens": ("ENTRY e { p = f32[] constant((1, 2)) }", "only complex numbers"),
    "literal-type": ("ENTRY e { p = s32[] constant(1.5) }", "expects integer for primitive type: s32"),
    "operand-count": (entry("n = f32[2] add(p)"), "expects 2 operands, but has 1 operands"),
    "operand-even": (
        "HloModule m\n" + REDUCER + "ENTRY e { p = f32[2] parameter(0) n = f32[] reduce(p), dimensions={0}, to_apply=f }",
        "expects an even number of operands, but has 1 operands",
    ),
    "operand-shape": (entry("n = f32[2] negate(f32[3] p)"), "is not compatible with the shape of"),
    "signature": ("HloModule m\nENTRY e (p: f32[]) -> s32[] { ROOT p = f32[] parameter(0) }", "not compatible"),
    "deep-shape": ("ENTRY e { p = " + "(" * 9000, "maximum recursion depth exceeded"),
    "deep-operands": (
        entry("n = f32[2] " + "negate(" * 60_000 + "p" + ")" * 60_000),
        "maximum recursion depth exceeded",
    ),
    "global-ids": (
        module_text("ROOT r = f32[8] all-reduce(q), use_global_device_ids=true, to_apply=add_f32"),
        "use_global_device_ids=true without channel_id",
    ),
    "update-of-no-async": (
        entry("n = ((f32[2]), f32[2], u32[]) async-update(p)"),
        "expect a single async op as their operand",
    ),
    "done-of-done": (
        module_text(
            'x = ((f32[8]), f32[8], u32[]) custom-call-start(q), custom_call_target="f"\n'
            "y = f32[8] custom-call-done(x)\n ROOT r = f32[8] custom-call-done(y)"
        ),
        "expect a single async op as their operand",
    ),
    "wrong-done": (
        module_text(
            'x = ((f32[8]), f32[8], u32[]) custom-call-start(q), custom_call_target="f"\n'
            "ROOT r = f32[8] negate-done(x)"
        ),
        "Expect async wrapped opcode to be custom-call, but got negate",
    ),
    "other-calls": (
        module_text(
            'x = ((f32[8]), f32[8], u32[]) custom-call-start(q), custom_call_target="f"\n'
            "ROOT r = f32[8] custom-call-done(x), calls=add_f32"
        ),
        "Expect async wrapped computation to be",
    ),
    "wrapped-twice": (
        ("HloModule m\nw { ROOT a = f32[2] parameter(0) }\nENTRY e {\n p = f32[2] parameter(0)\n"
        " a = ((f32[2]), f32[2], u32[]) async-start(p), calls=w\n"
        " b = ((f32[2]), f32[2], u32[]) async-start(p), calls=w\n}"),
        "is called by more than one async op",
    ),
    "async-shape": (entry("n = (f32[2], f32[2]) negate-start(p)"), "to be in the form of"),
    "dangling-comment": ("ENTRY e { ROOT p = f32[] parameter(0) } /* x", "unterminated comment"),
    "unknown-character": ("ENTRY e { ROOT p = f32[] parameter(0) \x00}", "expected an instruction name"),
    "second-module": (
        "HloModule m ENTRY e { ROOT p = f32[] parameter(0) } HloModule n ENTRY e { ROOT p = f32[] parameter(0) }",
        "unexpected text after the module",
    ),
    "two-single-operations": ("a = negate(f32[] x) b = negate(f32[] y)", "unexpected text after"),
    "path-on-array": (entry("n = f32[2] negate(p#0)"), "GTE operand must be tuple"),
    "path-too-far": (
        "ENTRY e { p = (f32[], f32[]) parameter(0) n = f32[] negate(p#2) }",
        "GTE index 2 out of bounds",
    ),
    "path-negative": (
        "ENTRY e { p = (f32[], f32[]) parameter(0) n = f32[] negate(p#-1) }",
        "GTE index -1 out of bounds",
    ),
    "path-letter": ("ENTRY e { p = (f32[], f32[]) parameter(0) n = f32[] negate(p#a) }", "expects integer"),
    "gather-no-dimension": (module_text("ROOT r = f32[16] all-gather(q), dimensions={}"), "exactly one element"),
    "scatter-no-dimension": (
        module_text("ROOT r = f32[4] reduce-scatter(q), dimensions={}, to_apply=add_f32"),
        "exactly one element",
    ),
    "size-no-dimension": (module_text("ROOT r = s32[] get-dimension-size(q), dimensions={}"), "exactly one element"),
    "scan-negative": (
        module_text("ROOT r = f32[] scan(q, s), dimensions={-1}, num_carries=1, to_apply=add_f32"),
        "negative",
    ),
    "recv-no-tuple": (module_text("ROOT r = token[] recv(k), channel_id=1"), "expects a tuple shape"),
    "conditional-empty": (module_text("ROOT r = f32[] conditional()"), "has 0 operands"),
    "generator-empty": (module_text("ROOT r = u32[2] rng-bit-generator(), algorithm=rng_default"), "has 0 operands"),
    "window-empty": (module_text("ROOT r = f32[] reduce-window(), to_apply=add_f32"), "has 0 operands"),
    "conditional-branches": (
        module_text("ROOT r = f32[] conditional(c, s, s), branch_computations={add_f32, add_f32}"),
        "names false_computation and true_computation",
    ),
    "sharding-size": (
        module_text("ROOT r = f32[8] negate(q), sharding={devices=[2,2]0,1,2,3,4,5,6,7,8,9}"),
        "does not match the tile assignment size",
    ),
    "sharding-word": (module_text("ROOT r = f32[8] negate(q), sharding={foo}"), "'foo'"),
    "sharding-axis": (
        module_text("ROOT r = f32[8] negate(q), sharding={mesh['x'=2], [{'y'}]}"),
        "is not a valid axis name or index",
    ),
    "window-reversal": (
        module_text("ROOT r = f32[4,8] reduce-window(p, s), window={size=1x1 rhs_reversal=1}, to_apply=add_f32"),
        "rhs_reversal",
    ),
    "mesh-axis": (module_text(MESH % "mesh['a'=2] {'b'}"), "is not a valid axis name or index"),
    "mesh-index": (module_text(MESH % "mesh['a'=2] {5}"), "out of bounds for mesh"),
    "mesh-devices": (module_text(MESH % "mesh['a'=2], device_ids=(0,1,2) {'a'}"), "device_ids"),
    "iota-size": (module_text(MESH % "[2,4]<=[9]"), "do not hold"),
    "no-shape": (module_text("ROOT r = all-gather(q), dimensions={0}"), "cannot infer shape for opcode: all-gather"),
    "no-constant-shape": ("ENTRY e { p = constant(1) }", "cannot infer shape for opcode: constant"),
    "headerless-callee": ("f (p: f32[]) -> f32[] { ROOT p = f32[] parameter(0) }", "opcode"),
    "illegal-name": (entry("%__x = f32[2] negate(p)"), "suggest renaming to: a_x"),
    "type-name": (entry("%f32 = f32[2] negate(p)"), "suggest renaming to: f32_"),
    "keyword-name": (entry("manual = f32[2] negate(p)"), "expects a name"),
    "unknown-type": ("ENTRY e { p = f33[2] parameter(0) }", "expected a primitive type, got 'f33'"),
    "huge-shape": ("ENTRY e { p = f32[99999999999,99999999999] parameter(0) }", "overflows"),
    "no-instructions": ("HloModule m ENTRY e { }", "has no instructions"),
    "no-computation": ("HloModule m", "needs a computation"),
    "empty": (" /* nothing */ ", "the text is empty"),
    "unterminated-string": (entry('n = f32[2] custom-call(p), custom_call_target="f'), "unterminated string"),
    "unmatched-brace": (entry("n = f32[2] negate(p), backend_config={{{"), "unmatched '{'"),
    "unknown-header": ("HloModule m, foo=1\nENTRY e { ROOT p = f32[] parameter(0) }", "permitted: is_scheduled"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "fragment"), TEXTS.values(), ids=TEXTS)
def test_rejected(text, fragment):
    with pytest.raises(HloParseError) as caught:
        msa.parse(text, verify=False)
    assert fragment in caught.value.message
    assert caught.value.line >= 1
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


NO_SUGAR = [
    f"{opcode}-{phase}"
    for opcode in ("all-reduce", "all-gather", "collective-permute", "copy")
    for phase in ("update",)
] + ["send-start", "send-update", "recv-start", "recv-update"]


@pytest.mark.parametrize("opcode", NO_SUGAR)
def test_sugar_of_native_pairs(opcode):
    text = entry(f"n = ((f32[2]), f32[2], u32[]) {opcode}(p)")
    with pytest.raises(HloParseError, match=f"Unknown opcode: {opcode}"):
        msa.parse(text, verify=False)


OUT_OF_RANGE = """
f16 1e5 | f16 65520 | bf16 1e40 | f32 1e39 | f64 1e309 | s4 8 | s4 -9 | u4 16 | u4 -1
s8 128 | u8 -1 | u32 4294967296 | s64 -9223372036854775809 | s64 18446744073709551616 | u64 18446744073709551616
s8 18446744073709551487 | s32 9223372036854775807 | f8e4m3fn 465 | f8e8m0fnu 0
f8e8m0fnu -1 | c64 (1e39,1) | c64 (1,-1e39) | f8e4m3fn 1e4 | f8e5m2 1e6 | f4e2m1fn 100
bf16 nan(0x80) | f8e5m2 nan(0x4) | f32 nan(0x800000) | f16 nan(0x400)
"""
RANGE_ROWS = [
    r.split() for r in OUT_OF_RANGE.replace("\n", "|").split("|") if r.strip()
]


@pytest.mark.parametrize(("kind", "value"), RANGE_ROWS)
def test_literal_out_of_range(kind, value):
    with pytest.raises(HloParseError, match=r"out of range|does not fit"):
        msa.parse(f"ENTRY e {{ p = {kind}[] constant({value}) }}")


@pytest.mark.parametrize(
    ("text", "line", "column", "nearest"),
    [
        (entry("n = f32[2] negate(pp)"), 4, 21, ""),
        (entry("param.1 = f32[2] negate(p)\n  q = f32[2] negate(parm.1)"), 5, 21, "param.1"),
        (entry("n = f32[2] negat(p)"), 4, 14, "negate"),
        (entry("n = f32[2] negate(p), shardin={replicated}"), 4, 25, "sharding"),
        (entry("n = fp32[2] negate(p)"), 4, 7, "f32"),
        (("HloModule m\nregion { ROOT a = f32[] parameter(0) }\nENTRY e {\n p = f32[] parameter(0)\n"
         " q = f32[] call(p), to_apply=regoin }"), 5, 30, "region"),
        ("HloModule m, is_schedule=true\n", 1, 14, "is_scheduled"),
    ],
)  # fmt: skip
def test_points_at_the_place(text, line, column, nearest):
    with pytest.raises(HloParseError) as caught:
        msa.parse(text)
    error = caught.value
    assert (error.line, error.column, error.nearest) == (line, column, nearest)
    shown, caret = str(error).splitlines()[-2:]
    assert shown == text.splitlines()[line - 1]
    assert caret.index("^") == column - 1
    if nearest:
        assert f"did you mean {nearest!r}?" in str(error)


def test_a_long_line_is_cut_around_the_caret():
    text = "ENTRY e { " + "p = f32[] parameter(0) " * 10_000 + "}"
    with pytest.raises(HloParseError) as caught:
        msa.parse(text)
    error = caught.value
    assert len(error.source_line) <= 160
    shown, caret = str(error).splitlines()[-2:]
    assert shown[caret.index("^") :].startswith("p = f32[]")
    assert len(pickle.dumps(error)) < 2_000


@pytest.mark.parametrize(
    "text",
    ["{}", "{abc: 123}", "{{abc: 123}, {{{d}}}}", '{"}"}', r'{"\"}"}', r'{"\"{"}'],
)
def test_exactly_a_dict(text):
    assert is_json_dict(text)


@pytest.mark.parametrize("text", ["", "{", "}", "{{}", "{}}", "{}a", "a{}", "{{{{}}}"])
def test_not_exactly_a_dict(text):
    assert not is_json_dict(text)


def test_verification_can_be_left_out():
    text = "ENTRY e { p = f32[4,8] parameter(0) ROOT n = f32[3,8] negate(p) }"
    assert msa.parse(text, verify=False).instruction_count == 2
    with pytest.raises(MsaError, match="negate gives"):
        msa.parse(text)
