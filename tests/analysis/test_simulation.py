"""Simulated times, worked out by hand."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import TripCounts
from msa.errors import ScheduleError
from msa.target import Target

# f32[25] is 100 bytes: one second of default memory, a tenth of alternate memory.
MACHINE = Target(
    name="toy",
    alternate_memory_bytes=1 << 20,
    alignment_bytes=1,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=1000.0,
    flops_per_second=1e9,
    transcendentals_per_second=1e9,
)
ARITHMETIC = MACHINE.replace(flops_per_second=5.0)  # 25 operations take 5 seconds


def seconds(body: str, target: Target = MACHINE, **options: int) -> float:
    return run(body, target, **options).elapsed_seconds


def run(body: str, target: Target = MACHINE, **options: int) -> msa.analysis.Simulation:
    text = f"HloModule m, is_scheduled=true\nENTRY main {{\n{body}\n}}\n"
    return msa.simulate(msa.parse(text, verify=False), target, **options)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = f32[25]{0} parameter(0)\n ROOT b = f32[25]{0} negate(a)", 2.0),
        ("a = f32[25]{0} parameter(0)\n ROOT b = f32[25]{0:S(1)} negate(a)", 1.1),
        ("a = f32[25]{0:S(1)} parameter(0)\n ROOT b = f32[25]{0:S(1)} negate(a)", 0.2),
        ("a = f32[25]{0} parameter(0)\n ROOT b = f32[25]{0} add(a, a)", 3.0),
        ("a = f32[25]{0:S(1)} parameter(0)\n ROOT b = f32[25]{0} add(a, a)", 1.2),
        ("a = f32[25]{0:S(5)} parameter(0)\n ROOT b = f32[25]{0} negate(a)", 2.0),
        ("ROOT a = f32[25]{0} parameter(0)", 0.0),
    ],
    ids=["slow", "fast result", "all fast", "twice", "fast twice", "host", "nothing"],
)
def test_an_instruction_moves_its_bytes(body: str, expected: float) -> None:
    assert seconds(body) == pytest.approx(expected, rel=1e-12)


def test_another_number_for_fast_memory() -> None:
    body = "a = f32[25]{0} parameter(0)\n ROOT b = f32[25]{0:S(3)} negate(a)"
    assert seconds(body) == pytest.approx(2.0)
    assert seconds(body, alternate_memory_space=3) == pytest.approx(1.1)


def test_arithmetic_and_traffic_overlap() -> None:
    body = "a = f32[25]{0} parameter(0)\n ROOT b = f32[25]{0} negate(a)"
    assert seconds(body, ARITHMETIC) == pytest.approx(5.0)


COPY = """
  a = f32[25]{0} parameter(0)
  w = f32[25]{0} parameter(1)
  s = (f32[25]{0:S(1)}, f32[25]{0}, u32[]) copy-start(w)
  b = f32[25]{0} negate(a)
  d = f32[25]{0:S(1)} copy-done(s)
  ROOT c = f32[25]{0} negate(d)
"""


def test_a_copy_does_not_advance_while_memory_is_busy() -> None:
    # b keeps memory busy for its 2 s: the copy of 1 s is waited for in full.
    result = run(COPY)
    assert result.copy_stall_seconds == pytest.approx(1.0)
    assert result.elapsed_seconds == pytest.approx(2.0 + 1.0 + 1.1)


def test_a_copy_hides_behind_arithmetic() -> None:
    # b takes 5 s, memory is idle for 3 of them: the copy has landed.
    result = run(COPY, ARITHMETIC)
    assert result.copy_stall_seconds == 0.0
    assert result.elapsed_seconds == pytest.approx(10.0)


def test_a_copy_hides_in_part() -> None:
    # 25 / 10 = 2.5 s, of which 0.5 s are idle: half of the copy is left.
    result = run(COPY, MACHINE.replace(flops_per_second=10.0))
    assert result.copy_stall_seconds == pytest.approx(0.5)
    assert result.elapsed_seconds == pytest.approx(2.5 + 0.5 + 2.5)


def test_slow_copy_engines_take_longer() -> None:
    slow = MACHINE.replace(async_copy_bandwidth=25.0)
    assert run(COPY, slow).copy_stall_seconds == pytest.approx(4.0)


def test_copies_of_one_direction_land_in_order() -> None:
    result = run(
        """
  a = f32[25]{0} parameter(0)
  w = f32[100]{0} parameter(1)
  s1a = (f32[100]{0:S(1)}, f32[100]{0}, u32[]) copy-start(w)
  s2a = (f32[25]{0:S(1)}, f32[25]{0}, u32[]) copy-start(a)
  d2 = f32[25]{0:S(1)} copy-done(s2a)
  d1 = f32[100]{0:S(1)} copy-done(s1a)
  ROOT c = f32[25]{0} negate(d2)
"""
    )
    stalls = {step.name: step.stall for step in result.steps if step.stall}
    assert stalls == {"d2": pytest.approx(5.0)}


def test_both_directions_share_the_bandwidth() -> None:
    # 100 bytes each way: 2 s at half the bandwidth each, then the second has landed.
    result = run(
        """
  a = f32[25]{0} parameter(0)
  b = f32[25]{0:S(1)} parameter(1)
  in = (f32[25]{0:S(1)}, f32[25]{0}, u32[]) copy-start(a)
  out = (f32[25]{0}, f32[25]{0:S(1)}, u32[]) copy-start(b)
  d1 = f32[25]{0:S(1)} copy-done(in)
  d2 = f32[25]{0} copy-done(out)
  ROOT t = (f32[25]{0:S(1)}, f32[25]{0}) tuple(d1, d2)
"""
    )
    stalls = {step.name: step.stall for step in result.steps if step.stall}
    assert stalls == {"d1": pytest.approx(2.0)}


def test_bandwidth_comes_back_when_one_direction_is_done() -> None:
    # In: 100 bytes, out: 300. Two seconds share; then 200 bytes at full bandwidth.
    result = run(
        """
  a = f32[25]{0} parameter(0)
  b = f32[75]{0:S(1)} parameter(1)
  x = f32[25]{0} parameter(2)
  in = (f32[25]{0:S(1)}, f32[25]{0}, u32[]) copy-start(a)
  out = (f32[75]{0}, f32[75]{0:S(1)}, u32[]) copy-start(b)
  busy = f32[25]{0:S(1)} negate(x)
  d2 = f32[75]{0} copy-done(out)
  d1 = f32[25]{0:S(1)} copy-done(in)
  ROOT t = (f32[75]{0}, f32[25]{0:S(1)}) tuple(d2, d1)
""",
        MACHINE.replace(flops_per_second=25 / 4.0),
    )
    # busy: 4 s, of which 1 s reads x: 3 s idle = 2 s shared + 1 s of full bandwidth.
    assert result.copy_stall_seconds == pytest.approx(1.0)


def test_copies_within_a_memory_or_to_the_host_take_no_time() -> None:
    body = """
  a = f32[25]{0} parameter(0)
  s = (f32[25]{0}, f32[25]{0}, u32[]) copy-start(a)
  d = f32[25]{0} copy-done(s)
  h = (f32[25]{0:S(5)}, f32[25]{0}, u32[]) copy-start(a)
  e = f32[25]{0:S(5)} copy-done(h)
  ROOT c = f32[25]{0} negate(d)
"""
    assert seconds(body) == pytest.approx(2.0)


@pytest.mark.parametrize("opcode", ["slice", "dynamic-slice"])
def test_asynchronous_slices_are_copies_of_their_result(opcode: str) -> None:
    rest = (
        "(w), slice={[0:25]}"
        if opcode == "slice"
        else "(w, i), dynamic_slice_sizes={25}"
    )
    operands = "f32[100]{0}" if opcode == "slice" else "f32[100]{0}, s32[]"
    result = run(
        f"""
  w = f32[100]{{0}} parameter(0)
  i = s32[] parameter(1)
  s = (({operands}), f32[25]{{0:S(1)}}, s32[]) {opcode}-start{rest}
  d = f32[25]{{0:S(1)}} {opcode}-done(s)
  ROOT c = f32[25]{{0:S(1)}} negate(d)
"""
    )
    assert result.copy_stall_seconds == pytest.approx(1.0)
    assert result.elapsed_seconds == pytest.approx(1.2)


# -- control flow ------------------------------------------------------------------


def loop(body: str, before: str = "", after: str = "", bound: int = 7) -> str:
    """A loop over (counter, value, weights); `body` makes `r` from `v` and `w`."""
    return f"""
HloModule m, is_scheduled=true
body {{
  p = (s32[], f32[25]{{0:S(1)}}, f32[25]{{0}}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[25]{{0:S(1)}} get-tuple-element(p), index=1
  w = f32[25]{{0}} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body}
  ROOT q = (s32[], f32[25]{{0:S(1)}}, f32[25]{{0}}) tuple(j, r, w)
}}
cond {{
  cp = (s32[], f32[25]{{0:S(1)}}, f32[25]{{0}}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  n = s32[] constant({bound})
  ROOT lt = pred[] compare(ci, n), direction=LT
}}
ENTRY main {{
  zero = s32[] constant(0)
  x = f32[25]{{0:S(1)}} parameter(0)
  y = f32[25]{{0}} parameter(1)
  big = f32[100]{{0}} parameter(2)
{before}
  init = (s32[], f32[25]{{0:S(1)}}, f32[25]{{0}}) tuple(zero, x, y)
  l = (s32[], f32[25]{{0:S(1)}}, f32[25]{{0}}) while(init), condition=cond, body=body
{after}
  ROOT out = f32[25]{{0:S(1)}} get-tuple-element(l), index=1
}}
"""


def simulate_loop(text: str, target: Target = MACHINE) -> msa.analysis.Simulation:
    """Without the scalar bookkeeping, which takes a few bytes."""
    return msa.simulate(msa.parse(text, verify=False), target)


SCALARS = (4 + 4 + 4 + 4 + 1 + 4) / 100  # the counter's add, and the comparison


def test_a_loop_runs_as_often_as_its_count_says() -> None:
    text = loop("  r = f32[25]{0:S(1)} negate(v)")
    result = simulate_loop(text)
    scalars = 7 * (12 + 9) / 100
    assert result.elapsed_seconds == pytest.approx(
        7 * 0.2 + scalars + tuples(text), rel=1e-9
    )
    rows = {step.name: step for step in result.steps}
    assert rows["r"].trip_count == 7
    assert rows["r"].memory == pytest.approx(0.2)


def tuples(text: str) -> float:
    """Tuples write their tables: 24 bytes for three elements, in and out of the loop."""
    return 24 / 100 + 7 * 24 / 100


def test_an_unknown_count_is_assumed() -> None:
    text = loop("  r = f32[25]{0:S(1)} negate(v)").replace(
        "n = s32[] constant(7)", "n = s32[] get-tuple-element(cp), index=0"
    )
    module = msa.parse(text)
    five = msa.simulate(module, MACHINE).elapsed_seconds
    nine = msa.simulate(module, MACHINE, while_execution_count=9).elapsed_seconds
    once = msa.simulate(module, MACHINE, while_execution_count=1).elapsed_seconds
    assert nine - five == pytest.approx(five - once)


def test_counts_may_be_given() -> None:
    module = msa.parse(loop("  r = f32[25]{0:S(1)} negate(v)"))
    given = TripCounts(module, {})
    assumed = msa.simulate(module, MACHINE, trip_counts=given).elapsed_seconds
    assert assumed < msa.simulate(module, MACHINE).elapsed_seconds


def test_a_copy_in_a_loop_stalls_on_every_trip() -> None:
    text = loop(
        """  s = (f32[25]{0:S(1)}, f32[25]{0}, u32[]) copy-start(w)
  d = f32[25]{0:S(1)} copy-done(s)
  r = f32[25]{0:S(1)} subtract(v, d)"""
    )
    result = simulate_loop(text)
    assert result.copy_stall_seconds == pytest.approx(7.0)
    rows = {step.name: step for step in result.steps}
    assert rows["d"].stall == pytest.approx(1.0)


def test_a_loop_drains_a_copy_around_it_on_every_trip() -> None:
    # 400 bytes. Fast traffic leaves 0.2 s idle per trip: 7 trips move 140 bytes.
    text = loop(
        "  r = f32[25]{0:S(1)} negate(v)",
        "  s = (f32[100]{0:S(1)}, f32[100]{0}, u32[]) copy-start(big)",
        "  d = f32[100]{0:S(1)} copy-done(s)",
    )
    result = simulate_loop(text)
    assert result.copy_stall_seconds == pytest.approx(4.0 - 7 * 0.2)


def test_a_long_loop_drains_a_copy_without_being_run_trip_by_trip() -> None:
    text = loop(
        "  r = f32[25]{0:S(1)} negate(v)",
        "  s = (f32[100]{0:S(1)}, f32[100]{0}, u32[]) copy-start(big)",
        "  d = f32[100]{0:S(1)} copy-done(s)",
        bound=1_000_000,
    )
    module = msa.parse(text, verify=False)
    loop_step = next(x for x in module.entry.instructions if x.opcode == "while")
    counts = TripCounts(module, {loop_step: 1_000_000})
    slow = MACHINE.replace(
        alternate_read_bandwidth=1e8, alternate_write_bandwidth=1e8
    )  # 2e-6 s idle per trip: 2 s of idle time in all
    result = msa.simulate(module, slow, trip_counts=counts)
    assert result.copy_stall_seconds == pytest.approx(2.0, rel=1e-6)


def test_a_loop_without_trips_takes_no_time() -> None:
    text = loop("  r = f32[25]{0:S(1)} negate(v)")
    module = msa.parse(text)
    loop_step = next(x for x in module.entry.instructions if x.opcode == "while")
    counts = TripCounts(module, {loop_step: 0})
    assert msa.simulate(module, MACHINE, trip_counts=counts).elapsed_seconds == (
        pytest.approx(24 / 100)
    )


def test_a_module_without_schedule_is_refused() -> None:
    module = msa.parse("ENTRY e { ROOT p = f32[4]{0} parameter(0) }")
    with pytest.raises(ScheduleError):
        msa.simulate(module, MACHINE)


# -- occupancy --------------------------------------------------------------------------


def test_bytes_in_fast_memory_per_step() -> None:
    result = run(
        """
  a = f32[25]{0} parameter(0)
  b = f32[25]{0:S(1)} negate(a)
  c = f32[25]{0:S(1)} reverse(b), dimensions={0}
  d = f32[25]{0:S(1)} negate(c)
  ROOT e = f32[25]{0} negate(d)
"""
    )
    # reverse needs both at once; negate may write over its operand.
    assert result.alternate_bytes.tolist() == [0, 100, 200, 100, 100]


def test_a_copy_takes_its_room_from_its_start() -> None:
    result = run(COPY)
    assert result.alternate_bytes.tolist() == [0, 0, 100, 100, 100, 100]


def test_branches_do_not_add_up() -> None:
    text = """
HloModule m, is_scheduled=true
left {
  l = f32[25]{0:S(1)} parameter(0)
  l1 = f32[25]{0:S(1)} reverse(l), dimensions={0}
  ROOT l2 = f32[25]{0} reverse(l1), dimensions={0}
}
right {
  r = f32[25]{0:S(1)} parameter(0)
  ROOT r1 = f32[25]{0} reverse(r), dimensions={0}
}
ENTRY main {
  c = pred[] parameter(0)
  x = f32[25]{0} parameter(1)
  a = f32[25]{0:S(1)} negate(x)
  b = f32[25]{0:S(1)} exponential(x)
  ROOT k = f32[25]{0} conditional(c, a, b), true_computation=left, false_computation=right
}
"""
    result = msa.simulate(msa.parse(text), MACHINE)
    names = [step.name for step in result.steps]
    assert names == ["c", "x", "a", "b", "l", "l1", "l2", "r", "r1", "k"]
    # b is handed over when the conditional begins: the left branch does not need it.
    assert result.alternate_bytes.tolist() == [
        0,
        0,
        100,
        200,
        100,
        200,
        100,
        100,
        100,
        0,
    ]
