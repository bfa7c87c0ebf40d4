"""Loops, branches, calls, asynchronous operations, devices, and wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msa
from evaluator_support import ADD_S32, parse, run
from msa.errors import ExecutionError, UnsupportedError

LOOP = """
more { s = (s32[], s32[3]) parameter(0) n = s32[] get-tuple-element(s), index=0
       z = s32[] constant(0) ROOT p = pred[] compare(n, z), direction=GT }
step { s = (s32[], s32[3]) parameter(0) n = s32[] get-tuple-element(s), index=0
       v = s32[3] get-tuple-element(s), index=1 one = s32[] constant(1)
       m = s32[] subtract(n, one) w = s32[3] add(v, v)
       ROOT t = (s32[], s32[3]) tuple(m, w) }
"""
WHILE = """
  n = s32[] parameter(0)
  x = s32[3] parameter(1)
  s = (s32[], s32[3]) tuple(n, x)
  ROOT w = (s32[], s32[3]) while(s), condition=more, body=step"""


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_while(trips: int) -> None:
    count, values = run(WHILE, trips, [1, 2, 3], before=LOOP)
    assert int(count) == 0
    assert values.tolist() == [v << trips for v in (1, 2, 3)]


BRANCHES = """
neg { x = s32[] parameter(0) ROOT y = s32[] negate(x) }
dbl { x = s32[] parameter(0) ROOT y = s32[] add(x, x) }
idn { x = s32[] parameter(0) ROOT y = s32[] copy(x) }
"""


@pytest.mark.parametrize(
    ("index", "expected"), [(0, -7), (1, 14), (2, 7), (3, 7), (-1, 7)]
)
def test_conditional_by_index(index: int, expected: int) -> None:
    body = """
      i = s32[] parameter(0)
      x = s32[] parameter(1)
      ROOT c = s32[] conditional(i, x, x, x), branch_computations={neg, dbl, idn}"""
    assert int(run(body, index, 7, before=BRANCHES)) == expected


@pytest.mark.parametrize(("pred", "expected"), [(True, -7), (False, 14)])
def test_conditional_by_predicate(pred: bool, expected: int) -> None:
    body = """
      p = pred[] parameter(0)
      x = s32[] parameter(1)
      ROOT c = s32[] conditional(p, x, x), true_computation=neg, false_computation=dbl"""
    assert int(run(body, pred, 7, before=BRANCHES)) == expected


def test_deep_calls_do_not_recurse() -> None:
    lines = ["f0 { x = s32[] parameter(0) ROOT y = s32[] negate(x) }"]
    lines += [
        f"f{i} {{ x = s32[] parameter(0) ROOT y = s32[] call(x), to_apply=f{i - 1} }}"
        for i in range(1, 3001)
    ]
    body = "x = s32[] parameter(0)\nROOT y = s32[] call(x), to_apply=f3000"
    assert int(run(body, 5, before="\n".join(lines))) == -5


def test_asynchronous_pairs() -> None:
    before = "f { x = s32[2] parameter(0) ROOT y = s32[2] negate(x) }"
    body = """
      x = s32[2] parameter(0)
      s = ((s32[2]), s32[2], u32[]) async-start(x), calls=f
      u = ((s32[2]), s32[2], u32[]) async-update(s)
      d = s32[2] async-done(u)
      c = (s32[2], s32[2], u32[]) copy-start(d)
      ROOT e = s32[2] copy-done(c)"""
    assert run(body, [1, -2], before=before).tolist() == [-1, 2]


COLLECTIVES: list[tuple[str, str, list[list[int]], str]] = [
    ("all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add", "[2]",
     [[4, 6], [4, 6], [12, 14], [12, 14]], "flattened"),
    ("all-gather(x), channel_id=1, replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true", "[4]",
     [[1, 2, 5, 6], [3, 4, 7, 8], [1, 2, 5, 6], [3, 4, 7, 8]], "gather"),
    ("reduce-scatter(x), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true, to_apply=add", "[1]", [[4], [6], [12], [14]], "scatter"),
    ("all-to-all(x), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}", "[2]",
     [[1, 3], [2, 4], [5, 7], [6, 8]], "all-to-all"),
    ("collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,3}}", "[2]",
     [[0, 0], [1, 2], [0, 0], [3, 4]], "permute"),
    ("collective-broadcast(x), channel_id=1, replica_groups={{1,0},{3,2}}", "[2]",
     [[3, 4], [3, 4], [7, 8], [7, 8]], "broadcast"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [r[:3] for r in COLLECTIVES],
    ids=[r[3] for r in COLLECTIVES],
)
def test_collectives(text: str, shape: str, expected: Any) -> None:
    module = msa.parse(
        f"HloModule m, num_partitions=4\n{ADD_S32}\n"
        f"ENTRY e {{ x = s32[2] parameter(0) ROOT y = s32{shape} {text} }}"
    )
    inputs = [[[2 * d + 1, 2 * d + 2]] for d in range(4)]
    got = msa.execute(module, inputs, per_device=True)
    assert [x.tolist() for x in got] == expected


REPLICATED = """HloModule m, replica_count=2, num_partitions=2
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  r = u32[] replica-id()
  p = u32[] partition-id()
  a = s32[] convert(r)
  b = s32[] convert(p)
  ten = s32[] constant(10)
  c = s32[] multiply(a, ten)
  d = s32[] add(c, b)
  s = s32[] all-reduce(d), replica_groups={}, to_apply=add
  ROOT t = (s32[], s32[]) tuple(d, s)
}"""


def test_replicas_and_partitions() -> None:
    got = msa.execute(msa.parse(REPLICATED), [[]] * 4, per_device=True)
    assert [(int(a), int(b)) for a, b in got] == [(0, 10), (1, 12), (10, 10), (11, 12)]


DIVERGING = """HloModule m, num_partitions=2
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
left {
  x = s32[] parameter(0)
  ROOT y = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1}},
    use_global_device_ids=true, to_apply=add
}
right {
  x = s32[] parameter(0)
  ROOT z = s32[] all-reduce(x), channel_id=2, replica_groups={{0,1}},
    use_global_device_ids=true, to_apply=add
}
ENTRY e {
  x = s32[] parameter(0)
  p = u32[] partition-id()
  i = s32[] convert(p)
  ROOT c = s32[] conditional(i, x, x), branch_computations={left, right}
}"""


def test_devices_at_different_collectives_are_reported() -> None:
    module = msa.parse(DIVERGING, verify=False)
    with pytest.raises(ExecutionError, match=r"device 0 at y, device 1 at z"):
        msa.execute(module, [1])


# -- wrong input -----------------------------------------------------------------------

WRONG_INPUTS = [
    ([], "takes 1 inputs, got 0"),
    ([[1, 2, 3]], r"shape \[3\] was given for s32\[2\]"),
    ([["a", "b"]], "not an array"),
    ([[[1], [2, 3]]], "not an array"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG_INPUTS)
def test_wrong_inputs(inputs: list[Any], message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run("x = s32[2] parameter(0)\nROOT y = s32[2] negate(x)", *inputs)


def test_wrong_tuple() -> None:
    with pytest.raises(ExecutionError, match="tuple of shape"):
        run(
            "x = (s32[], s32[]) parameter(0)\nROOT y = s32[] get-tuple-element(x), index=0",
            3,
        )


UNSUPPORTED = [
    ("x = f32[] parameter(0)\nr = u32[] constant(1)\nROOT s = f16[] stochastic-convert(x, r)", "stochastic-convert"),
    ('x = s32[] parameter(0)\nROOT y = s32[] custom-call(x), custom_call_target="no"',
     "custom-call"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "opcode"), UNSUPPORTED, ids=["kind", "custom-call"])
def test_unsupported_opcodes_are_named(body: str, opcode: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        msa.execute(msa.parse(f"ENTRY e {{\n{body}\n}}", verify=False), [1])
    assert caught.value.subject == opcode


def test_elided_constants_need_contents() -> None:
    body = "ROOT c = s32[20] constant({...})"
    with pytest.raises(ExecutionError, match="left out"):
        run(body)
    assert run(body, elided=lambda *_: np.arange(20, dtype=np.int32))[7] == 7


def test_custom_calls_can_be_given() -> None:
    body = 'x = s32[2] parameter(0)\nROOT y = s32[2] custom-call(x), custom_call_target="f"'
    handlers = {"f": lambda instruction: lambda x: x * 10}
    assert run(body, [1, 2], custom_calls=handlers).tolist() == [10, 20]


def test_the_module_is_not_changed() -> None:
    module = parse(WHILE, LOOP)
    text = module.to_text()
    msa.execute(module, [2, [1, 2, 3]])
    assert module.to_text() == text
