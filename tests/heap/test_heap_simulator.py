"""The simulator: calls in order, sizes, options. Graphs are given as lifetimes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import InternalError
from msa.heap import (
    GlobalDecreasingSizeBestFitHeap,
    HeapSimulator,
    NoFragmentationStatsHeap,
    SimulatedValue,
    minimum_memory,
)

LETTERS = {"ALLOC": "A", "FREE": "F", "SHARE_WITH": "S"}


def values(text, size=8):
    """Words such as `mul:2-4<a,b`: name, live range, operands it may reuse."""
    rows = []
    for word in text.split():
        name, _, rest = word.partition(":")
        span, _, operands = rest.partition("<")
        start, end = map(int, span.split("-"))
        rows.append((name, start, end, operands.split(",") if operands else []))
    number = {row[0]: n for n, row in enumerate(rows)}
    return [
        SimulatedValue(
            number[name],
            number[name],
            size,
            start,
            end,
            reusable=tuple(number[operand] for operand in operands),
            name=name,
        )
        for name, start, end, operands in rows
    ]


def calls(simulator):
    return " ".join(LETTERS[e.kind.value] + e.name for e in simulator.trace)


# The ranges are those of a live-range analysis of the graph in the comment.
SEQUENCES = [
    # mul(A, X)
    ("multiply", "a:0-3 x:0-3 mul:2-3", 3, "Aa Ax Amul Fa Fx Fmul"),
    # A, X, mul(A, X), Y, add(mul, Y)
    (
        "multiply-add",
        "a:0-5 x:0-5 y:0-5 mul:2-4 add:4-5<mul",
        5,
        "Aa Ax Ay Amul Fmul Sadd Fa Fx Fy Fadd",
    ),
    # the same with dot(mul, Y), which may not write over its operand
    (
        "multiply-dot",
        "a:0-5 x:0-5 y:0-5 mul:2-4 dot:4-5",
        5,
        "Aa Ax Ay Amul Adot Fmul Fa Fx Fy Fdot",
    ),
    # mul(A, X), dot(mul, Y), add(dot, A)
    (
        "multiply-dot-add",
        "a:0-6 x:0-6 y:0-6 mul:2-4 dot:4-5 add:5-6<dot",
        6,
        "Aa Ax Ay Amul Adot Fmul Fdot Sadd Fa Fx Fy Fadd",
    ),
    # mul, dot0(mul, Y), dot1(dot0, Y), tuple(dot0, dot1)
    (
        "two-dots",
        "a:0-7 x:0-7 y:0-7 mul:2-4 dot0:4-7 dot1:5-7 tuple:6-7",
        7,
        "Aa Ax Ay Amul Adot0 Fmul Adot1 Atuple Fa Fx Fy Fdot0 Fdot1 Ftuple",
    ),
    # mul, add, tuple(mul, add), gte0, bc = broadcast(gte0), sub(bc, …), gte1, out
    (
        "tuple-elements",
        "a:0-8 mul:1-5 add:2-8 tuple:3-7 bc:5-6 sub:6-8<bc out:8-8",
        8,
        "Aa Amul Aadd Atuple Abc Fmul Fbc Ssub Ftuple Aout Fa Fadd Fsub Fout",
    ),
    # a while loop: the parameters of body and condition are the same values
    (
        "while",
        "p{}:0-9 p0:0-9 p1:0-9 cond_lt:3-4",
        9,
        "Ap{} Ap0 Ap1 Acond_lt Fcond_lt Fp{} Fp0 Fp1",
    ),
    # negate, fusion with two outputs that could both take the operand over
    (
        "fusion-two-outputs",
        "p:0-4 negate:1-2 f{}:2-3 f0:2-4<negate f1:2-4<negate",
        4,
        "Ap Anegate Af{} Fnegate Sf0 Af1 Ff{} Fp Ff0 Ff1",
    ),
    # the same; nothing reads the tuple itself
    (
        "fusion-tuple-dies",
        "p:0-4 negate:1-2 f{}:2-2 f0:2-4<negate f1:2-3<negate",
        4,
        "Ap Anegate Af{} Fnegate Sf1 Af0 Ff{} Ff1 Fp Ff0",
    ),
    ("constant-root", "", 0, ""),
    ("parameter-root", "p:0-1", 1, "Ap Fp"),
]


@pytest.mark.parametrize(
    ("graph", "end", "expected"),
    [row[1:] for row in SEQUENCES],
    ids=[f"10.1-{row[0]}" for row in SEQUENCES],
)
def test_sequence(graph, end, expected):
    simulator = HeapSimulator(values(graph), end)
    simulator.run(NoFragmentationStatsHeap())
    assert calls(simulator) == expected


def test_no_reuse_on_request():
    graph = values("a:0-5 mul:2-4 add:4-5<mul")
    simulator = HeapSimulator(graph, 5, may_reuse_operand_buffers=False)
    simulator.run(NoFragmentationStatsHeap())
    assert calls(simulator) == "Aa Amul Aadd Fmul Fa Fadd"


def test_while_of_scalars_needs_25_bytes_10_2():
    # A pair table of 16, two scalars of 4, and the predicate of 1.
    sizes = [(0, 16, 0, 9), (1, 4, 0, 9), (2, 4, 0, 9), (3, 1, 3, 4)]
    rows = [SimulatedValue(n, n, size, s, e) for n, size, s, e in sizes]
    assert minimum_memory(rows, 9) == 25
    assert minimum_memory([], 9) == 0


def test_group_size_is_the_largest_alias_10_2():
    # A parameter f32[4] that aliases an updated f32[8].
    rows = [SimulatedValue(0, 0, 16, 0, 2), SimulatedValue(1, 0, 32, 2, 4)]
    heap = GlobalDecreasingSizeBestFitHeap()
    simulator = HeapSimulator(rows, 4)
    result = simulator.run(heap)
    assert [e.kind.value for e in simulator.trace] == [
        "ALLOC",
        "SHARE_WITH",
        "FREE",
        "FREE",
    ]
    assert result.chunk(0).size == result.chunk(1).size == 32


def test_share_chain_grows_10_2():
    rows = [
        SimulatedValue(0, 0, 10, 0, 1),
        SimulatedValue(1, 1, 10, 1, 2, reusable=(0,)),
        SimulatedValue(2, 2, 20, 2, 3, reusable=(1,)),
        SimulatedValue(3, 3, 30, 3, 4, reusable=(2,)),
    ]
    simulator = HeapSimulator(rows, 4)
    result = simulator.run(GlobalDecreasingSizeBestFitHeap())
    sizes = [(e.kind.value, e.size) for e in simulator.trace]
    assert sizes == [
        ("ALLOC", 10),
        ("FREE", 10),
        ("SHARE_WITH", 10),
        ("FREE", 10),
        ("SHARE_WITH", 20),
        ("FREE", 20),
        ("SHARE_WITH", 30),
        ("FREE", 30),
    ]
    assert result.heap_size == 30
    assert {result.chunk(n).size for n in range(4)} == {30}


def test_constants_only_on_request():
    rows = [
        SimulatedValue(0, 0, 8, 0, 3),
        SimulatedValue(1, 1, 4, 0, 3, is_constant=True),
    ]
    assert minimum_memory(rows, 3) == 8
    simulator = HeapSimulator(rows, 3, alloc_constants=True)
    assert simulator.run(NoFragmentationStatsHeap()).heap_size == 12


def test_only_wanted_buffers():
    rows = values("a:0-5 b:0-5 c:1-4")
    simulator = HeapSimulator(rows, 5, buffers_to_assign={0, 2})
    result = simulator.run(GlobalDecreasingSizeBestFitHeap())
    assert calls(simulator) == "Aa Ac Fc Fa"
    assert sorted(result.heaps[0].chunk_map) == [0, 2]
    missing = HeapSimulator(rows, 5, buffers_to_assign={0, 9})
    with pytest.raises(InternalError):
        missing.run(GlobalDecreasingSizeBestFitHeap())


def test_touching_aliases_are_counted_twice():
    # XLA's quirk: the second alias is defined before the first is freed.
    rows = [SimulatedValue(0, 0, 8, 0, 2), SimulatedValue(1, 0, 8, 2, 4)]
    assert minimum_memory(rows, 4) == 16
    result = HeapSimulator(rows, 4).run(GlobalDecreasingSizeBestFitHeap())
    assert (result.heap_size, result.fragmentation_size) == (8, -8)


def test_bad_ranges_are_refused():
    with pytest.raises(InternalError):
        HeapSimulator(values("a:0-9"), 5).run(NoFragmentationStatsHeap())


spans = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 50))


@given(st.lists(spans, max_size=10))
def test_ideal_is_the_largest_sum_of_live_bytes(rows):
    made = [
        SimulatedValue(n, n, size, min(a, b), max(a, b))
        for n, (a, b, size) in enumerate(rows)
    ]
    result = HeapSimulator(made, 8).run(GlobalDecreasingSizeBestFitHeap())
    live = [sum(v.size for v in made if v.start <= step <= v.end) for step in range(9)]
    assert minimum_memory(made, 8) == max(live)
    assert result.heap_size - result.fragmentation_size == max(live)
    assert result.fragmentation_size >= 0
