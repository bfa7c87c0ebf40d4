"""Default memory at the addresses of the buffer assignment, right and wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest

import msa
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.analysis.values import Value
from msa.errors import ExecutionError, PlanError, SanitizerError
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.runtime import Machine
from msa.runtime.proving.inputs import random_inputs
from msa.testing import RandomModuleOptions, random_module

TARGET = msa.Target.preset("tpu_v5e")
OPTIONS = BufferAssignmentOptions(alignment=64, allocate_constants=True)

TEXT = """HloModule m, is_scheduled=true
ENTRY e {
  p = s32[64] parameter(0)
  a = s32[64] add(p, p)
  b = s32[64] multiply(a, p)
  c = s32[64] subtract(b, a)
  k = s32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  at = s32[] constant(3)
  u = s32[64] dynamic-update-slice(c, k, at)
  v = s32[64] negate(u)
  ROOT r = s32[64] add(v, b)
}
"""


def assigned(module: Module) -> BufferAssignment:
    return BufferAssignment.run(module, OPTIONS)


def value_of(buffers: BufferAssignment, name: str) -> Value:
    (found,) = (v for v in buffers.alias.dataflow.values if v.instruction.name == name)
    return found


def moved(buffers: BufferAssignment, moves: dict[int, tuple[int, int]]) -> None:
    """Put values (by id) at (allocation, offset); nothing is checked."""
    for number, (place, offset) in moves.items():
        old = buffers._home[number]
        _, size = old.assigned.pop(number)
        buffers.allocations[place].assigned[number] = (offset, size)
        buffers._home[number] = buffers.allocations[place]


def run(module: Module, buffers: BufferAssignment | None) -> Any:
    inputs = random_inputs(module, 3)
    return Machine(TARGET, seed=3).run(module, inputs, buffers=buffers)


def refusal(module: Module, buffers: BufferAssignment) -> SanitizerError:
    with pytest.raises(SanitizerError) as caught:
        run(module, buffers)
    return caught.value


def test_values_lie_where_the_assignment_says() -> None:
    module = msa.parse(TEXT)
    expected = msa.execute(module, random_inputs(module, 3)).tolist()
    assert run(module, None).tolist() == expected
    buffers = assigned(module)
    assert run(module, buffers).tolist() == expected


def test_two_live_values_at_one_place() -> None:
    module = msa.parse(TEXT)
    buffers = assigned(module)
    a, b = value_of(buffers, "a"), value_of(buffers, "b")
    assert not buffers.slice_of(a).overlaps(buffers.slice_of(b))
    home = buffers.slice_of(a)
    moved(buffers, {b.id: (home.allocation, home.offset)})
    with pytest.raises(PlanError):
        buffers.verify()
    error = refusal(module, buffers)
    assert (error.kind, error.instruction) == ("use after overwrite", "c")
    assert error.parties == ("a{}", "b{}")
    assert error.size == 256
    assert error.step > 0


def test_a_result_in_an_input_of_the_caller() -> None:
    module = msa.parse(TEXT)
    buffers = assigned(module)
    home = buffers.slice_of(value_of(buffers, "p"))
    moved(buffers, {value_of(buffers, "v").id: (home.allocation, 0)})
    error = refusal(module, buffers)
    assert (error.kind, error.instruction) == ("read-only", "v")
    assert error.parties == ("p{}", "v{}")


def test_a_result_in_a_constant() -> None:
    module = msa.parse(TEXT)
    buffers = assigned(module)
    place = buffers.slice_of(value_of(buffers, "k")).allocation
    buffers.allocations[place].size = 256
    moved(buffers, {value_of(buffers, "v").id: (place, 0)})
    error = refusal(module, buffers)
    assert (error.kind, error.parties) == ("read-only", ("k{}", "v{}"))


def test_an_update_away_from_what_it_updates() -> None:
    module = msa.parse(TEXT)
    buffers = assigned(module)
    u, c = value_of(buffers, "u"), value_of(buffers, "c")
    home = buffers.slice_of(c)
    buffers.allocations[home.allocation].size += 256
    moved(buffers, {u.id: (home.allocation, home.offset + 256)})
    error = refusal(module, buffers)
    assert (error.kind, error.parties) == ("split storage", ("c{}", "u{}"))


def test_an_allocation_that_is_too_small() -> None:
    module = msa.parse(TEXT)
    buffers = assigned(module)
    buffers.allocations[buffers.slice_of(value_of(buffers, "a")).allocation].size = 64
    error = refusal(module, buffers)
    assert error.kind == "out of bounds"


def test_computations_with_several_callers_get_memory_per_call() -> None:
    module = msa.parse("""HloModule m, is_scheduled=true
f { x = s32[4] parameter(0)  y = s32[4] add(x, x)  ROOT z = s32[4] negate(y) }
ENTRY e { p = s32[4] parameter(0)  a = s32[4] call(p), to_apply=f
  b = s32[4] call(p), to_apply=f  ROOT r = s32[4] subtract(a, b) }""")
    assert Machine(TARGET).run(module, [[1, 2, 3, 4]]).tolist() == [0] * 4


STRAIGHT = RandomModuleOptions(max_depth=0, nesting=0.0, variety=0.0, vector=64)
PLUMBING = frozenset({"tuple", "get-tuple-element", "bitcast", "parameter", "constant"})


def clashing_pairs(
    module: Module, buffers: BufferAssignment
) -> list[tuple[Value, Value]]:
    """Values x, y of which y is written while x will be read again, by the text alone.

    x is read by an instruction that computes, after y was written.
    """
    order = module.schedule.sequence(module.entry)
    step = {x: i for i, x in enumerate(order)}

    def is_plain(x: Instruction) -> bool:
        return x.opcode not in PLUMBING and x.shape.is_array and "async" not in x.opcode

    pairs = []
    for x in filter(is_plain, order):
        reads = [step[user] for user in x.users if is_plain(user)]
        for y in order[step[x] + 1 : max(reads, default=0)]:
            if not is_plain(y) or y.shape.byte_size() > x.shape.byte_size():
                continue
            first = buffers.alias.dataflow.unique_value_at(x, ())
            second = buffers.alias.dataflow.unique_value_at(y, ())
            known = map(buffers.has_allocation, (first, second))
            if all(known) and first.instruction is x and second.instruction is y:
                pairs.append((first, second))
    return pairs


def test_any_two_live_values_of_random_modules() -> None:
    caught = 0
    for seed in range(12):
        module = random_module(seed, 30, options=STRAIGHT)
        chance = random.Random(seed)
        count = len(clashing_pairs(module, assigned(module)))
        for number in chance.sample(range(count), min(count, 8)):
            buffers = assigned(module)
            first, second = clashing_pairs(module, buffers)[number]
            home = buffers.slice_of(first)
            group = buffers.alias.buffer_of(second).values
            moved(buffers, {v.id: (home.allocation, home.offset) for v in group})
            with pytest.raises(ExecutionError):
                run(module, buffers)
            caught += 1
    assert caught > 50
