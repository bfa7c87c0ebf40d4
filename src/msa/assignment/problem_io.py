"""Problems as plain data, for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from msa.assignment.allocation import Position, Use
from msa.assignment.modelled import Modelled
from msa.assignment.problem import (
    CrossProgramCandidate,
    Machine,
    Problem,
    Region,
    SyncMove,
    Value,
    index_of,
)
from msa.errors import PlanError

_VERSION = 1


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Plain data: dictionaries, lists, numbers and text."""
    return {
        "version": _VERSION,
        "name": problem.name,
        "machine": dataclasses.asdict(problem.machine),
        "opcodes": list(problem.opcodes),
        "names": list(problem.names),
        "operands": [list(x) for x in problem.operands],
        "region_of": [int(x) for x in problem.region_of],
        "called": [[step, *regions] for step, regions in problem.called.items()],
        "regions": [dataclasses.asdict(r) for r in problem.regions],
        "values": [_value_to_dict(v) for v in problem.values],
        "buffers": [list(b) for b in problem.buffers],
        "compute_seconds": [float(x) for x in problem.compute_seconds],
        "total_bytes": [float(x) for x in problem.total_bytes],
        "scratch_bytes": [list(x) for x in problem.scratch_bytes.items()],
        "result_elements": [list(x) for x in problem.result_elements.items()],
        "copy_factors": [[s, *x] for s, x in problem.copy_factors.items()],
        "sync_moves": [
            [s, m.kind, m.source_operand, list(m.control_successors)]
            for s, m in problem.sync_moves.items()
        ],
        "views": sorted(problem.views),
        "modelled": _modelled_to_dict(problem.modelled),
        "cross_program": [
            {
                "value": c.value,
                "uses": [_place(u) for u in c.uses],
                "annotated": c.annotated,
                "suitable": c.suitable,
            }
            for c in problem.cross_program
        ],
    }


def _modelled_to_dict(modelled: Modelled | None) -> dict[str, Any] | None:
    if modelled is None:
        return None
    return {
        "flop_seconds": list(modelled.flop_seconds),
        "transcendental_seconds": list(modelled.transcendental_seconds),
        "accessed": list(modelled.accessed),
        "removable": sorted(modelled.removable),
        "forwarded": [list(pair) for pair in modelled.forwarded.items()],
        "copy_bytes": modelled.copy_bytes,
    }


def _place(place: Position | Use) -> list[Any]:
    *numbers, index = place
    return [*numbers, list(index)]


def _value_to_dict(value: Value) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if field.name == "key":
            continue
        if field.name in ("positions", "uses"):
            item = [_place(x) for x in item]
        elif isinstance(item, frozenset):
            item = sorted(item)
        elif isinstance(item, tuple):
            item = list(item)
        data[field.name] = item
    return data


def problem_from_dict(data: Mapping[str, Any]) -> Problem:
    """The inverse of `problem_to_dict`.

    Raises:
        PlanError: a field is missing or has the wrong form.
    """
    try:
        problem = _read(data)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise PlanError(f"this is not a problem: {error!r}") from error
    problem.check()
    return problem


def _read(data: Mapping[str, Any]) -> Problem:
    if data["version"] != _VERSION:
        raise PlanError(f"unknown version {data['version']!r} of a problem")
    return Problem(
        name=data["name"],
        machine=Machine(**data["machine"]),
        opcodes=list(data["opcodes"]),
        names=list(data["names"]),
        operands=[tuple(x) for x in data["operands"]],
        region_of=list(data["region_of"]),
        called={step: tuple(regions) for step, *regions in data["called"]},
        regions=[
            Region(**{**r, "parameters": tuple(r["parameters"])})
            for r in data["regions"]
        ],
        values=[_value_from_dict(v) for v in data["values"]],
        buffers=[tuple(b) for b in data["buffers"]],
        compute_seconds=list(data["compute_seconds"]),
        total_bytes=list(data["total_bytes"]),
        scratch_bytes={int(step): int(size) for step, size in data["scratch_bytes"]},
        result_elements={int(s): int(n) for s, n in data["result_elements"]},
        copy_factors={int(s): (f, int(t)) for s, f, t in data["copy_factors"]},
        sync_moves={
            int(s): SyncMove(kind, int(o), tuple(after))
            for s, kind, o, after in data["sync_moves"]
        },
        views=frozenset(data["views"]),
        modelled=_modelled_from_dict(data.get("modelled")),
        cross_program=[
            CrossProgramCandidate(
                c["value"],
                tuple(_use(u) for u in c["uses"]),
                c["annotated"],
                c["suitable"],
            )
            for c in data["cross_program"]
        ],
        keys=[None] * len(data["opcodes"]),
    )


def _modelled_from_dict(data: Mapping[str, Any] | None) -> Modelled | None:
    if data is None:
        return None
    return Modelled(
        list(data["flop_seconds"]),
        list(data["transcendental_seconds"]),
        list(data["accessed"]),
        frozenset(data["removable"]),
        {int(step): int(read) for step, read in data["forwarded"]},
        float(data["copy_bytes"]),
    )


def _use(data: Sequence[Any]) -> Use:
    step, operand, index = data
    return Use(step, operand, index_of(index))


def _position(data: Sequence[Any]) -> Position:
    step, index = data
    return Position(step, index_of(index))


def _value_from_dict(data: Mapping[str, Any]) -> Value:
    fields = dict(data)
    fields["positions"] = tuple(_position(p) for p in data["positions"])
    fields["uses"] = tuple(_use(u) for u in data["uses"])
    for name in ("live", "position_bytes", "use_bytes"):
        fields[name] = tuple(data[name])
    for name in ("banned_uses", "banned_positions", "contiguous_positions"):
        fields[name] = frozenset(data[name])
    return Value(**fields)
