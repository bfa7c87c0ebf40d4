"""Rules of the planner and its analyses, each switched off or bent by a little.

A row names a place in the library and what is put there instead; everything else of
the planner is as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msa.analysis import alias
from msa.analysis.in_place import InPlacePairs
from msa.assignment import allocation_values, required
from msa.assignment.ledgers.free_space import FreeSpace
from msa.heap.chunk import Chunk

Patch = tuple[Any, str, Callable[..., Any]]

_commit = FreeSpace.commit
_find = FreeSpace.find
_pairs = InPlacePairs.__call__


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _yes(*_: Any, **__: Any) -> bool:
    return True


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
    "uses know no aliases in regions": (allocation_values, "_alias_into_regions", _nothing),
    "uses know no aliases out of branches": (allocation_values, "_alias_out_of_branch", _nothing),
    "inputs and outputs may be anywhere": (required, "_require_buffer", _nothing),
    "results of calls may be anywhere": (required, "_require_call_result", _nothing),
}  # fmt: skip
