"""Asynchronous calls that run on the host: rows J23, J24 and J31 of the outcomes."""

from __future__ import annotations

import pytest

import msa
from msa.hlo import verify
from msa.hlo.instruction import Instruction
from msa.passes import offload_to_host
from msa.passes.offload import HostOffloadError

TO_HOST = 'custom_call_target="MoveToHost"'
TO_DEVICE = 'custom_call_target="MoveToDevice"'
V, H = "f32[8]{0}", "f32[8]{0:S(5)}"
PAIR = f"({V}, {V})"
HOST_CALL = f"""
inner {{
  a = {V} parameter(0)
  n = {V} negate(a)
  m = {V} abs(a)
  ROOT r = {PAIR} tuple(n, m)
}}, execution_thread="host"
wrapped {{
  w = {V} parameter(0)
  ROOT c = {PAIR} call(w), to_apply=inner
}}, execution_thread="host"
"""
CALLED = f"""
  x = {V} parameter(0)
  s = (({V}), {PAIR}, u32[]) async-start(x), async_execution_thread="host", calls=wrapped
  d = {PAIR} async-done(s)
  g0 = {V} get-tuple-element(d), index=0
  g1 = {V} get-tuple-element(d), index=1
  h0 = {V} custom-call(g0), {TO_HOST}
  h1 = {V} custom-call(g1), {TO_HOST}
"""


def run(result: str, body: str, extra: str = "", argument: str = V) -> dict:
    """Offload a module with results of the given layout; instructions by name."""
    module = msa.parse(
        f"HloModule m, entry_computation_layout={{({argument})->{result}}}\n"
        f"{extra}ENTRY e {{{body}}}"
    )
    placed = offload_to_host(module).module
    verify(placed)
    return {x.name: x for c in placed.computations for x in c.instructions}


def spaces(x: Instruction) -> list[int]:
    return [s.memory_space for _, s in x.shape.leaves() if s.is_array]


def copies(found: dict) -> int:
    return sum(x.opcode == "copy" for x in found.values())


def test_results_stay_on_the_host_J23() -> None:
    body = CALLED + f"ROOT t = {PAIR} tuple(h0, h1)\n"
    found = run(f"({H}, {H})", body, HOST_CALL)
    assert copies(found) == 0
    assert found["t"].operands == (found["g0"], found["g1"])
    for name in ("t", "d", "c", "r"):
        assert spaces(found[name]) == [5, 5], name
    assert spaces(found["s"]) == [0, 5, 5, 0]


def test_results_on_the_device_J23() -> None:
    body = CALLED + f"ROOT t = {PAIR} tuple(g0, g1)\n"
    found = run(f"({V}, {V})", body, HOST_CALL)
    assert copies(found) == 0
    assert spaces(found["d"]) == spaces(found["t"]) == [0, 0]


def test_results_that_return_to_the_device_J23() -> None:
    """Annotated, but wanted on the device: the call is left as it is."""
    body = CALLED + (
        f"b0 = {V} custom-call(h0), {TO_DEVICE}\nb1 = {V} custom-call(h1), {TO_DEVICE}\n"
        f"ROOT t = {PAIR} tuple(b0, b1)\n"
    )
    found = run(f"({V}, {V})", body, HOST_CALL)
    for name in ("d", "c", "r", "t"):
        assert spaces(found[name]) == [0, 0], name
    for part, back in zip(("g0", "g1"), found["t"].operands, strict=True):
        assert [back.opcode, back.operands[0].opcode] == ["copy", "copy"]
        assert spaces(back.operands[0]) == [5]
        assert back.operands[0].operands[0] is found[part]


def test_only_the_pure_result_J23() -> None:
    # The second result is also read on the device: it goes there and is copied.
    body = CALLED + (f"k = {V} negate(g1)\nROOT t = ({V}, {V}, {V}) tuple(h0, h1, k)\n")
    found = run(f"({H}, {H}, {V})", body, HOST_CALL)
    assert spaces(found["d"]) == spaces(found["c"]) == [5, 0]
    assert found["t"].operands[0] is found["g0"]
    assert found["t"].operands[1].opcode == "copy"
    assert found["k"].operands[0] is found["g1"]
    assert copies(found) == 1


def test_followed_into_a_call_J24() -> None:
    extra = HOST_CALL + (
        f"f {{ p = {V} parameter(0)\n q = {V} custom-call(p), {TO_HOST}\n"
        f" ROOT b = {V} bitcast(q) }}\n"
    )
    body = (
        CALLED
        + f"""y = {V} call(g0), to_apply=f
  ROOT t = {PAIR} tuple(y, h1)
"""
    )
    found = run(f"({H}, {H})", body, extra)
    assert copies(found) == 0
    for name in ("p", "b", "y"):
        assert spaces(found[name]) == [5], name
    assert spaces(found["t"]) == spaces(found["d"]) == [5, 5]


def test_followed_into_a_loop_J24() -> None:
    state = f"(s32[], {V})"
    extra = (
        HOST_CALL
        + f"""
body {{ p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = {V} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT next = {state} tuple(j, v) }}
cond {{ q = {state} parameter(0)
  k = s32[] get-tuple-element(q), index=0
  three = s32[] constant(3)
  ROOT lt = pred[] compare(k, three), direction=LT }}
"""
    )
    body = (
        CALLED
        + f"""zero = s32[] constant(0)
  init = {state} tuple(zero, h0)
  loop = {state} while(init), condition=cond, body=body
  y = {V} get-tuple-element(loop), index=1
  ROOT t = {PAIR} tuple(y, g1)
"""
    )
    found = run(f"({H}, {V})", body, extra)
    assert copies(found) == 0
    for name in ("init", "p", "next", "q", "loop", "t"):
        assert 5 in spaces(found[name]), name
    assert spaces(found["d"]) == spaces(found["r"]) == [5, 0]
    assert spaces(found["v"]) == spaces(found["y"]) == [5]


def test_into_another_host_call_J24() -> None:
    extra = HOST_CALL + (
        f"other {{ o = {V} parameter(0)\n"
        f' ROOT z = {V} negate(o) }}, execution_thread="host"\n'
    )
    body = (
        CALLED
        + f"""
  again = (({V}), {V}, u32[]) async-start(g0), async_execution_thread="host", calls=other
  second = {V} async-done(again)
  ROOT t = ({V}, {V}, {V}) tuple(h0, h1, second)
"""
    )
    found = run(f"({H}, {H}, {V})", body, extra)
    # The first result feeds a host call: it keeps its way over the device.
    assert spaces(found["d"]) == [0, 5]
    assert copies(found) == 1


def test_more_than_one_wrapped_operation_is_refused() -> None:
    extra = HOST_CALL.replace(
        f"ROOT c = {PAIR} call(w)", f"v = {V} negate(w)\n  ROOT c = {PAIR} call(v)"
    )
    body = CALLED + f"ROOT t = {PAIR} tuple(h0, h1)\n"
    with pytest.raises(HostOffloadError, match="wraps v besides its root"):
        run(f"({H}, {H})", body, extra)


def test_updated_in_place_by_a_custom_call_J31() -> None:
    extra = f"""
wrapped {{
  w = {V} parameter(0)
  ROOT c = {V} custom-call(w), custom_call_target="Fill",
    output_to_operand_aliasing={{{{}}: (0, {{}})}}
}}
"""
    body = f"""
  x = {V} parameter(0)
  s = (({V}), {V}, u32[]) async-start(x), calls=wrapped
  ROOT d = {V} async-done(s)
"""
    found = run(H, body, extra, argument=H)
    for name in ("x", "w", "c", "d"):
        assert spaces(found[name]) == [5], name
    assert spaces(found["s"]) == [5, 5, 0]
    assert copies(found) == 0


def test_one_value_through_two_operands_is_refused_J31() -> None:
    body = f"""
  x = {V} parameter(0)
  ROOT c = {PAIR} custom-call(x, x), custom_call_target="Fill",
    output_to_operand_aliasing={{{{0}}: (0, {{}}), {{1}}: (1, {{}})}}
"""
    with pytest.raises(HostOffloadError, match="through two operands"):
        run(f"({H}, {H})", body, argument=H)
