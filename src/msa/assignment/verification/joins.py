"""Slices that were copied apart and are named together afterwards."""

from __future__ import annotations

from typing import Final

from msa.assignment.verification.findings import Findings
from msa.assignment.verification.storage import PlacedBuffer, Storage

_JOIN: Final = "ConcatBitcast"


def joined_slices(storage: Storage, findings: Findings) -> set[tuple[str, str]]:
    """`(slice, whole)` chunks by name; each whole must consist of its slices.

    The whole takes over the bytes of its slices without moving them, so these must
    lie one after another from its first byte on, in the order in which they are named.
    """
    by_value: dict[int, PlacedBuffer] = {
        value.id: placed for placed in storage.placed for value in placed.values
    }
    dataflow = storage.analyses.dataflow
    pairs: set[tuple[str, str]] = set()
    for step in storage.analyses.schedule.instructions:
        if step.attributes.get("custom_call_target") != _JOIN:
            continue
        whole = by_value.get(dataflow.unique_value_at(step, ()).id)
        where = step.name
        if whole is None:
            findings.add(
                "slices", "the joined slices are not in alternate memory", where
            )
            continue
        expected = whole.offset
        for operand in step.operands:
            piece = by_value.get(dataflow.unique_value_at(operand, ()).id)
            if piece is None or piece.offset != expected:
                found = -1 if piece is None else piece.offset
                findings.add(
                    "slices",
                    f"slice {operand.name} lies at {found}, not at {expected}",
                    where,
                    offset=found,
                    expected=expected,
                )
                break
            expected += operand.shape.byte_size()
            pairs.add((piece.name, whole.name))
    return pairs
