"""Replica groups, shardings, windows, metadata and opcodes as values."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msa
from msa.errors import HloError, HloParseError
from msa.hlo.layout import Layout, SplitConfig
from msa.hlo.metadata import StackFrames, is_metadata, parse_metadata, source_location
from msa.hlo.opcode import OPCODES, VARIADIC, has_side_effect, is_elementwise
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.groups import read_replica_groups
from msa.hlo.primitive import PRIMITIVE_TYPES
from msa.hlo.replica_groups import IotaGroups
from msa.hlo.shape import Shape
from msa.hlo.sharding import canonical_sharding
from msa.hlo.window import ConvolutionDimensionNumbers, Window, WindowDimension


def groups(text):
    return read_replica_groups(Cursor(text))


GROUPS = [
    ("{}", "{}", ((0, 1, 2, 3),)),
    ("{{0},{1,2,3}}", "{{0},{1,2,3}}", ((0,), (1, 2, 3))),
    ("[4,2]<=[2,4]T(1,0)", "[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("[2,2]<=[2,2]T(0,1)", "[2,2]<=[4]", ((0, 1), (2, 3))),
    ("[1,8]<=[2,2,2]T(2,0,1)", "[1,8]<=[4,2]T(1,0)", ((0, 2, 4, 6, 1, 3, 5, 7),)),
    ("mesh['a'=2,'b'=2] {'b'}", "mesh['a'=2,'b'=2] {'b'}", ((0, 1), (2, 3))),
    ("mesh['a'=2,'b'=2] {'a'}", "mesh['a'=2,'b'=2] {'a'}", ((0, 2), (1, 3))),
    ("mesh['a'=2,'b'=2]{'a','b'}", "mesh['a'=2,'b'=2] {'a','b'}", ((0, 1, 2, 3),)),
    ("mesh['b'=8] {'b':(2)2}", "mesh['b'=8] {'b':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
    ("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}",
     "mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", ((3, 2), (1, 0))),
    ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}",
     "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
    ("maximal_mesh[device_id=1] {}", "maximal_mesh[device_id=1] {}", ((1,),)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "printed", "expanded"), GROUPS)
def test_replica_groups(text, printed, expanded):
    value = groups(text)
    assert str(value) == printed
    assert value.expand(4) == expanded
    assert groups(printed) == value


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.randoms())
def test_iota_normal_form_is_the_same_devices(sizes, source):
    order = list(range(len(sizes)))
    source.shuffle(order)
    count = 1
    for size in sizes:
        count *= size
    plain = IotaGroups((1, count), tuple(sizes), tuple(order))
    normal = IotaGroups.canonical((1, count), tuple(sizes), tuple(order))
    assert normal.expand(0) == plain.expand(0)
    assert len(normal.reshape) <= len(sizes)


SHARDINGS = [
    ("{ replicated }", "{replicated}"),
    ("{maximal device=3}", "{maximal device=3}"),
    ("{devices=[2,2]0,1,2,3}", "{devices=[2,2]0,1,2,3}"),
    ("{devices=[2,2]<=[2,1,2]T(1,0,2)}", "{devices=[2,2]<=[4]}"),
    ("{devices=[2,2,1]<=[4] last_tile_dim_replicate}", "{devices=[2,2]<=[4]}"),
    ("{devices=[1,1,4]<=[4] last_tile_dim_replicate}", "{replicated}"),
    ("{devices=[1,1,4]<=[4] last_tile_dims={manual}}", "{manual}"),
    ("{devices=[2,1,4]<=[8] last_tile_dims={replicated}}",
     "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    ("{devices=[1,1,2,2]<=[4] last_tile_dims={manual,replicated}}",
     "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}"),
    ('{devices=[2,2]<=[4] metadata={op_name="x"} shard_as 1}', "{devices=[2,2]<=[4] shard_as 1}"),
    ("{{replicated},/*index=1*/{manual}}", "{{replicated}, {manual}}"),
    ("{mesh['x'=2,'y'=2],[{'x',?},{}],replicated={'y'}}",
     "{mesh['x'=2,'y'=2], [{'x', ?}, {}], replicated={'y'}}"),
    ("{mesh['x'=2], unreduced=max}", "{mesh['x'=2], unreduced=max}"),
    ("{maximal_mesh[device_id=5]}", "{maximal_mesh[device_id=5]}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "normal"), SHARDINGS)
def test_shardings(text, normal):
    assert canonical_sharding(text) == normal
    assert canonical_sharding(normal) == normal


@pytest.mark.parametrize(
    "text",
    ["{maximal}", "{devices=[2,2]}", "{shard_as 1}", "{devices=[0]}", "{replicated"],
)
def test_bad_shardings(text):
    with pytest.raises(HloParseError):
        canonical_sharding(text)


def test_windows():
    window = Window(
        (WindowDimension(3, 2, 1, -1), WindowDimension(5, window_reversal=True))
    )
    text = "{size=3x5 stride=2x1 pad=1_-1x0_0 rhs_reversal=0x1}"
    assert str(window) == text
    module = msa.parse(
        "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) } "
        "ENTRY e { p = f32[9,9] parameter(0) s = f32[] parameter(1) ROOT r = f32[4,5] "
        f"reduce-window(p, s), window={text}, to_apply=f }}".replace(
            "f {", "HloModule m f {", 1
        ),
        verify=False,
    )
    assert module.entry.root.attributes["window"] == window


def test_dimension_labels():
    numbers = ConvolutionDimensionNumbers("bf01", "io10", "1b0f")
    assert (numbers.input_batch, numbers.input_feature, numbers.input_spatial) == (
        0,
        1,
        (2, 3),
    )
    assert (numbers.kernel_input_feature, numbers.kernel_output_feature) == (0, 1)
    assert numbers.kernel_spatial == (3, 2)
    assert numbers.output_spatial == (2, 0)
    assert str(numbers) == "bf01_io10->1b0f"


# -- metadata ------------------------------------------------------------------


def test_metadata():
    text = 'op_type="dot", op_name="jit(f)/\\"x\\"/{y}" source_file="a b.py" source_line=7 profile_type={1}'
    found = parse_metadata(text)
    assert found.op_name == 'jit(f)/"x"/{y}'
    assert (found.op_type, found.source_file, found.source_line) == ("dot", "a b.py", 7)
    assert found.profile_type == "1"
    assert is_metadata(text)
    assert not is_metadata("op_name=x")


TABLES = """FileNames
1 "a.py"
2 "b \\"c\\".py"

FunctionNames
1 "main"
2 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
"""


def test_stack_frames():
    tables = StackFrames(TABLES)
    assert str(tables.resolve(2)) == 'b "c".py:20'
    assert [str(x) for x in tables.stack(2)] == ['b "c".py:20', "a.py:10"]
    assert tables.resolve(9) is None
    module = msa.parse(
        f"HloModule m\n{TABLES}\nENTRY e {{ p = f32[] parameter(0), metadata={{stack_frame_id=2}} "
        'ROOT q = negate(p), metadata={source_file="z.py" source_line=3} }'
    )
    p, q = module.entry.instructions
    assert str(source_location(p)) == 'b "c".py:20'
    assert str(source_location(q)) == "z.py:3"
    assert msa.parse(module.to_text()) == module


# -- opcodes -------------------------------------------------------------------


def test_the_table_is_consistent():
    assert len(OPCODES) > 130
    for info in OPCODES.values():
        assert info.arity == VARIADIC or info.arity >= 0
        assert set(info.required) <= set(info.attributes)
        assert set(info.called) <= set(info.attributes)
        assert set(info.defaults) <= set(info.attributes)
        assert info.always_printed <= set(info.defaults)


def only(body, name="r"):
    text = (
        "HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) } "
        "ENTRY e { p = f32[4] parameter(0) q = f32[4] parameter(1) s = f32[] parameter(2) "
        f"i = s32[] parameter(3) {body} }}"
    )
    module = msa.parse(text, verify=False)
    return next(x for x in module.entry.instructions if x.name == name)


@pytest.mark.parametrize(
    ("body", "whole", "first", "second"),
    [
        ("r = f32[4] add(p, q)", True, True, True),
        ("r = f32[4] reverse(p), dimensions={0}", False, False, None),
        ("r = f32[4] reshape(p)", False, False, None),
        ("r = s32[4] bitcast-convert(p)", True, True, None),
        ("r = u8[4,4] bitcast-convert(p)", False, False, None),
        ("r = f32[4] dynamic-update-slice(p, q, i)", False, True, False),
        ("r = f32[4] map(p), dimensions={0}, to_apply={ a = f32[] parameter(0) ROOT b = negate(a) }", True, True, None),
        (("r = f32[4] fusion(p, q), kind=kLoop, calls={ a = f32[4] parameter(0) b = f32[4] parameter(1) "
         "c = f32[4] reverse(b), dimensions={0} ROOT d = add(a, c) }"), False, True, False),
        (("r = f32[4] fusion(p, q), kind=kLoop, calls={ a = f32[4] parameter(0) b = f32[4] parameter(1) "
         "ROOT d = negate(a) }"), True, True, True),
    ],
)  # fmt: skip
def test_elementwise(body, whole, first, second):
    instruction = only(body)
    assert is_elementwise(instruction) is whole
    assert is_elementwise(instruction, 0) is first
    if second is not None:
        assert is_elementwise(instruction, 1) is second


@pytest.mark.parametrize(
    ("body", "effect"),
    [
        ("r = f32[4] add(p, q)", False),
        ("r = f32[4] rng(s, s), distribution=rng_uniform", True),
        ('r = f32[4] custom-call(p), custom_call_target="f"', False),
        ('r = f32[4] custom-call(p), custom_call_target="f", custom_call_has_side_effect=true', True),
        ("r = f32[4] all-reduce(p), to_apply=add", False),
        ("r = f32[4] all-reduce(p), to_apply=add, constrain_layout=true", True),
        (("r = f32[4] call(p), to_apply={ a = f32[4] parameter(0) s = f32[] constant(0) "
         "ROOT b = f32[4] rng(s, s), distribution=rng_uniform }"), True),
    ],
)  # fmt: skip
def test_side_effects(body, effect):
    assert has_side_effect(only(body)) is effect


def test_channels_count_when_asked():
    instruction = only("r = f32[4] all-reduce(p), to_apply=add, channel_id=1")
    assert not has_side_effect(instruction)
    assert has_side_effect(instruction, channel_sensitive=True)


def test_overlapping_sub_axes_are_refused():
    with pytest.raises(HloError, match="do not divide"):
        groups("mesh['a'=12] {'a':(2)2,'a':(3)2}").expand(12)


def test_groups_are_values():
    for a, b in itertools.combinations(GROUPS, 2):
        assert groups(a[0]) != groups(b[0])


def test_layouts_are_equal_but_for_the_memory_space_if_all_else_is():
    whole = Layout(
        (1, 0),
        tiles=((8, 128),),
        tail_padding_alignment=2,
        index_type=PRIMITIVE_TYPES["u32"],
        pointer_type=PRIMITIVE_TYPES["u16"],
        element_size_in_bits=4,
        memory_space=1,
        split_configs=(SplitConfig(0, (4,)),),
        physical_shape=Shape.array("f32", (2,)),
        dynamic_metadata_prefix_bytes=8,
    )
    plain = Layout((0, 1))
    for field in dataclasses.fields(Layout):
        other = dataclasses.replace(whole, **{field.name: getattr(plain, field.name)})
        same = field.name == "memory_space" or not field.compare
        assert whole.equal_ignoring_memory_space(other) is same, field.name
        assert other.equal_ignoring_memory_space(whole) is same, field.name
        same |= field.name == "split_configs"
        assert whole.equal_ignoring_memory_space(other, shards=True) is same
