"""Absurd numbers wherever text takes one: a module or an error with its place."""

from contextlib import suppress

import pytest

import msa
from msa.errors import HloError, HloParseError
from msa.hlo.metadata import source_location

SUM = "a { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }\n"
PARAMETER = "p = f32[8] parameter(0) z = f32[] constant(0)"
ROWS = """
window-size | reduce-window(p, z), window={size=N}, to_apply=a
window-pad | reduce-window(p, z), window={size=1 pad=N_0}, to_apply=a
window-stride | reduce-window(p, z), window={size=1 stride=N}, to_apply=a
padding | pad(p, z), padding=0_N
padding-interior | pad(p, z), padding=0_0_N
slice | slice(p), slice={[0:N]}
dimensions | reverse(p), dimensions={N}
groups | all-reduce(p), replica_groups={{N}}, to_apply=a
groups-iota | all-reduce(p), replica_groups=[1,N]<=[N], to_apply=a
groups-mesh | all-reduce(p), replica_groups=mesh['a'=N] {'a'}, to_apply=a
groups-part | all-reduce(p), replica_groups=mesh['a'=4] {'a':(N)2}, to_apply=a
groups-single | all-reduce(p), replica_groups=maximal_mesh[device_id=N] {}, to_apply=a
channel | all-reduce(p), replica_groups={}, to_apply=a, channel_id=N
aliasing | custom-call(p), custom_call_target="t", output_to_operand_aliasing={{N}: (N, {N})}
parameter | parameter(N)
path | negate(p#N)
literal | constant(N)
sharding | negate(p), sharding={devices=[N]<=[N]}
device | negate(p), sharding={maximal device=N}
axis | negate(p), sharding={mesh['x'=N], [{'x'}]}
accuracy | exponential(p), result_accuracy={tolerance={atol=N,rtol=N,ulps=N}}
statistics | negate(p), statistics={visualizing_index=N,other=N}
place | negate(p), metadata={source_line=N stack_frame_id=N}
"""
LINES = [line.split(" | ") for line in ROWS.strip().splitlines()]
KEPT = ("statistics", "place")
"""What nothing computes with is kept as it is written."""
NUMBERS = {"long": "9" * 5000, "negative": "-" + "9" * 5000, "foreign": "٣"}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("name", "line"), LINES, ids=[name for name, _ in LINES])
def test_absurd_number(name, line, number):
    rest = line.replace("N", NUMBERS[number])
    text = f"HloModule m\n{SUM}ENTRY e {{ {PARAMETER}\nROOT r = f32[8] {rest} }}"
    if name not in KEPT or (name == "place" and number == "foreign"):
        with pytest.raises(HloError) as caught:
            msa.parse(text)
        assert len(str(caught.value)) < 12_000
    else:
        module = msa.parse(text)
        assert msa.parse(module.to_text()) == module
        assert source_location(module.entry.root) is None


@pytest.mark.parametrize("number", NUMBERS)
def test_absurd_number_in_the_tables_of_places(number):
    n = NUMBERS[number]
    text = (
        f'HloModule m\n\nFileNames\n{n} "a"\n\nFunctionNames\n{n} "f"\n\n'
        f"FileLocations\n{n} {{file_name_id={n} function_name_id={n} line={n}}}\n\n"
        f"StackFrames\n1 {{file_location_id={n}}}\n\n"
        "ENTRY e { ROOT p = f32[] parameter(0), metadata={stack_frame_id=1} }"
    )
    with suppress(HloParseError):
        module = msa.parse(text)
        assert source_location(module.entry.root, module) is None


@pytest.mark.parametrize(
    "groups", ["[1,1000000000]<=[1000000000]", "mesh['a'=1000000000] {'a'}"]
)
def test_more_devices_than_can_be_listed(groups):
    with pytest.raises(HloError, match="1000000000 devices are too many"):
        msa.parse(
            f"HloModule m\n{SUM}ENTRY e {{ {PARAMETER}\n"
            f"ROOT r = f32[8] all-reduce(p), replica_groups={groups}, to_apply=a }}"
        )


def test_more_dimensions_than_any_shape_has():
    sizes = ",".join(["1"] * 100_000)
    with pytest.raises(HloParseError, match="at most 65536 dimensions") as caught:
        msa.parse(f"ENTRY e {{\n  ROOT p = f32[{sizes}] parameter(0) }}")
    assert (caught.value.line, caught.value.column) == (2, 12)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("s64", "9223372036854775808", -(2**63)),
        ("s64", "18446744073709551615", -1),
        ("s32", "18446744073709551615", -1),
        ("s8", "18446744073709551488", -128),
        ("u64", "18446744073709551615", 2**64 - 1),
    ],
)
def test_integers_of_64_bits_without_sign_are_taken_as_signed(kind, text, value):
    """Spec 21 §1: integers above the signed range are kept bit by bit."""
    module = msa.parse(f"ENTRY e {{ ROOT c = {kind}[] constant({text}) }}")
    assert int(module.entry.root.attributes["literal"].to_numpy()) == value
    assert f"constant({value})" in module.to_text(canonical=True)


def test_ties_beyond_the_largest_value_go_to_the_even_code():
    module = msa.parse("ENTRY e { ROOT c = f8e4m3fn[] constant(464) }")
    assert float(module.entry.root.attributes["literal"].to_numpy()) == 448


def test_nan_without_payload_bits_is_no_nan():
    with pytest.raises(HloParseError, match="payload"):
        msa.parse("ENTRY e { ROOT c = f32[] constant(nan(0x0)) }")
