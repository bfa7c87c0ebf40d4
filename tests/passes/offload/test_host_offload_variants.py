"""Host offloading from annotations: the variants within rows of group J."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.passes import Pipeline, offload_to_host
from msa.passes.offload import HostOffloadError
from msa.passes.offload.vocabulary import is_host_compute
from passes.offload.test_host_offload_rows import (
    HOST_OUT,
    OUT,
    SAME,
    SLICE,
    TO_DEVICE,
    TO_HOST,
    chain,
    copies,
    run,
    spaces,
    stack,
)

V, H = "f32[8]{0}", "f32[8]{0:S(5)}"


def head(arguments: str, result: str) -> str:
    return f"HloModule m, entry_computation_layout={{({arguments})->{result}}}\n"


# -- where a value goes --------------------------------------------------------


def test_one_copy_out_and_each_return_has_one_back_J8() -> None:
    found = run(
        chain(
            OUT,
            f"b1 = {V} custom-call(out), {TO_DEVICE}",
            f"b2 = {V} custom-call(out), {TO_DEVICE}",
            f"n = {V} negate(out)",
            f"s = {V} add(b1, b2)",
            f"t = {V} abs(b1)",
            f"u = {V} add(s, t)",
            f"ROOT r = {V} add(u, n)",
        )
    )
    back = {*found["s"].operands, *found["t"].operands}
    (out,) = {x.operands[0] for x in back}
    assert {x.opcode for x in back} == {"copy"}
    assert found["n"].operands[0] is out
    assert copies(found).count((0, 5)) == 1
    assert is_host_compute(found["n"])


def test_annotation_before_a_copy_J9() -> None:
    text = stack(SLICE).replace("(wide, out,", "(wide, piece,")
    text = text.replace("  update =", "  piece = f32[1,8]{1,0} copy(out)\n  update =")
    found = run(text)
    assert spaces(found["update"]) == [5]
    assert found["update"].operands[1].opcode == "copy"
    assert set(copies(found)) == {(0, 0)}


def test_element_of_an_argument_on_the_host_J12() -> None:
    found = run(
        head(f"({V}, {H})", V)
        + f"""ENTRY e {{
  t = ({V}, {V}) parameter(0)
  x = {V} get-tuple-element(t), index=1
  y = {V} get-tuple-element(t), index=0
  back = {V} custom-call(x), {TO_DEVICE}
  ROOT s = {V} add(back, y)
}}"""
    )
    assert spaces(found["t"]) == [0, 5]
    assert spaces(found["x"]) == [5]
    assert spaces(found["y"]) == [0]
    assert copies(found) == [(5, 0)]


@pytest.mark.parametrize(
    ("lines", "result", "expected"),
    [
        ((f"ROOT r = {V} bitcast(out)",), H, [5]),
        ((f"ROOT r = ({V}, {V}) tuple(x, out)",), f"({V}, {H})", [0, 5]),
    ],
    ids=["plain", "tuple"],
)
def test_results_on_the_host_J14_J15(
    lines: tuple[str, ...], result: str, expected: list[int]
) -> None:
    found = run(chain(OUT, *lines, head=head(V, result)))
    assert spaces(found["ROOT"]) == expected
    assert copies(found) == [(0, 5)]
    device = result.replace(H, V)
    with pytest.raises(HostOffloadError, match="location mismatch"):
        run(chain(OUT, *lines, head=head(V, device)))


def test_host_argument_returned_in_a_tuple_J17() -> None:
    text = (
        head(H, f"({H})")
        + f"""ENTRY e {{
  x = {V} parameter(0)
  ROOT t = ({V}) tuple(x)
}}"""
    )
    found = run(text)
    assert spaces(found["ROOT"]) == spaces(found["x"]) == [5]
    assert [x.opcode for x in found.values()][:2] == ["parameter", "tuple"]
    assert copies(found) == []


def test_two_annotations_of_one_value_share_copies_J19() -> None:
    found = run(
        chain(
            OUT,
            f"out2 = {V} custom-call(x), {TO_HOST}",
            f"b1 = {V} custom-call(out), {TO_DEVICE}",
            f"b2 = {V} custom-call(out2), {TO_DEVICE}",
            f"ROOT s = {V} add(b1, b2)",
        )
    )
    assert copies(found) == [(0, 5), (5, 0)]
    assert found["s"].operands[0] is found["s"].operands[1]


@pytest.mark.parametrize(
    ("shape", "between"),
    [
        ("f32[8]{0}", "f32[8]{0} reduce(slice, zero), dimensions={0}, to_apply=sum"),
        ("f32[8,1]{1,0}", "f32[8,1]{1,0} reshape(slice)"),
        ("f32[1,8]{0,1}", "f32[1,8]{0,1} copy(slice)"),
        ("f32[1]{0}", "f32[1]{0} reduce(slice, zero), dimensions={1}, to_apply=sum"),
    ],
    ids=["trivial reduce", "reshape", "copy", "real reduce"],
)
def test_slices_that_return_after_more_moving_J11(shape: str, between: str) -> None:
    late = SLICE.replace(
        "  ROOT back = f32[1,8]{1,0} custom-call(slice)",
        f"  more = {between}\n  ROOT back = {shape} custom-call(more)",
    )
    summing = """sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
"""
    found = run(summing + stack(late))
    computes = "dimensions={1}" in between
    assert is_host_compute(found["slice"]) == computes
    assert spaces(found["slice"]) == [0]
    assert not [pair for pair in copies(found) if pair != (0, 0)]


# -- computing on the host -----------------------------------------------------


def test_slice_with_an_operand_on_the_host_J25() -> None:
    found = run(
        chain(
            OUT,
            "i = s32[] parameter(1)",
            "d = f32[2]{0} dynamic-slice(out, i), dynamic_slice_sizes={2}",
            "t = f32[2]{0} tanh(d)",
            f"ROOT back = f32[2]{{0}} custom-call(t), {TO_DEVICE}",
        )
    )
    assert is_host_compute(found["d"])
    assert [x.shape.memory_space for x in found["d"].operands] == [5, 0]
    assert copies(found) == [(0, 5)]


def test_slice_with_an_index_on_the_host_J25() -> None:
    found = run(
        chain(
            "i = s32[] parameter(1)",
            f"out = s32[] custom-call(i), {TO_HOST}",
            "d = f32[2]{0} dynamic-slice(x, out), dynamic_slice_sizes={2}",
            f"ROOT back = f32[2]{{0}} custom-call(d), {TO_DEVICE}",
        )
    )
    assert is_host_compute(found["d"])
    assert [x.shape.memory_space for x in found["d"].operands] == [0, 5]
    assert copies(found) == [(0, 5)]


@pytest.mark.parametrize(
    ("operands", "on_host", "made", "distinct"),
    [
        ("p, out, out", [0, 5, 5], 1, 2),
        ("p, out, out2", [0, 5, 5], 2, 3),
        ("out3, out, out2", [5, 5, 5], 3, 3),
        ("out3, x, y", [5, 0, 0], 1, 3),
    ],
    ids=["same", "different", "all", "predicate"],
)
def test_select_on_the_host_J25(
    operands: str, on_host: list[int], made: int, distinct: int
) -> None:
    found = run(
        chain(
            f"y = {V} parameter(1)",
            "p = pred[8]{0} parameter(2)",
            OUT,
            f"out2 = {V} custom-call(y), {TO_HOST}",
            f"out3 = pred[8]{{0}} custom-call(p), {TO_HOST}",
            f"c = {V} select({operands})",
            f"ROOT back = {V} custom-call(c), {TO_DEVICE}",
        )
    )
    assert is_host_compute(found["c"])
    assert [x.shape.memory_space for x in found["c"].operands] == on_host
    assert copies(found) == [(0, 5)] * made
    assert len(set(found["c"].operands)) == distinct


COPY = chain(OUT, f"h = {V} copy(out)", f"ROOT back = {V} custom-call(h), {TO_DEVICE}")


def test_copies_within_the_host_J26() -> None:
    with pytest.raises(HostOffloadError, match="h copies a value on the host"):
        run(COPY, automatic_host_compute=False)
    found = run(COPY, automatic_host_compute=False, host_copies=True)
    assert is_host_compute(found["h"])
    assert spaces(found["h"].operands[0]) == [5]
    pipeline = Pipeline("host-offload{automatic_host_compute=false,host_copies}")
    assert "h" in {x.name for x in pipeline.run(msa.parse(COPY)).entry.instructions}


# -- loops ---------------------------------------------------------------------


STATE = "(s32[], f32[1,8]{1,0}, f32[3,8]{1,0})"
COND = f"""
cond {{
  c = {STATE} parameter(0)
  cn = s32[] get-tuple-element(c), index=0
  trips = s32[] constant(TRIPS)
  ROOT lt = pred[] compare(cn, trips), direction=LT
}}
"""


def body(*lines: str, names: str = "") -> str:
    """A loop's body and condition; n counts, v is carried, acc is the buffer."""
    inner = "\n  ".join(lines)
    text = f"""
body {{
  s = {STATE} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[1,8]{{1,0}} get-tuple-element(s), index=1
  acc = f32[3,8]{{1,0}} get-tuple-element(s), index=2
  one = s32[] constant(1)
  k = s32[] constant(0)
  m = s32[] add(n, one)
  {inner}
}}
{COND.replace("TRIPS", "3")}"""
    for name in (
        [
            "body",
            "s",
            "n",
            "v",
            "acc",
            "one",
            "k",
            "m",
            "cond",
            "c",
            "cn",
            "trips",
            "lt",
        ]
        if names
        else ()
    ):
        for mark in (" ", ",", ")", "\n"):
            text = text.replace(f" {name}{mark}", f" {name}{names}{mark}")
            text = text.replace(f"({name}{mark}", f"({name}{names}{mark}")
            text = text.replace(f"\n{name}{mark}", f"\n{name}{names}{mark}")
    return text


def same_results(text: str, *inputs: np.ndarray) -> np.ndarray:
    module = msa.parse(text)
    custom = SAME | {"AllocateBuffer": lambda x: lambda: np.zeros((3, 8), np.float32)}
    before = msa.execute(module, list(inputs), custom_calls=custom)
    placed = offload_to_host(module).module
    after = msa.execute(placed, list(inputs), custom_calls=custom)
    np.testing.assert_array_equal(before, after)
    return np.asarray(before)


X = np.arange(1, 9, dtype=np.float32).reshape(1, 8)
W = np.arange(24, dtype=np.float32).reshape(3, 8)


def test_arguments_are_streamed_J21() -> None:
    text = (
        head("f32[1,8]{1,0}, f32[3,8]{1,0:S(5)}", "f32[1,8]{1,0}")
        + body(
            "d = f32[1,8]{1,0} dynamic-slice(acc, n, k), dynamic_slice_sizes={1,8}",
            f"back = f32[1,8]{{1,0}} custom-call(d), {TO_DEVICE}",
            "next = f32[1,8]{1,0} add(v, back)",
            f"ROOT r = {STATE} tuple(m, next, acc)",
        )
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  weights = f32[3,8]{{1,0}} parameter(1)
  zero = s32[] constant(0)
  t = {STATE} tuple(zero, x, weights)
  w = {STATE} while(t), condition=cond, body=body
  ROOT g = f32[1,8]{{1,0}} get-tuple-element(w), index=1
}}"""
    )
    found = run(text)
    for name in ("t", "w", "s", "c", "r"):
        assert spaces(found[name]) == [0, 0, 5], name
    assert spaces(found["d"]) == spaces(found["next"]) == [0]
    assert copies(found) == []
    np.testing.assert_array_equal(same_results(text, X, W), X + W.sum(0))


def test_results_are_streamed_J21() -> None:
    text = (
        head("f32[1,8]{1,0}", "f32[3,8]{1,0:S(5)}")
        + body(
            "next = f32[1,8]{1,0} add(v, v)",
            f"out = f32[1,8]{{1,0}} custom-call(next), {TO_HOST}",
            "put = f32[3,8]{1,0} dynamic-update-slice(acc, out, n, k)",
            f"ROOT r = {STATE} tuple(m, next, put)",
        )
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[3,8]{{1,0}} broadcast(fill), dimensions={{}}
  t = {STATE} tuple(zero, x, wide)
  w = {STATE} while(t), condition=cond, body=body
  ROOT g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
}}"""
    )
    found = run(text)
    for name in ("t", "w", "s", "c", "r"):
        assert spaces(found[name]) == [0, 0, 5], name
    assert spaces(found["ROOT"]) == spaces(found["put"]) == [5]
    buffer = found["t"].operands[2]
    assert buffer.attributes["custom_call_target"] == "AllocateBuffer"
    assert copies(found) == []
    expected = np.concatenate([2 * X, 4 * X, 8 * X])
    np.testing.assert_array_equal(same_results(text, X), expected)


def test_unrolled_steps_J21() -> None:
    text = (
        body(
            "v2 = f32[1,8]{1,0} add(v, v)",
            f"out = f32[1,8]{{1,0}} custom-call(v2), {TO_HOST}",
            "put = f32[3,8]{1,0} dynamic-update-slice(acc, out, n, k)",
            "next = f32[1,8]{1,0} add(v2, v2)",
            f"out2 = f32[1,8]{{1,0}} custom-call(next), {TO_HOST}",
            "put2 = f32[3,8]{1,0} dynamic-update-slice(put, out2, m, k)",
            "m2 = s32[] add(m, one)",
            f"ROOT r = {STATE} tuple(m2, next, put2)",
        ).replace("constant(3)", "constant(1)")
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[3,8]{{1,0}} broadcast(fill), dimensions={{}}
  t = {STATE} tuple(zero, x, wide)
  w = {STATE} while(t), condition=cond, body=body
  g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
  first = f32[1,8]{{1,0}} slice(g), slice={{[0:1], [0:8]}}
  b1 = f32[1,8]{{1,0}} custom-call(first), {TO_DEVICE}
  second = f32[1,8]{{1,0}} slice(g), slice={{[1:2], [0:8]}}
  b2 = f32[1,8]{{1,0}} custom-call(second), {TO_DEVICE}
  ROOT sum = f32[1,8]{{1,0}} add(b1, b2)
}}"""
    )
    found = run(text)
    for name in ("put", "put2", "acc", "g"):
        assert spaces(found[name]) == [5], name
    assert [x.opcode for x in found["sum"].operands] == ["dynamic-slice"] * 2
    assert [spaces(x) for x in found["sum"].operands] == [[0], [0]]
    assert copies(found) == []
    np.testing.assert_array_equal(same_results(text, X), 2 * X + 4 * X)


def test_forward_and_backward_pass_J21() -> None:
    """One loop fills a buffer, the other reads each piece twice, reshaped."""
    forward = body(
        "next = f32[1,8]{1,0} add(v, v)",
        "flat = f32[8]{0} reshape(next)",
        f"out = f32[8]{{0}} custom-call(flat), {TO_HOST}",
        "piece = f32[1,8]{1,0} bitcast(out)",
        "put = f32[3,8]{1,0} dynamic-update-slice(acc, piece, n, k)",
        f"ROOT r = {STATE} tuple(m, next, put)",
    )
    backward = body(
        "last = s32[] constant(2)",
        "at = s32[] subtract(last, n)",
        "d = f32[1,8]{1,0} dynamic-slice(acc, at, k), dynamic_slice_sizes={1,8}",
        "view = f32[8]{0} bitcast(d)",
        f"back = f32[8]{{0}} custom-call(view), {TO_DEVICE}",
        "again = f32[1,8]{1,0} reshape(back)",
        "twice = f32[8]{0} add(back, back)",
        "wider = f32[1,8]{1,0} reshape(twice)",
        "both = f32[1,8]{1,0} add(again, wider)",
        "more = f32[1,8]{1,0} add(v, both)",
        f"ROOT r2 = {STATE} tuple(m, more, acc)",
        names="_b",
    )
    text = (
        forward
        + backward
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  room = f32[3,8]{{1,0}} custom-call(), custom_call_target="AllocateBuffer"
  t = {STATE} tuple(zero, x, room)
  w = {STATE} while(t), condition=cond, body=body
  g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
  y = f32[1,8]{{1,0}} get-tuple-element(w), index=1
  t2 = {STATE} tuple(zero, y, g)
  w2 = {STATE} while(t2), condition=cond_b, body=body_b
  ROOT sum = f32[1,8]{{1,0}} get-tuple-element(w2), index=1
}}"""
    )
    found = run(text)
    for name in ("t", "w", "s", "c", "r", "t2", "w2", "s_b", "c_b", "r2"):
        assert spaces(found[name]) == [0, 0, 5], name
    for name in ("room", "put", "g"):
        assert spaces(found[name]) == [5], name
    assert spaces(found["d"]) == spaces(found["view"]) == [0]
    assert copies(found) == []
    # 8 x carried on, and three times each of 2 x, 4 x and 8 x.
    np.testing.assert_array_equal(same_results(text, X), 8 * X + 3 * 14 * X)


def test_conditions_do_not_compute_with_host_buffers_HO5() -> None:
    text = (
        body(
            "next = f32[1,8]{1,0} add(v, v)",
            f"out = f32[1,8]{{1,0}} custom-call(next), {TO_HOST}",
            "put = f32[3,8]{1,0} dynamic-update-slice(acc, out, n, k)",
            f"ROOT r = {STATE} tuple(m, next, put)",
        ).replace(
            "  ROOT lt",
            """  given = f32[3,8]{1,0} get-tuple-element(c), index=2
  used = f32[3,8]{1,0} negate(given)
  ROOT lt""",
        )
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[3,8]{{1,0}} broadcast(fill), dimensions={{}}
  t = {STATE} tuple(zero, x, wide)
  w = {STATE} while(t), condition=cond, body=body
  g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
  ROOT back = f32[3,8]{{1,0}} custom-call(g), {TO_DEVICE}
}}"""
    )
    with pytest.raises(HostOffloadError, match="used computes .* condition of w"):
        run(text)
    run(text.replace("  used = f32[3,8]{1,0} negate(given)\n", ""))


def test_update_that_is_a_loops_state_J22() -> None:
    text = (
        body(
            f"out = f32[1,8]{{1,0}} custom-call(v), {TO_HOST}",
            "put = f32[3,8]{1,0} dynamic-update-slice(acc, out, n, k)",
            "next = f32[1,8]{1,0} add(v, v)",
            f"ROOT r = {STATE} tuple(m, next, put)",
        )
        + f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[3,8]{{1,0}} broadcast(fill), dimensions={{}}
  t = {STATE} tuple(zero, x, wide)
  w = {STATE} while(t), condition=cond, body=body
  g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
  ROOT back = f32[3,8]{{1,0}} custom-call(g), {TO_DEVICE}
}}"""
    )
    found = run(text)
    piece = found["put"].operands[1]
    assert piece.opcode == "copy"
    assert piece.operands[0] is found["v"]
    assert sorted(copies(found)) == [(0, 0), (5, 0)]
    expected = np.concatenate([X, 2 * X, 4 * X])
    np.testing.assert_array_equal(same_results(text, X), expected)


def test_what_is_legal_keeps_its_layout_J14() -> None:
    text = chain(f"ROOT out = {V} custom-call(x), {TO_HOST}", head=HOST_OUT)
    placed = offload_to_host(msa.parse(text)).module
    again = offload_to_host(placed)
    assert not again.changed
    assert again.module == placed
