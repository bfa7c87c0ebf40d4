"""Messages between devices: who gets what, when, and what happens to their memory."""

from __future__ import annotations

from typing import Any

import pytest

import msa
from msa.errors import ExecutionError, SanitizerError, UnsupportedError
from msa.runtime import Machine, prove_lowered

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=1 << 16)
PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs=%s}"


def ring(pairs: str, header: str = "num_partitions=3", between: str = "") -> str:
    stated = f", {PAIRS % pairs}" if pairs else ""
    return f"""HloModule m, is_scheduled=true, {header}
ENTRY e {{
  p = s32[4] parameter(0)
  t = token[] after-all()
  r = (s32[4], u32[], token[]) recv(t), channel_id=7{stated}
  s = (s32[4], u32[], token[]) send(p, t), channel_id=7{stated}
  a = s32[4] add(p, p){between}
  rd = (s32[4], token[]) recv-done(r), channel_id=7
  sd = token[] send-done(s), channel_id=7
  g = s32[4] get-tuple-element(rd), index=0
  ROOT m = s32[4] subtract(g, a)
}}
"""


def both(text: str, inputs: list[Any]) -> list[Any]:
    """The evaluator's result, which must be the machine's."""
    module = msa.parse(text)
    result = msa.execute(module, inputs, per_device=True)
    on_machine = Machine(TARGET).run(module, inputs, per_device=True)
    assert [x.tolist() for x in on_machine] == [x.tolist() for x in result]
    return [x.tolist() for x in result]


INPUTS = [[[1, 2, 3, 4]], [[10, 20, 30, 40]], [[100, 200, 300, 400]]]
# Received minus twice the own input, the first element.
ROWS = [
    ("{{0,1},{1,2},{2,0}}", [100 - 2, 1 - 20, 10 - 200]),
    ("{{0,1},{1,2}}", [0 - 2, 1 - 20, 10 - 200]),
    ("{{0,2}, {1,0}}", [10 - 2, 0 - 20, 1 - 200]),
    ("{}", [0 - 2, 0 - 20, 0 - 200]),
    ("", [1 - 2, 10 - 20, 100 - 200]),
]


@pytest.mark.parametrize(
    ("pairs", "expected"), ROWS, ids=[r[0] or "none" for r in ROWS]
)
@pytest.mark.parametrize("header", ["num_partitions=3", "replica_count=3"])
def test_who_receives_what(pairs: str, expected: list[int], header: str) -> None:
    assert [row[0] for row in both(ring(pairs, header), INPUTS)] == expected


def test_partitions_of_each_replica_are_apart() -> None:
    text = ring("{{0,1},{1,0}}", "replica_count=2, num_partitions=2")
    inputs = [[[1] * 4], [[10] * 4], [[100] * 4], [[1000] * 4]]
    rows = both(text, inputs)
    assert [row[0] for row in rows] == [10 - 2, 1 - 20, 1000 - 200, 100 - 2000]


LOOP = """HloModule m, is_scheduled=true, num_partitions=2
body {
  w = (s32[], s32[2], s32[2]) parameter(0)
  i = s32[] get-tuple-element(w), index=0
  x = s32[2] get-tuple-element(w), index=1
  y = s32[2] get-tuple-element(w), index=2
  t = token[] after-all()
  s = (s32[2], u32[], token[]) send(x, t), channel_id=1, PAIRS
  sd = token[] send-done(s), channel_id=1
  r = (s32[2], u32[], token[]) recv(t), channel_id=1, PAIRS
  rd = (s32[2], token[]) recv-done(r), channel_id=1
  g = s32[2] get-tuple-element(rd), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  q = s32[2] broadcast(j), dimensions={}
  z = s32[2] multiply(g, q)
  v = s32[2] add(y, g)
  ROOT o = (s32[], s32[2], s32[2]) tuple(j, z, v)
}
condition {
  w = (s32[], s32[2], s32[2]) parameter(0)
  i = s32[] get-tuple-element(w), index=0
  three = s32[] constant(3)
  ROOT l = pred[] compare(i, three), direction=LT
}
ENTRY e {
  x = s32[2] parameter(0)
  zero = s32[] constant(0)
  y = s32[2] broadcast(zero), dimensions={}
  c = s32[2] copy(x)
  k = s32[] copy(zero)
  n = (s32[], s32[2], s32[2]) tuple(k, c, y)
  l = (s32[], s32[2], s32[2]) while(n), condition=condition, body=body
  ROOT v = s32[2] get-tuple-element(l), index=2
}
""".replace("PAIRS", PAIRS % "{{0,1},{1,0}}")


def test_messages_keep_their_order() -> None:
    # Device 0 gets 5, then 3·1, then 5·1·2; device 1 gets 3, then 5·1, then 3·1·2.
    rows = both(LOOP, [[[3, 3]], [[5, 5]]])
    assert rows == [[5 + 3 + 10] * 2, [3 + 5 + 6] * 2]


def test_nobody_sends() -> None:
    text = ring("{{0,1},{1,0}}", "num_partitions=2")
    text = "".join(
        x for x in text.splitlines(True) if " send(" not in x and "sd =" not in x
    )
    with pytest.raises(ExecutionError, match="device 0 at rd, device 1 at rd"):
        msa.execute(msa.parse(text), [[1, 2, 3, 4]])


def test_pairs_that_are_none() -> None:
    module = msa.parse(ring("{{0,1},{1}}"))
    with pytest.raises(UnsupportedError, match="source_target_pairs"):
        msa.execute(module, [[1, 2, 3, 4]])


def test_the_host_at_the_other_end() -> None:
    """What is sent there is gone; what comes from there is zeros."""
    text = ring("", "num_partitions=1").replace(
        "channel_id=7", "channel_id=7, is_host_transfer=true"
    )
    assert both(text, [[[1, 2, 3, 4]]]) == [[-2, -4, -6, -8]]


def test_sent_data_must_stay_until_it_is_sent() -> None:
    text = ring("{{0,1},{1,0}}", "num_partitions=2")
    text = text.replace("send(p, t)", "send(q, t)")
    text = text.replace("  t = token", "  q = s32[4]{0:S(1)} negate(p)\n  t = token")
    text = text.replace(
        "(s32[4], u32[], token[]) send", "(s32[4]{0:S(1)}, u32[], token[]) send"
    )
    text = text.replace(
        "  a = s32[4] add(p, p)", "  b = s32[4]{0:S(1)} add(p, p)\n  a = s32[4] copy(b)"
    )
    module = msa.parse(text)
    inputs = [[1, 2, 3, 4]]
    apart = {"q{}": (0, 16), "b{}": (64, 16)}
    assert Machine(TARGET).run(module, inputs, chunks=apart).tolist() == [
        -3,
        -6,
        -9,
        -12,
    ]
    with pytest.raises(SanitizerError) as caught:
        Machine(TARGET).run(module, inputs, chunks={"q{}": (0, 16), "b{}": (0, 16)})
    assert caught.value.parties == ("q{}", "b{}")
    assert caught.value.instruction == "sd"


@pytest.mark.parametrize("work_limits", [(1e12, 1e12), (0.0, 0.0)])
@pytest.mark.parametrize("text", [LOOP, ring("{{0,1},{1,2}}")])
def test_plans_with_messages_are_proved(text: str, work_limits: Any) -> None:
    plan = msa.assign(msa.parse(text), TARGET)
    plan.verify()
    prove_lowered(
        plan.original,
        plan.module,
        plan.target,
        chunks=plan.chunks,
        scratch=plan.scoped_chunks,
        work_limits=work_limits,
    )


# A turn ends the `recv` of the turn before: its handle is a part of the loop's state.
PIPELINE = """HloModule m, is_scheduled=true, num_partitions=2
body {
  w = (s32[], s32[2], (s32[2], u32[], token[])) parameter(0)
  i = s32[] get-tuple-element(w), index=0
  x = s32[2] get-tuple-element(w), index=1
  h = (s32[2], u32[], token[]) get-tuple-element(w), index=2
  rd = (s32[2], token[]) recv-done(h), channel_id=1 DONE
  g = s32[2] get-tuple-element(rd), index=0
  v = s32[2] add(x, g)
  q = s32[2] copy(g)
  t = token[] after-all()
  r = (s32[2], u32[], token[]) recv(t), channel_id=1 RECV
  s = (s32[2], u32[], token[]) send(q, t), channel_id=1 PAIRS
  sd = token[] send-done(s), channel_id=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT o = (s32[], s32[2], (s32[2], u32[], token[])) tuple(j, v, r)
}
condition {
  cw = (s32[], s32[2], (s32[2], u32[], token[])) parameter(0)
  ci = s32[] get-tuple-element(cw), index=0
  two = s32[] constant(2)
  ROOT l = pred[] compare(ci, two), direction=LT
}
ENTRY e {
  px = s32[2] parameter(0)
  zero = s32[] constant(0)
  t0 = token[] after-all()
  r0 = (s32[2], u32[], token[]) recv(t0), channel_id=1 RECV
  s0 = (s32[2], u32[], token[]) send(px, t0), channel_id=1 PAIRS
  sd0 = token[] send-done(s0), channel_id=1
  c = s32[2] copy(px)
  k = s32[] copy(zero)
  n = (s32[], s32[2], (s32[2], u32[], token[])) tuple(k, c, r0)
  lo = (s32[], s32[2], (s32[2], u32[], token[])) while(n), condition=condition,
    body=body
  hh = (s32[2], u32[], token[]) get-tuple-element(lo), index=2
  rdd = (s32[2], token[]) recv-done(hh), channel_id=1 DONE
  gg = s32[2] get-tuple-element(rdd), index=0
  v2 = s32[2] get-tuple-element(lo), index=1
  ten = s32[2] constant({10, 10})
  y = s32[2] multiply(v2, ten)
  ROOT sum = s32[2] add(y, gg)
}
""".replace("PAIRS", ", " + PAIRS % "{{0,1},{1,0}}")


@pytest.mark.parametrize("stated_at", [("RECV",), ("DONE",), ("RECV", "DONE")])
def test_a_receive_that_a_loop_carries(stated_at: tuple[str, ...]) -> None:
    text = PIPELINE
    for place in ("RECV", "DONE"):
        stated = f", {PAIRS % '{{0,1},{1,0}}'}" if place in stated_at else ""
        text = text.replace(f" {place}", stated)
    # What is received goes back: device 0 adds 5 and 3 to 3 and has 5 left, and so on.
    assert both(text, [[[3, 3]], [[5, 5]]]) == [
        [(3 + 5 + 3) * 10 + 5] * 2,
        [(5 + 3 + 5) * 10 + 3] * 2,
    ]


def test_a_receive_that_a_tuple_carries() -> None:
    text = ring("{{0,1},{1,2},{2,0}}").replace("recv-done(r)", "recv-done(h)")
    text = text.replace(
        "  rd =",
        """  u = ((s32[4], u32[], token[])) tuple(r)
  h = (s32[4], u32[], token[]) get-tuple-element(u), index=0
  rd =""",
    )
    assert [row[0] for row in both(text, INPUTS)] == [100 - 2, 1 - 20, 10 - 200]


def test_carried_receives_that_disagree_are_refused() -> None:
    text = PIPELINE.replace(" DONE", "")
    text = text.replace("recv(t0), channel_id=1 RECV", "recv(t0), channel_id=1")
    text = text.replace(" RECV", f", {PAIRS % '{{0,1},{1,0}}'}")
    with pytest.raises(UnsupportedError, match=r"rd.* may end r or r0"):
        msa.execute(msa.parse(text), [[3, 3]])
