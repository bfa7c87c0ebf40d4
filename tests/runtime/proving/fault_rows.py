"""A planned program with every kind of placement, and faults put into its text.

The program prefetches, evicts, updates in place, loops and branches over fast
memory, runs an asynchronous operation and writes into a donated parameter. Each fault
is a set of replacements in the planned text or in the planned places.
"""

from __future__ import annotations

ORIGINAL = """
HloModule plain, is_scheduled=true, input_output_alias={ {1}: (1, {}, may-alias) }

body {
  state = (s32[], s32[64], s32[64]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  acc = s32[64] get-tuple-element(state), index=1
  row = s32[64] get-tuple-element(state), index=2
  sum = s32[64] add(acc, row)
  next = s32[64] copy(sum)
  step = s32[] constant(1)
  j = s32[] add(i, step)
  ROOT out = (s32[], s32[64], s32[64]) tuple(j, next, row)
}

test {
  state2 = (s32[], s32[64], s32[64]) parameter(0)
  i2 = s32[] get-tuple-element(state2), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i2, three), direction=LT
}

yes {
  t = s32[64] parameter(0)
  ROOT tn = s32[64] negate(t)
}

no {
  f = s32[64] parameter(0)
  ROOT fn = s32[64] add(f, f)
}

wrapped {
  w = s32[64] parameter(0)
  ROOT wn = s32[64] not(w)
}

ENTRY main {
  p = s32[64] parameter(0)
  q = s32[64] parameter(1)
  k = s32[8] parameter(2)
  choice = pred[] parameter(3)
  at = s32[] constant(5)
  a = s32[64] add(p, p)
  b = s32[64] multiply(a, p)
  upd = s32[64] dynamic-update-slice(b, k, at)
  c = s32[64] negate(upd)
  zero = s32[] constant(0)
  i0 = s32[] copy(zero)
  acc0 = s32[64] copy(a)
  init = (s32[], s32[64], s32[64]) tuple(i0, acc0, c)
  loop = (s32[], s32[64], s32[64]) while(init), condition=test, body=body
  total = s32[64] get-tuple-element(loop), index=1
  row3 = s32[64] get-tuple-element(loop), index=2
  picked = s32[64] conditional(choice, total, row3), true_computation=yes, false_computation=no
  start = ((s32[64]), s32[64], u32[]) async-start(total), calls=wrapped
  d = s32[64] xor(picked, a)
  e = s32[64] subtract(d, p)
  done = s32[64] async-done(start)
  given = s32[64] dynamic-update-slice(q, k, at)
  ROOT result = (s32[64], s32[64], s32[64], s32[64]) tuple(e, given, done, a)
}
"""

PLANNED = """
HloModule plain, is_scheduled=true, input_output_alias={ {1}: (1, {}, may-alias) }

body {
  state = (s32[], s32[64]{0:S(1)}, s32[64]{0:S(1)}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  acc = s32[64]{0:S(1)} get-tuple-element(state), index=1
  row = s32[64]{0:S(1)} get-tuple-element(state), index=2
  sum = s32[64]{0:S(1)} add(acc, row)
  next = s32[64]{0:S(1)} copy(sum)
  step = s32[] constant(1)
  j = s32[] add(i, step)
  ROOT out = (s32[], s32[64]{0:S(1)}, s32[64]{0:S(1)}) tuple(j, next, row)
}

test {
  state2 = (s32[], s32[64]{0:S(1)}, s32[64]{0:S(1)}) parameter(0)
  i2 = s32[] get-tuple-element(state2), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i2, three), direction=LT
}

yes {
  t = s32[64]{0:S(1)} parameter(0)
  ROOT tn = s32[64]{0:S(1)} negate(t)
}

no {
  f = s32[64]{0:S(1)} parameter(0)
  ROOT fn = s32[64]{0:S(1)} add(f, f)
}

wrapped {
  w = s32[64]{0:S(1)} parameter(0)
  ROOT wn = s32[64] not(w)
}

ENTRY main {
  p = s32[64] parameter(0)
  q = s32[64] parameter(1)
  ps = (s32[64]{0:S(1)}, s32[64], u32[]) copy-start(p)
  k = s32[8] parameter(2)
  choice = pred[] parameter(3)
  at = s32[] constant(5)
  pd = s32[64]{0:S(1)} copy-done(ps)
  a = s32[64]{0:S(1)} add(pd, pd)
  as = (s32[64], s32[64]{0:S(1)}, u32[]) copy-start(a)
  b = s32[64]{0:S(1)} multiply(a, pd)
  ad = s32[64] copy-done(as)
  upd = s32[64]{0:S(1)} dynamic-update-slice(b, k, at)
  c = s32[64]{0:S(1)} negate(upd)
  zero = s32[] constant(0)
  i0 = s32[] copy(zero)
  acc0 = s32[64]{0:S(1)} copy(a)
  init = (s32[], s32[64]{0:S(1)}, s32[64]{0:S(1)}) tuple(i0, acc0, c)
  loop = (s32[], s32[64]{0:S(1)}, s32[64]{0:S(1)}) while(init), condition=test, body=body
  total = s32[64]{0:S(1)} get-tuple-element(loop), index=1
  row3 = s32[64]{0:S(1)} get-tuple-element(loop), index=2
  picked = s32[64]{0:S(1)} conditional(choice, total, row3), true_computation=yes, false_computation=no
  start = ((s32[64]{0:S(1)}), s32[64], u32[]) async-start(total), calls=wrapped
  a2s = (s32[64]{0:S(1)}, s32[64], u32[]) copy-start(ad)
  p2s = (s32[64]{0:S(1)}, s32[64], u32[]) copy-start(p)
  a2d = s32[64]{0:S(1)} copy-done(a2s)
  d = s32[64]{0:S(1)} xor(picked, a2d)
  p2d = s32[64]{0:S(1)} copy-done(p2s)
  e = s32[64] subtract(d, p2d)
  done = s32[64] async-done(start)
  given = s32[64] dynamic-update-slice(q, k, at)
  ROOT result = (s32[64], s32[64], s32[64], s32[64]) tuple(e, given, done, ad)
}
"""

CAPACITY = 2048
SIZE = 256
PLACES = {
    "pd{}": 0,  # [done, multiply]
    "a{}": 256,  # until acc0
    "b{}": 512,  # b and upd
    "c{}": 768,  # the loop's third element
    "acc0{}": 1024,  # the loop's second element, until async-done
    "sum{}": 1280,  # in the loop
    "picked{}": 1536,
    "a2d{}": 0,
    "d{}": 256,
    "p2d{}": 512,
}

Edits = tuple[tuple[str, str], ...]
_S1 = "s32[64]{0:S(1)}"

TEXT_FAULTS: dict[str, Edits] = {
    # what copies read and who reads them
    "prefetch of another value": (("copy-start(p)\n  k", "copy-start(q)\n  k"),),
    "eviction of another value": (("copy-start(a)", "copy-start(pd)"),),
    "second prefetch of another value": (("copy-start(ad)", "copy-start(q)"),),
    "user takes the other copy": (("xor(picked, a2d)", "xor(picked, p2d)"),
        ("  d = s32[64]{0:S(1)} xor", "  D"),
        ("  p2d = s32[64]{0:S(1)} copy-done(p2s)\n", "  p2d = s32[64]{0:S(1)} copy-done(p2s)\n  d = s32[64]{0:S(1)} xor(picked, p2d)\n"),
        ("  D(picked, p2d)\n", "")),
    "one copy waited for twice, the other never": (("copy-done(p2s)", "copy-done(a2s)"),),
    "result takes the slow copy of another": (("tuple(e, given, done, ad)", "tuple(e, given, done, q)"),),
    "read of a destination in flight": (
        ("  pd = s32[64]{0:S(1)} copy-done(ps)\n  a = s32[64]{0:S(1)} add(pd, pd)\n",
         "  early = s32[64]{0:S(1)} get-tuple-element(ps), index=0\n  a = s32[64]{0:S(1)} add(early, early)\n  pd = s32[64]{0:S(1)} copy-done(ps)\n"),),
    "read of an evicted value in flight": (
        ("  ad = s32[64] copy-done(as)\n", ("  slow = s32[64] get-tuple-element(as), index=0\n"
         "  peek = s32[64] negate(slow)\n  ad = s32[64] copy-done(as)\n")),
        ("tuple(e, given, done, ad)", "tuple(e, given, done, peek)")),
    "a copy nobody waits for": (("copy-done(p2s)", "get-tuple-element(p2s), index=0"),),
    "an asynchronous operation nobody waits for": (("async-done(start)", "get-tuple-element(start), index=1"),),
    # in place
    "update before the last reader of the old value": (
        ("  c = s32[64]{0:S(1)} negate(upd)\n", "  c = s32[64]{0:S(1)} negate(b)\n"),),
    "two updates of one buffer, both read": (
        ("  c = s32[64]{0:S(1)} negate(upd)\n", "  other = s32[64]{0:S(1)} dynamic-update-slice(b, k, zero2)\n  c = s32[64]{0:S(1)} negate(upd)\n"),
        ("  at = s32[] constant(5)\n", "  at = s32[] constant(5)\n  zero2 = s32[] constant(0)\n")),
    "update of the source of a copy in flight": (
        ("  a = s32[64]{0:S(1)} add(pd, pd)\n  as", "  as"),
        ("copy-start(a)", "copy-start(b)"),
        ("  b = s32[64]{0:S(1)} multiply(a, pd)\n  ad = s32[64] copy-done(as)\n", ""),
        ("  as = ", "  a = s32[64]{0:S(1)} add(pd, pd)\n  b = s32[64]{0:S(1)} multiply(a, pd)\n  as = "),
        ("  c = s32[64]{0:S(1)} negate(upd)\n", "  ad = s32[64] copy-done(as)\n  c = s32[64]{0:S(1)} negate(upd)\n")),
    "update of a parameter that is not donated": (("dynamic-update-slice(q, k, at)", "dynamic-update-slice(p, k, at)"),),
    "donated parameter written before its last reader": (
        ("copy-start(ad)", "copy-start(q)"),
        ("  given = s32[64] dynamic-update-slice(q, k, at)\n", ""),
        ("  a2d = ", "  given = s32[64] dynamic-update-slice(q, k, at)\n  a2d = ")),
    "update at another place": (("constant(5)", "constant(6)"),),
    "update left out": (("negate(upd)", "negate(b)"), ("  upd = s32[64]{0:S(1)} dynamic-update-slice(b, k, at)\n", "")),
    # spaces that must agree
    "loop enters in slow memory": ((f"acc0 = {_S1} copy(a)", "acc0 = s32[64] copy(a)"),
        (f"init = (s32[], {_S1}, {_S1})", f"init = (s32[], s32[64], {_S1})")),
    "body hands slow memory on": ((f"next = {_S1} copy(sum)", "next = s32[64] copy(sum)"),
        (f"ROOT out = (s32[], {_S1}, {_S1})", f"ROOT out = (s32[], s32[64], {_S1})")),
    "body takes slow memory": ((f"state = (s32[], {_S1}, {_S1})", f"state = (s32[], s32[64], {_S1})"),
        (f"acc = {_S1}", "acc = s32[64]")),
    "condition takes slow memory": ((f"state2 = (s32[], {_S1}, {_S1})", f"state2 = (s32[], s32[64], {_S1})"),),
    "loop leaves in slow memory": ((f"total = {_S1}", "total = s32[64]"),),
    "branch takes slow memory": ((f"t = {_S1} parameter", "t = s32[64] parameter"),),
    "branch gives slow memory": ((f"tn = {_S1} negate", "tn = s32[64] negate"),),
    "update in another space than its operand": ((f"upd = {_S1} dynamic", "upd = s32[64] dynamic"),),
    "asynchronous operand in two spaces": ((f"w = {_S1} parameter", "w = s32[64] parameter"),),
    "done in another space than its start": ((f"pd = {_S1} copy-done", "pd = s32[64] copy-done"),),
    "result of the program in fast memory": (("tuple(e, given, done, ad)", "tuple(e, given, done, a2d)"),
        ("ROOT result = (s32[64], s32[64], s32[64], s32[64])", f"ROOT result = (s32[64], s32[64], s32[64], {_S1})")),
    "parameter in fast memory": (("p = s32[64] parameter", f"p = {_S1} parameter"),),
    # loops and branches
    "loop without its copy": (("tuple(j, next, row)", "tuple(j, sum, row)"), (f"  next = {_S1} copy(sum)\n", "")),
    "loop state swapped": (("tuple(j, next, row)", "tuple(j, row, next)"),),
    "loop starts from the original instead of a copy": (
        ("tuple(i0, acc0, c)", "tuple(i0, a, c)"), (f"  acc0 = {_S1} copy(a)\n", "")),
    "loop overwritten value read after the loop": (
        ("xor(picked, a2d)", "xor(picked, acc0)"),),
    "loop runs once less": (("three = s32[] constant(3)", "three = s32[] constant(2)"),),
    "branches swapped": (("true_computation=yes, false_computation=no", "true_computation=no, false_computation=yes"),),
    "branch operands swapped": (("conditional(choice, total, row3)", "conditional(choice, row3, total)"),),
    # dependences
    "a value read after its place was given away": (("xor(picked, a2d)", "xor(picked, pd)"),),
    "an old value read in a later step": (("subtract(d, p2d)", "subtract(d, b)"),),
    "operands swapped": (("subtract(d, p2d)", "subtract(p2d, d)"),),
    "aliasing of the result dropped to another parameter": (("{1}: (1, {}, may-alias)", "{1}: (0, {}, may-alias)"),),
}  # fmt: skip

PLACE_FAULTS: dict[str, dict[str, int]] = {
    "prefetched value on a value that is read with it": {"a{}": 0},
    "half an overlap": {"a{}": 128},
    "one element of overlap": {"b{}": 508},
    "evicted value overwritten while it is read by its copy": {"b{}": 256},
    "loop state half on a value of the body": {"sum{}": 1024 + 64},
    "loop invariant overwritten in the body": {"sum{}": 768},
    "loop state on an invariant": {"acc0{}": 768},
    "branch result on the operand of the other use": {"picked{}": 1024},
    "operand of an asynchronous operation given away": {"d{}": 1024},
    "destination of a copy on the operand of a running operation": {"a2d{}": 1024},
    "two copies into one place": {"p2d{}": 0},
    "copy lands on a value that waits": {"p2d{}": 1536},
    "result of an operation on the destination of a copy": {"d{}": 512},
    "beyond the end": {"picked{}": 1920},
    "before the beginning": {"pd{}": -4},
    "no place at all": {"picked{}": -1 << 20},
}

PLACE_DROPPED = ["pd{}", "acc0{}", "sum{}", "d{}"]
"""Places that are left out."""
PLACE_SHORT = ["a{}", "c{}", "a2d{}"]
"""Places that are one element too short."""
