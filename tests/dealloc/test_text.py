from __future__ import annotations

import pytest

from msa.dealloc import BufferModule, Interpreter, Misuse, parse, parse_function
from msa.dealloc.errors import BufferIRError
from msa.dealloc.ir import MAX_NESTING

EXAMPLE = """\
func @f(%a: buf<2xf32> {restrict}, %c: i1) -> (buf<2xf32>, index) {
^entry:
  %n = alloc : buf<2xf32> {alignment = 64}
  use reads(%a) writes(%n) {tag = "exp"}
  %k = constant 3 : index
  %r = for %i = %k to %k step %k iter(%v = %n) : buf<2xf32> {
    yield %v
  }
  %w = while (%p = %r) : (buf<2xf32>) -> (buf<2xf32>) {
    condition %c, %p
  } do (%q: buf<2xf32>) {
    yield %q
  }
  %s = if %c : buf<2xf32> {
    yield %w
  } else {
    yield %a
  }
  parallel %j = %k to %k step %k {
    yield
  }
  %g = call @h(%s) : buf<2xf32> {aliases = {"0": 0}}
  %o = "odd.op"(%g) : buf<?x2xf32>
  cond_br %c, ^l, ^r(%n)
^l:
  br ^r(%a)
^r(%x: buf<2xf32>):
  dealloc %x
  return %x, %k
}
"""


def test_print_parse_print_is_the_identity() -> None:
    module = parse("// a comment\n" + EXAMPLE + EXAMPLE.replace("@f", "@g"))
    assert list(module.functions) == ["f", "g"]
    text = str(module)
    assert str(parse(text)) == text
    shown = [line for line in text.splitlines() if "aliases" not in line]
    wanted = [line for line in EXAMPLE.splitlines() if "aliases" not in line]
    assert shown[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("func f() {", "function name", "1:6"),
        ("func @f() {\n  return", "ends inside", "2"),
        ("func @f() {\n  foo %a\n}", "unknown operation", "2"),
        ("func @f() {\n  dealloc %a\n}", "%a is not defined", "2:11"),
        ("func @f() {\n  br ^b\n}", "^b is not defined", ""),
        ("func @f() {\n  %a = alloc\n  return\n}", "1 results but 0 types", "2"),
        ("func @f() {\n  %a = alloc : buf<xf32>\n}", "cannot read the type", "2"),
        ("func @f() {\n  ?\n}", "cannot read", "2:1"),
        (
            "func @f(%a: i1) {\n  %a = alloc : buf<2xf32>\n}",
            "%a is defined twice",
            "2",
        ),
        ("func @f() {\n  return\n} }", "unexpected text", "3"),
    ],
)
def test_errors_have_a_place(text: str, message: str, where: str) -> None:
    with pytest.raises(BufferIRError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  %n = alloc : buf<2xf32>", "no terminator"),
        ("  return\n  return", "stands inside"),
        ("  return %a", "returns"),
        ("  cond_br %a, ^x, ^x\n^x:\n  return", "needs a condition"),
        ("  dealloc %c\n  return", "needs a buffer"),
        ("  br ^x(%a)\n^x:\n  return", "passes 1 values to 0"),
        ("  br ^x(%c)\n^x(%y: buf<2xf32>):\n  return", "of type i1"),
        (
            (
                "  cond_br %c, ^x, ^y\n^x:\n  %n = alloc : buf<2xf32>\n  br ^y\n"
                "^y:\n  dealloc %n\n  return"
            ),
            "not defined on every path",
        ),
        ("  dealloc %a\n  use reads(%a) writes()\n  return", "after its dealloc"),
        (
            (
                "  if %c {\n    %n = alloc : buf<2xf32>\n    yield\n  }\n  dealloc %n\n"
                "  return"
            ),
            "not defined on every path",
        ),
    ],
)
def test_broken_rules_are_named(body: str, message: str) -> None:
    from msa.dealloc import verify_function

    text = f"func @f(%a: buf<2xf32>, %c: i1) {{\n^entry:\n{body}\n}}\n"
    with pytest.raises(BufferIRError, match=message):
        verify_function(parse_function(text))


def test_very_deep_nesting_is_refused_not_a_crash() -> None:
    from msa.dealloc import verify_function

    deep = MAX_NESTING + 20
    text = "if %c {\n" * deep + "yield\n}\n" * deep
    function = parse_function(f"func @f(%c: i1) {{\n{text}return\n}}\n")
    with pytest.raises(BufferIRError, match="deeper"):
        verify_function(function)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("%n = alloc : B\nreturn", Misuse.LEAK),
        ("%n = alloc : B\n%v = view %n : B\ndealloc %v\ndealloc %n\nreturn",
         Misuse.DOUBLE_FREE),
        ("%n = alloc : B\n%v = view %n : B\ndealloc %n\nuse reads(%v) writes()\nreturn",
         Misuse.USE_AFTER_FREE),
        ("dealloc %a\nreturn", Misuse.FREE_OF_ARGUMENT),
        ("%n = alloca : B\ndealloc %n\nreturn", Misuse.FREE_OF_STACK),
    ],
    ids=lambda v: v.name if isinstance(v, Misuse) else "",
)  # fmt: skip
def test_the_interpreter_sees_every_misuse(body: str, kind: Misuse) -> None:
    text = f"func @f(%a: B) {{\n^entry:\n{body}\n}}".replace("B", "buf<2xf32>")
    run = Interpreter(parse_function(text), []).run()
    assert [f.kind for f in run.findings] == [kind]


def test_returned_buffers_are_checked() -> None:
    text = (
        "func @f(%a: B) -> (B, B, B) {\n^entry:\n%n = alloc : B\nreturn %a, %n, %n\n}"
    )
    run = Interpreter(parse_function(text.replace("B", "buf<2xf32>")), []).run()
    kinds = [f.kind for f in run.findings]
    assert kinds == [Misuse.RETURNED_ARGUMENT, Misuse.RETURNED_TWICE]


def test_a_module_names_functions_once() -> None:
    module = BufferModule()
    function = parse_function("func @f() {\n  return\n}\n")
    module.add(function)
    with pytest.raises(BufferIRError, match="twice"):
        module.add(function)
