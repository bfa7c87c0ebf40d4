"""Problems: checks, regions, files; buffer intervals."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignment.sketch import Sketch
from msa.assignment.allocation import Position, Use
from msa.assignment.intervals import colocated, create_buffer_intervals
from msa.assignment.problem import Problem, Region, Value
from msa.errors import PlanError


def small() -> Problem:
    sketch = Sketch()
    p = sketch.parameter("p")
    a = sketch.op("a", (p,))
    b = sketch.op("b", (a, p), in_place=True)
    sketch.op("c", (b, p))
    return sketch.problem()


def test_names_of_places() -> None:
    problem = small()
    assert problem.describe(Position(1, (0, 2))) == "a{0,2}"
    assert problem.describe_use(Use(2, 1)) == "b:1{}"
    assert problem.value_at[Position(2)] == 2


def test_json_round_trip() -> None:
    problem = replace(small(), scratch_bytes={1: 64}, result_elements={1: 6}, called={})
    text = json.dumps(problem.to_dict())
    assert Problem.from_dict(json.loads(text)) == replace(
        problem, keys=[None] * problem.end
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("values"),
        lambda d: d.update(version=99),
        lambda d: d["names"].pop(),
        lambda d: d["values"][0].update(size=-1),
        lambda d: d["values"][0].update(uses=[[1000, 0, []]]),
        lambda d: d["values"][1].update(buffer=2),
        lambda d: d["values"][1].update(id=7),
        lambda d: d["values"][1].update(live=[4, 2]),
        lambda d: d["values"][1].update(positions=[[0]]),
        lambda d: d["machine"].update(speed=3),
        lambda d: d.update(buffers=3),
    ],
)
def test_bad_files_are_plan_errors(spoil) -> None:
    data = json.loads(json.dumps(small().to_dict()))
    spoil(data)
    with pytest.raises(PlanError):
        Problem.from_dict(data)


def test_levels_and_trips() -> None:
    problem = replace(
        small(),
        region_of=[0, 1, 2, 0],
        regions=[
            Region("main", "entry", -1, 0, 4, 3, (0,)),
            Region("body", "body", 3, 1, 3, 2, (1,), 7.0),
            Region("branch", "branch", 1, 2, 3, 2, (2,)),
        ],
    )
    assert problem.while_levels == [0, 1, 1]
    assert problem.nest_levels == [0, 1, 2]
    assert problem.trip_counts == [1.0, 7.0, 7.0]


# -- intervals -------------------------------------------------------------------


def test_intervals_count_heap_events() -> None:
    intervals = create_buffer_intervals(small())
    # p [0,4], a [1,2], b [2,3] shares a's storage, c [3,4].
    rows = [
        (x.start, x.end, x.colocations, x.need_allocation)
        for x in intervals
        if x is not None
    ]
    assert rows == [
        (0, 6, (), True),
        (1, 3, (2,), True),
        (2, 5, (), False),
        (4, 7, (), True),
    ]


def test_colocated_values_by_time() -> None:
    intervals = create_buffer_intervals(small())
    assert intervals[0] is not None
    assert intervals[1] is not None
    assert [x.value for x in colocated(intervals[0], intervals)] == [0]
    assert [x.value for x in colocated(intervals[1], intervals)] == [1, 2]


def test_empty_buffers_have_no_interval() -> None:
    problem = small()
    values = list(problem.values)
    values[3] = replace(values[3], size=0)
    intervals = create_buffer_intervals(replace(problem, values=values))
    assert intervals[3] is None


lives = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 4)), max_size=12
)


@given(lives)
def test_intervals_agree_with_a_simulated_heap(rows) -> None:
    values, buffers = [], {}
    for number, (start, length, buffer) in enumerate(rows):
        buffers.setdefault(buffer, []).append(number)
        values.append((start, start + length, buffer))
    order = {b: i for i, b in enumerate(buffers)}
    problem = replace(
        small(),
        values=[
            Value(i, order[b], 8, (Position(0),), (), (s, e))
            for i, (s, e, b) in enumerate(values)
        ],
        buffers=[tuple(m) for m in buffers.values()],
    )
    intervals = create_buffer_intervals(problem)
    clock, seen = 0, set()
    ranked = sorted(range(len(values)), key=lambda i: (*values[i][:2], i))
    for step in range(16):
        for i in ranked:
            if values[i][0] == step:
                found = intervals[i]
                assert found is not None
                assert found.start == clock
                assert found.need_allocation == (values[i][2] not in seen)
                seen.add(values[i][2])
                clock += 1
        for i in ranked:
            if values[i][1] == step:
                found = intervals[i]
                assert found is not None
                assert found.end == clock
                clock += 1
