"""In-place pairs: operations that write into an operand, row by row."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import InPlacePairs, in_place_pairs
from msa.analysis.in_place import follow_tuple_indirection
from msa.errors import HloError

_SUM = (
    "sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"
)


def pairs(text: str, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    module = msa.parse(text, verify=False)
    found = next(
        x for c in module.computations for x in c.instructions if x.name == name
    )
    return [(number, index, out) for (number, index), out in in_place_pairs(found)]


def fusion(
    body: str, operands: str, shape: str, extra: str = "", outer: str = ""
) -> str:
    """A module with one fusion `f` of the entry's parameters."""
    lines = "\n".join(
        f"  {name} = {kind} parameter({i})"
        for i, (name, kind) in enumerate(x.split(":") for x in operands.split(";"))
    )
    names = ", ".join(x.split(":")[0] for x in operands.split(";"))
    return f"""
{outer}
fused {{
{body}
}}
ENTRY main {{
{lines}
  ROOT f = {shape} fusion({names}), kind=kLoop{extra}, calls=fused
}}"""


START = """
wrapped {
  wp = f32[8] parameter(0)
  ROOT op = f32[8] negate(wp)
}
ENTRY main {
  p = f32[8] parameter(0)
  start = ((f32[8]), f32[8], s32[]) async-start(p), calls=wrapped%s
  ROOT done = f32[8] async-done(start)
}"""
ALIASED_START = START % ", output_to_operand_aliasing={{1}: (0, {})}"
LATE_START = """
wrapped {
  wp = f32[8] parameter(0)
  ROOT op = f32[8] negate(wp)
}
ENTRY main {
  p = f32[8] parameter(0)
  start = ((), (), s32[]) async-start(), calls=wrapped, output_to_operand_aliasing={{1}: (0, {})}
  update = ((f32[8]), f32[8], s32[]) async-update(start, p)
  ROOT done = f32[8] async-done(update)
}"""
NESTED_ALIASING = """
wrapped {
  w0 = f32[8] parameter(0)
  w1 = (f32[8], f32[8]) parameter(1)
  ROOT op = f32[8] negate(w0)
}
ENTRY main {
  p = f32[8] parameter(0)
  t = (f32[8], f32[8]) parameter(1)
  start = ((f32[8], (f32[8], f32[8])), f32[8], s32[]) async-start(p, t), calls=wrapped, output_to_operand_aliasing={{0,1,0}: (1, {0}), {0,1,1}: (1, {1})}
  ROOT done = f32[8] async-done(start)
}"""
PARAMETERS = (
    "x = f32[8] parameter(0)\n  u = f32[2] parameter(1)\n  i = s32[] parameter(2)"
)
OPERANDS = "a:f32[8];b:f32[2];c:s32[]"
DUS_FUSION = fusion(
    f"  {PARAMETERS}\n  ROOT d = f32[8] dynamic-update-slice(x, u, i)",
    OPERANDS,
    "f32[8]",
)
NESTED_DUS = fusion(
    "  ox = f32[8] parameter(0)\n  ou = f32[2] parameter(1)\n  oi = s32[] parameter(2)\n"
    "  ROOT n = f32[8] fusion(ox, ou, oi), kind=kLoop, calls=inner",
    OPERANDS,
    "f32[8]",
    outer=f"inner {{\n  {PARAMETERS}\n  ROOT d = f32[8] dynamic-update-slice(x, u, i)\n}}",
)
DUS_THEN_BITCAST = fusion(
    f"  {PARAMETERS}\n  d = f32[8] dynamic-update-slice(x, u, i)\n"
    "  ROOT b = f32[2,4] bitcast(d)",
    OPERANDS,
    "f32[2,4]",
)
BITCAST_THEN_DUS = fusion(
    "  x = f32[2,4] parameter(0)\n  u = f32[2] parameter(1)\n  i = s32[] parameter(2)\n"
    "  b = f32[8] bitcast(x)\n  ROOT d = f32[8] dynamic-update-slice(b, u, i)",
    "a:f32[2,4];b:f32[2];c:s32[]",
    "f32[8]",
)
ANNOTATED_NESTED_COPY = fusion(
    "  ox = f32[8] parameter(0)\n"
    "  n = f32[8] fusion(ox), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=inner\n"
    "  ROOT b = f32[2,4] bitcast(n)",
    "a:f32[8]",
    "f32[2,4]",
    outer="inner { x = f32[8] parameter(0)  ROOT c = f32[8] copy(x) }",
)
MULTI_OUTPUT = fusion(
    f"  {PARAMETERS}\n  s = f32[2] negate(u)\n"
    "  d = f32[8] dynamic-update-slice(x, u, i)\n"
    "  ROOT t = (f32[2], f32[8]) tuple(s, d)",
    OPERANDS,
    "(f32[2], f32[8])",
    ", output_to_operand_aliasing={{0}: (1, {})}",
)
PLAIN_FUSION = fusion(
    "  x = f32[8] parameter(0)\n  ROOT n = f32[8] negate(x)", "a:f32[8]", "f32[8]"
)
ANNOTATED_FUSION = fusion(
    "  x = f32[8] parameter(0)\n  ROOT n = f32[8] negate(x)",
    "a:f32[8]",
    "f32[8]",
    ", output_to_operand_aliasing={{}: (0, {})}",
)
NESTED_MULTI = fusion(
    "  oi = s32[] parameter(0)\n  op = (f32[8], f32[2]) parameter(1)\n"
    "  big = f32[8] get-tuple-element(op), index=0\n"
    "  small = f32[2] get-tuple-element(op), index=1\n"
    "  it = (f32[2], f32[8]) tuple(small, big)\n"
    "  n = (f32[2], f32[8]) fusion(oi, it), kind=kLoop, calls=inner\n"
    "  n0 = f32[2] get-tuple-element(n), index=0\n"
    "  n1 = f32[8] get-tuple-element(n), index=1\n"
    "  ROOT t = (s32[], f32[2], f32[8]) tuple(oi, n0, n1)",
    "a:s32[];b:(f32[8], f32[2])",
    "(s32[], f32[2], f32[8])",
    outer="inner {\n  i = s32[] parameter(0)\n  p = (f32[2], f32[8]) parameter(1)\n"
    "  u = f32[2] get-tuple-element(p), index=0\n  x = f32[8] get-tuple-element(p), index=1\n"
    "  m = f32[2] negate(u)\n  d = f32[8] dynamic-update-slice(x, u, i)\n"
    "  ROOT t = (f32[2], f32[8]) tuple(m, d)\n}",
)
ANNOTATED_TARGET = fusion(
    "  p0 = (f32[8], f32[4]) parameter(0)\n  u = f32[2] parameter(1)\n  i = s32[] parameter(2)\n"
    "  g = f32[8] get-tuple-element(p0), index=0\n"
    "  n = f32[8] fusion(g), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=inner\n"
    "  ROOT d = f32[8] dynamic-update-slice(n, u, i)",
    "a:(f32[8], f32[4]);b:f32[2];c:s32[]",
    "f32[8]",
    outer="inner { x = f32[8] parameter(0)  ROOT c = f32[8] copy(x) }",
)
WITH_COLLECTIVE = fusion(
    f"  {PARAMETERS}\n  r = f32[2] all-reduce(u), replica_groups={{}}, to_apply=sum\n"
    "  d = f32[8] dynamic-update-slice(x, u, i)\n"
    "  ROOT t = (f32[2], f32[8]) tuple(r, d)",
    OPERANDS,
    "(f32[2], f32[8])",
    outer=_SUM,
)
CHAINED_DUS = fusion(
    f"  {PARAMETERS}\n  d = f32[8] dynamic-update-slice(x, u, i)\n"
    "  ROOT e = f32[8] dynamic-update-slice(d, u, i)",
    OPERANDS,
    "f32[8]",
)
ADDED_TARGET = fusion(
    f"  {PARAMETERS}\n  s = f32[8] add(x, x)\n"
    "  ROOT d = f32[8] dynamic-update-slice(s, u, i)",
    OPERANDS,
    "f32[8]",
)


def entry(*lines: str, outer: str = "") -> str:
    return outer + "\nENTRY main {\n  " + "\n  ".join(lines) + "\n}"


_PAIRS_01 = "source_target_pairs={{0,1},{1,0}}"
FOUR = (
    "a = f32[8] parameter(0)",
    "b = f32[8] parameter(1)",
    "i = s32[] parameter(2)",
    "j = s32[] parameter(3)",
)
FOUR_TUPLES = (
    "a = (f32[8], f32[8]) parameter(0)",
    "b = (f32[8], f32[8]) parameter(1)",
    "i = (s32[], s32[]) parameter(2)",
    "j = (s32[], s32[]) parameter(3)",
)
_S = "slice_sizes={{4}}"
_S2 = "slice_sizes={{4},{4}}"

ROWS = [
    ("4-call-start-plain", START % "", "start", []),
    ("4-call-start-aliased", ALIASED_START, "start", [(0, (), (1,))]),
    ("4-call-done-aliased", ALIASED_START, "done", [(0, (0, 0), ())]),
    ("4-late-bound-start", LATE_START, "start", []),
    ("4-late-bound-update", LATE_START, "update", [(1, (), (1,))]),
    ("4-late-bound-done", LATE_START, "done", [(0, (0, 0), ())]),
    (
        "4-async-nested-annotation",
        NESTED_ALIASING,
        "start",
        [(1, (0,), (0, 1, 0)), (1, (1,), (0, 1, 1))],
    ),
    (
        "4-dus",
        entry(
            "x = f32[8] parameter(0)",
            "u = f32[2] parameter(1)",
            "i = s32[] parameter(2)",
            "ROOT d = f32[8] dynamic-update-slice(x, u, i)",
        ),
        "d",
        [(0, (), ())],
    ),
    ("4-dus-fusion", DUS_FUSION, "f", [(0, (), ())]),
    ("4-nested-dus-fusion", NESTED_DUS, "f", [(0, (), ())]),
    ("4-dus-then-bitcast", DUS_THEN_BITCAST, "f", [(0, (), ())]),
    ("4-bitcast-then-dus", BITCAST_THEN_DUS, "f", [(0, (), ())]),
    ("4-nested-annotated-copy", ANNOTATED_NESTED_COPY, "f", []),
    (
        "4-multi-output-and-annotation",
        MULTI_OUTPUT,
        "f",
        [(0, (), (1,)), (1, (), (0,))],
    ),
    ("4-fusion-without-dus", PLAIN_FUSION, "f", []),
    ("4-annotated-fusion", ANNOTATED_FUSION, "f", [(0, (), ())]),
    ("4-nested-multi-output-inner", NESTED_MULTI, "n", [(1, (1,), (1,))]),
    ("4-nested-multi-output-outer", NESTED_MULTI, "f", [(1, (0,), (2,))]),
    ("4-annotated-nested-target", ANNOTATED_TARGET, "f", [(0, (0,), ())]),
    ("4-collective-and-dus", WITH_COLLECTIVE, "f", [(0, (), (1,))]),
    ("4-chained-dus", CHAINED_DUS, "f", []),
    ("4-dus-of-computed-target", ADDED_TARGET, "f", []),
    (
        "4-ragged-all-to-all",
        entry(
            "a = f32[8] parameter(0)",
            "b = f32[8] parameter(1)",
            "i = s64[2] parameter(2)",
            "ROOT r = f32[8] ragged-all-to-all(a, b, i, i, i, i), replica_groups={{0,1}}",
        ),
        "r",
        [(1, (), ())],
    ),
    (
        "4-permute-start-four-operands",
        entry(
            *FOUR,
            "s = ((f32[8], f32[8], s32[], s32[]), (f32[8], f32[8], s32[], s32[])) "
            f"collective-permute-start(a, b, i, j), {_PAIRS_01}",
            "ROOT d = (f32[8], f32[8], s32[], s32[]) collective-permute-done(s)",
        ),
        "s",
        [],
    ),
    (
        "4-permute-start-tuple",
        entry(
            *FOUR_TUPLES,
            "s = ((f32[8], f32[8]), (f32[8], f32[8]), u32[], u32[]) "
            f"collective-permute-start(a, b, i, j), {_PAIRS_01}, {_S2}",
            "ROOT d = (f32[8], f32[8]) collective-permute-done(s)",
        ),
        "s",
        [(1, (), (1,)), (1, (0,), (1, 0)), (1, (1,), (1, 1))],
    ),
    (
        "4-permute-start-array",
        entry(
            *FOUR,
            "s = (f32[8], f32[8], u32[], u32[]) "
            f"collective-permute-start(a, b, i, j), {_PAIRS_01}, {_S}",
            "ROOT d = f32[8] collective-permute-done(s)",
        ),
        "s",
        [(1, (), (1,))],
    ),
    (
        "4-permute-in-place-tuple",
        entry(
            *FOUR_TUPLES,
            "ROOT r = (f32[8], f32[8]) "
            f"collective-permute(a, b, i, j), {_PAIRS_01}, {_S2}",
        ),
        "r",
        [(1, (), ()), (1, (0,), (0,)), (1, (1,), (1,))],
    ),
    (
        "4-permute-in-place-array",
        entry(
            *FOUR, f"ROOT r = f32[8] collective-permute(a, b, i, j), {_PAIRS_01}, {_S}"
        ),
        "r",
        [(1, (), ())],
    ),
    (
        "4-all-reduce-start-one",
        entry(
            "a = f32[8] parameter(0)",
            "start = f32[8] all-reduce-start(a), replica_groups={}, to_apply=sum",
            "ROOT d = f32[8] all-reduce-done(start)",
            outer=_SUM,
        ),
        "start",
        [(0, (), ())],
    ),
    (
        "4-all-reduce-start-two",
        entry(
            "a = f32[8] parameter(0)",
            "start = (f32[8], f32[8]) all-reduce-start(a, a), replica_groups={}, to_apply=sum",
            "ROOT d = (f32[8], f32[8]) all-reduce-done(start)",
            outer=_SUM,
        ),
        "start",
        [(0, (), (0,)), (1, (), (1,))],
    ),
    (
        "4-scatter",
        entry(
            "a = f32[3,3] parameter(0)",
            "i = s32[2] parameter(1)",
            "u = f32[2,3] parameter(2)",
            "ROOT r = f32[3,3] scatter(a, i, u), to_apply=sum, update_window_dims={1}, "
            "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
            outer=_SUM,
        ),
        "r",
        [(0, (), ())],
    ),
    (
        "4-custom-call",
        entry(
            "a = (f32[8], f32[8]) parameter(0)",
            'ROOT r = (f32[8], f32[8]) custom-call(a), custom_call_target="t", '
            "output_to_operand_aliasing={{0}: (0, {1})}",
        ),
        "r",
        [(0, (1,), (0,))],
    ),
    (
        "4-set-dimension-size",
        entry(
            "a = f32[8] parameter(0)",
            "n = s32[] parameter(1)",
            "ROOT r = f32[<=8] set-dimension-size(a, n), dimensions={0}",
        ),
        "r",
        [(0, (), ())],
    ),
    (
        "4-sort-has-none",
        entry(
            "a = f32[8] parameter(0)",
            "ROOT r = f32[8] sort(a), dimensions={0}, to_apply=lt",
            outer="lt { x = f32[] parameter(0)  y = f32[] parameter(1)  "
            "ROOT c = pred[] compare(x, y), direction=LT }",
        ),
        "r",
        [],
    ),
]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_pairs(text, name, expected) -> None:
    assert pairs(text, name) == expected


@pytest.mark.parametrize(
    "answer", [(), (((1, ()), ()),)], ids=["4-override-empty", "4-override-list"]
)
def test_a_machine_may_answer_itself(answer) -> None:
    module = msa.parse(DUS_FUSION)
    root = module.entry.root
    assert InPlacePairs(lambda x: answer if x is root else None)(root) == answer
    assert InPlacePairs(lambda x: None)(root) == (((0, ()), ()),)


def test_following_goes_through_tuples_and_then_elements() -> None:
    """4-follow: a tuple pops the front index, a get-tuple-element pushes one."""
    module = msa.parse(
        entry(
            "p = ((f32[1], f32[2]), f32[3]) parameter(0)",
            "g = (f32[1], f32[2]) get-tuple-element(p), index=0",
            "h = f32[2] get-tuple-element(g), index=1",
            "inner = (f32[2], f32[2]) tuple(h, h)",
            "ROOT outer = ((f32[2], f32[2]), f32[2]) tuple(inner, h)",
        )
    )
    root = module.entry.root
    source, index = follow_tuple_indirection(root, (0, 1))
    assert (source.name, index) == ("p", (0, 1))
    source, index = follow_tuple_indirection(root, (0,))
    assert (source.name, index) == ("inner", ())


def test_must_alias_names_the_operand() -> None:
    module = msa.parse(DUS_FUSION)
    a, b = module.entry.parameters[:2]
    known = InPlacePairs()
    assert known.must_alias(a, (), module.entry.root, ())
    assert not known.must_alias(b, (), module.entry.root, ())


def test_deeply_nested_fusions_do_not_recurse() -> None:
    depth = 1500
    parts = [
        (
            "c0 { x0 = f32[8] parameter(0)  u0 = f32[2] parameter(1)  i0 = s32[] parameter(2)\n"
            "  ROOT r0 = f32[8] dynamic-update-slice(x0, u0, i0) }"
        )
    ]
    parts.extend(
        f"c{k} {{ x{k} = f32[8] parameter(0)  v{k} = f32[2] parameter(1)  "
        f"i{k} = s32[] parameter(2)\n  ROOT r{k} = f32[8] fusion(x{k}, v{k}, i{k}), "
        f"kind=kLoop, calls=c{k - 1} }}"
        for k in range(1, depth)
    )
    body = entry(
        "x = f32[8] parameter(0)",
        "u = f32[2] parameter(1)",
        "i = s32[] parameter(2)",
        f"ROOT f = f32[8] fusion(x, u, i), kind=kLoop, calls=c{depth - 1}",
    )
    assert pairs("\n".join(parts) + body, "f") == [(0, (), ())]


def test_two_operands_for_one_result_are_refused() -> None:
    text = fusion(
        '  a = f32[8] parameter(0)\n  ROOT c = f32[8] custom-call(a), custom_call_target="t"',
        "x:f32[8]",
        "f32[8]",
    )
    module = msa.parse(text)
    root = module.entry.root
    inner = root.fused_computation.root
    twice = (((0, ()), ()), ((0, ()), ()))
    with pytest.raises(HloError, match="2 operands"):
        InPlacePairs(lambda x: twice if x is inner else None)(root)
