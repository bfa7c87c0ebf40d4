"""Row B12: seconds of an operation, by where its operands are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.sketch import SMALL, Sketch
from msa.assignment.costs import CostModel
from msa.assignment.options import Options

MIB = 1 << 20


def addition(window: float = 0.0, compute: float = 0.0) -> tuple[CostModel, int]:
    """Two operands of 1 MiB and a result; default 1 MiB/s, alternate 10 MiB/s."""
    machine = replace(
        SMALL,
        default_bandwidth=float(MIB),
        alternate_read_bandwidth=10.0 * MIB,
        alternate_write_bandwidth=10.0 * MIB,
    )
    sketch = Sketch(machine, seconds=compute)
    a, b = sketch.parameter("a", MIB), sketch.parameter("b", MIB)
    step = sketch.op("add", (a, b), MIB)
    options = Options(pipeline_overhead_window_size_mib=window)
    return CostModel(sketch.problem(), options), step


@pytest.mark.parametrize(
    ("read", "expected"), [(0, 3.0), (1, 2.1), (2, 1.2)], ids=["none", "one", "both"]
)
def test_memory_time_by_operands_in_alternate_memory_b12(read, expected) -> None:
    model, step = addition()
    assert model.elapsed_reading(step, read * MIB) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("window", "read", "expected"),
    [
        # 3 MiB in default memory, of which the first MiB is waited for: 1/3 of 2 s.
        (1.0, 0, 3.0 + 2 / 3),
        # 1 MiB left in default memory: it is all of the window.
        (1.0, 2, max(2.0, 1.2 + 2 / 3)),
        (2.0, 2, max(2.0, 1.2 + 2 / 3)),
        (100.0, 0, 3.0 + 2.0),
    ],
)
def test_overhead_of_filling_the_pipeline_b12(window, read, expected) -> None:
    model, step = addition(window, compute=2.0)
    assert model.elapsed_reading(step, read * MIB) == pytest.approx(expected, rel=1e-6)


def test_latency_bounds_from_below_b12() -> None:
    model, step = addition(compute=7.0)
    assert model.elapsed_reading(step, 2 * MIB) == pytest.approx(7.0)
    assert float(model.elapsed[step]) == pytest.approx(7.0)
