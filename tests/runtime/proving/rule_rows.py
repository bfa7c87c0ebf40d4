"""Rules of the planner and its analyses, each switched off or bent by a little.

A row names a place in the library and what is put there instead; everything else of
the planner is as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msa.analysis import alias
from msa.analysis.in_place import InPlacePairs
from msa.assignment import allocation_values, build_values, required
from msa.assignment.ledgers.free_space import FreeSpace
from msa.assignment.lowering import tuples
from msa.assignment.lowering.state import LoweringState
from msa.heap.chunk import Chunk

Patch = tuple[Any, str, Callable[..., Any]]

_commit = FreeSpace.commit
_find = FreeSpace.find
_pairs = InPlacePairs.__call__
_home = allocation_values._home
_record = LoweringState.record_transfer
_update = LoweringState.update_uses


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _no(*_: Any, **__: Any) -> bool:
    return False


def _empty(*_: Any, **__: Any) -> list[Any]:
    return []


def _ends_early(self: FreeSpace, start: int, end: int, chunk: Chunk) -> None:
    _commit(self, start, max(start, end - 1), chunk)


def _begins_late(self: FreeSpace, start: int, end: int, chunk: Chunk) -> None:
    _commit(self, min(start + 1, end), end, chunk)


def _half_size(self: FreeSpace, start: int, end: int, chunk: Chunk) -> None:
    _commit(self, start, end, Chunk(chunk.offset, chunk.size // 2))


def _moved(self: FreeSpace, start: int, end: int, chunk: Chunk) -> None:
    _commit(self, start, end, Chunk(chunk.offset + chunk.size // 2, chunk.size // 2))


def _looks_late(self: FreeSpace, start: int, end: int, size: int) -> int | None:
    return _find(self, min(start + 2, end), end, size)


def _looks_short(self: FreeSpace, start: int, end: int, size: int) -> int | None:
    return _find(self, start, max(start, end - 2), size)


def _looks_small(self: FreeSpace, start: int, end: int, size: int) -> int | None:
    return _find(self, start, end, size // 2)


def _without(opcode: str) -> Callable[..., Any]:
    def pairs(self: InPlacePairs, instruction: Any) -> Any:
        if instruction.opcode == opcode:
            return ()
        return _pairs(self, instruction)

    return pairs


def _timed(start: int, end: int, *, prefetches: bool) -> Callable[..., Any]:
    """Copies of one direction are put elsewhere in the schedule than was planned."""

    def record(
        self: LoweringState, allocation: Any, first: Any, last: Any, at: int, by: int
    ) -> None:
        if allocation.is_alternate is prefetches:
            at, by = at + start, by + end
        _record(self, allocation, first, last, at, by)

    return record


def _without_last(self: LoweringState, uses: Any, producer: Any) -> None:
    _update(self, list(uses)[:-1], producer)


def _without_first(self: LoweringState, uses: Any, producer: Any) -> None:
    _update(self, list(uses)[1:], producer)


def _as_it_is(self: LoweringState, producer: Any, shape: Any) -> Any:
    del self, shape
    return producer


def _first_place(created: Any, use: Any, problem: Any) -> Any:
    region = problem.region_of[use.step]
    for item in created:
        if item.position.step < use.step and item.region == region:
            return item
    return _home(created, use, problem)


RULES: dict[str, Patch] = {
    "places end a step early": (FreeSpace, "commit", _ends_early),
    "places begin a step late": (FreeSpace, "commit", _begins_late),
    "half of a place is kept": (FreeSpace, "commit", _half_size),
    "the other half of a place is kept": (FreeSpace, "commit", _moved),
    "room is looked for two steps late": (FreeSpace, "find", _looks_late),
    "room is looked for two steps short": (FreeSpace, "find", _looks_short),
    "room for half the size": (FreeSpace, "find", _looks_small),
    "a wanted offset is always free": (FreeSpace, "fits_at", _yes),
    "places are not kept": (FreeSpace, "commit", _nothing),
    "in-place operations share nothing": (alias, "_join_in_place", _nothing),
    "loops and branches share nothing": (alias, "_join_control_flow", _nothing),
    "updates are not in place": (InPlacePairs, "__call__", _without("dynamic-update-slice")),
    "fused updates are not in place": (InPlacePairs, "__call__", _without("fusion")),
    "scatters are not in place": (InPlacePairs, "__call__", _without("scatter")),
    "uses know no aliases": (allocation_values, "_find_aliases", _nothing),
    "uses know no aliases in regions": (allocation_values, "_aliases_inside", _empty),
    "uses know no aliases out of branches": (allocation_values, "_alias_out_of_branch", _nothing),
    "inputs and outputs may be anywhere": (required, "_require_buffer", _nothing),
    "results of calls may be anywhere": (required, "_require_call_result", _nothing),
    "loops do not tie their own parameters": (alias, "_join_own_parameters", _nothing),
    "asynchronous computations are as others": (build_values, "_is_inside_asynchronous", _no),
    "uses read the first place of a value": (allocation_values, "_home", _first_place),
    "chains may be in pieces": (allocation_values, "_starts_or_updates", _no),
    "the last use reads the old place": (LoweringState, "update_uses", _without_last),
    "the first use reads the old place": (LoweringState, "update_uses", _without_first),
    "readers get what has another shape": (LoweringState, "as_shape", _as_it_is),
    "tuples are never rebuilt": (tuples, "already_holds", _yes),
    "prefetches start early": (LoweringState, "record_transfer", _timed(-3, 0, prefetches=True)),
    "evictions end late": (LoweringState, "record_transfer", _timed(0, 4, prefetches=False)),
}  # fmt: skip
