"""Trip counts of loops."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import TripCounts
from msa.analysis.trip_counts import count_trips


def loop(
    start: str = "0",
    step: str = "s32[] add(i, one)",
    test: str = "pred[] compare(i, n), direction=LT",
    bound: str = "10",
    *,
    kind: str = "s32[]",
    read: str = "i = {kind} get-tuple-element(p), index=0",
    config: str = "",
    init: str = "",
) -> str:
    reading = read.format(kind=kind)
    return f"""
body {{
  p = ({kind}, {kind}) parameter(0)
  {reading}
  one = {kind} constant(1)
  two = {kind} constant(2)
  fixed = {kind} get-tuple-element(p), index=1
  next = {step}
  ROOT t = ({kind}, {kind}) tuple(next, fixed)
}}
cond {{
  p = ({kind}, {kind}) parameter(0)
  i = {kind} get-tuple-element(p), index=0
  fixed = {kind} get-tuple-element(p), index=1
  n = {kind} constant({bound})
  ROOT go = {test}
}}
ENTRY main {{
  x = {kind} parameter(0)
  zero = {kind} constant({start})
  seven = {kind} constant(7)
  {init or f"first = {kind} copy(zero)"}
  t = ({kind}, {kind}) tuple(first, seven)
  ROOT w = ({kind}, {kind}) while(t), condition=cond, body=body{config}
}}"""


def count(text: str, **options) -> int | None:
    module = msa.parse(text, verify=False)
    found = TripCounts.run(module, **options)
    return found.of(module.entry.root)


COPIED = "g = s32[] get-tuple-element(p), index=0\n  i = s32[] copy(g)"
FUSED = """
step {{ a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }}
test {{ c = s32[] parameter(0)  d = s32[] parameter(1)
  ROOT l = pred[] compare(c, d), direction=LT }}
"""


def fused(**options) -> str:
    return FUSED.replace("{{", "{").replace("}}", "}") + loop(
        step="s32[] fusion(i, one), kind=kLoop, calls=step",
        test="pred[] fusion(i, n), kind=kLoop, calls=test",
        **options,
    )


# id, text, the full answer, XLA's planner's own
ROWS = [
    ("up", loop(), 10, 10),
    ("up by two", loop(step="s32[] add(two, i)"), 5, 5),
    ("up by two past the bound", loop(step="s32[] add(i, two)", bound="9"), 5, 5),
    ("from five", loop(start="5"), 5, 5),
    ("already there", loop(start="12"), 0, 0),
    ("at most", loop(test="pred[] compare(i, n), direction=LE"), 11, 11),
    ("bound first", loop(test="pred[] compare(n, i), direction=GT"), 10, 10),
    (
        "down",
        loop(
            start="10",
            step="s32[] subtract(i, one)",
            bound="0",
            test="pred[] compare(i, n), direction=GT",
        ),
        10,
        10,
    ),
    (
        "down from far",
        loop(
            start="1000",
            step="s32[] subtract(i, one)",
            bound="0",
            test="pred[] compare(i, n), direction=GT",
        ),
        1000,
        None,
    ),
    ("not equal", loop(test="pred[] compare(i, n), direction=NE"), 10, 10),
    (
        "never equal",
        loop(
            step="s32[] add(i, two)",
            bound="9",
            test="pred[] compare(i, n), direction=NE",
        ),
        None,
        None,
    ),
    ("doubling", loop(start="1", step="s32[] multiply(i, two)", bound="100"), 7, 7),
    ("through a copy", loop(read=COPIED), 10, None),
    ("fused", fused(), 10, 10),
    ("fused, many", fused(bound="500"), 500, None),
    ("fused, copied", fused(read=COPIED), 10, None),
    (
        "bound in the state",
        loop(test="pred[] compare(i, fixed), direction=LT"),
        7,
        None,
    ),
    ("unknown start", loop(init="first = s32[] copy(x)"), None, None),
    (
        "stated",
        loop(
            init="first = s32[] copy(x)",
            config=', backend_config={"known_trip_count":{"n":"42"}}',
        ),
        42,
        None,
    ),
    (
        "stated wrongly",
        loop(config=', backend_config={"known_trip_count":{"m":[1]}}'),
        10,
        10,
    ),
    (
        "bytes wrap",
        loop(
            kind="u8[]",
            step="u8[] add(i, two)",
            bound="255",
            test="pred[] compare(i, n), direction=LT",
        ),
        None,
        None,
    ),
    ("floats", loop(kind="f32[]", step="f32[] add(i, one)", bound="3.5"), 4, 4),
]


@pytest.mark.parametrize(
    ("text", "full", "strict"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_counts(text, full, strict) -> None:
    assert count(text) == full
    assert count(text, use_backend_config=False) == strict


def test_a_loop_in_a_called_computation() -> None:
    inner = loop().replace("ENTRY main {", "callee {").split("callee {")[0]
    text = (
        inner
        + """
callee { t = (s32[], s32[]) parameter(0)
  ROOT w = (s32[], s32[]) while(t), condition=cond, body=body }
ENTRY main {
  zero = s32[] constant(0)
  t = (s32[], s32[]) tuple(zero, zero)
  ROOT c = (s32[], s32[]) call(t), to_apply=callee
}"""
    )
    module = msa.parse(text)
    assert TripCounts.run(module).of(module.computation("callee").root) == 10


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "NE", "EQ"])
def test_counting_agrees_with_running(direction) -> None:
    tests = {
        "LT": lambda g: g < 0,
        "LE": lambda g: g <= 0,
        "GT": lambda g: g > 0,
        "GE": lambda g: g >= 0,
        "NE": lambda g: g != 0,
        "EQ": lambda g: g == 0,
    }
    for start in range(-7, 8):
        for step in range(-3, 4):
            trips, g = 0, start
            while tests[direction](g) and trips < 100:
                g += step
                trips += 1
            expected = trips if trips < 100 else None
            assert count_trips(direction, start, step) == expected, (start, step)
