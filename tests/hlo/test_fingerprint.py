"""Fingerprints ignore names and the order of independent instructions, nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.hlo import canonical_text, fingerprint
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.testing import random_module

SEEDS = st.integers(0, 10**6)


def instructions(module: Module) -> list[Instruction]:
    return [x for c in module.computations for x in c.instructions]


def renamed(module: Module, rng: random.Random) -> Module:
    """A copy with other names, shuffled as far as operands allow, unscheduled."""
    copy = module.clone()
    copy.schedule = None
    copy.name = "other"
    numbers = list(range(len(instructions(copy))))
    rng.shuffle(numbers)
    for x, number in zip(instructions(copy), numbers, strict=True):
        x.name = f"n{number}"
        x.metadata_text = 'op_name="elsewhere"'
    for number, computation in enumerate(copy.computations):
        computation.name = f"c{len(numbers) - number}"
        shuffle(computation.instructions, rng)
    return copy


def shuffle(order: list[Instruction], rng: random.Random) -> None:
    """A random topological order."""
    waiting = {x: len({*x.operands, *x.control_predecessors}) for x in order}
    ready = [x for x in order if not waiting[x]]
    done = []
    while ready:
        x = ready.pop(rng.randrange(len(ready)))
        done.append(x)
        for y in dict.fromkeys((*x.users, *x.control_successors)):
            waiting[y] -= 1
            if not waiting[y]:
                ready.append(y)
    assert len(done) == len(order)
    order[:] = done


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(5, 60))
def test_renaming_and_reordering_change_nothing_K3(seed: int, size: int) -> None:
    module = random_module(seed, size=size)
    other = renamed(module, random.Random(seed))
    assert fingerprint(other) == fingerprint(module)
    assert canonical_text(other) == canonical_text(module)


def change_shape(x: Instruction, rng: random.Random) -> bool:
    if not x.shape.is_array or not x.shape.rank:
        return False
    text = str(x.shape.to_text(with_layout=False))
    kind, _, rest = text.partition("[")
    sizes = rest.rstrip("]").split(",")
    sizes[rng.randrange(len(sizes))] = "7777"
    x.shape = msa.hlo.parse_shape(f"{kind}[{','.join(sizes)}]")
    return True


def change_space(x: Instruction, rng: random.Random) -> bool:
    if not x.shape.is_array or x.shape.layout is None:
        return False
    x.shape = x.shape.with_memory_space(3)
    return True


def change_opcode(x: Instruction, rng: random.Random) -> bool:
    swap = {"add": "subtract", "multiply": "add", "tuple": "opt-barrier"}
    x.opcode = swap.get(x.opcode, x.opcode + "-2")
    return True


def change_attribute(x: Instruction, rng: random.Random) -> bool:
    if "parameter_number" in x.attributes or "literal" in x.attributes:
        return False
    x.attributes = {**x.attributes, "frontend_attributes": (("k", str(rng.random())),)}
    return True


def change_own_attribute(x: Instruction, rng: random.Random) -> bool:
    for name, value in x.attributes.items():
        if isinstance(value, int) and not isinstance(value, bool):
            x.attributes = {**x.attributes, name: value + 1}
            return True
    return False


def change_config(x: Instruction, rng: random.Random) -> bool:
    x.backend_config = '{"tile":"999"}'
    return True


def change_constant(x: Instruction, rng: random.Random) -> bool:
    if x.opcode != "constant" or not x.shape.element_count:
        return False
    literal = x.attributes["literal"]
    kind = x.shape.element_type.name
    if kind == "pred":
        new = literal.text.replace("true", "?").replace("false", "true")
        new = new.replace("?", "false")
    else:
        digits = [i for i, c in enumerate(literal.text) if c.isdigit()]
        place = digits[0] if literal.text[digits[0]] != "0" else digits[-1]
        changed = str((int(literal.text[place]) + 1) % 10)
        new = literal.text[:place] + changed + literal.text[place + 1 :]
    x.attributes = {**x.attributes, "literal": Literal(literal.shape, new)}
    return x.attributes["literal"] != literal


CHANGES = [
    change_shape,
    change_space,
    change_opcode,
    change_attribute,
    change_own_attribute,
    change_config,
    change_constant,
]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(CHANGES))
def test_every_change_shows_K3(seed, change) -> None:
    rng = random.Random(seed)
    module = random_module(seed, size=25)
    before = fingerprint(module)
    candidates = instructions(module)
    rng.shuffle(candidates)
    for x in candidates:
        if change(x, rng):
            assert fingerprint(module) != before
            return


def test_changes_of_each_kind_happen() -> None:
    """The property above is not empty."""
    rng = random.Random(1)
    for change in CHANGES:
        assert any(
            change(x, rng)
            for seed in range(20)
            for x in instructions(random_module(seed, size=25))
        ), change.__name__


def test_operand_order_shows() -> None:
    text = "ENTRY e {{ x = f32[8] parameter(0) y = f32[8] parameter(1) ROOT z = f32[8] subtract({}) }}"
    assert fingerprint(msa.parse(text.format("x, y"))) != fingerprint(
        msa.parse(text.format("y, x"))
    )


def test_sharing_shows() -> None:
    """Computing a value twice is another program than reading it twice."""
    once = msa.parse(
        "ENTRY e { x = f32[8] parameter(0) a = f32[8] abs(x) ROOT z = f32[8] add(a, a) }"
    )
    twice = msa.parse(
        "ENTRY e { x = f32[8] parameter(0) a = f32[8] abs(x) b = f32[8] abs(x)"
        " ROOT z = f32[8] add(a, b) }"
    )
    assert fingerprint(once) != fingerprint(twice)


LARGE = ", ".join(str(i) for i in range(64))


def test_one_element_of_a_large_constant_shows() -> None:
    text = "ENTRY e {{ ROOT c = s32[64] constant({{{}}}) }}"
    other = LARGE.replace(", 40,", ", 41,")
    assert fingerprint(msa.parse(text.format(LARGE))) != fingerprint(
        msa.parse(text.format(other))
    )


NESTED = """
inner {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] {op}(p, q) }}
ENTRY e {{ x = f32[8] parameter(0) z = f32[] constant(0)
  ROOT s = f32[] reduce(x, z), dimensions={{0}}, to_apply=inner }}
"""


def test_called_computations_show() -> None:
    add, multiply = (
        fingerprint(msa.parse(NESTED.format(op=op))) for op in ("add", "multiply")
    )
    assert add != multiply


def test_control_edges_show() -> None:
    text = (
        "ENTRY e {{ x = f32[8] parameter(0) a = f32[8] abs(x) b = f32[8] negate(x){}"
        " ROOT z = f32[8] add(a, b) }}"
    )
    plain = msa.parse(text.format(""))
    tied = msa.parse(text.format(", control-predecessors={a}"))
    assert fingerprint(plain) != fingerprint(tied)


def test_backend_configs_are_sorted() -> None:
    text = 'ENTRY e {{ ROOT x = f32[8] custom-call(), custom_call_target="f", backend_config={} }}'
    a = msa.parse(text.format('{"a":1,"b":2}'))
    b = msa.parse(text.format('{"b":2,"a":1}'))
    c = msa.parse(text.format('{"a":2,"b":1}'))
    assert fingerprint(a) == fingerprint(b) != fingerprint(c)


@pytest.mark.parametrize("count", [4000])
def test_deep_chains_need_no_recursion(count: int) -> None:
    lines = ["x0 = f32[8] parameter(0)"]
    lines += [f"x{i} = f32[8] negate(x{i - 1})" for i in range(1, count)]
    module = msa.parse("ENTRY e {\n" + "\n".join(lines) + "\n}")
    assert len(fingerprint(module)) == 32
