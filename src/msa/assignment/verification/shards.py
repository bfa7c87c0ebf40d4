"""Values cut into shards: at all their places alike, and in alternate memory only."""

from __future__ import annotations

from collections.abc import Container

from msa.analysis.manager import AnalysisManager
from msa.analysis.values import HloBuffer, Position
from msa.assignment.verification.findings import Findings
from msa.hlo.module import Module


def check_shards(
    original: Module,
    analyses: AnalysisManager,
    placed: Container[int],
    findings: Findings,
) -> None:
    """Check every buffer with a place that is cut. Linear in positions.

    `placed` are ids of buffers in alternate memory. Elsewhere only what was cut
    before may be.
    """
    given: set[tuple[str, str, tuple[int, ...]]] | None = None
    for buffer in analyses.alias.buffers:
        cut = [p for value in buffer.values for p in value.positions if _is_cut(p)]
        if not cut:
            continue
        if buffer.id in placed:
            _check_alike(buffer, findings)
            continue
        if given is None:
            given = _cut_places(original)
        for position in cut:
            if _key(position) not in given:
                findings.add(
                    "shards",
                    "it is cut into shards outside of alternate memory",
                    str(position),
                )


def _check_alike(buffer: HloBuffer, findings: Findings) -> None:
    for value in buffer.values:
        size = value.shape.shard_byte_size()
        for position in value.positions:
            found = position.shape.shard_byte_size()
            if found != size or not _is_cut(position):
                findings.add(
                    "shards",
                    f"its shards take {found} bytes, those of {value.position} {size}",
                    str(position),
                    size=found,
                    needed=size,
                )


def _is_cut(position: Position) -> bool:
    shape = position.shape
    return (
        shape.is_array and shape.layout is not None and bool(shape.layout.split_configs)
    )


def _cut_places(module: Module) -> set[tuple[str, str, tuple[int, ...]]]:
    return {
        (computation.name, x.name, index)
        for computation in module.computations
        for x in computation.instructions
        for index, _ in x.shape.leaves()
        if _is_cut(Position(x, index))
    }


def _key(position: Position) -> tuple[str, str, tuple[int, ...]]:
    x = position.instruction
    return x.computation.name, x.name, position.index
