"""The verifier accepts good plans and sees every way of breaking one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import msa
from assignment.planned_modules import (
    BRANCHES,
    FUSED,
    IN_PLACE,
    LOOP,
    PARENT,
    PLANS,
    SLICES,
    STRAIGHT,
    PlannedModule,
)
from msa.errors import PlanError
from msa.hlo import Module

Change = Callable[[PlannedModule], PlannedModule]


@pytest.mark.parametrize("name", PLANS)
def test_a_good_plan_passes(name: str) -> None:
    PLANS[name].verify()


def test_errors_carry_place_numbers_and_all_violations() -> None:
    broken = chunk("a{}", 512, 1024)(STRAIGHT)
    with pytest.raises(PlanError) as caught:
        broken.verify()
    error = caught.value
    assert error.rule == "alignment"
    assert error.where == "chunk of a{}"
    assert error.numbers == {"offset": 512, "alignment": 1024}
    assert len(error.violations) > 1
    assert "overlap" not in error.message


def test_overlap_names_both_steps_and_bytes() -> None:
    with pytest.raises(PlanError) as caught:
        chunk("b{}", 0, 1024)(STRAIGHT).verify()
    error = caught.value
    assert error.rule == "overlap"
    assert error.numbers["bytes"] == 1024
    assert "step 5, b" in error.where


# -- the ways of breaking a plan ---------------------------------------------------


def chunk(name: str, offset: int, size: int) -> Change:
    """Put a buffer somewhere else, or add a chunk."""
    return lambda plan: replace(plan, chunks={**plan.chunks, name: (offset, size)})


def without(name: str) -> Change:
    """Forget a chunk."""

    def change(plan: PlannedModule) -> PlannedModule:
        assert name in plan.chunks
        return replace(plan, chunks={k: v for k, v in plan.chunks.items() if k != name})

    return change


def scratch(name: str, offset: int, size: int) -> Change:
    """Put scratch somewhere else."""
    return lambda plan: replace(plan, scoped={**plan.scoped, name: (offset, size)})


def capacity(size: int) -> Change:
    """Have less memory."""
    return lambda plan: replace(plan, capacity=size)


def text(old: str, new: str, count: int = 1) -> Change:
    """Edit the planned module."""

    def change(plan: PlannedModule) -> PlannedModule:
        assert plan.after.count(old) >= count, old
        return replace(plan, after=plan.after.replace(old, new, count))

    return change


def swap(first: str, second: str) -> Change:
    """Exchange two instructions in the planned module's schedule."""

    def edit(module: Module) -> None:
        schedule = module.schedule
        assert schedule is not None
        sequence = list(schedule.sequence(module.entry))
        names = [x.name for x in sequence]
        i, j = names.index(first), names.index(second)
        sequence[i], sequence[j] = sequence[j], sequence[i]
        schedule.set_sequence(module.entry, sequence)

    return lambda plan: replace(plan, edit=edit)


def both(*changes: Change) -> Change:
    """One after another."""

    def change(plan: PlannedModule) -> PlannedModule:
        for one in changes:
            plan = one(plan)
        return plan

    return change


MUTATIONS: dict[str, tuple[PlannedModule, Change, str]] = {
    # offsets and sizes
    "shift an offset into a neighbour": (STRAIGHT, chunk("b{}", 1024, 1024), "overlap"),
    "shift an offset off alignment": (STRAIGHT, chunk("r{}", 3080, 1024), "alignment"),
    "end above capacity": (STRAIGHT, chunk("r{}", 7680, 1024), "alignment"),
    "end exactly one alignment above": (STRAIGHT, chunk("r{}", 8192, 1024), "capacity"),
    "negative offset": (STRAIGHT, chunk("r{}", -1024, 1024), "chunk"),
    "empty chunk": (STRAIGHT, chunk("r{}", 3072, 0), "chunk"),
    "chunk smaller than the buffer": (STRAIGHT, chunk("r{}", 3072, 512), "chunk size"),
    "chunk grown over its neighbour": (STRAIGHT, chunk("b{}", 2048, 4096), "overlap"),
    "less memory than planned for": (STRAIGHT, capacity(4096), "capacity"),
    "swap two offsets": (
        STRAIGHT,
        both(chunk("d{}", 2048, 1024), chunk("c{}", 1024, 1024)),
        "overlap",
    ),
    "alias two live chunks": (STRAIGHT, chunk("ad2{}", 3072, 1024), "overlap"),
    "result half over a dying operand": (STRAIGHT, chunk("c{}", 1024, 2048), "overlap"),
    "result over an operand read out of order": (
        STRAIGHT,
        chunk("r{}", 1024, 1024),
        "overlap",
    ),
    # the table
    "forget a chunk": (STRAIGHT, without("b{}"), "unplaced"),
    "forget the chunk of a copy": (STRAIGHT, without("wd{}"), "unplaced"),
    "chunk of an unknown instruction": (
        STRAIGHT,
        chunk("nobody{}", 5120, 1024),
        "known place",
    ),
    "chunk of a missing node": (STRAIGHT, chunk("r{0}", 5120, 1024), "known place"),
    "chunk of nonsense": (STRAIGHT, chunk("r", 5120, 1024), "known place"),
    "two chunks for one buffer": (STRAIGHT, chunk("ws{0}", 5120, 1024), "one chunk"),
    "chunk for a value in slow memory": (
        STRAIGHT,
        chunk("e{}", 5120, 1024),
        "one memory",
    ),
    "chunk for a tuple": (STRAIGHT, chunk("t{}", 5120, 1024), "arrays only"),
    # scratch
    "scratch over an operand": (STRAIGHT, scratch("b", 1024, 2048), "overlap"),
    "scratch over a bystander": (STRAIGHT, scratch("r", 0, 1024), "overlap"),
    "scratch above capacity": (STRAIGHT, scratch("b", 7168, 2048), "capacity"),
    "scratch of nobody": (STRAIGHT, scratch("nobody", 0, 1024), "known place"),
    # memory spaces
    "one position in the wrong memory": (
        STRAIGHT,
        text("b = f32[256]{0:S(1)}", "b = f32[256]{0}"),
        "one memory",
    ),
    "value in fast memory without a chunk": (
        STRAIGHT,
        text("e = f32[256]{0} subtract", "e = f32[256]{0:S(1)} subtract"),
        "unplaced",
    ),
    "value in an unknown memory": (
        STRAIGHT,
        text("e = f32[256]{0} subtract", "e = f32[256]{0:S(3)} subtract"),
        "one memory",
    ),
    "program input moved": (
        STRAIGHT,
        both(
            text("x = f32[256]{0} param", "x = f32[256]{0:S(1)} param"),
            chunk("x{}", 5120, 1024),
        ),
        "interface",
    ),
    "program result moved": (
        FUSED,
        both(
            text("ROOT g = f32[256]{0} cos", "ROOT g = f32[256]{0:S(1)} cos"),
            chunk("g{}", 5120, 1024),
        ),
        "interface",
    ),
    "loop state changes memory on the way": (
        LOOP,
        text("z = f32[256]{0:S(1)}", "z = f32[256]{0}"),
        "one memory",
    ),
    "condition's parameter in the wrong memory": (
        LOOP,
        text(
            "cp = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)})",
            "cp = (s32[], f32[256]{0}, f32[256]{0:S(1)})",
        ),
        "one memory",
    ),
    "branch result in the wrong memory": (
        BRANCHES,
        text("ROOT l3 = f32[256]{0:S(1)}", "ROOT l3 = f32[256]{0}"),
        "one memory",
    ),
    "in-place result in the other memory": (
        IN_PLACE,
        text("  d = f32[256]{0:S(1)}", "  d = f32[256]{0}"),
        "one memory",
    ),
    # copies
    "drop a copy-done": (
        STRAIGHT,
        both(
            text("  wd = f32[256]{0:S(1)} copy-done(ws)\n", ""),
            text("subtract(b, wd)", "subtract(b, w)"),
            without("wd{}"),
        ),
        "copy ends",
    ),
    "read a copy in flight": (
        STRAIGHT,
        text(
            "c = f32[256]{0:S(1)} subtract(b, wd)",
            "g = f32[256]{0:S(1)} get-tuple-element(ws), index=0\n"
            "  c = f32[256]{0:S(1)} subtract(b, g)",
        ),
        "valid module",
    ),
    "read a copy in flight through a tuple": (
        STRAIGHT,
        text(
            "c = f32[256]{0:S(1)} subtract(b, wd)",
            "box = ((f32[256]{0:S(1)}, f32[256]{0}, u32[])) tuple(ws)\n"
            "  h = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) get-tuple-element(box), index=0\n"
            "  g = f32[256]{0:S(1)} get-tuple-element(h), index=0\n"
            "  c = f32[256]{0:S(1)} subtract(b, g)",
        ),
        "copy in flight",
    ),
    "end a copy twice": (
        STRAIGHT,
        text(
            "  wd = f32[256]{0:S(1)} copy-done(ws)\n",
            "  wd = f32[256]{0:S(1)} copy-done(ws)\n"
            "  wd2 = f32[256]{0:S(1)} copy-done(ws)\n",
        ),
        "valid module",
    ),
    "end a copy before it starts": (STRAIGHT, swap("ws", "wd"), "valid module"),
    "copy within one memory": (
        STRAIGHT,
        both(
            text("ws = (f32[256]{0:S(1)}", "ws = (f32[256]{0}"),
            text("wd = f32[256]{0:S(1)}", "wd = f32[256]{0}"),
            without("wd{}"),
        ),
        "copy crosses",
    ),
    "copy names its source elsewhere": (
        STRAIGHT,
        text(
            "as = (f32[256]{0}, f32[256]{0:S(1)}, u32[])",
            "as = (f32[256]{0}, f32[256]{0}, u32[])",
        ),
        "copy crosses",
    ),
    "copy ends in the wrong memory": (
        STRAIGHT,
        text("ad = f32[256]{0} copy-done", "ad = f32[256]{0:S(1)} copy-done"),
        "copy ends",
    ),
    "copy the wrong value": (
        STRAIGHT,
        text("copy-start(w)", "copy-start(x)"),
        "same values",
    ),
    "swap the sources of two copies": (
        PARENT,
        both(text("copy-start(w0)", "copy-start(y)")),
        "same values",
    ),
    "read after eviction": (
        STRAIGHT,
        both(
            text("subtract(r, ad2)", "subtract(r, a)"),
        ),
        "overlap",
    ),
    "reuse the room before the eviction has ended": (
        STRAIGHT,
        swap("ad", "d"),
        "overlap",
    ),
    "prefetch before the room is free": (
        STRAIGHT,
        both(
            text("  as2 = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(ad)\n", ""),
            text(
                "  c = f32[256]{0:S(1)}",
                "  as2 = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(ad)\n"
                "  c = f32[256]{0:S(1)}",
            ),
            text("  ad = f32[256]{0} copy-done(as)\n", ""),
            text(
                "  wd = f32[256]{0:S(1)} copy-done(ws)\n",
                "  ad = f32[256]{0} copy-done(as)\n"
                "  wd = f32[256]{0:S(1)} copy-done(ws)\n",
            ),
        ),
        "overlap",
    ),
    "overwrite an input while it is copied": (
        IN_PLACE,
        both(
            text("  pd = f32[256]{0:S(1)} copy-done(ps)\n", ""),
            text("negate(pd)", "negate(p)"),
            text("  ROOT r = f32[256]{0} dyn", "  r = f32[256]{0} dyn"),
            text(
                "(p, u, i)\n",
                "(p, u, i)\n  pd = f32[256]{0:S(1)} copy-done(ps)\n"
                "  pe = f32[256]{0} sine(pd)\n"
                "  ROOT rr = f32[256]{0} get-tuple-element(rt), index=0\n",
            ),
            text(
                "  pe = f32[256]{0} sine(pd)\n",
                "  rt = (f32[256]{0}, f32[256]{0:S(1)}) tuple(r, pd)\n",
            ),
        ),
        "shared storage",
    ),
    # slices
    "slice at the wrong place": (SLICES, chunk("d2{}", 5120, 2048), "slices"),
    "slices in the wrong order": (SLICES, text("(d1, d2)", "(d2, d1)"), "slices"),
    "slice twice": (
        SLICES,
        text("slice-start(w), slice={[2:4]", "slice-start(w), slice={[0:2]"),
        "same values",
    ),
    "slice of another value": (
        SLICES,
        both(
            text(
                "  sb = ((f32[4,256]{1,0}), f32[2,256]{1,0:S(1)}, s32[]) slice-start(w)",
                "  sb = ((f32[4,256]{1,0}), f32[2,256]{1,0:S(1)}, s32[]) slice-start(x)",
            ),
        ),
        "same values",
    ),
    "slice in slow memory": (
        SLICES,
        both(
            text(
                "sb = ((f32[4,256]{1,0}), f32[2,256]{1,0:S(1)}",
                "sb = ((f32[4,256]{1,0}), f32[2,256]{1,0}",
            ),
            text("d2 = f32[2,256]{1,0:S(1)}", "d2 = f32[2,256]{1,0}"),
        ),
        "copy crosses",
    ),
    # the program
    "swap operands": (
        STRAIGHT,
        text("subtract(b, wd)", "subtract(wd, b)"),
        "same values",
    ),
    "read an older value": (
        STRAIGHT,
        text("multiply(c, c)", "multiply(c, b)"),
        "same values",
    ),
    "another operation": (
        STRAIGHT,
        text("exponential(a)", "negate(a)"),
        "same program",
    ),
    "another attribute": (
        LOOP,
        text("direction=LT", "direction=LE"),
        "same program",
    ),
    "another constant": (LOOP, text("constant(10)", "constant(11)"), "same program"),
    "leave out an instruction": (
        STRAIGHT,
        both(
            text("  d = f32[256]{0:S(1)} multiply(c, c)\n", ""),
            text("reverse(d)", "reverse(c)"),
            without("d{}"),
        ),
        "same program",
    ),
    "put in an instruction": (
        STRAIGHT,
        text(
            "  n = f32[256]{0} add(k, e)",
            "  m = f32[256]{0} negate(e)\n  n = f32[256]{0} add(k, m)",
        ),
        "same values",
    ),
    "put in an instruction that nothing reads": (
        STRAIGHT,
        text(
            "  n = f32[256]{0} add",
            "  m = f32[256]{0} negate(e)\n  n = f32[256]{0} add",
        ),
        "same program",
    ),
    "another result": (STRAIGHT, text("tuple(e, n)", "tuple(n, e)"), "same values"),
    "lose an input/output alias": (
        STRAIGHT,
        text(", input_output_alias={ {1}: (2, {}, may-alias) }", ""),
        "same program",
    ),
    "lose the schedule": (STRAIGHT, text(", is_scheduled=true", ""), "schedule"),
    "call other computations": (
        LOOP,
        both(
            text("cond {", "cond2 {"),
            text("condition=cond,", "condition=cond2,"),
        ),
        "same program",
    ),
    "exchange branches": (
        BRANCHES,
        text(
            "true_computation=left, false_computation=right",
            "true_computation=right, false_computation=left",
        ),
        "same program",
    ),
    "exchange branch operands": (
        BRANCHES,
        text("conditional(c, a, b)", "conditional(c, b, a)"),
        "same values",
    ),
    "exchange loop state": (
        LOOP,
        text("tuple(zero, v0, w0)", "tuple(zero, w0, v0)"),
        "same values",
    ),
    "hand on other loop state": (
        LOOP,
        text("tuple(j, z, w)", "tuple(j, w, z)"),
        "same values",
    ),
    "hand a changed value on as unchanged": (
        PARENT,
        text(
            "  ROOT q = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) "
            "tuple(j, z, wpd, wp)",
            "  zs = (f32[256]{0}, f32[256]{0:S(1)}, u32[]) copy-start(z)\n"
            "  zd = f32[256]{0} copy-done(zs)\n"
            "  ROOT q = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) "
            "tuple(j, z, wpd, zd)",
        ),
        "same values",
    ),
    "begin a loop with another invariant": (
        PARENT,
        text("tuple(zero, v0, w0d, w0)", "tuple(zero, v0, w0d, x)"),
        "same values",
    ),
    "change a fusion's body": (
        FUSED,
        text("subtract(fp, fq)", "subtract(fq, fp)"),
        "same program",
    ),
    "change a fusion's root": (
        FUSED,
        both(
            text("fa = f32[256]{0}", "ROOT fa = f32[256]{0}"),
            text("ROOT fr = ", "fr = "),
        ),
        "same program",
    ),
    # loops and branches share time in their own ways
    "scratch value over loop state that is still read": (
        LOOP,
        chunk("u{}", 1024, 1024),
        "overlap",
    ),
    "scratch value over state handed to the next trip": (
        LOOP,
        chunk("s{}", 1024, 1024),
        "overlap",
    ),
    "branch value over what the branch reads later": (
        BRANCHES,
        chunk("r1{}", 1024, 1024),
        "overlap",
    ),
    "branch value over a reversed operand": (
        BRANCHES,
        chunk("r2{}", 0, 1024),
        "overlap",
    ),
    "value live across a conditional over a branch's": (
        BRANCHES,
        both(
            text(
                "ROOT out = f32[256]{0} cosine(k)", "ROOT out = f32[256]{0} add(k, a)"
            ),
            lambda plan: replace(
                plan, before=plan.before.replace("cosine(k)", "add(k, a)")
            ),
        ),
        "overlap",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_plan_is_caught(name: str) -> None:
    plan, change, rule = MUTATIONS[name]
    broken = change(plan)
    assert broken != plan or name == "nothing"
    with pytest.raises(PlanError) as caught:
        broken.verify()
    assert caught.value.rule == rule, caught.value.violations


def test_there_are_many_ways_to_break_a_plan() -> None:
    assert len(MUTATIONS) >= 40


def test_the_input_is_not_touched() -> None:
    before = msa.parse(STRAIGHT.before)
    text_before = before.to_text()
    STRAIGHT.verify()
    assert before.to_text() == text_before


_NESTED = """
HloModule nested, is_scheduled=true
ENTRY main {
  x = f32[256]{0} parameter(0)
  a = f32[256]{0} negate(x)
  b = f32[256]{0} sine(x)
  inner = (f32[256]{0}, f32[256]{0}) tuple(a, b)
  outer = ((f32[256]{0}, f32[256]{0}), f32[256]{0}) tuple(inner, x)
  again = (f32[256]{0}, f32[256]{0}) get-tuple-element(outer), index=0
  ROOT r = f32[256]{0} get-tuple-element(again), index=INDEX
}
"""


@pytest.mark.parametrize(("index", "kept", "gone"), [(0, "a", "b"), (1, "b", "a")])
def test_elements_deep_in_tuples_are_needed_by_who_reads_them(
    index: int, kept: str, gone: str
) -> None:
    before = _NESTED.replace("INDEX", str(index))

    def plan(left: str) -> PlannedModule:
        opcode = {"a": "negate", "b": "sine"}[left]
        return PlannedModule(
            before,
            f"""
HloModule nested, is_scheduled=true
ENTRY main {{
  x = f32[256]{{0}} parameter(0)
  ROOT {left} = f32[256]{{0}} {opcode}(x)
}}
""",
            {},
        )

    plan(kept).verify()
    with pytest.raises(PlanError, match="is gone that the program needs"):
        plan(gone).verify()
