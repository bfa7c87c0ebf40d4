"""Problems that users report again and again, reduced, with the right value."""

from __future__ import annotations

import msa
from msa.analysis import AnalysisManager


def target(capacity: int) -> msa.Target:
    """A small machine: fast memory ten times as fast, no alignment."""
    return msa.Target(
        "small",
        alternate_memory_bytes=capacity,
        alignment_bytes=1,
        default_memory_bandwidth=100.0,
        alternate_read_bandwidth=1000.0,
        alternate_write_bandwidth=1000.0,
        flops_per_second=1e9,
        transcendentals_per_second=1e9,
    )


def program(steps: int, uses: dict[int, str], start: int) -> str:
    """T is defined at `start` and read by the instructions named in `uses`."""
    lines = ["  x = f32[15]{0} parameter(0)", "  y = f32[15]{0} parameter(1)"]
    last = "y"
    for step in range(2, steps):
        if step == start:
            lines.append("  T = f32[15]{0} negate(x)")
            continue
        name = uses.get(step, f"op{step}")
        other = "T" if step in uses else last
        lines.append(f"  {name} = f32[15]{{0}} add({last}, {other})")
        last = name
    lines[-1] = lines[-1].replace("  ", "  ROOT ", 1)
    body = "\n".join(lines)
    return f"HloModule m, is_scheduled=true\nENTRY e {{\n{body}\n}}\n"


def scratch(step_name: str, size: int):  # type: ignore[no-untyped-def]
    def needed(instruction, operands, outputs):  # type: ignore[no-untyped-def]
        del operands, outputs
        return size if instruction.name == step_name else 0

    return needed


def fast_bytes(module: msa.Module) -> dict[str, int]:
    """Bytes of live fast memory at every instruction of a planned module."""
    analyses = AnalysisManager(module)
    used = dict.fromkeys((x.name for x in analyses.schedule.instructions), 0)
    names = list(used)
    for buffer in analyses.alias.buffers:
        first = buffer.values[0]
        if not first.shape.is_array or first.shape.memory_space != 1:
            continue
        steps: set[int] = set()
        for value in buffer.values:
            live = analyses.live_ranges.range_of(value)
            if live is not None:
                steps.update(range(live.start, min(live.end, len(names) - 1) + 1))
        for step in steps:
            used[names[step]] += first.shape.byte_size()
    return used


def test_late_spill_C6() -> None:
    """60 of 100 bytes, read at 8, 12 and 20; the operation at 15 needs 80."""
    text = program(24, {8: "use8", 12: "use12", 20: "use20"}, start=5)
    options = msa.Options(reserved_scoped_memory_fn=scratch("op15", 80))
    module = msa.parse(text)
    plan = msa.assign(module, target(100), options)
    plan.verify()
    assert fast_bytes(plan.module)["op15"] <= 20
    slow = 0
    for name in ("use8", "use12", "use20"):
        found = next(x for x in plan.module.entry.instructions if x.name == name)
        slow += found.operands[1].shape.memory_space == 0
    assert slow <= 1


def test_scratch_with_a_slow_output_C16() -> None:
    """X takes 400 of 1000 bytes in [3, 7); the operation at 5 needs 700."""
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[100]{0} parameter(0)
  y = f32[100]{0} parameter(1)
  w = f32[100]{0} negate(y)
  X = f32[100]{0} negate(x)
  a = f32[100]{0} add(w, w)
  big = f32[100]{0} multiply(a, a)
  ROOT r = f32[100]{0} add(X, big)
}
"""
    options = msa.Options(reserved_scoped_memory_fn=scratch("big", 700))
    plan = msa.assign(msa.parse(text), target(1000), options)
    plan.verify()
    assert fast_bytes(plan.module)["big"] <= 300
    assert plan.alternate_peak_bytes <= 1000
