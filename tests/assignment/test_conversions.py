"""Replacement of synchronous copies and slices by asynchronous copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import AllocationResult, MsaAlgorithm, run_greedy
from msa.assignment.conversions import ConversionResult
from msa.assignment.options import InstructionCountPicker, Options
from msa.assignment.problem import Problem, SyncMove

IC = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
    enable_sync_copy_replacement=True,
    enable_sync_slice_replacement=True,
)


def moving(sketch: Sketch, *after: tuple[str, int]) -> Problem:
    """The problem with its copies and slices as moves."""
    problem = sketch.problem()
    kinds = {"copy": "copy", "slice": "slice", "dynamic-slice": "slice"}
    successors: dict[str, list[int]] = {}
    for name, step in after:
        successors.setdefault(name, []).append(step)
    moves = {
        step: SyncMove(kinds[opcode], 0, tuple(successors.get(problem.names[step], ())))
        for step, opcode in enumerate(problem.opcodes)
        if opcode in kinds
    }
    return replace(problem, sync_moves=moves)


def replaced(problem: Problem, result: AllocationResult) -> dict[str, list[str]]:
    """Name of every replaced instruction → reads served by its replacement."""
    return {
        problem.names[c.replaces]: [problem.describe_use(u) for u in c.uses]
        for c in result.allocations.copies()
        if c.replaces is not None
    }


def test_copy_of_an_input_a8_1() -> None:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    chain = sketch.chain("neg", 6, p1)
    copy = sketch.op("copy", (p0,), opcode="copy")
    sketch.op("add", (chain, copy))
    problem = moving(sketch)
    result = run_greedy(problem, IC)
    assert replaced(problem, result) == {"copy": ["add:1{}"]}
    off = run_greedy(problem, IC.replace(enable_sync_copy_replacement=False))
    assert replaced(problem, off) == {}


def test_done_before_a_control_successor_a8_2() -> None:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    chain = sketch.chain("neg", 5, p1)
    copy = sketch.op("copy", (p0,), opcode="copy")
    after = sketch.op("after", (chain,))
    sketch.op("add", (sketch.chain("n", 3, after), copy))
    problem = moving(sketch, ("copy", after))
    result = run_greedy(problem, IC)
    (made,) = (c for c in result.allocations.copies() if c.replaces == copy)
    assert made.done_before <= after


def test_two_copies_of_one_input_a8_3() -> None:
    sketch = Sketch()
    p0, p1 = sketch.parameter("p0"), sketch.parameter("p1")
    chain = sketch.chain("neg", 5, p1)
    one = sketch.op("copy0", (p0,), opcode="copy")
    two = sketch.op("copy1", (p0,), opcode="copy")
    add = sketch.op("add0", (chain, one))
    sketch.op("add1", (add, two))
    problem = moving(sketch)
    result = run_greedy(problem, IC)
    assert replaced(problem, result) == {"copy0": ["add0:1{}"], "copy1": ["add1:1{}"]}


def test_slice_of_an_input_a8_6() -> None:
    sketch = Sketch(replace(SMALL, capacity=512))
    p0, p1 = sketch.parameter("p0", 240), sketch.parameter("p1")
    chain = sketch.chain("neg", 6, p1)
    part = sketch.op("slice", (p0,), 24, opcode="slice")
    sketch.op("add", (chain, part))
    problem = moving(sketch)
    assert replaced(problem, run_greedy(problem, IC)) == {"slice": ["add:1{}"]}


@pytest.mark.parametrize(("least", "converted"), [(2, False), (1, True)])
def test_slice_at_a_late_index_a8_8(least, converted) -> None:
    sketch = Sketch(replace(SMALL, capacity=512))
    p0, p1 = sketch.parameter("p0", 240), sketch.parameter("p1")
    chain = sketch.chain("neg", 6, p1)
    index = sketch.op("index", (p1,), 8)
    part = sketch.op("slice", (p0, index), 24, opcode="dynamic-slice")
    sketch.op("add", (chain, part))
    problem = moving(sketch)
    options = IC.replace(prefetch_interval_picker=InstructionCountPicker(least, 10))
    assert bool(replaced(problem, run_greedy(problem, options))) is converted


def test_only_the_first_of_nested_slices_a8_12() -> None:
    sketch = Sketch(replace(SMALL, capacity=300))
    p0, p1 = sketch.parameter("p0", 240), sketch.parameter("p1")
    chain = sketch.chain("neg", 6, p1)
    inner = sketch.op("inner", (p0,), 48, opcode="slice")
    outer = sketch.op("outer", (inner,), 24, opcode="slice")
    sketch.op("add", (chain, outer))
    problem = moving(sketch)
    assert list(replaced(problem, run_greedy(problem, IC))) == ["inner"]


def test_small_slices_first_a8_13() -> None:
    sketch = Sketch(replace(SMALL, capacity=72))
    p0, p1 = sketch.parameter("p0", 240), sketch.parameter("p1", 8)
    chain = sketch.chain("neg", 6, p1, 8)
    large = sketch.op("large", (p0,), 192, opcode="slice")
    one = sketch.op("one", (p0,), 24, opcode="slice")
    two = sketch.op("two", (p0,), 24, opcode="slice")
    both = sketch.op("both", (one, two), 24)
    sketch.op("add", (chain, large, both), 8)
    problem = moving(sketch)
    assert set(replaced(problem, run_greedy(problem, IC))) == {"one", "two"}


def test_the_whole_does_not_fit_a8_14() -> None:
    sketch = Sketch(replace(SMALL, capacity=64))
    p0, p1 = sketch.parameter("p0", 240), sketch.parameter("p1", 8)
    chain = sketch.chain("neg", 6, p1, 8)
    part = sketch.op("slice", (p0,), 24, opcode="slice")
    sketch.op("add", (chain, part), 8)
    problem = moving(sketch)
    assert replaced(problem, run_greedy(problem, IC)) == {"slice": ["add:1{}"]}
    off = IC.replace(enable_sync_slice_replacement=False)
    assert replaced(problem, run_greedy(problem, off)) == {}


def test_a_copy_that_is_read_at_once_stays() -> None:
    sketch = Sketch()
    p0 = sketch.parameter("p0")
    copy = sketch.op("copy", (p0,), opcode="copy")
    sketch.op("add", (copy,))
    problem = moving(sketch)
    algorithm = MsaAlgorithm(problem, IC)
    result = algorithm.finish()
    assert replaced(problem, result) == {}
    assert algorithm.state.conversions.results == {copy: ConversionResult.CONSTRAINTS}
    # The source and the copy itself are still allocated.
    served = {problem.describe_use(u) for a in result.allocations for u in a.uses}
    assert served == {"copy:0{}", "add:0{}"}


def test_results_that_leave_the_program_are_no_candidates() -> None:
    sketch = Sketch()
    p0 = sketch.parameter("p0")
    sketch.op("copy", (sketch.chain("n", 5, p0),), opcode="copy")
    problem = moving(sketch)
    assert replaced(problem, run_greedy(problem, IC)) == {}
