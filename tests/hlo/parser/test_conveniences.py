"""What the reader fills in, and the forms it takes besides the printed one."""

import pytest

import msa
from msa.errors import HloParseError
from msa.hlo import parse_modules


def opcodes(module):
    return [x.opcode for x in module.entry.instructions]


def test_last_computation_is_the_entry():
    module = msa.parse(
        "HloModule m a { p = f32[] parameter(0) } b { q = s32[] parameter(0) }"
    )
    assert module.entry.name == "b"
    assert [c.name for c in module.computations] == ["a", "b"]


def test_last_instruction_is_the_root():
    module = msa.parse("ENTRY e { p = f32[] parameter(0) n = f32[] negate(p) }")
    assert module.entry.root.name == "n"


def test_root_need_not_be_last():
    module = msa.parse(
        "ENTRY e { p = f32[] parameter(0) ROOT n = negate(p) m = negate(p) }"
    )
    assert module.entry.root.name == "n"
    assert msa.parse(module.to_text()) == module


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("HloModule foo", "foo"),
        ("HloModule foo:", "foo"),
        ("HloModule %a.b-c_1", "a.b-c_1"),
        ("// a comment\n/* and\nanother */ HloModule /* x */ foo // y", "foo"),
        ("", "module_e"),
    ],
)
def test_headers(header, name):
    module = msa.parse(f"{header}\nENTRY e {{ ROOT p = f32[] parameter(0) }}")
    assert module.name == name


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("add(p, p)", "f32[4,8]{1,0}"),
        ("compare(p, p), direction=LT", "pred[4,8]{1,0}"),
        ("transpose(p), dimensions={1,0}", "f32[8,4]{0,1}"),
        (
            "dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            "f32[4,4]{1,0}",
        ),
        ("tuple(p, p)", "(f32[4,8]{1,0}, f32[4,8]{1,0})"),
        ("get-dimension-size(p), dimensions={0}", "s32[]"),
    ],
)
def test_missing_shapes_are_inferred(expression, shape):
    module = msa.parse(f"ENTRY e {{ p = f32[4,8] parameter(0) ROOT r = {expression} }}")
    assert str(module.entry.root.shape) == shape


def test_arrays_without_layout_are_row_major():
    module = msa.parse("ENTRY e { ROOT p = (f32[2,3,4], f32[]) parameter(0) }")
    assert str(module.entry.root.shape) == "(f32[2,3,4]{2,1,0}, f32[])"


@pytest.mark.parametrize(
    "tail",
    [
        'metadata={op_name="x"}, sharding={replicated}, slice={[0:2]}',
        'slice={[0:2]}, sharding={replicated}, metadata={op_name="x"}',
        ' /* a */ slice={[0:2:1]} ,\n sharding={ replicated }, metadata={op_name="x"}',
    ],
)
def test_attributes_come_in_any_order(tail):
    module = msa.parse(
        f"ENTRY e {{ p = f32[4] parameter(0) ROOT r = f32[2] slice(p), {tail} }}"
    )
    root = module.entry.root
    assert root.attributes["slice"] == ((0, 2, 1),)
    assert root.attributes["sharding"].strip("{} ") == "replicated"
    assert root.metadata.op_name == "x"


def test_nested_operands_get_names():
    module = msa.parse(
        "ENTRY e { ROOT a = add(f32[10] parameter(0), multiply(f32[10] parameter(1), "
        "f32[10] negate(f32[10] parameter(2)))) }"
    )
    assert [x.name for x in module.entry.instructions] == [
        "parameter.anon",
        "parameter.anon.1",
        "parameter.anon.2",
        "negate.anon",
        "multiply.anon",
        "a",
    ]


def test_compact_paths_make_each_element_once():
    module = msa.parse(
        "ENTRY e { p = (f32[2], (f32[3], f32[3])) parameter(0) a = add(p#1#0, p#1#0) "
        "ROOT b = f32[3] add(f32[3] p#1#1, a) }"
    )
    names = {x.name: x for x in module.entry.instructions}
    assert opcodes(module).count("get-tuple-element") == 3
    assert names["a"].operands == (names["p_1_0"], names["p_1_0"])
    assert names["p_1_0"].operands == (names["p_1"],)


def test_a_made_up_name_gives_way():
    module = msa.parse(
        "ENTRY e { p = (f32[], f32[]) parameter(0) a = negate(p#0) p_0 = abs(a) "
        "ROOT r = add(p_0, p#0) }"
    )
    names = {x.name: x for x in module.entry.instructions}
    assert names["p_0"].opcode == "abs"
    assert names["r"].operands[1].name == "p_0.1"


def test_inline_computations_have_their_own_scope():
    module = msa.parse(
        "ENTRY e { a = f32[8] parameter(0) c = f32[] constant(0) ROOT r = f32[] reduce(a, c), "
        "dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) "
        "ROOT c = add(a, b) } }"
    )
    (reducer,) = module.entry.root.called_computations
    assert [x.name for x in reducer.instructions] == ["a", "b", "c"]
    assert module.computations == [reducer, module.entry]


def test_single_instruction():
    module = msa.parse('r = f32[10] add(f32[10] x, f32[10] y), metadata={op_name="n"}')
    assert module.is_scheduled
    assert [(x.name, x.opcode) for x in module.entry.instructions] == [
        ("x", "parameter"),
        ("y", "parameter"),
        ("r", "add"),
    ]
    assert msa.parse(module.to_text()) == module


def test_single_instruction_without_names():
    module = msa.parse("add(f32[10], f32[10])")
    assert opcodes(module) == ["parameter", "parameter", "add"]


def test_single_instruction_with_a_body():
    module = msa.parse(
        "w = (f32[]) while((f32[]) x), condition={ a = (f32[]) parameter(0) "
        "ROOT r = pred[] constant(false) }, body={ ROOT a = (f32[]) parameter(0) }"
    )
    assert module.entry.root.while_condition.root.opcode == "constant"
    assert msa.parse(module.to_text()) == module


def test_several_modules_in_one_text():
    text = "HloModule a ENTRY e { ROOT p = f32[] parameter(0) }\n"
    modules = parse_modules(text + text.replace("a", "b", 1) + text)
    assert len(modules) == 3
    with pytest.raises(HloParseError, match="after the module"):
        msa.parse(text + text)


@pytest.mark.parametrize(
    "form", ["negate(%p)", "negate(p)", "negate(f32[2]{0} %p)", "negate( p )"]
)
def test_sigils_and_operand_shapes_are_optional(form):
    module = msa.parse(
        f"ENTRY %e {{\n  %p = f32[2]{{0}} parameter(0)\n  ROOT n = f32[2]{{0}} {form}\n}}\n"
    )
    assert module.entry.root.operands[0].name == "p"


@pytest.mark.parametrize(
    "name", ["tuple", "buffer", "b", "mesh", "T", "ROOT.1", "x.1.2-3_", "_x"]
)
def test_ordinary_names(name):
    module = msa.parse(
        f"ENTRY e {{ {name} = f32[] parameter(0) ROOT n = negate({name}) }}"
    )
    assert module.entry.parameters[0].name == name


@pytest.mark.parametrize("name", ["maximal", "manual", "unknown", "inf", "ENTRY"])
def test_keywords_are_names_behind_a_sigil(name):
    module = msa.parse(
        f"ENTRY e {{ %{name} = f32[] parameter(0) ROOT n = negate(%{name}) }}"
    )
    from msa.hlo import PrintOptions, print_module

    short = print_module(module, options=PrintOptions.short_parsable())
    assert msa.parse(short) == module


def test_empty_layout_of_old_dumps():
    module = msa.parse("ENTRY e { ROOT p = f32[]{} parameter(0) }")
    assert str(module.entry.root.shape) == "f32[]"


def test_signatures_are_checked_but_otherwise_ignored():
    module = msa.parse(
        "HloModule m ENTRY e (x: s32[7], y: f32[9]) -> f32[] { ROOT p = f32[] parameter(0) }"
    )
    assert module.entry.parameters[0].name == "p"


def test_schedule_is_the_order_of_the_text():
    module = msa.parse(
        "HloModule m, is_scheduled=true\nENTRY e { p = f32[] parameter(0) b = negate(p) "
        "a = abs(p) ROOT r = add(a, b) }"
    )
    order = module.schedule.sequence(module.entry)
    assert [x.name for x in order] == ["p", "b", "a", "r"]


def test_unknown_parts_are_kept_on_request():
    text = (
        "ENTRY e {\n  p = f32[2]{0} parameter(0), new_flag=7\n"
        '  ROOT r = f32[3]{0} brand-new(p, p), mode={a,{b}}, target="x", rate=0.5\n}'
    )
    module = msa.parse(text, allow_unknown=True)
    root = module.entry.root
    assert root.opcode == "brand-new"
    assert root.attributes == {"mode": "{a,{b}}", "target": '"x"', "rate": "0.5"}
    assert msa.parse(module.to_text(), allow_unknown=True) == module
    with pytest.raises(HloParseError):
        msa.parse(text)


def test_shapes_that_the_reader_works_out():
    module = msa.parse(
        "ENTRY e { p = f32[4] parameter(0) k = token[] after-all() "
        "x = (f32[4], u32[], token[]) send(p, k), channel_id=1 "
        "y = (f32[4]{0:S(1)}, s32[7]) recv(k), channel_id=2 "
        "ROOT z = (f32[4], token[]) recv-done(y), channel_id=2 }",
        verify=False,
    )
    shapes = {x.name: str(x.shape) for x in module.entry.instructions}
    assert shapes["x"] == "(f32[4]{0}, u32[], token[])"
    assert shapes["y"] == "(f32[4]{0:S(1)}, u32[], token[])"
    assert shapes["z"] == "(f32[4]{0:S(1)}, token[])"


def test_lines_are_recorded():
    module = msa.parse(
        "ENTRY e {\n  p = f32[] parameter(0)\n\n  q =\n f32[] negate(p) ROOT r = abs(q)\n}"
    )
    assert [x.line for x in module.entry.instructions] == [2, 4, 5]
