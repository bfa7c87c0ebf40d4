"""Every kind of illegal access, told apart, with step, instruction, bytes and parties."""

from __future__ import annotations

from typing import Any

import pytest

import msa
from msa.analysis import LiveRanges
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.analysis.live_ranges import TimeBound
from msa.errors import SanitizerError
from msa.hlo.module import Module
from msa.runtime import Machine
from msa.runtime.proving.inputs import random_inputs
from msa.testing import RandomModuleOptions, random_module

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=256)

FAST = "s32[16]{0:S(1)}"
TEXT = f"""HloModule m, is_scheduled=true
ENTRY e {{
  p = s32[16] parameter(0)
  a = {FAST} negate(p)
  c = ({FAST}, s32[16], u32[]) copy-start(p)
  b = s32[16] abs(a)
  d = {FAST} copy-done(c)
  f = s32[16] add(a, d)
  ROOT r = s32[16] add(f, b)
}}
"""
PLACES = {"a{}": (0, 64), "c{0}": (64, 64)}


def fault(module: Module, chunks: Any = None, **arguments: Any) -> SanitizerError:
    machine = Machine(TARGET, seed=1, timing="late")
    with pytest.raises(SanitizerError) as caught:
        machine.run(module, random_inputs(module, 1), chunks=chunks, **arguments)
    error = caught.value
    assert error.step >= 0
    assert error.instruction
    assert len(error.parties) == 2
    assert all(error.parties)
    assert error.size > 0
    return error


def read(text: str = TEXT, **changes: str) -> Module:
    for old, new in changes.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return msa.parse(text, verify=False)


def shortened(module: Module, name: str, end: int) -> BufferAssignment:
    """An assignment that takes a value to be needed up to a step only."""
    live = LiveRanges.run(module)
    (value,) = (v for v in live.alias.dataflow.values if v.instruction.name == name)
    live.ranges[value.id] = TimeBound(
        live.ranges[value.id].start, end, value.positions[0]
    )
    options = BufferAssignmentOptions(alignment=64, allocate_constants=True)
    return BufferAssignment.run(module, options, live=live)


def test_the_plan_itself_holds() -> None:
    module = read()
    inputs = random_inputs(module, 1)
    expected = msa.execute(module, inputs).tolist()
    for timing in ("eager", "late", "random"):
        machine = Machine(TARGET, timing=timing)
        assert machine.run(module, inputs, chunks=PLACES).tolist() == expected


@pytest.mark.parametrize("name", ["a", "b"])
def test_reads_after_the_planned_end(name: str) -> None:
    """Nothing else is written there: only the end of the life tells."""
    module = read()
    step = 3  # `b`, which is the first reader of `a`
    error = fault(module, PLACES, buffers=shortened(module, name, step))
    assert error.kind == "use after free"
    assert error.instruction == {"a": "f", "b": "r"}[name]
    assert error.parties == (f"{name}{{}}", "b")
    assert error.space == {"a": 1, "b": 0}[name]


def test_a_source_that_is_given_up_while_it_is_copied() -> None:
    text = TEXT.replace("copy-start(p)", "copy-start(b)").replace(
        "s32[16] abs(a)", "s32[16] abs(p)"
    )
    lines = text.splitlines()
    lines[4], lines[5] = lines[5], lines[4]
    text = "\n".join(lines).replace("add(f, b)", "add(f, a)")
    module = read(text)
    error = fault(module, PLACES, buffers=shortened(module, "b", 3))
    assert (error.kind, error.instruction) == ("use after free", "d")
    assert error.parties == ("b{}", "c")


def test_reads_of_what_was_overwritten() -> None:
    module = read(x=("b = s32[16] abs(a)", "b = s32[16]{0:S(1)} abs(p)"))
    error = fault(module, {**PLACES, "b{}": (32, 32 + 32)})
    assert error.kind == "write to in-flight destination"
    error = fault(module, {"a{}": (0, 64), "c{0}": (128, 64), "b{}": (32, 64)})
    assert (error.kind, error.parties) == ("use after overwrite", ("a{}", "b{}"))
    assert (error.instruction, error.address, error.step) == ("f", 0, 5)


def test_a_copy_that_nobody_waits_for() -> None:
    module = read(x=(f"  d = {FAST} copy-done(c)\n", ""), y=("add(a, d)", "add(a, a)"))
    error = fault(module, PLACES)
    assert (error.kind, error.instruction) == ("unfinished copy", "c")
    assert error.parties == ("p{}", "c{0}")
    assert (error.space, error.address, error.size) == (1, 64, 64)


RECEIVED = """HloModule m, is_scheduled=true
ENTRY e {
  p = s32[16] parameter(0)
  t = token[] after-all()
  r = (s32[16], u32[], token[]) recv(t), channel_id=1
  s = (s32[16], u32[], token[]) send(p, t), channel_id=1
  early = s32[16] get-tuple-element(r), index=0
  x = s32[16] negate(early)
  rd = (s32[16], token[]) recv-done(r), channel_id=1
  sd = token[] send-done(s), channel_id=1
  g = s32[16] get-tuple-element(rd), index=0
  ROOT y = s32[16] add(x, g)
}
"""


def test_reads_of_what_was_never_written() -> None:
    error = fault(read(RECEIVED))
    assert (error.kind, error.instruction) == ("uninitialised read", "x")
    assert error.parties == ("r{0}", "x")


def test_a_message_whose_landing_place_was_taken() -> None:
    fast = RECEIVED.replace("s32[16], u32", f"{FAST}, u32").replace(
        "rd = (s32[16]", f"rd = ({FAST}"
    )
    text = fast.replace(
        "early = s32[16] get-tuple-element(r), index=0", f"early = {FAST} negate(p)"
    )
    text = text.replace(
        f"({FAST}, u32[], token[]) send", "(s32[16], u32[], token[]) send"
    )
    text = text.replace("g = s32[16]", f"g = {FAST}")
    error = fault(read(text), {"r{0}": (0, 64), "early{}": (32, 64)})
    assert (error.kind, error.instruction) == ("use after overwrite", "rd")
    assert error.parties == ("r{0}", "early{}")


# A place that cannot be: kind, the two parties, the instruction and its step.
STATIC: list[tuple[dict[str, tuple[int, int]], str, tuple[str, str], str, int]] = [
    ({**PLACES, "a{}": (224, 64)}, "out of bounds", ("a{}", "memory 1"), "a", 1),
    ({**PLACES, "a{}": (-64, 64)}, "out of bounds", ("a{}", "memory 1"), "a", 1),
    ({**PLACES, "c{0}": (64, 32)}, "out of bounds", ("c{0}", "c{0}"), "c", 2),
    ({"a{}": (0, 64)}, "no address", ("c{0}", "memory 1"), "c", 2),
    ({**PLACES, "d{}": (128, 64)}, "split storage", ("c{0}", "d{}"), "d", 4),
    ({**PLACES, "b{}": (128, 64)}, "split storage", ("b{}", "memory 0"), "b", 3),
]


@pytest.mark.parametrize(("places", "kind", "parties", "name", "step"), STATIC)
def test_places_that_cannot_be(
    places: Any, kind: str, parties: tuple[str, str], name: str, step: int
) -> None:
    error = fault(read(), places)
    assert (error.kind, error.parties) == (kind, parties)
    assert (error.instruction, error.step) == (name, step)


def test_scratch_outside_of_the_memory() -> None:
    error = fault(read(), PLACES, scratch={"b": (192, 128)})
    assert (error.kind, error.parties) == (
        "out of bounds",
        ("scratch of b", "memory 1"),
    )


READING = frozenset(
    [
        "abs",
        "add",
        "and",
        "copy",
        "fusion",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "reduce",
        "sign",
        "slice",
        "subtract",
        "xor",
    ]
)
STRAIGHT = RandomModuleOptions(max_depth=0, nesting=0.0, variety=0.0, vector=64)


def cut_short(module: Module, count: int) -> list[BufferAssignment]:
    """Assignments in each of which one value ends before its last reader."""
    found = []
    live = LiveRanges.run(module)
    order = live.schedule.instructions
    home = module.schedule.sequence(module.entry)
    plain = {i for i, x in enumerate(order) if x in home and x.opcode in READING}
    for buffer in live.alias.buffers:
        value, *others = buffer.values
        x = value.instruction
        if others or value.live_out or not x.shape.is_array or not x.shape.byte_size():
            continue
        places = map(live.schedule.time_of, (x, *x.users))
        first, *readers = (place if place in plain else -1 for place in places)
        if first < 0 or not readers:
            continue
        ends = [end for end in plain if first < end < max(readers)]
        if ends and len(found) < count:
            found.append(shortened(module, x.name, max(ends)))
    return found


def test_the_last_reader_of_any_value_comes_too_late() -> None:
    kinds: list[str] = []
    for seed in range(24):
        module = random_module(seed, 90, options=STRAIGHT)
        for buffers in cut_short(module, 5):
            kinds += [fault(module, buffers=buffers).kind]
    assert len(kinds) > 60
    assert set(kinds) == {"use after free"}
