"""Exact scheduling against every topological order of tiny graphs."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from msa.analysis.schedulers import (
    LocalValues,
    StepBytes,
    dfs_order,
    exact_order,
    list_order,
    live_bytes,
    sequence_peak,
)
from msa.analysis.schedulers.delay import delay_growth
from msa.analysis.schedulers.live_bytes import peak_bound
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import Shape


@st.composite
def graphs(draw, limit: int = 7) -> Computation:
    """A computation of up to `limit` instructions behind one or two parameters."""
    module = Module("m")
    computation = module.add(Computation("main"), entry=True)
    count = draw(st.integers(2, limit))
    nodes: list[Instruction] = []
    for k in range(draw(st.integers(1, 2))):
        shape = Shape.array("f32", (draw(st.integers(1, 6)),))
        nodes.append(
            computation.add(
                Instruction(f"p{k}", "parameter", shape, (), {"parameter_number": k})
            )
        )
    for k in range(count):
        kind = draw(st.sampled_from(("negate", "custom-call", "tuple")))
        if kind == "negate":
            arrays = [x for x in nodes if not x.shape.is_tuple]
            operands = [draw(st.sampled_from(arrays))]
            shape = operands[0].shape
        else:
            operands = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
            if kind == "tuple":
                shape = Shape.tuple_of(*(x.shape for x in operands))
            else:
                shape = Shape.array("f32", (draw(st.integers(1, 6)),))
        instruction = Instruction(f"i{k}", kind, shape, tuple(operands))
        nodes.append(computation.add(instruction, root=k == count - 1))
    return computation


def topological_orders(computation):
    instructions = computation.instructions
    for order in itertools.permutations(instructions):
        place = {x: i for i, x in enumerate(order)}
        if all(place[o] < place[x] for x in instructions for o in x.operands):
            yield order


def brute_force_peak(computation) -> int:
    """Bytes live at each step, counted from reader sets, for every order."""
    values = LocalValues(computation)
    steps = StepBytes(values)
    root = values.held[values.number[computation.root]]
    best = None
    for order in topological_orders(computation):
        position = {values.number[x]: t for t, x in enumerate(order)}
        loads = [0] * len(order)
        for v, size in enumerate(values.bytes):
            if values.fixed[v]:
                continue
            readers = [position[i] for i, read in enumerate(values.read) if v in read]
            last = len(order) - 1 if v in root else max(readers, default=-1)
            first = position[values.definer[v]]
            for t in range(first, max(first, last) + 1):
                loads[t] += size
            for i, taken in enumerate(steps.takes):
                if taken == v and position[i] == last and v not in root:
                    loads[last] -= size
        best = max(loads) if best is None else min(best, max(loads))
    return best


@settings(deadline=None, max_examples=40)
@given(graphs(limit=6))
def test_exact_is_the_minimum_over_all_orders(computation):
    steps = StepBytes(LocalValues(computation))
    found = exact_order(computation, steps)
    assert found.optimal
    assert found.peak_bytes == sequence_peak(found.sequence, steps)
    assert found.peak_bytes == brute_force_peak(computation)
    assert peak_bound(steps) <= found.peak_bytes


@settings(deadline=None, max_examples=50)
@given(graphs(limit=14))
def test_heuristics_are_valid_and_never_below_exact(computation):
    values = LocalValues(computation)
    steps = StepBytes(values)
    exact = exact_order(computation, steps, effort=3000)
    for order in (list_order(computation, values), dfs_order(computation, values)):
        for sequence in (order, delay_growth(order, values)):
            place = {x: i for i, x in enumerate(sequence)}
            assert len(place) == len(computation.instructions)
            assert all(place[o] < place[x] for x in sequence for o in x.operands)
            if exact.optimal:
                assert sequence_peak(sequence, steps) >= exact.peak_bytes
            assert live_bytes(sequence, steps).min() >= 0


@settings(deadline=None, max_examples=50)
@given(graphs(limit=12))
def test_effort_only_costs_proof(computation):
    steps = StepBytes(LocalValues(computation))
    start = list_order(computation)
    cut = exact_order(computation, steps, start=start, effort=1)
    assert cut.peak_bytes <= sequence_peak(start, steps)
