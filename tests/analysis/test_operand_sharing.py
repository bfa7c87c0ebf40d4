"""Whether results may overwrite operands, row by row."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import DataflowAnalysis, OperandSharing

_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def sharing(text: str, hint=None):
    module = msa.parse(text, verify=False)
    by_name = {x.name: x for c in module.computations for x in c.instructions}
    return OperandSharing(DataflowAnalysis.run(module), hint=hint), by_name


def entry(*lines: str, outer: str = "") -> str:
    return outer + "\nENTRY main {\n  " + "\n  ".join(lines) + "\n}"


def fused(body: str, call: str, *parameters: str, kind: str = "kLoop") -> str:
    return entry(
        *parameters,
        f"ROOT f = {call}, kind={kind}, calls=fused",
        outer=f"fused {{\n  {body}\n}}",
    )


DUS_TUPLE = fused(
    "x = (f32[8], f32[8]) parameter(0)\n  a = f32[8] get-tuple-element(x), index=0\n"
    "  b = f32[8] get-tuple-element(x), index=1\n  c = f32[3] constant({2, 2, 2})\n"
    "  i = s32[] constant(2)\n  ROOT d = f32[8] dynamic-update-slice(b, c, i)",
    "f32[8] fusion(p)",
    "p = (f32[8], f32[8]) parameter(0)",
)
SORT2 = entry(
    "k = f32[8] parameter(0)",
    "v = f32[8] parameter(1)",
    "ROOT s = (f32[8], f32[8]) sort(k, v), dimensions={0}, to_apply=lt",
    outer="lt { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)\n"
    "  d = f32[] parameter(3)  ROOT l = pred[] compare(a, b), direction=LT }",
)
SORT1 = entry(
    "k = f32[8] parameter(0)",
    "ROOT s = f32[8] sort(k), dimensions={0}, to_apply=lt",
    outer="lt { a = f32[] parameter(0)  b = f32[] parameter(1)\n"
    "  ROOT l = pred[] compare(a, b), direction=LT }",
)
SCATTER2 = entry(
    "x = f32[4] parameter(0)",
    "y = f32[4] parameter(1)",
    "i = s32[4,1] parameter(2)",
    "u = f32[4] parameter(3)",
    "w = f32[4] parameter(4)",
    "ROOT s = (f32[4], f32[4]) scatter(x, y, i, u, w), to_apply=two, "
    "update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    outer="two { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)\n"
    "  d = f32[] parameter(3)  ROOT t = (f32[], f32[]) tuple(c, d) }",
)
OUTPUT_FUSION = (
    "x = f32[4,4] parameter(0)\n  y = f32[4,4] parameter(1)\n  z = f32[4,4] parameter(2)\n"
    f"  d = f32[4,4] dot(x, y), {_DOT}\n  ROOT a = f32[4,4] add(d, z)"
)
PARAMETERS3 = (
    "p = f32[4,4] parameter(0)",
    "q = f32[4,4] parameter(1)",
    "r = f32[4,4] parameter(2)",
)
FUSED_CALL = """
fused { x = f32[8] parameter(0)  c = f32[8] parameter(1)  ROOT fn = f32[8] add(x, c) }
callee { cp = f32[8] parameter(0)  b = f32[8] constant({...})
  ROOT f = f32[8] fusion(cp, b), kind=kLoop, calls=fused }
ENTRY main {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  ROOT call = f32[8] call(n), to_apply=callee
}"""
WHILE = """
body { bp = (f32[8]) parameter(0)  g = f32[8] get-tuple-element(bp), index=0
  n = f32[8] negate(g)  ROOT br = (f32[8]) tuple(n) }
cond { cp = (f32[8]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main { p = f32[8] parameter(0)  t = (f32[8]) tuple(p)
  ROOT w = (f32[8]) while(t), condition=cond, body=body }"""

# id, module, operand, index, user, index, expected
ROWS = [
    (
        "3.1-elementwise",
        entry(
            "p = f32[8] parameter(0)",
            "n = f32[8] negate(p)",
            "ROOT e = f32[8] exponential(n)",
        ),
        ("n", (), "e", ()),
        True,
    ),
    (
        "3.1-copy",
        entry("p = f32[8] parameter(0)", "ROOT c = f32[8] copy(p)"),
        ("p", (), "c", ()),
        True,
    ),
    (
        "3.1-constant",
        entry("p = f32[2] constant({1, 2})", "ROOT c = f32[2] copy(p)"),
        ("p", (), "c", ()),
        False,
    ),
    (
        "3.1-compare",
        entry(
            "p = f32[8] parameter(0)", "ROOT c = pred[8] compare(p, p), direction=LT"
        ),
        ("p", (), "c", ()),
        False,
    ),
    (
        "3.1-loop-fusion-reverse",
        fused(
            "x = f32[8] parameter(0)\n  r = f32[8] reverse(x), dimensions={0}\n"
            "  ROOT a = f32[8] add(x, r)",
            "f32[8] fusion(p)",
            "p = f32[8] parameter(0)",
        ),
        ("p", (), "f", ()),
        False,
    ),
    (
        "3.1-loop-fusion-broadcast",
        fused(
            "x = f32[] parameter(0)\n  b = f32[8] broadcast(x), dimensions={}\n"
            "  y = f32[8] parameter(1)\n  ROOT a = f32[8] add(y, b)",
            "f32[8] fusion(p, q)",
            "p = f32[] parameter(0)",
            "q = f32[8] parameter(1)",
        ),
        ("q", (), "f", ()),
        True,
    ),
    (
        "3.1-multi-output-elementwise",
        fused(
            "x = f32[8] parameter(0)\n  n = f32[8] negate(x)\n"
            "  ROOT t = (f32[8], f32[8]) tuple(n, x)",
            "(f32[8], f32[8]) fusion(p)",
            "p = f32[8] parameter(0)",
        ),
        ("p", (), "f", (0,)),
        True,
    ),
    (
        "3.1-multi-output-with-reverse",
        fused(
            "x = f32[8] parameter(0)\n  n = f32[8] negate(x)\n"
            "  r = f32[8] reverse(x), dimensions={0}\n"
            "  ROOT t = (f32[8], f32[8]) tuple(n, r)",
            "(f32[8], f32[8]) fusion(p)",
            "p = f32[8] parameter(0)",
        ),
        ("p", (), "f", (0,)),
        False,
    ),
    *(
        (
            f"3.1-dus-{name}",
            entry(
                "x = f32[8] parameter(0)",
                "u = f32[2] parameter(1)",
                "i = s32[] parameter(2)",
                "ROOT d = f32[8] dynamic-update-slice(x, u, i)",
            ),
            (name, (), "d", ()),
            expected,
        )
        for name, expected in (("x", True), ("u", False), ("i", False))
    ),
    ("3.1-dus-fusion-used-element", DUS_TUPLE, ("p", (1,), "f", ()), True),
    ("3.1-dus-fusion-other-element", DUS_TUPLE, ("p", (0,), "f", ()), False),
    (
        "3.1-convert-dus-convert",
        fused(
            "x = f32[8] parameter(0)\n  u = bf16[2] parameter(1)\n  i = s32[] parameter(2)\n"
            "  a = bf16[8] convert(x)\n  d = bf16[8] dynamic-update-slice(a, u, i)\n"
            "  ROOT b = f32[8] convert(d)",
            "f32[8] fusion(p, q, r)",
            "p = f32[8] parameter(0)",
            "q = bf16[2] parameter(1)",
            "r = s32[] parameter(2)",
        ),
        ("p", (), "f", ()),
        True,
    ),
    *(
        (f"3.1-scatter-{a}-{b}", SCATTER2, (a, (), "s", (b,)), expected)
        for a, b, expected in (
            ("x", 0, True),
            ("x", 1, False),
            ("y", 0, False),
            ("y", 1, True),
            ("i", 0, False),
            ("u", 0, False),
            ("w", 1, False),
        )
    ),
    *(
        (
            f"3.1-triangular-solve-{name}",
            entry(
                "a = f32[4,4] parameter(0)",
                "b = f32[4,4] parameter(1)",
                "ROOT t = f32[4,4] triangular-solve(a, b), left_side=true, lower=true, "
                "transpose_a=NO_TRANSPOSE",
            ),
            (name, (), "t", ()),
            expected,
        )
        for name, expected in (("a", False), ("b", True))
    ),
    ("3.1-sort-one", SORT1, ("k", (), "s", ()), True),
    ("3.1-sort-keys", SORT2, ("k", (), "s", (0,)), True),
    ("3.1-sort-values", SORT2, ("v", (), "s", (1,)), True),
    ("3.1-sort-keys-crossed", SORT2, ("k", (), "s", (1,)), False),
    (
        "3.1-output-fusion-addend",
        fused(OUTPUT_FUSION, "f32[4,4] fusion(p, q, r)", *PARAMETERS3, kind="kOutput"),
        ("r", (), "f", ()),
        True,
    ),
    (
        "3.1-output-fusion-factor",
        fused(OUTPUT_FUSION, "f32[4,4] fusion(p, q, r)", *PARAMETERS3, kind="kOutput"),
        ("p", (), "f", ()),
        False,
    ),
    (
        "3.1-output-fusion-reverse",
        fused(
            "x = f32[8] parameter(0)\n  c = f32[] constant(2)\n"
            "  b = f32[8] broadcast(c), dimensions={}\n"
            "  r = f32[8] reverse(x), dimensions={0}\n  ROOT a = f32[8] add(r, b)",
            "f32[8] fusion(p)",
            "p = f32[8] parameter(0)",
            kind="kOutput",
        ),
        ("p", (), "f", ()),
        False,
    ),
    ("3.1-while", WHILE, ("t", (), "w", ()), True),
    ("3.1-call-of-elementwise-fusion", FUSED_CALL, ("n", (), "call", ()), True),
]


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_can_share(text, question, expected) -> None:
    judge, by_name = sharing(text)
    operand, index, user, user_index = question
    shared = judge.can_share(by_name[operand], index, by_name[user], user_index)
    assert shared is expected


@pytest.mark.parametrize("answer", [False, True], ids=["3.1-hint-no", "3.1-hint-yes"])
def test_a_machine_may_decide(answer) -> None:
    text = fused(
        "x = f32[8] parameter(0)\n  ROOT n = f32[8] negate(x)",
        "f32[8] fusion(p)",
        "p = f32[8] parameter(0)",
        kind="kInput",
    )
    judge, by_name = sharing(text, hint=lambda *question: answer)
    assert judge.can_share(by_name["p"], (), by_name["f"], ()) is answer


def test_change_tiling_copies_share() -> None:
    """3.1-change-tiling"""
    text = """
inner { x = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT c = f32[8,128]{1,0:T(4,128)} copy(x) }
outer { y = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT n = f32[8,128]{1,0:T(4,128)} fusion(y), kind=kLoop, calls=inner }
ENTRY main { p = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT f = f32[8,128]{1,0:T(4,128)} fusion(p), kind=kLoop, calls=outer }"""
    judge, by_name = sharing(text)
    assert judge.can_share(by_name["y"], (), by_name["n"], ())
    assert not judge.can_share(by_name["p"], (), by_name["f"], ())


def test_untouched_elements() -> None:
    """3.1-does-not-use"""
    text = fused(
        "x = (f32[8], f32[8]) parameter(0)\n  b = f32[8] get-tuple-element(x), index=1\n"
        "  ROOT n = f32[8] negate(b)",
        "f32[8] fusion(t)",
        "p = f32[8] parameter(0)",
        "q = f32[8] parameter(1)",
        "t = (f32[8], f32[8]) tuple(p, q)",
    )
    judge, by_name = sharing(text)
    assert judge.does_not_use(by_name["t"], (0,), by_name["f"])
    assert not judge.does_not_use(by_name["t"], (1,), by_name["f"])
    assert judge.does_not_use(by_name["p"], (), by_name["f"])
