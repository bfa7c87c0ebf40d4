"""Buffer reuse after deallocation (rows R1–R16)."""

from __future__ import annotations

import pytest

from dealloc_programs import random_program, random_scripts
from msa.dealloc import check, parse_function, place_in_function, print_function
from msa.dealloc.reuse import reuse_in_function

B = "buf<2xf32>"
SOURCE = f"%a: {B}, %c: i1"


def reuse(body: str, arguments: str = SOURCE, result: str = "") -> str:
    arrow = f" -> {result}" if result else ""
    text = f"func @f({arguments}){arrow} {{\n^entry:\n{body}\n}}\n"
    before = parse_function(text)
    after = reuse_in_function(before)
    outcome = check(after, before)
    assert outcome.clean, (outcome.findings[:2], outcome.differences[:2])
    assert outcome.paths
    return print_function(after)


def count(text: str, kind: str) -> int:
    return sum(
        f"= {kind} " in line or line.strip().startswith(f"{kind} ")
        for line in text.splitlines()
    )


def work(name: str, size: int = 2, **options: object) -> str:
    extra = f" {{alignment = {options['alignment']}}}" if options else ""
    return (
        f"%{name} = alloc : buf<{size}xf32>{extra}\n"
        f'use reads(%a) writes(%{name}) {{tag = "{name}"}}\n'
        f"use reads(%{name}) writes(%a)\n"
        f"dealloc %{name}\n"
    )


BOUNDS = "%z = constant 0 : index\n"


def loop(body: str, variable: str = "i") -> str:
    return f"for %{variable} = %z to %z step %z {{\n{body}yield\n}}\n"


def test_r01_two_in_a_branch() -> None:
    text = reuse(f"if %c {{\n{work('x')}{work('y')}yield\n}}\nreturn")
    assert (count(text, "alloca"), count(text, "alloc")) == (1, 0)
    assert text.index("alloca") < text.index("if")


@pytest.mark.parametrize("depth", [1, 2])
def test_r02_out_of_loops(depth: int) -> None:
    body = work("x")
    for level in range(depth):
        body = loop(body, f"i{level}")
    text = reuse(BOUNDS + body + "return")
    assert (count(text, "alloca"), count(text, "alloc")) == (1, 0)
    assert text.index("alloca") < text.index("for")


def test_r02_out_of_a_while_body() -> None:
    text = reuse(
        "while () : () -> () {\ncondition %c\n} do () {\n" + work("x") + "yield\n}\n"
        "return"
    )
    assert (count(text, "alloca"), count(text, "alloc")) == (1, 0)


CARRIED = f'%n = alloc : {B}\nuse reads(%p) writes(%n) {{tag = "step"}}\ndealloc %p\n'


def test_r03_carried_by_a_for() -> None:
    text = reuse(
        f"{BOUNDS}%s = alloc : {B}\nuse reads(%a) writes(%s)\n"
        f"%r = for %i = %z to %z step %z iter(%p = %s) : {B} {{\n{CARRIED}yield %n\n}}\n"
        "use reads(%r) writes(%a)\ndealloc %r\nreturn"
    )
    inner = text[text.index("for") :].split("}")[0]
    assert "alloc" not in inner
    assert count(text, "alloc") + count(text, "alloca") == 2


@pytest.mark.parametrize("where", ["before", "after"])
def test_r03_carried_by_a_while(where: str) -> None:
    before = (
        CARRIED + "condition %c, %n\n" if where == "before" else "condition %c, %p\n"
    )
    after = (
        CARRIED.replace("%p", "%q").replace("%n", "%m") + "yield %m\n"
        if where == "after"
        else "yield %q\n"
    )
    text = reuse(
        f"%s = alloc : {B}\nuse reads(%a) writes(%s)\n"
        f"%r = while (%p = %s) : ({B}) -> ({B}) {{\n{before}}} do (%q: {B}) {{\n{after}}}\n"
        "use reads(%r) writes(%a)\ndealloc %r\nreturn"
    )
    inner = text[text.index("while") :].rsplit("}", 2)[0]
    assert "= alloc" not in inner
    assert count(text, "alloc") + count(text, "alloca") == 2


def test_r04_both_regions_of_a_while() -> None:
    after = CARRIED.replace("%p", "%q").replace("%n", "%m") + "yield %m\n"
    text = reuse(
        f"%s = alloc : {B}\nuse reads(%a) writes(%s)\n"
        f"%r = while (%p = %s) : ({B}) -> ({B}) {{\n{CARRIED}condition %c, %n\n"
        f"}} do (%q: {B}) {{\n{after}}}\n"
        "use reads(%r) writes(%a)\ndealloc %r\nreturn"
    )
    assert count(text, "alloc") + count(text, "alloca") == 3


def test_r05_before_inside_and_after_a_loop() -> None:
    text = reuse(BOUNDS + work("x") + loop(work("y")) + work("w") + "return")
    assert (count(text, "alloca"), count(text, "alloc")) == (1, 0)


COPY_OUT = (
    f"%s = alloc : {B}\nuse reads(%a) writes(%s)\ncopy %s, %o\ndealloc %s\nreturn"
)


def test_r06_copy_into_a_restrict_argument() -> None:
    text = reuse(COPY_OUT, f"{SOURCE}, %o: {B} {{restrict}}")
    assert count(text, "copy") == 0
    assert "writes(%o)" in text
    assert "alloc" not in text


def test_r07_copy_into_another_argument() -> None:
    text = reuse(COPY_OUT, f"{SOURCE}, %o: {B}")
    assert (count(text, "copy"), count(text, "alloca")) == (1, 1)


def test_r08_source_changed_after_the_copy() -> None:
    text = reuse(
        f"%s = alloc : {B}\nuse reads(%a) writes(%s)\ncopy %s, %o\n"
        "use reads(%a) writes(%s)\nuse reads(%s) writes(%a)\ndealloc %s\nreturn",
        f"{SOURCE}, %o: {B} {{restrict}}",
    )
    assert count(text, "copy") == 1


def test_r09_two_restrict_arguments() -> None:
    text = reuse(
        f"%s = alloc : {B}\nuse reads(%a) writes(%s)\ncopy %s, %o\n"
        'use reads(%a) writes(%s) {tag = "again"}\ncopy %s, %p\ndealloc %s\nreturn',
        f"{SOURCE}, %o: {B} {{restrict}}, %p: {B} {{restrict}}",
    )
    assert count(text, "copy") == 1
    assert "copy %p, %o" in text


def test_r10_argument_to_argument() -> None:
    text = reuse("copy %a, %o\nreturn", f"{SOURCE}, %o: {B} {{restrict}}")
    assert count(text, "copy") == 1


def test_r11_allocation_to_allocation() -> None:
    text = reuse(
        f"%d = alloc : {B}\n%s = alloc : {B}\nuse reads(%a) writes(%s)\n"
        "copy %s, %d\ndealloc %s\nreturn %d",
        result=B,
    )
    assert (count(text, "copy"), count(text, "alloc")) == (0, 1)


def test_r12_siblings_share_hoisted_buffers() -> None:
    text = reuse(
        f"if %c {{\n{work('p', 1)}{work('q', 2)}yield\n}} else {{\n"
        f"{work('r', 3)}{work('s', 1)}yield\n}}\nreturn"
    )
    assert count(text, "alloca") == 3
    assert text.index("if") > text.rindex("alloca")


def test_r13_alignment_is_kept() -> None:
    text = reuse(work("x", alignment=64) + "return")
    assert "alloca : buf<2xf32> {alignment = 64}" in text


def test_r14_two_ifs_in_a_loop_and_one_more() -> None:
    body = (
        f"if %c {{\n{work('x')}yield\n}}\nif %c {{\n{work('y')}yield\n}}\n{work('w')}"
    )
    text = reuse(BOUNDS + loop(body) + "return")
    assert count(text, "alloca") + count(text, "alloc") == 1


def test_r15_over_the_stack_budget() -> None:
    text = reuse(work("x", 5000) + "return")
    assert (count(text, "alloc"), count(text, "alloca")) == (1, 0)


@pytest.mark.parametrize(
    "body", ["if %c {\nyield\n}\nreturn", 'if %c {\n"odd"()\nyield\n}\nreturn']
)
def test_r16_nothing_to_do(body: str) -> None:
    text = f"func @f({SOURCE}) {{\n^entry:\n{body}\n}}\n"
    function = parse_function(text)
    assert print_function(reuse_in_function(function)) == print_function(function)


def test_random_programs_keep_their_results() -> None:
    """Reuse after placement: clean, same results, never a much higher peak."""
    for seed in range(400):
        before = random_program(seed)
        placed, report = place_in_function(before)
        reused = reuse_in_function(placed)
        scripts = random_scripts(seed)
        outcome = check(reused, before, report.marked, scripts=scripts)
        assert outcome.clean, (seed, outcome.findings[:2], outcome.differences[:2])
