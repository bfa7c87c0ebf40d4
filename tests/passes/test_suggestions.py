"""Suggestions for the placement (MP-6), and where values disagree."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import AnalysisManager
from msa.errors import OptionsError, ScheduleError
from msa.passes import check_memory_spaces, suggest

TARGET = msa.Target(
    name="round",
    alternate_memory_bytes=1 << 20,
    alignment_bytes=64,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=500.0,
    async_copy_bandwidth=100.0,
    flops_per_second=1e9,
    transcendentals_per_second=1e9,
)

TEXT = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[8]{0} parameter(0)
  big = f32[64]{0} parameter(1)
  y = f32[8]{0:S(1)} negate(x)
  u = f32[8]{0} add(x, y)
  v = f32[8]{0} multiply(u, u)
  w = f32[64]{0} negate(big)
  p = f32[64]{0} pad(v, zero), padding=0_56
  ROOT z = f32[64]{0} add(p, w)
}"""
TEXT = TEXT.replace("  y = f32", "  zero = f32[] constant(0)\n  y = f32", 1)


def test_rank_by_what_fast_memory_saves_MP6() -> None:
    module = msa.parse(TEXT)
    before = module.to_text()
    rows = suggest(module, TARGET)
    assert module.to_text() == before, "nothing is changed"
    by_value = {row.value: row for row in rows}
    # Seconds saved per byte: a read 1/100 - 1/1000, a write 1/100 - 1/500.
    read, write = 0.009, 0.008
    # u is read once: both operands of v are the same bytes, counted for each.
    expected = {
        "x{}": 2 * read,
        "y{}": write + read,
        "u{}": write + 2 * read,
        "big{}": read,
        "w{}": write + read,
    }
    for value, gain in expected.items():
        assert by_value[value].gain == pytest.approx(gain), value
    assert by_value["u{}"].bytes_accessed == 3 * 32
    steps = {x.name: t for t, x in enumerate(module.entry.instructions)}
    assert (by_value["x{}"].first_use, by_value["x{}"].last_use) == (
        steps["y"],
        steps["u"],
    )
    assert [row.value for row in rows][:2] == ["y{}", "u{}"], "annotated ones first"
    assert [row.annotated for row in rows] == [True] + [False] * (len(rows) - 1)
    assert "z{}" not in by_value, "nothing reads it"
    plain = [row.gain for row in rows if not row.annotated]
    assert plain == sorted(plain, reverse=True)


LOOP = """HloModule m, is_scheduled=true
body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = f32[8] negate(v)
  k = f32[8] exponential(n)
  ROOT t = (s32[], f32[8]) tuple(j, k) }
cond { q = (s32[], f32[8]) parameter(0)
  a = s32[] get-tuple-element(q), index=0
  m = s32[] constant(10)
  ROOT lt = pred[] compare(a, m), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[8]) tuple(z, x)
  ROOT w = (s32[], f32[8]) while(s), condition=cond, body=body }"""


def test_trips_count_MP6() -> None:
    rows = {row.value: row for row in suggest(msa.parse(LOOP), TARGET)}
    assert rows["n{}"].bytes_accessed == 10 * 2 * 32


def test_what_cannot_be_asked_MP6() -> None:
    unscheduled = msa.parse(TEXT.replace(", is_scheduled=true", ""))
    with pytest.raises(ScheduleError):
        suggest(unscheduled, TARGET)
    module = msa.parse(TEXT)
    with pytest.raises(OptionsError):
        suggest(module, TARGET, analyses=AnalysisManager(module.clone()))


def test_disagreement_is_listed_MP6() -> None:
    text = TEXT.replace(
        "ROOT z = f32[64]{0} add(p, w)",
        "t = (f32[64]{0:S(1)}, f32[64]{0}) tuple(p, w)\n"
        "  ROOT z = f32[64]{0:S(2)} get-tuple-element(t), index=0",
    )
    (problem,) = check_memory_spaces(msa.parse(text))
    assert "p{} in 0" in problem
    assert "t{0} in 1" in problem
    assert "z{} in 2" in problem


def ranked(text: str) -> dict[str, tuple[int, float]]:
    """Bytes and bytes accessed of values, by name."""
    rows = suggest(msa.schedule(msa.parse(text)), TARGET)
    return {row.value: (row.bytes, row.bytes_accessed) for row in rows}


def test_small_types_and_nothing_at_all_MP6() -> None:
    assert ranked("ENTRY e { p = f32[0] parameter(0) ROOT n = f32[0] negate(p) }") == {}
    for kind, opcode in (("s4", "negate"), ("pred", "not")):
        text = (
            f"ENTRY e {{ p = {kind}[7] parameter(0) ROOT n = {kind}[7] {opcode}(p) }}"
        )
        assert ranked(text) == {"p{}": (7, 7.0)}


def test_unknown_calls_move_whole_values_MP6() -> None:
    text = """ENTRY e { p = f32[4] parameter(0)
  c = f32[4] custom-call(p), custom_call_target="k"
  ROOT a = f32[4] negate(c) }"""
    assert ranked(text) == {"p{}": (16, 16.0), "c{}": (16, 32.0)}


def test_conditionals_read_their_predicate_only_MP6() -> None:
    text = """
a { x = f32[4] parameter(0)  ROOT n = f32[4] negate(x) }
b { y = f32[4] parameter(0)  ROOT k = f32[4] copy(y) }
ENTRY e { p = f32[4] parameter(0)
  i = s32[] parameter(1)
  ROOT c = f32[4] conditional(i, p, p), branch_computations={a, b} }"""
    assert ranked(text) == {"p{}": (16, 32.0), "i{}": (4, 4.0)}


def nest(depth: int) -> str:
    state, text = "(s32[], f32[4])", ""
    for k in range(depth):
        loop = (
            f"  v_{k} = {state} while(s_{k}), condition=c_{k}x, body=b_{k}x\n"
            if k
            else ""
        )
        if k:
            text += f"""c_{k}x {{ q_{k} = {state} parameter(0)
  j_{k} = s32[] get-tuple-element(q_{k}), index=0
  l_{k} = s32[] constant(2147483647)
  ROOT r_{k} = pred[] compare(j_{k}, l_{k}), direction=LT }}
"""
        name = f"b_{k + 1}x" if k < depth - 1 else "ENTRY e"
        given = f"v_{k}" if k else "s_0"
        text += f"""{name} {{ s_{k} = {state} parameter(0)
{loop}  i_{k} = s32[] get-tuple-element({given}), index=0
  f_{k} = f32[4] get-tuple-element({given}), index=1
  o_{k} = s32[] constant(1)
  m_{k} = s32[] add(i_{k}, o_{k})
  n_{k} = f32[4] negate(f_{k})
  ROOT t_{k} = {state} tuple(m_{k}, n_{k}) }}
"""
    return text


def test_very_deep_loops_count_finitely_MP6() -> None:
    found = ranked(nest(40))
    assert len(found) > 40
    assert all(0 <= accessed < float("inf") for _, accessed in found.values())
    assert found["n_0{}"][1] > found["n_38{}"][1] > 0


@pytest.mark.parametrize(
    "arguments", [(None, TARGET, None), (TEXT, TARGET, None), (0, 0, 0)]
)
def test_wrong_arguments_MP6(arguments: tuple[object, object, object]) -> None:
    module, target, analyses = arguments
    with pytest.raises(msa.errors.HloError):
        suggest(module, target, analyses=analyses)
    real = msa.schedule(msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }"))
    with pytest.raises(msa.errors.HloError):
        suggest(real, None)
    with pytest.raises(msa.errors.HloError, match="AnalysisManager"):
        suggest(real, TARGET, analyses=3)
