"""Rows B13: modelled times, by hand. One byte of default memory takes a second."""

from __future__ import annotations

import pytest

import msa
from msa.analysis.simulation.engine import (
    DONE,
    RUN,
    START,
    Event,
    run,
)
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT

MACHINE = msa.Target(
    name="slow",
    alternate_memory_bytes=1 << 20,
    alignment_bytes=1,
    default_memory_bandwidth=1.0,
    alternate_read_bandwidth=2.0,
    alternate_write_bandwidth=2.0,
    flops_per_second=1e9,
    transcendentals_per_second=1e9,
)

LOOP = """
body{n} {{
  one{n} = s32[] constant(1)
  bp{n} = (s32[]) parameter(0)
  count{n} = s32[] get-tuple-element(bp{n}), index=0
  next{n} = s32[] add(count{n}, one{n})
{inner}
  ROOT bt{n} = (s32[]) tuple(next{n})
}}
cond{n} {{
  cp{n} = (s32[]) parameter(0)
  limit{n} = s32[] constant({trips})
  now{n} = s32[] get-tuple-element(cp{n}), index=0
  ROOT more{n} = pred[] compare(limit{n}, now{n}), direction=GT
}}
"""


def seconds(body: str, computations: str = "") -> float:
    return simulate(body, computations).elapsed_seconds


def simulate(body: str, computations: str = "") -> msa.analysis.Simulation:
    text = (
        f"HloModule m, is_scheduled=true\n{computations}\nENTRY main {{\n{body}\n}}\n"
    )
    return msa.simulate(msa.parse(text), MACHINE)


def enter(number: int) -> str:
    return (
        f"  zero{number} = s32[] constant(0)\n"
        f"  init{number} = (s32[]) tuple(zero{number})\n"
        f"  {{root}}w{number} = (s32[]) while(init{number}), condition=cond{number}, "
        f"body=body{number}"
    )


# Per trip: 4 + 4 + 4 bytes of the addition, 4 + 4 + 1 of the comparison and 8 of the
# tuple; once: the tuple of 8 bytes that enters.
ONE_LOOP = 12 * 42 + 8 * 1 + 9 * 42 + 8 * 42


def test_one_loop_b13_1() -> None:
    assert ONE_LOOP == 1226
    text = LOOP.format(n=1, trips=42, inner="")
    assert seconds(enter(1).format(root="ROOT "), text) == 1226


def test_nested_loops_b13_2() -> None:
    inner = LOOP.format(n=1, trips=42, inner="")
    outer = LOOP.format(n=2, trips=27, inner=enter(1).format(root=""))
    expected = ONE_LOOP * 27 + 12 * 27 + 8 + 9 * 27 + 8 * 27
    assert expected == 33893
    assert seconds(enter(2).format(root="ROOT "), inner + outer) == expected


def copy(count: int, root: str = "ROOT ") -> tuple[str, str]:
    """Start and end of a copy of so many floats into alternate memory."""
    fast, slow = f"f32[{count}]{{0:S(1)}}", f"f32[{count}]{{0}}"
    return (
        f"  start = ({fast}, {slow}, u32[]) copy-start(weights)",
        f"  {root}done = {fast} copy-done(start)",
    )


def test_one_copy_b13_3() -> None:
    start, done = copy(1024 * 2048)
    parameter = "  weights = f32[2097152]{0} parameter(0)"
    assert seconds(f"{parameter}\n{start}\n{done}") == 1024 * 2048 * 4
    assert seconds("  ROOT weights = f32[2097152]{0} parameter(0)") == 0


def test_memory_is_busy_with_the_operation_b13_4() -> None:
    start, done = copy(8)
    body = (
        f"  weights = f32[8]{{0}} parameter(0)\n  x = f32[2]{{0}} parameter(1)\n"
        f"{start}\n  n = f32[2]{{0}} negate(x)\n{done}"
    )
    # 8 bytes are read and 8 written; the copy of 32 bytes waits for its turn.
    assert seconds(body) == 16 + 32


def test_asynchronous_slice_b13_5() -> None:
    part, whole = "f32[768,2048]{1,0:S(1)}", "f32[1024,2048]{1,0}"
    wrapped = f"""
wrapped {{
  sp = {whole} parameter(0)
  ROOT s = {part} slice(sp), slice={{[0:768], [0:2048]}}
}}
"""
    body = (
        f"  p0 = {whole} parameter(0)\n"
        f"  start = (({whole}), {part}, s32[]) async-start(p0), calls=wrapped\n"
        f"  ROOT done = {part} async-done(start), calls=wrapped"
    )
    assert seconds(body, wrapped) == 768 * 2048 * 4


FAST, SLOW = "f32[64]{0:S(1)}", "f32[64]{0}"


def test_operation_in_alternate_memory_hides_a_copy_b13_6() -> None:
    start, done = copy(128)
    body = (
        f"  weights = f32[128]{{0}} parameter(0)\n  p0 = f32[32]{{0}} parameter(1)\n"
        f"  x = {FAST} parameter(2)\n"
        f"  a = f32[32]{{0}} negate(p0)\n  b = f32[32]{{0}} negate(a)\n{start}\n"
        f"  c = {FAST} add(x, x)\n{done}"
    )
    # Each negate moves 128 + 128 bytes. The addition moves 768 at double speed, and
    # 384 of the copy's 512 bytes meanwhile.
    assert seconds(body) == 256 + 256 + 384 + 128


def outcome(*events: Event) -> tuple[float, dict[int, float]]:
    """Seconds, and the seconds waited at each event."""
    made = run(list(events), events[-1].step + 1, 1.0)
    return made.seconds, made.stalls


def start(step: int, amount: float, direction: int = TO_ALTERNATE) -> Event:
    return Event(START, step, amount=amount, copy=step, direction=direction)


def done(step: int, copy: int, direction: int = TO_ALTERNATE) -> Event:
    return Event(DONE, step, copy=copy, direction=direction)


def test_end_of_a_copy_b13_7() -> None:
    assert outcome(start(0, 512), done(1, 0)) == (512, {1: 512})
    # It has landed: waiting again costs nothing.
    assert outcome(start(0, 512), done(1, 0), done(2, 0))[0] == 512


def test_two_directions_share_b13_8() -> None:
    events = (start(0, 512), start(1, 128, TO_DEFAULT), done(2, 1, TO_DEFAULT))
    assert outcome(*events) == (256, {2: 256})
    # 128 bytes were read meanwhile; the rest has the memory for itself.
    assert outcome(*events, done(3, 0)) == (256 + 384, {2: 256, 3: 384})


def test_operation_in_default_memory_leaves_no_time_b13_9() -> None:
    # 128 bytes are read and 128 written, so the copy has all of its bytes left.
    parameter = "  weights = f32[8]{0} parameter(0)\n  x = f32[32]{0} parameter(1)\n"
    begin, end = copy(8)
    made = simulate(f"{parameter}{begin}\n  n = f32[32]{{0}} negate(x)\n{end}")
    assert made.elapsed_seconds == 256 + 32
    assert made.copy_stall_seconds == 32


@pytest.mark.parametrize(("both", "drained"), [(True, 32), (False, 64)])
def test_idle_memory_serves_the_queues_b13_10(both, drained) -> None:
    # 128 bytes of default memory and 128 of alternate memory: 128 + 64 seconds.
    text = "  x = f32[32]{0} parameter(0)\n  ROOT n = f32[32]{0:S(1)} negate(x)"
    assert seconds(text) == 192
    compute = Event(RUN, 2, 192.0, 64.0)
    events = [start(0, 500)]
    if both:
        events.append(start(1, 400, TO_DEFAULT))
    seconds_, stalls = outcome(*events, compute, done(3, 0))
    left = 500 - drained
    # Both go on at half speed until the shorter is gone.
    waited = 2 * 368 + (left - 368) if both else left
    assert stalls == {3: waited}
    assert seconds_ == 192 + waited
