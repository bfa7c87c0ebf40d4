"""Rows of a capture: stays in fast memory, copies, wins and losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypedDict

from msa.analysis.async_chains import chain_start
from msa.analysis.manager import AnalysisManager
from msa.analysis.residency import Residency
from msa.analysis.simulation import Simulation
from msa.analysis.simulation.program import moved_shapes
from msa.analysis.values import Value, index_text
from msa.assignment.reason import Reason
from msa.hlo.instruction import Instruction
from msa.hlo.metadata import source_location
from msa.report.effects import Effects, is_fast
from msa.report.reasons import Why

MAX_EFFECTS: Final = 2000
"""Rows kept of the largest wins and of the largest losses."""
MAX_USES: Final = 64
"""Users listed for one buffer; `use_count` says how many there are."""


class BufferRow(TypedDict):
    """One stay of a value in fast memory.

    Steps are half-open `[start, end)`. `offset` is -1 where nobody said it. `value` is
    the value whose bytes these are. `copy_in` and `copy_out` are places in the list of
    copies, -1 for none. `seconds` is what fast memory saves for the buffer, in all its
    stays together.
    """

    name: str
    value: str
    kind: str
    start: int
    end: int
    offset: int
    size: int
    shape: str
    uses: list[str]
    use_count: int
    op_name: str
    source: str
    copy_in: int
    copy_out: list[int]
    seconds: float


class CopyRow(TypedDict):
    """One copy between the memories; `start` and `done` are its instructions."""

    kind: str
    source: str
    value: str
    bytes: int
    start_step: int
    done_step: int
    offset: int
    trip_count: float
    stall: float
    start: str
    done: str


class EffectRow(TypedDict):
    """What the place of one value is worth, in seconds of one run of the program.

    `reason` says why it is there, `code` says so to programs (an `msa.Reason`; empty of
    what is in fast memory). `details` are figures, who has the room or the bandwidth,
    and what would have to change; `competitors` are the names of those.
    """

    value: str
    bytes: int
    seconds: float
    source: str
    reason: str
    code: str
    details: list[str]
    competitors: list[str]


def position_name(value: Value) -> str:
    """`name{index}` of the position that defines a value."""
    return f"{value.instruction.name}{index_text(value.index)}"


def module_copies(
    simulation: Simulation,
    analyses: AnalysisManager,
    chunks: Mapping[str, tuple[int, int]],
) -> list[CopyRow]:
    """The asynchronous copies between the memories that a module has, by start."""
    rows: list[CopyRow] = []
    time = analyses.schedule.time
    for step, done in enumerate(analyses.schedule.instructions):
        if done.opcode == "copy-done":
            start: Instruction | None = done.operands[0]
        elif done.opcode == "async-done":
            start = chain_start(done)
        else:
            continue
        moved = None if start is None else moved_shapes(start)
        if start is None or moved is None:
            continue
        spaces = moved[0].memory_space, moved[1].memory_space
        if spaces not in ((0, 1), (1, 0)):
            continue
        kind = "slice" if done.opcode == "async-done" else "prefetch"
        rows.append(
            {
                "kind": "eviction" if spaces == (1, 0) else kind,
                "source": start.operands[0].name,
                "value": _origin(start.operands[0], analyses),
                "bytes": moved[1].byte_size(),
                "start_step": int(time[start.id]),
                "done_step": step,
                "offset": chunks.get(f"{done.name}{{}}", (-1, 0))[0],
                "trip_count": simulation.trip_counts[step],
                "stall": simulation.steps[step].stall,
                "start": start.name,
                "done": done.name,
            }
        )
    rows.sort(key=lambda row: (row["start_step"], row["done_step"]))
    return rows


def _origin(instruction: Instruction, analyses: AnalysisManager) -> str:
    """The value whose bytes an instruction holds, seen through copies."""
    while True:
        values = analyses.dataflow.values_at(instruction)
        if len(values) != 1:
            return f"{instruction.name}{{}}"
        maker = values[0].instruction
        if maker.opcode != "copy-done":
            return position_name(values[0])
        instruction = maker.operands[0].operands[0]


def buffer_rows(
    analyses: AnalysisManager,
    effects: Effects,
    chunks: Mapping[str, tuple[int, int]],
    copies: Sequence[CopyRow],
) -> list[BufferRow]:
    """One row per stay in fast memory, in order of buffers and then of time."""
    residency = Residency(analyses.alias, analyses.schedule)
    starts = {copy["start"]: number for number, copy in enumerate(copies)}
    rows: list[BufferRow] = []
    for buffer in analyses.alias.buffers:
        inside = [v for v in buffer.values if is_fast(v)]
        if not inside:
            continue
        first = inside[0]
        names = [f"{x.name}{index_text(i)}" for v in inside for x, i in v.positions]
        offset, size = next((chunks[n] for n in names if n in chunks), (-1, 0))
        users = list(dict.fromkeys(u.instruction.name for v in inside for u in v.uses))
        found = (starts.get(v.instruction.name, -1) for v in inside)
        incoming = next((number for number in found if number >= 0), -1)
        name = value = names[0]
        kind, origin = "pinned", first.instruction
        if incoming >= 0:
            copy, origin = copies[incoming], origin.operands[0]
            name, value, kind = f"{copy['done']}{{}}", copy["value"], copy["kind"]
            users = [user for user in users if user != copy["done"]]
        for start, end in residency.of_buffer(inside):
            rows.append(
                {
                    "name": name,
                    "value": value,
                    "kind": kind,
                    "start": start,
                    "end": end,
                    "offset": offset,
                    "size": size or max(v.byte_size() for v in inside),
                    "shape": first.shape.to_text(),
                    "uses": users[:MAX_USES],
                    "use_count": len(users),
                    "op_name": origin.metadata.op_name,
                    "source": source_text(origin),
                    "copy_in": incoming,
                    "copy_out": [starts[name] for name in users if name in starts],
                    "seconds": effects.wins[buffer.id].seconds,
                }
            )
    return rows


def source_text(instruction: Instruction) -> str:
    """`file:line` in the user's program, or an empty string."""
    return str(source_location(instruction) or "")


def effect_rows(
    buffers: Sequence[BufferRow],
    copies: Sequence[CopyRow],
    effects: Effects,
    reasons: Callable[[str], Why],
    capacity: int,
) -> tuple[list[EffectRow], list[EffectRow]]:
    """The largest wins, by value, and the largest losses.

    A win is what all copies of a value in fast memory save, less the waits for them.
    """
    wins: dict[str, EffectRow] = {}
    stays: dict[str, list[BufferRow]] = {}
    counted: set[str] = set()
    for row in buffers:
        value = row["value"]
        stays.setdefault(value, []).append(row)
        win = wins.setdefault(
            value,
            {
                "value": value,
                "bytes": row["size"],
                "seconds": 0.0,
                "source": row["source"] or row["op_name"],
                "reason": "",
                "code": "",
                "details": [],
                "competitors": [],
            },
        )
        if row["name"] not in counted:
            counted.add(row["name"])
            win["seconds"] += row["seconds"] - _waits(row, copies)
    for value, win in wins.items():
        win["reason"] = _win_reason(stays[value], copies)
    made_by = {copy["start"]: copy["value"] for copy in copies}
    losses: list[EffectRow] = []
    for effect in effects.losses.values():
        maker, size = effect.value.instruction, effect.value.byte_size()
        losses.append(
            {
                "value": position_name(effect.value),
                "bytes": size,
                "seconds": effect.seconds,
                "source": source_text(maker) or maker.metadata.op_name,
                "reason": "",
                "code": "",
                "details": [],
                "competitors": [],
            }
        )
    best = sorted(wins.values(), key=lambda row: -row["seconds"])
    losses.sort(key=lambda row: -row["seconds"])
    for loss in losses[:MAX_EFFECTS]:
        maker_name = loss["value"].partition("{")[0]
        why = reasons(made_by.get(maker_name, loss["value"]))
        if loss["bytes"] > capacity:
            why = Why(Reason.TOO_LARGE, Reason.TOO_LARGE.sentence)
        loss["code"], loss["reason"] = str(why.code), why.sentence
        loss["details"], loss["competitors"] = list(why.details), list(why.competitors)
    return best[:MAX_EFFECTS], losses[:MAX_EFFECTS]


def _waits(row: BufferRow, copies: Sequence[CopyRow]) -> float:
    numbers = [n for n in (row["copy_in"], *row["copy_out"]) if n >= 0]
    return sum(copies[n]["stall"] * copies[n]["trip_count"] for n in numbers)


def _win_reason(stays: Sequence[BufferRow], copies: Sequence[CopyRow]) -> str:
    """How the value came into fast memory, in a few words."""
    ways: dict[str, int] = {}
    waits = 0.0
    for row in stays:
        ways[row["kind"]] = ways.get(row["kind"], 0) + 1
        waits += _waits(row, copies)
    parts = [
        _WAYS.get(kind, kind) + (f" {count} times" if count > 1 else "")
        for kind, count in ways.items()
    ]
    if waits > 0.0:
        parts.append(f"waits {waits * 1e6:.2f} µs for its copies")
    return ", ".join(parts)


_WAYS: Final = {
    "pinned": "made there",
    "prefetch": "prefetched",
    "slice": "prefetched in slices",
    "window": "its first bytes prefetched",
    "cross_program": "fetched before the program starts",
    "eviction": "kept until its eviction",
}
