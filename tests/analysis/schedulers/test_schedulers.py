"""Orders of one computation and of modules: expected behaviours, row by row."""

from __future__ import annotations

import pytest

import msa
from msa.analysis.schedulers import (
    LocalValues,
    StepBytes,
    bfs_order,
    find_schedule,
    list_order,
    sequence_peak,
    trivial_order,
)
from msa.errors import OptionsError


def names(sequence) -> list[str]:
    return [x.name for x in sequence]


def before(sequence, first: str, second: str) -> bool:
    order = names(sequence)
    return order.index(first) < order.index(second)


LAST_USE = """
ENTRY main {
  param = f32[] parameter(0)
  ab = f32[] abs(param)
  exp = f32[] exponential(param)
  add = f32[] add(ab, exp)
  negate = f32[] negate(exp)
  ROOT sub = f32[] subtract(add, negate)
}"""

COPIES = """
ENTRY main {
  p0 = f32[128] parameter(0)
  p1 = f32[128] parameter(1)
  ca = f32[128] copy(p0)
  cb = f32[128] copy(p1)
  t = (f32[128], f32[128]) tuple(ca, cb)
  a = f32[128] get-tuple-element(t), index=0
  b = f32[128] get-tuple-element(t), index=1
  c = f32[128] add(a, b)
  d = f32[128] add(c, b)
  e = f32[128] add(c, c)
  f = f32[128] add(e, e)
  ROOT result = (f32[128], f32[128], f32[128]) tuple(f, d, c)
}"""

SEND = """
ENTRY main {
  p = f32[1000,1000] parameter(0)
  tok = token[] after-all()
  send = (f32[1000,1000], u32[], token[]) send(p, tok), channel_id=1
  n1 = f32[1000,1000] negate(p)
  n2 = f32[1000,1000] negate(n1)
  n3 = f32[1000,1000] negate(n2)
  ROOT send-done = token[] send-done(send), channel_id=1
}"""

TUPLE = """
ENTRY main {
  param = f32[6] parameter(0)
  abs_const = f32[6] abs(param)
  abs_abs1 = f32[6] abs(abs_const)
  tuple = (f32[6]) tuple(abs_abs1)
  element = f32[6] get-tuple-element(tuple), index=0
  abs_abs2 = f32[6] abs(abs_const)
  ROOT add = f32[6] add(element, abs_abs2)
}"""

FUSION = """
both {
  q1 = f32[5] parameter(0)
  q2 = f32[5] parameter(1)
  add = f32[5] add(q1, q2)
  mul = f32[5] multiply(q1, q2)
  ROOT out = (f32[5], f32[5]) tuple(add, mul)
}
ENTRY main {
  c1 = f32[5] parameter(0)
  c2 = f32[5] parameter(1)
  c3 = f32[5] parameter(2)
  fusion = (f32[5], f32[5]) fusion(c1, c2), kind=kLoop, calls=both
  first = f32[5] get-tuple-element(fusion), index=0
  second = f32[5] get-tuple-element(fusion), index=1
  exp = f32[5] exponential(c3)
  ROOT sum = f32[5] add(first, exp)
}"""


def test_last_use_scheduled_first():
    module = msa.schedule(msa.parse(LAST_USE))
    sequence = module.schedule.sequence(module.entry)
    assert sequence[0].name == "param"
    assert sequence[-1].name == "sub"
    assert before(sequence, "add", "negate")


def test_list_accounts_for_subgraphs():
    module = msa.schedule(msa.parse(COPIES), "list")
    sequence = module.schedule.sequence(module.entry)
    assert sequence[0].opcode == "parameter"
    assert sequence[-1].name == "result"
    assert before(sequence, "d", "e")


def test_list_runs_send_done_early():
    # The computation's root is the done here; n1..n3 are dead but still ordered.
    sequence = list_order(msa.parse(SEND).entry)
    assert before(sequence, "send-done", "n1")


def test_list_tuple_frees_nothing_and_allocates_its_table():
    entry = msa.parse(TUPLE).entry
    sequence = list_order(entry, LocalValues(entry, pointer_bytes=1))
    assert before(sequence, "abs_abs2", "tuple")


def test_list_multi_output_fusion():
    entry = msa.parse(FUSION).entry
    sequence = list_order(entry, LocalValues(entry, pointer_bytes=2))
    assert before(sequence, "exp", "fusion")


def test_default_is_the_best_of_three():
    module = msa.parse(COPIES)
    entry = module.entry
    steps = StepBytes(LocalValues(entry))
    peaks = {}
    for algorithm in ("list", "dfs", "postorder", "best"):
        found, rows = find_schedule(module, algorithm)
        assert not found.check(module)
        (row,) = rows
        assert row.peak_bytes == sequence_peak(found.sequence(entry), steps)
        peaks[algorithm] = row.peak_bytes
    assert peaks.pop("best") <= min(peaks.values())


def test_trivial_orders_every_computation():
    text = """
    body { p = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1
      one = s32[] constant(1)
      n = s32[] add(i, one)
      y = f32[4] negate(x)
      ROOT r = (s32[], f32[4]) tuple(n, y) }
    cond { p = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      l = s32[] constant(5)
      ROOT lt = pred[] compare(i, l), direction=LT }
    ENTRY main { zero = s32[] constant(0)
      x = f32[4] parameter(0)
      t = (s32[], f32[4]) tuple(zero, x)
      ROOT w = (s32[], f32[4]) while(t), condition=cond, body=body }"""
    module = msa.parse(text)
    scheduled = msa.schedule(module, "trivial")
    assert not module.is_scheduled
    assert len(scheduled.schedule) == 3
    assert not scheduled.schedule.check(scheduled)
    for computation in scheduled.computations:
        assert list(scheduled.schedule.sequence(computation)) == trivial_order(
            computation
        )


def test_bfs_runs_whole_waves():
    lines = ["p = f32[8] parameter(0)"]
    wave = ["p"]
    depth = {"p": 0}
    for level in range(1, 4):
        new = []
        for i, source in enumerate(wave):
            for k in range(2):
                name = f"n{level}_{i}_{k}"
                lines.append(f"{name} = f32[8] negate({source})")
                depth[name] = level
                new.append(name)
        wave = new
    types = ", ".join("f32[8]" for _ in wave)
    lines.append(f"ROOT r = ({types}) tuple({', '.join(wave)})")
    depth["r"] = 4
    entry = msa.parse("ENTRY main {\n" + "\n".join(lines) + "\n}").entry
    waves = [depth[name] for name in names(bfs_order(entry))]
    assert waves == sorted(waves)


def test_control_edges_are_kept():
    text = """
    ENTRY main {
      p = f32[8] parameter(0)
      a = f32[8] negate(p)
      b = f32[8] exponential(p)
      ROOT c = f32[8] add(a, b)
    }"""
    module = msa.parse(text)
    _, a, b, _ = module.entry.instructions
    b.add_control_successor(a)
    for algorithm in ("list", "dfs", "postorder", "bfs", "trivial", "best", "exact"):
        scheduled = msa.schedule(module, algorithm)
        sequence = scheduled.schedule.sequence(scheduled.entry)
        assert before(sequence, "b", "a"), algorithm


def test_unknown_algorithm():
    with pytest.raises(OptionsError, match="postorder"):
        msa.schedule(msa.parse(LAST_USE), "fastest")


def test_module_is_not_changed_and_result_is_repeatable():
    module = msa.parse(COPIES)
    text = module.to_text()
    first = msa.schedule(module, "best").to_text()
    assert module.to_text() == text
    assert msa.schedule(module, "best").to_text() == first


def test_broadcasts_are_delayed():
    # Each broadcast is ready at once; running all of them early keeps four alive.
    text = """
    ENTRY main {
      p = f32[] parameter(0)
      x0 = f32[1000] parameter(1)
      b0 = f32[1000] broadcast(p), dimensions={}
      b1 = f32[1000] broadcast(p), dimensions={}
      b2 = f32[1000] broadcast(p), dimensions={}
      b3 = f32[1000] broadcast(p), dimensions={}
      x1 = f32[1000] add(x0, b0)
      x2 = f32[1000] multiply(x1, b1)
      x3 = f32[1000] add(x2, b2)
      ROOT x4 = f32[1000] multiply(x3, b3)
    }"""
    module = msa.parse(text)
    _, (row,) = find_schedule(module, "best")
    # One running value, one broadcast; the result takes the value's place.
    assert row.peak_bytes == 8000
    assert row.optimal


def test_long_chain_needs_no_recursion():
    count = 8_000
    lines = ["p = f32[4] parameter(0)", "x0 = f32[4] negate(p)"]
    lines += [f"x{i} = f32[4] negate(x{i - 1})" for i in range(1, count)]
    module = msa.parse("ENTRY main {\n" + "\n".join(lines) + "\n}")
    found, (row,) = find_schedule(module, "best")
    assert len(found.sequence(module.entry)) == count + 1
    assert row.peak_bytes == 16
