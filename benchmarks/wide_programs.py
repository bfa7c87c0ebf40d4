"""Programs that are wide in one respect, by the number of what there are many of."""

from __future__ import annotations

from collections.abc import Callable

_F32 = "f32[64,128]{1,0}"


def _module(lines: list[str], outer: str = "") -> str:
    body = "\n  ".join([*lines[:-1], f"ROOT {lines[-1]}"])
    return f"HloModule m, is_scheduled=true\n{outer}\nENTRY main {{\n  {body}\n}}\n"


def one_buffer(count: int) -> str:
    """A buffer that is updated in place again and again."""
    big, small = "f32[4096]{0}", "f32[16]{0}"
    lines = [f"p = {big} parameter(0)", f"u = {small} parameter(1)"]
    lines += ["i = s32[] parameter(2)", f"x0 = {big} negate(p)"]
    lines += [
        f"x{k + 1} = {big} dynamic-update-slice(x{k}, u, i)" for k in range(count)
    ]
    return _module([*lines, f"y = {big} negate(x{count})"])


def one_value_for_all_branches(count: int) -> str:
    """A conditional that gives one value to each of its branches."""
    names = [f"f{k}" for k in range(count)]
    outer = "".join(
        f"{f} {{\n  a_{f} = {_F32} parameter(0)\n  ROOT r_{f} = {_F32} negate(a_{f})\n}}\n"
        for f in names
    )
    given, called = ", ".join(["v"] * count), ", ".join(names)
    lines = [f"p = {_F32} parameter(0)", "i = s32[] parameter(1)"]
    lines += [
        f"v = {_F32} negate(p)",
        f"c = {_F32} conditional(i, {given}), branch_computations={{{called}}}",
        f"y = {_F32} add(c, v)",
    ]
    return _module(lines, outer)


def loops_in_loops(count: int, trips: int = 3) -> str:
    """A loop in a loop in a loop …"""
    state = f"(s32[], {_F32})"
    outer = ""
    for k in range(count):
        outer += (
            f"cond{k} {{\n  q{k} = {state} parameter(0)\n"
            f"  ci{k} = s32[] get-tuple-element(q{k}), index=0\n"
            f"  last{k} = s32[] constant({trips})\n"
            f"  ROOT less{k} = pred[] compare(ci{k}, last{k}), direction=LT\n}}\n"
            f"body{k} {{\n  s{k}_ = {state} parameter(0)\n"
            f"  i{k} = s32[] get-tuple-element(s{k}_), index=0\n"
            f"  x{k} = {_F32} get-tuple-element(s{k}_), index=1\n"
            f"  one{k} = s32[] constant(1)\n  next{k} = s32[] add(i{k}, one{k})\n"
            f"  y{k} = {_F32} negate(x{k})\n"
        )
        inner = f"y{k}"
        if k:
            outer += (
                f"  zero{k} = s32[] constant(0)\n  begin{k} = s32[] copy(zero{k})\n"
                f"  into{k} = {state} tuple(begin{k}, y{k})\n"
                f"  loop{k} = {state} while(into{k}), condition=cond{k - 1}, "
                f"body=body{k - 1}\n"
                f"  inner{k} = {_F32} get-tuple-element(loop{k}), index=1\n"
            )
            inner = f"inner{k}"
        outer += f"  ROOT out{k} = {state} tuple(next{k}, {inner})\n}}\n"
    last = count - 1
    lines = [f"p = {_F32} parameter(0)", f"x = {_F32} negate(p)"]
    lines += ["zero = s32[] constant(0)", "begin = s32[] copy(zero)"]
    lines += [
        f"into = {state} tuple(begin, x)",
        f"loop = {state} while(into), condition=cond{last}, body=body{last}",
        f"r = {_F32} get-tuple-element(loop), index=1",
        f"y = {_F32} negate(r)",
    ]
    return _module(lines, outer)


def loop_over_many(count: int) -> str:
    """A loop over a wide state, of which each element is read by one instruction."""
    state = "(" + ", ".join(["s32[]", *[_F32] * count]) + ")"
    outer = (
        f"cond {{\n  q = {state} parameter(0)\n  ci = s32[] get-tuple-element(q), "
        "index=0\n  last = s32[] constant(3)\n"
        "  ROOT less = pred[] compare(ci, last), direction=LT\n}\n"
        f"body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), "
        "index=0\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n"
    )
    for k in range(count):
        outer += (
            f"  g{k} = {_F32} get-tuple-element(s), index={k + 1}\n"
            f"  n{k} = {_F32} negate(g{k})\n"
        )
    elements = ", ".join(f"n{k}" for k in range(count))
    outer += f"  ROOT out = {state} tuple(next, {elements})\n}}\n"
    lines = [f"p = {_F32} parameter(0)"]
    lines += [f"v{k} = {_F32} negate(p)" for k in range(count)]
    lines += ["zero = s32[] constant(0)", "begin = s32[] copy(zero)"]
    given = ", ".join(f"v{k}" for k in range(count))
    lines += [
        f"into = {state} tuple(begin, {given})",
        f"loop = {state} while(into), condition=cond, body=body",
        f"r = {_F32} get-tuple-element(loop), index=1",
        f"y = {_F32} negate(r)",
    ]
    return _module(lines, outer)


def loops_in_a_row(count: int) -> str:
    """Loops one after the other that hand one value through and change another."""
    state = f"(s32[], {_F32}, {_F32})"
    outer = ""
    lines = [f"p = {_F32} parameter(0)", f"kept = {_F32} abs(p)"]
    lines.append(f"x0 = {_F32} negate(p)")
    for k in range(count):
        outer += (
            f"cond{k} {{\n  q{k} = {state} parameter(0)\n"
            f"  ci{k} = s32[] get-tuple-element(q{k}), index=0\n"
            f"  last{k} = s32[] constant(3)\n"
            f"  ROOT less{k} = pred[] compare(ci{k}, last{k}), direction=LT\n}}\n"
            f"body{k} {{\n  s{k}_ = {state} parameter(0)\n"
            f"  i{k} = s32[] get-tuple-element(s{k}_), index=0\n"
            f"  y{k} = {_F32} get-tuple-element(s{k}_), index=1\n"
            f"  w{k} = {_F32} get-tuple-element(s{k}_), index=2\n"
            f"  one{k} = s32[] constant(1)\n  next{k} = s32[] add(i{k}, one{k})\n"
            f"  z{k}_ = {_F32} add(y{k}, w{k})\n"
            f"  ROOT out{k} = {state} tuple(next{k}, z{k}_, w{k})\n}}\n"
        )
        given = "kept" if not k else f"kept{k}"
        lines += [
            f"zero{k} = s32[] constant(0)",
            f"begin{k} = s32[] copy(zero{k})",
            f"into{k} = {state} tuple(begin{k}, x{k}, {given})",
            f"loop{k} = {state} while(into{k}), condition=cond{k}, body=body{k}",
            f"x{k + 1} = {_F32} get-tuple-element(loop{k}), index=1",
            f"kept{k + 1} = {_F32} get-tuple-element(loop{k}), index=2",
        ]
    lines.append(f"y = {_F32} add(x{count}, kept{count})")
    return _module(lines, outer)


def live_at_once(count: int) -> str:
    """Values that are all live before the first of them is read."""
    lines = [f"p = {_F32} parameter(0)"]
    lines += [f"v{k} = {_F32} negate(p)" for k in range(count)]
    lines.append(f"sum0 = {_F32} abs(v0)")
    lines += [f"sum{k} = {_F32} add(sum{k - 1}, v{k})" for k in range(1, count)]
    return _module(lines)


def one_value_read_often(count: int) -> str:
    """A value that every step reads."""
    lines = [f"p = {_F32} parameter(0)", f"v = {_F32} negate(p)"]
    lines.append(f"sum0 = {_F32} abs(v)")
    lines += [f"sum{k} = {_F32} add(sum{k - 1}, v)" for k in range(1, count)]
    return _module(lines)


def wide_tuple(count: int) -> str:
    """A tuple of many elements, each read by one instruction."""
    lines = [f"p = {_F32} parameter(0)"]
    lines += [f"v{k} = {_F32} negate(p)" for k in range(count)]
    given = ", ".join(f"v{k}" for k in range(count))
    lines.append(f"t = ({', '.join([_F32] * count)}) tuple({given})")
    lines += [f"g{k} = {_F32} get-tuple-element(t), index={k}" for k in range(count)]
    lines.append(f"sum0 = {_F32} abs(g0)")
    lines += [f"sum{k} = {_F32} add(sum{k - 1}, g{k})" for k in range(1, count)]
    return _module(lines)


def wide_fusion(count: int) -> str:
    """A fusion of many operands."""
    outer = "fused {\n"
    outer += "".join(f"  a{k} = {_F32} parameter({k})\n" for k in range(count))
    outer += f"  b0 = {_F32} abs(a0)\n"
    outer += "".join(f"  b{k} = {_F32} add(b{k - 1}, a{k})\n" for k in range(1, count))
    outer += f"  ROOT b = {_F32} negate(b{count - 1})\n}}\n"
    lines = [f"p = {_F32} parameter(0)"]
    lines += [f"v{k} = {_F32} negate(p)" for k in range(count)]
    given = ", ".join(f"v{k}" for k in range(count))
    lines.append(f"x = {_F32} fusion({given}), kind=kLoop, calls=fused")
    return _module([*lines, f"y = {_F32} negate(x)"], outer)


def small_calls(count: int) -> str:
    """Calls of many small computations."""
    outer = "".join(
        f"f{k} {{\n  a{k} = {_F32} parameter(0)\n  b{k} = {_F32} abs(a{k})\n"
        f"  ROOT r{k} = {_F32} negate(b{k})\n}}\n"
        for k in range(count)
    )
    lines = [f"p = {_F32} parameter(0)", f"x0 = {_F32} abs(p)"]
    lines += [f"x{k + 1} = {_F32} call(x{k}), to_apply=f{k}" for k in range(count)]
    return _module(lines, outer)


PROGRAMS: dict[str, tuple[Callable[[int], str], int]] = {
    "values live at once": (live_at_once, 50_000),
    "one value read often": (one_value_read_often, 50_000),
    "elements of a tuple": (wide_tuple, 20_000),
    "operands of a fusion": (wide_fusion, 5_000),
    "small computations called": (small_calls, 5_000),
    "loops in loops": (loops_in_loops, 1_000),
    "loops in a row": (loops_in_a_row, 2_000),
    "elements of a loop's state": (loop_over_many, 5_000),
    "branches given one value": (one_value_for_all_branches, 2_000),
    "updates of one buffer": (one_buffer, 10_000),
}
"""Maker of each kind of program, and how many are many."""
