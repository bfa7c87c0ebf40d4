"""What the pass must make of small programs, each checked on all paths."""

from __future__ import annotations

import pytest

from msa.dealloc import (
    DeallocationOptions,
    Interfaces,
    Misuse,
    Operation,
    check,
    parse_function,
    place_in_function,
    print_function,
)
from msa.dealloc.errors import (
    AllocationInterfaceError,
    BufferIRError,
    EscapingDeallocation,
    UnsupportedControlFlow,
)

B = "buf<2xf32>"
STRICT = DeallocationOptions.strict_source()


def body(text: str, arguments: str = f"%a: {B}, %c: i1", result: str = "") -> str:
    arrow = f" -> {result}" if result else ""
    return f"func @f({arguments}){arrow} {{\n{text}\n}}\n"


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def run(text: str, expected: str | None = None, **options):  # type: ignore[no-untyped-def]
    """Place, compare the text, check all paths, and run a second time."""
    before = parse_function(text)
    after, report = place_in_function(before, DeallocationOptions(**options))
    shown = print_function(after)
    if expected is not None:
        assert lines(shown)[1:-1] == lines(expected)
    result = check(after, before, report.marked)
    assert result.clean, (result.findings[:3], result.differences[:3], shown)
    again, _ = place_in_function(after, DeallocationOptions(**options))
    assert print_function(again) == shown
    return after, report, result


DIAMOND = body(f"""
^entry:
  cond_br %c, ^l, ^r
^l:
  br ^j(%a)
^r:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  br ^j(%n)
^j(%x: {B}):
  use reads(%x) writes()
  return
""")


def test_case_01_diamond() -> None:
    _, report, _ = run(
        DIAMOND,
        f"""
        ^entry:
        cond_br %c, ^l, ^r
        ^l:
        %own = clone %a : {B}
        br ^j(%own)
        ^r:
        %n = alloc : {B}
        use reads(%a) writes(%n)
        %own1 = clone %n : {B}
        dealloc %n
        br ^j(%own1)
        ^j(%x: {B}):
        use reads(%x) writes()
        dealloc %x
        return
        """,
    )
    assert report.marked == ["x"]


CRITICAL = body(f"""
^entry:
  cond_br %c, ^j(%a), ^r
^r:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  br ^j(%n)
^j(%x: {B}):
  use reads(%x) writes()
  return
""")


def test_case_02_critical_edge() -> None:
    after, report, _ = run(CRITICAL)
    assert report.split_edges == 1
    split = next(b for b in after.region.blocks if b.name.startswith("edge"))
    assert [op.kind for op in split.operations] == ["clone", "br"]
    plain, report = place_in_function(parse_function(CRITICAL), STRICT)
    found = check(plain, parse_function(CRITICAL), report.marked).findings
    assert {f.kind for f in found} == {Misuse.LEAK}


def test_case_03_inverse_critical_edge() -> None:
    run(
        body(f"""
^entry:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  cond_br %c, ^j(%a), ^r
^r:
  br ^j(%n)
^j(%x: {B}):
  use reads(%x) writes()
  return
"""),
        f"""
        ^entry:
        %n = alloc : {B}
        use reads(%a) writes(%n)
        cond_br %c, ^j(%a), ^r
        ^r:
        br ^j(%n)
        ^j(%x: {B}):
        use reads(%x) writes()
        dealloc %n
        return
        """,
    )


ORDERS = """
^entry:
  %n = alloc : buf<2xf32>
  use reads(%a) writes(%n)
  cond_br %c, ^l, ^r
^l:
  br ^j(%a, %n)
^r:
  br ^j(%n, %a)
^j(%x: buf<2xf32>, %y: buf<2xf32>):
"""


def test_case_04_both_orders() -> None:
    after, report, _ = run(
        body(ORDERS + "  use reads(%x) writes()\n  use reads(%y) writes()\n  return")
    )
    assert report.clones == []
    last = [op.kind for op in after.region.blocks[-1].operations]
    assert last == ["use", "use", "dealloc", "return"]


def test_case_05_unused_join_arguments() -> None:
    after, _, _ = run(
        body(ORDERS + "  use reads(%a) writes()\n  use reads(%a) writes()\n  return")
    )
    last = [op.kind for op in after.region.blocks[-1].operations]
    assert last == ["use", "dealloc", "use", "return"]


def test_case_06_unused_allocation() -> None:
    run(
        body(f"^entry:\n  %n = alloc : {B}\n  use reads(%a) writes()\n  return"),
        f"^entry:\n%n = alloc : {B}\ndealloc %n\nuse reads(%a) writes()\nreturn",
    )


def test_case_07_returned_allocation() -> None:
    after, report, _ = run(
        body(
            f"^entry:\n  %n = alloc : {B}\n  use reads(%a) writes(%n)\n  return %n",
            result=B,
        )
    )
    assert "dealloc" not in print_function(after)
    assert report.escaping == ["n"]


def test_case_08_early_dealloc_moves() -> None:
    _, report, _ = run(
        body(f"""
^entry:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  %v = view %n : {B}
  cond_br %c, ^l, ^r
^l:
  dealloc %n
  br ^j
^r:
  br ^j
^j:
  use reads(%v) writes()
  return
""")
        .replace("  dealloc %n\n  br ^j", "  br ^j")
        .replace("^j:\n", "^j:\n  use reads(%n) writes()\n  dealloc %n\n")
    )
    assert report.moved == ["n"]


def test_case_09_existing_and_missing() -> None:
    _, report, _ = run(
        body(f"""
^entry:
  %m = alloc : {B}
  use reads(%a) writes(%m)
  %v = view %m : {B}
  %n = alloc : {B}
  dealloc %m
  use reads(%v) writes(%n)
  use reads(%n) writes()
  return
""")
    )
    assert (report.moved, report.inserted) == (["m"], ["n"])


FRESH_LOOP = body(
    f"""
^entry:
  %z = constant 0 : index
  %outer = alloc : {B}
  %init = alloc : {B}
  use reads(%a) writes(%init)
  %r = for %i = %z to %z step %z iter(%p = %init) : {B} {{
    use reads(%p) writes()
    %n = alloc : {B}
    use reads(%p) writes(%n)
    yield %n
  }}
  use reads(%r) writes()
  return
"""
)


def test_case_10_fresh_buffer_on_every_trip() -> None:
    run(
        FRESH_LOOP,
        f"""
        ^entry:
        %z = constant 0 : index
        %outer = alloc : {B}
        dealloc %outer
        %init = alloc : {B}
        use reads(%a) writes(%init)
        %own1 = clone %init : {B}
        dealloc %init
        %r = for %i = %z to %z step %z iter(%p = %own1) : {B} {{
        use reads(%p) writes()
        %n = alloc : {B}
        use reads(%p) writes(%n)
        dealloc %p
        %own = clone %n : {B}
        dealloc %n
        yield %own
        }}
        use reads(%r) writes()
        dealloc %r
        return
        """,
    )


def test_case_11_if_in_loop_without_clones() -> None:
    after, report, _ = run(
        body(f"""
^entry:
  %z = constant 0 : index
  %outer = alloc : {B}
  use reads(%a) writes(%outer)
  %r = for %i = %z to %z step %z iter(%p = %outer) : {B} {{
    %s = if %c : {B} {{
      yield %outer
    }} else {{
      yield %p
    }}
    yield %s
  }}
  use reads(%r) writes()
  return
""")
    )
    assert report.clones == []
    assert report.inserted == ["outer"]
    last = after.region.entry.operations[-3:]
    assert [op.kind for op in last] == ["use", "dealloc", "return"]
    assert [v.name for v in last[1].operands] == ["outer"]


CASE_12 = body(
    f"""
^entry:
  %z = constant 0 : index
  %outer = alloc : {B}
  use reads(%a) writes(%outer)
  %r = for %i = %z to %z step %z iter(%p = %a) : {B} {{
    %s = if %c : {B} {{
      %n = alloc : {B}
      use reads(%p) writes(%n)
      yield %n
    }} else {{
      yield %outer
    }}
    yield %s
  }}
  return %r
""",
    result=B,
)


def test_case_12_fresh_or_outer_in_a_loop() -> None:
    after, report, _ = run(CASE_12)
    assert sorted(report.inserted) == ["n", "outer", "p", "r", "s"]
    assert len(report.return_clones) == 1
    assert print_function(after).count("clone") == 5
    _, report = place_in_function(parse_function(CASE_12), STRICT)
    assert report.return_clones == []
    assert "r" in report.escaping


CASE_13 = body(
    f"""
^entry:
  %outer = alloc : {B}
  use reads(%a) writes(%outer)
  %s = if %c : {B} {{
    yield %outer
  }} else {{
    %n = alloc : {B}
    use reads(%a) writes(%n)
    yield %n
  }}
  return %s
""",
    result=B,
)


def test_case_13_if_result_is_returned() -> None:
    after, report, _ = run(CASE_13)
    assert sorted(report.inserted) == ["n", "outer", "s"]
    assert print_function(after).count("clone") == 3
    assert len(report.return_clones) == 1
    kinds = [op.kind for op in after.region.entry.operations]
    assert "dealloc" in kinds[kinds.index("if") :]
    plain, report = place_in_function(parse_function(CASE_13), STRICT)
    assert print_function(plain).count("clone") == 2
    assert report.escaping == ["s"]
    assert [v.name for v in plain.region.entry.terminator.operands] == ["s"]


CASE_14 = body(
    f"""
^entry:
  %init = alloc : {B}
  use reads(%a) writes(%init)
  %r, %s = while (%p = %a, %q = %init) : ({B}, {B}) -> ({B}, {B}) {{
    use reads(%q) writes()
    condition %c, %p, %q
  }} do (%p2: {B}, %q2: {B}) {{
    use reads(%q2) writes()
    %n = alloc : {B}
    use reads(%q2) writes(%n)
    yield %p2, %n
  }}
  return %r, %s
""",
    result=f"({B}, {B})",
)


def test_case_14_while_with_two_values() -> None:
    after, report, _ = run(CASE_14)
    assert set(report.marked) == {"q", "q2", "s"}
    assert len(report.return_clones) == 2
    assert {"q", "q2", "s", "n", "init"} <= set(report.inserted)
    text = print_function(after)
    assert "clone %a" not in text.split("while")[0]
    loop = text[text.index("while") : text.index("clone %r ")].rpartition("}")[0]
    assert loop.count("clone") == 2  # of the second value, once in each region
    for argument in ("p", "p2"):
        assert f"clone %{argument} " not in loop
    for argument in ("q", "q2"):
        assert loop.count(f"dealloc %{argument}\n") == 1
    plain, _ = place_in_function(parse_function(CASE_14), STRICT)
    assert [v.name for v in plain.region.entry.terminator.operands] == ["r", "s"]


def test_case_15_select() -> None:
    after, _, _ = run(
        body(f"""
^entry:
  %m = alloc : {B}
  %n = alloc : {B}
  use reads(%a) writes(%m, %n)
  %s = select %c, %m, %n : {B}
  use reads(%s) writes()
  use reads(%a) writes()
  return
""")
    )
    kinds = [op.kind for op in after.region.entry.operations]
    assert kinds[-5:] == ["use", "dealloc", "dealloc", "use", "return"]


def test_case_16_subview() -> None:
    after, _, _ = run(
        body(f"""
^entry:
  %m = alloc : {B}
  use reads(%a) writes(%m)
  %v = subview %m : {B}
  use reads(%a) writes()
  use reads(%v) writes()
  return
""")
    )
    kinds = [op.kind for op in after.region.entry.operations]
    assert kinds[-3:] == ["use", "dealloc", "return"]


BARE_JOIN = DIAMOND.replace("  use reads(%x) writes()\n", "")


def test_case_17_join_with_only_a_return() -> None:
    after, _, _ = run(BARE_JOIN)
    assert [o.kind for o in after.region.blocks[-1].operations] == ["dealloc", "return"]
    plain, report = place_in_function(parse_function(BARE_JOIN), STRICT)
    found = check(plain, parse_function(BARE_JOIN), report.marked).findings
    assert {f.kind for f in found} == {Misuse.LEAK}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "^entry:\n  br ^b\n^b:\n  cond_br %c, ^b, ^e\n^e:\n  return",
            UnsupportedControlFlow,
        ),
        (
            '^entry:\n  "odd"() {\n    yield\n  } next {\n    yield\n  }\n  return',
            UnsupportedControlFlow,
        ),
        (
            (
                f'^entry:\n  %x = "make"() : {B} {{allocates}}\n'
                "  use reads(%x) writes()\n  return"
            ),
            AllocationInterfaceError,
        ),
        (
            (
                f"^entry:\n  %n = alloc : {B}\n  %v = view %n : {B}\n"
                "  cond_br %c, ^l, ^r\n^l:\n  dealloc %n\n  br ^j\n^r:\n  br ^j\n"
                "^j:\n  br ^k(%v)\n^k(%x: buf<2xf32>):\n  return %x"
            ),
            EscapingDeallocation,
        ),
    ],
    ids=["case-18", "case-19", "case-21", "BD-DEV-4"],
)
def test_refused(text: str, error: type[BufferIRError]) -> None:
    result = B if "return %x" in text else ""
    function = parse_function(body(text, result=result))
    before = print_function(function)
    with pytest.raises(error):
        place_in_function(function, DeallocationOptions(own_returns=False))
    assert print_function(function) == before


def test_case_20_call_results_are_owned() -> None:
    _, report, _ = run(
        body(f"""
^entry:
  %n = call @g(%a) : {B}
  use reads(%n) writes()
  return
""")
    )
    assert report.inserted == ["n"]


def test_case_22_zero_trips() -> None:
    before = parse_function(FRESH_LOOP)
    after, report = place_in_function(before)
    assert check(after, before, report.marked, scripts=[[0]]).clean


def test_case_23_triple_nest() -> None:
    def nest(depth: int, value: str) -> str:
        if depth == 0:
            return f"%n = alloc : {B}\nuse reads(%{value}) writes(%n)\nyield %n\n"
        return (
            f"%r{depth} = for %i{depth} = %z to %z step %z iter(%p{depth} = %{value}) "
            f": {B} {{\n{nest(depth - 1, f'p{depth}')}}}\nyield %r{depth}\n"
        )

    text = nest(3, "a").rsplit("yield", 1)[0]
    before = parse_function(
        body(f"^entry:\n%z = constant 0 : index\n{text}use reads(%r3) writes()\nreturn")
    )
    after, report = place_in_function(before)
    result = check(after, before, report.marked, max_paths=400, trips=(0, 1, 2))
    assert result.paths > 20
    assert result.clean


JOIN_OF_FIVE = body(f"""
^entry:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  cond_br %c, ^l, ^r
^l:
  br ^j
^r:
  br ^j
^j:
  use reads(%a) writes()
  use reads(%a) writes()
  use reads(%a) writes()
  use reads(%n) writes()
  use reads(%a) writes()
  return
""")


def test_case_25_last_use_in_the_join() -> None:
    after, _, _ = run(JOIN_OF_FIVE)
    kinds = [op.kind for op in after.region.blocks[-1].operations]
    assert kinds.index("dealloc") == 4
    # Without the rule the free comes after the join's first operation, which the
    # verifier sees as a use after its dealloc.
    with pytest.raises(BufferIRError, match="after its dealloc"):
        place_in_function(parse_function(JOIN_OF_FIVE), STRICT)


def test_case_26_entry_allocation_and_argument_returned() -> None:
    _, report, _ = run(
        body(
            f"""
^entry:
  %n = alloc : {B}
  use reads(%a) writes(%n)
  cond_br %c, ^l, ^j
^l:
  %m = alloc : {B}
  br ^j
^j:
  return %n, %a
""",
            result=f"({B}, {B})",
        )
    )
    assert report.escaping == ["n"] or set(report.escaping) >= {"n"}
    assert len(report.return_clones) == 1
    assert report.inserted == ["m"]


def test_case_27_returned_twice() -> None:
    after, report, _ = run(
        body(
            f"^entry:\n  %n = alloc : {B}\n  use reads(%a) writes(%n)\n  return %n, %n",
            result=f"({B}, {B})",
        )
    )
    returned = after.region.entry.terminator.operands
    assert returned[0].name == "n"
    assert returned[1].name == report.return_clones[0]


def test_case_28_write_through_a_merged_alias() -> None:
    text = DIAMOND.replace("use reads(%x) writes()", "use reads(%a) writes(%x)")
    _, report, result = run(text)
    assert report.alias_mutations
    assert result.alias_mutations == ["1"]
    with pytest.raises(BufferIRError, match="merged"):
        place_in_function(
            parse_function(text), DeallocationOptions(on_alias_mutation="error")
        )


def test_case_29_nested_loops() -> None:
    after, report, _ = run(
        body(f"""
^entry:
  %z = constant 0 : index
  %r = for %i = %z to %z step %z iter(%p = %a) : {B} {{
    %q = for %j = %z to %z step %z iter(%s = %p) : {B} {{
      %n = alloc : {B}
      use reads(%s) writes(%n)
      yield %n
    }}
    use reads(%q) writes()
    yield %p
  }}
  use reads(%r) writes()
  return
""")
    )
    assert {"q", "s", "n"} <= set(report.inserted)
    assert "p" not in report.marked
    text = print_function(after)
    assert text.count("clone %p ") == 1
    outer, inner = text.split("%q = for")
    assert "clone %p " in outer
    assert "dealloc %q\n" in inner
    again, second = place_in_function(after)
    assert print_function(again) == text
    assert second.inserted == []


def test_custom_allocations_use_their_interface() -> None:
    text = body(f"""
^entry:
  %n = "pool_get"(%a) : {B}
  use reads(%a) writes()
  return
""")
    interfaces = Interfaces(
        dealloc={"pool_get": lambda v: Operation("pool_put", [v])},
    )
    options = DeallocationOptions(interfaces=interfaces, unknown_ops="fresh")
    after, _ = place_in_function(parse_function(text), options)
    assert '"pool_put"(%n)' in print_function(after)


def test_a_loop_that_yields_a_fresh_buffer_C14() -> None:
    """Exactly one free per allocation on every path; running twice is idle."""
    before = parse_function(FRESH_LOOP)
    after, report = place_in_function(before)
    result = check(after, before, report.marked, trips=(0, 1, 2, 3))
    assert result.paths == 4
    assert result.clean
    again, second = place_in_function(after)
    assert print_function(again) == print_function(after)
    assert second.inserted == []
