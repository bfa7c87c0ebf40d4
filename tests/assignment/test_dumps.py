"""Debug tables, options from text, views, and what the caller reserves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignment.sketch import SMALL, Sketch
from msa.assignment.algorithm import run_greedy
from msa.assignment.dumps import (
    AllocationInfo,
    BufferInfo,
    ScheduleInfo,
    from_csv,
    to_csv,
)
from msa.assignment.filters import (
    HloOperandFilter,
    HloPositionMatcher,
    HloRandomFilter,
    MsaSortOrderOverride,
    PreferredPrefetchOverride,
)
from msa.assignment.options import (
    InstructionCountPicker,
    MemoryBoundLoopOptimizerOptions,
    Options,
    SlicedPrefetchOptions,
)
from msa.assignment.outcomes import Skip
from msa.assignment.text_proto import (
    loop_optimizer_options,
    parse_text_proto,
    preferred_prefetch_overrides,
    sliced_prefetch_options,
    sort_order_overrides,
)
from msa.errors import FileFormatError, OptionsError

IC = Options(
    prefetch_interval_picker=InstructionCountPicker(2, 10),
    buffer_interval_comparator="spatial",
    cost_analysis=False,
    enable_cross_program_prefetch=False,
)


def test_three_tables() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    sketch.op("last", (sketch.chain("n", 3, p), p))
    problem = replace(sketch.problem(), scratch_bytes={2: 16})
    tables: dict[str, str] = {}
    result = run_greedy(problem, IC.replace(dump_fn=tables.__setitem__))
    assert set(tables) == {"bufferinfo", "allocinfo", "scheduleinfo"}
    schedule = from_csv(ScheduleInfo, tables["scheduleinfo"])
    assert [row.instruction_name for row in schedule] == list(problem.names)
    buffers = from_csv(BufferInfo, tables["bufferinfo"])
    assert buffers[0] == BufferInfo(0, "p{}", 0.0, 24, 0, "1;4", "n0:0{};last:1{}", 0)
    assert buffers[-1] == BufferInfo(
        -1, "scoped allocation for n1", 0.0, 16, 2, "", "", 1
    )
    rows = from_csv(AllocationInfo, tables["allocinfo"])
    chunks = [a.chunk for a in result.allocations if a.chunk is not None]
    assert [(r.offset, r.size) for r in rows] == [(c.offset, c.size) for c in chunks]
    assert rows[0].buffer_id == -1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1"),
        ("time,name\n", "line 1"),
        ("time,instruction_name\nx,y\n", "line 2"),
        ("time,instruction_name\n1\n", "line 2"),
    ],
)
def test_bad_tables(text, where) -> None:
    with pytest.raises(FileFormatError, match=where):
        from_csv(ScheduleInfo, text)


def test_names_are_quoted() -> None:
    rows = [ScheduleInfo(0, 'a,"b"'), ScheduleInfo(1, "c\nd")]
    assert from_csv(ScheduleInfo, to_csv(ScheduleInfo, rows)) == rows


# -- options from text ---------------------------------------------------------------


def test_sort_order_overrides_from_text() -> None:
    text = """
      # the first
      overrides {
        hlo_position_matcher {
          instruction_name_regex: "negate(.*)"  size_lte: 48
          hlo_use_filter { operand_number: 1 tuple_index { index: [1, 2] } }
          hlo_random_filter { seed: 7 selection_range_end: 0.5 }
        }
        override_options { assign_first: true }
        apply_to_cross_program_prefetches: true
      }
      overrides: { hlo_position_matcher: { size_gte: 8 }, override_options: { assign_value: -3 } }
    """
    assert sort_order_overrides(text) == (
        MsaSortOrderOverride(
            HloPositionMatcher(
                instruction_name_regex="negate(.*)",
                size_lte=48,
                hlo_use_filter=HloOperandFilter(operand_number=1, tuple_index=(1, 2)),
                hlo_random_filter=HloRandomFilter(7, 0.0, 0.5),
            ),
            assign_first=True,
            apply_to_cross_program_prefetches=True,
        ),
        MsaSortOrderOverride(HloPositionMatcher(size_gte=8), assign_value=-3),
    )


def test_prefetch_overrides_from_text() -> None:
    text = (
        "overrides { hlo_operand_filter { size_gte: 24 } "
        "override_options { prefetch_eagerness: 0.5 } } "
        "overrides { hlo_operand_filter { instruction_name_regex: 'add' } "
        'override_options { after_instruction { instruction_regex: "a\\\\(b\\"" } } }'
    )
    first, second = preferred_prefetch_overrides(text)
    assert first == PreferredPrefetchOverride(
        HloOperandFilter(size_gte=24), prefetch_eagerness=0.5
    )
    assert second.after_instruction == HloPositionMatcher(instruction_regex='a\\(b"')


def test_plain_messages_from_text() -> None:
    assert sliced_prefetch_options("max_slices: 2 min_bytes: 1024") == (
        SlicedPrefetchOptions(max_slices=2, min_bytes=1024)
    )
    assert loop_optimizer_options("enabled: true desired_copy_ratio: 1") == (
        MemoryBoundLoopOptimizerOptions(enabled=True, desired_copy_ratio=1)
    )
    assert parse_text_proto("") == {}
    assert parse_text_proto("a: [1, -2.5, x]; b <c: false>") == {
        "a": [1, -2.5, "x"],
        "b": [{"c": [False]}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "a {",
        "a: ",
        "{",
        "a: }",
        "a: [1, ",
        "1: 2",
        "a: @",
        "max_slices: 'two'",
        "nothing: 3",
        "max_slices { x: 1 }",
        "a {" * 30,
        'a: "unclosed',
    ],
)
def test_bad_text(text) -> None:
    with pytest.raises(OptionsError):
        sliced_prefetch_options(text)


def test_errors_say_where() -> None:
    with pytest.raises(OptionsError) as caught:
        parse_text_proto("a: 1\n  b: %")
    assert caught.value.where.startswith("2:")


# -- views ----------------------------------------------------------------------------


def viewed() -> Sketch:
    """v is a view of a; w is a view of v; last reads w long after."""
    sketch = Sketch(replace(SMALL, capacity=64))
    p = sketch.parameter("p")
    a = sketch.op("a", (p,))
    v = sketch.op("v", (a,))
    w = sketch.op("w", (v,))
    sketch.op("last", (sketch.chain("n", 3, p, 48), w))
    return sketch


def test_storage_is_kept_while_views_of_it_are_read() -> None:
    sketch = viewed()
    problem = sketch.problem()
    a, v, w, last = (problem.names.index(x) for x in ("a", "v", "w", "last"))
    values = [replace(x, placeable=x.id not in (v, w)) for x in problem.values]
    problem = replace(problem, values=values)
    without = run_greedy(problem, IC)
    with_views = run_greedy(replace(problem, views=frozenset({v, w})), IC)

    def end(result) -> int:
        return max(x.end for x in result.allocations if x.value == a)

    assert end(without) == v
    assert end(with_views) == last
    kept = IC.replace(view_source_default_memory_only=True)
    result = run_greedy(replace(problem, views=frozenset({v, w})), kept)
    assert not any(
        x.is_alternate and x.uses for x in result.allocations if x.value == a
    )


# -- reserved by the caller --------------------------------------------------------------


def test_what_the_caller_keeps_there_takes_room() -> None:
    sketch = Sketch()
    p = sketch.parameter("p")
    a = sketch.op("a", (p,), 100)
    sketch.op("b", (a,))
    problem = sketch.problem()
    assert any(
        x.value == a and x.is_alternate for x in run_greedy(problem, IC).allocations
    )
    values = [
        replace(x, reserved=x.id == p, size=64 if x.id == p else x.size)
        for x in problem.values
    ]
    result = run_greedy(replace(problem, values=values), IC)
    assert result.reserved_values == (p,)
    assert [x for x in result.allocations if x.value in (p, a)] == []
    assert {(d.value, d.skipped) for d in result.buffer_decisions} >= {
        (p, Skip.RESERVED_BY_USER),
        (a, Skip.ROOM_RESERVED),
    }
