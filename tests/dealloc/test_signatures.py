from __future__ import annotations

import pytest

from msa.dealloc import (
    Misuse,
    check,
    parse,
    parse_function,
    place_in_function,
    verify_function,
)
from msa.dealloc.errors import BufferIRError


def _program(body: str, head: str = "(%a: B, %n: index, %c: i1)") -> str:
    return f"func @f{head} {{\n^entry:\n{body}\n  return\n}}\n".replace(
        "B", "buf<2xf32>"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('  "\\q"()', "expected a value"),
        ("  %k = constant " + "[" * 100_000 + " : i1", "expected a value"),
        ("  %k = alloc : buf<" + "9" * 5000 + "xf32>", "cannot read the type"),
        ("  use reads() writes() {tag = 1, tag = 2}", "'tag' is given twice"),
    ],
    ids=["escape", "nesting", "digits", "twice"],
)
def test_bi9_text_that_cannot_be_read_is_a_typed_error(body: str, message: str) -> None:
    with pytest.raises(BufferIRError, match=message) as caught:
        parse(_program(body))
    assert caught.value.where.startswith("3:")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  %k = alloc : i32", "makes a buffer"),
        ("  alloc %n", "'alloc' has 0 results"),
        ("  %k = alloc : buf<?xf32>", "needs 1 sizes"),
        ("  %k = alloc %n : B", "needs 0 sizes"),
        ("  %k = alloc %a : buf<?xf32>", "needs 1 sizes"),
        ('  %k = alloc : B {alignment = "x"}', "no whole number over 0"),
        ("  %k = alloc : B {alignment = 0}", "no whole number over 0"),
        ("  %k = load : f32", "'load' has 0 operands"),
        ("  %k = load %n : f32", "'load' needs a buffer"),
        ("  store %n", "'store' has 1 operands"),
        ("  store %a, %n", "'store' needs a buffer"),
        ("  %k = clone %a : buf<3xf32>", "makes buf<3xf32>"),
        ("  %k = view %a : buf<3xf32>", "larger than its source"),
        ("  %k = select %c, %a, %n : B", "chooses among other types"),
        ("  %k = alloc : buf<3xf32>\n  copy %a, %k", "'copy' from buf<2xf32>"),
        ("  use reads(%a) writes(%n)", "writes what is no buffer"),
        ('  "use"(%a)', "neither reads nor writes"),
        ('  "constant"()', "0 results"),
        ('  %k = "constant"() : i32', "needs a value"),
        ("  %k = call @g(%a) : B {aliases = [0]}", "'aliases' of a call"),
        ('  %k = call @g(%a) : B {aliases = {"q": 0}}', "there is no 'q'"),
        ('  %k = call @g(%a) : B {aliases = {"0": "z"}}', "there is no 'z'"),
        ('  %k = call @g(%a) : B {aliases = {"0": 1}}', "there is no 1"),
        ('  %k = call @g(%a) : B {aliases = {"1": 0}}', "there is no 1"),
        ('  %k = call @g(%n) : B {aliases = {"0": 0}}', "that are buffers"),
        ("  for %i = %a to %n step %n {\n    yield\n  }", "counts with scalars"),
        ("  for %i = %n to %n step %n {\n    return\n  }", "ends with 'return'"),
        ('  "for"(%n, %n, %n) {\n    yield\n  }', "has 0 arguments"),
        (
            (
                "  %r = while (%x = %a) : B -> B {\n    yield %x\n  } do (%y: B) {\n"
                "    yield %y\n  }"
            ),
            "ends with 'yield', not with 'condition'",
        ),
    ],
)  # fmt: skip
def test_bi4_operations_look_like_their_kind(body: str, message: str) -> None:
    function = parse_function(_program(body))
    with pytest.raises(BufferIRError, match=message):
        verify_function(function)
    with pytest.raises(BufferIRError, match=message):
        check(function)
    with pytest.raises(BufferIRError, match=message):
        place_in_function(function)


def test_bi4_a_function_ends_with_return() -> None:
    text = "func @f() {\n^entry:\n  yield\n}\n"
    with pytest.raises(BufferIRError, match="ends with 'yield', not with 'return'"):
        verify_function(parse_function(text))


def test_bi9_odd_names_of_operations_come_back() -> None:
    text = _program('  "a \\"quoted\\" \\\\ name"(%a)')
    again = str(parse(text))
    assert str(parse(again)) == again
    assert next(parse_function(again).walk()).kind == 'a "quoted" \\ name'


@pytest.mark.parametrize(
    ("shape", "kinds"), [("4", []), ("2x2", []), ("3", [Misuse.FREE_OF_PART])]
)
def test_bi6_a_view_may_be_freed_when_it_is_all_of_the_buffer(
    shape: str, kinds: list[Misuse]
) -> None:
    function = parse_function(
        _program(
            f"  %k = alloc : buf<4xf32>\n  %v = subview %k : buf<{shape}xf32>\n"
            "  dealloc %v"
        )
    )
    found = [f.kind for f in check(function).findings if f.kind is not Misuse.LEAK]
    assert found == kinds


def test_bd7_a_part_of_a_buffer_that_meets_another_is_cloned_and_freed() -> None:
    """The clone of a part has the size of the part, and nothing leaks."""
    function = parse_function(
        "func @f(%p: buf<4xf32>, %c: i1) -> buf<2xf32> {\n^entry:\n"
        "  %v = subview %p : buf<2xf32>\n  cond_br %c, ^l, ^r(%v)\n^l:\n"
        "  %n = alloc : buf<2xf32>\n  use reads(%p) writes(%n)\n  br ^r(%n)\n"
        "^r(%j: buf<2xf32>):\n  return %j\n}\n"
    )
    freed, report = place_in_function(function)
    outcome = check(freed, function, report.marked)
    assert (outcome.paths, outcome.clean) == (2, True)
    assert outcome.clone_bytes == 2 * 2 * 8  # at the merge and at the return
    assert str(place_in_function(freed)[0]) == str(freed)


def test_frees_in_a_straight_line_are_findings_of_the_checker() -> None:
    function = parse_function("""
func @f() {
^entry:
  %a = alloc : buf<4xf32>
  dealloc %a
  use reads(%a) writes()
  dealloc %a
  return
}""")
    kinds = [finding.kind.value for finding in check(function).findings]
    assert kinds == ["use after free", "double free"]
    with pytest.raises(BufferIRError, match="uses %a after its dealloc"):
        verify_function(function)
