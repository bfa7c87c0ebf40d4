"""All facts of a module as plain data, for tools and comparisons."""

from __future__ import annotations

from typing import Any

from msa.analysis.manager import AnalysisManager
from msa.analysis.memory_boundedness import CostModel
from msa.analysis.trip_counts import TripCounts
from msa.analysis.values import Value
from msa.hlo.module import Module
from msa.target import Target


def facts(
    module: Module, target: Target, *, manager: AnalysisManager | None = None
) -> dict[str, Any]:
    """What the analyses say of a scheduled module, as XLA states it.

    Positions are written `name{0,1}`, uses `name:operand{index}`. Keys:

    * `flattened_schedule`: names in order of time;
    * `computation_spans`: computation to `[start, end)`;
    * `values`: rows with `position`, `positions`, `uses`, `bytes`, `is_phi`,
      `live_out` and `live` (inclusive `[start, end]`, None if not scheduled);
    * `buffers`: defining positions of the values that share storage;
    * `instructions`: `[step, name, flops, transcendentals, bytes accessed, compute
      seconds, memory seconds, trip count]` per scheduled instruction;
    * `memory_boundedness`: defining position to benefit;
    * `elapsed_default_memory`: seconds with everything in default memory.

    Trip counts are those of XLA's own loop analysis (5 if it does not know), not
    those stated in `backend_config`.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main { a = f32[4] parameter(0)  ROOT b = f32[4] negate(a) }
    ... ''')
    >>> rows = facts(module, msa.Target.preset("tpu_v5e"))
    >>> rows["flattened_schedule"], [v["live"] for v in rows["values"]]
    (['a', 'b'], [[0, 2], [1, 2]])
    """
    analyses = manager or AnalysisManager(module)
    live = analyses.live_ranges
    schedule = live.schedule
    model = CostModel.run(
        module,
        target,
        costs=analyses.costs,
        alias=analyses.alias,
        trip_counts=TripCounts.run(module, use_backend_config=False),
    )
    rows = [_instruction_row(model, i, x) for i, x in enumerate(schedule.instructions)]
    scheduled = [v for v in analyses.dataflow.values if v.id in live.ranges]
    return {
        "flattened_schedule": [x.name for x in schedule.instructions],
        "computation_spans": {c.name: list(span) for c, span in schedule.spans.items()},
        "values": [_value_row(analyses, v) for v in analyses.dataflow.values],
        "buffers": [
            [str(v.position) for v in buffer.values]
            for buffer in analyses.alias.buffers
        ],
        "instructions": rows,
        "memory_boundedness": {
            str(v.position): model.memory_boundedness(v)
            for v in scheduled
            if not v.shape.is_tuple
        },
        "elapsed_default_memory": sum(
            model.elapsed(x) * row[7]
            for x, row in zip(schedule.instructions, rows, strict=True)
            if x.opcode != "while"
        ),
    }


def _value_row(analyses: AnalysisManager, value: Value) -> dict[str, Any]:
    bound = analyses.live_ranges.range_of(value)
    return {
        "position": str(value.position),
        "positions": [str(p) for p in value.positions],
        "uses": [str(u) for u in value.uses],
        "bytes": value.byte_size(),
        "is_phi": value.is_phi,
        "live_out": value.live_out,
        "live": None if bound is None else [bound.start, bound.end],
    }


def _instruction_row(model: CostModel, step: int, x: Any) -> list[Any]:
    properties = model.costs.properties(x)
    return [
        step,
        x.name,
        properties.flops,
        properties.transcendentals,
        properties.bytes_accessed,
        model.compute(x),
        model.memory(x),
        model.nest_trip_count(x),
    ]
