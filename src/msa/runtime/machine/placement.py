"""Addresses: planned ones in the alternate memory, assigned ones elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msa.analysis.buffer_assignment import BufferAssignment
from msa.errors import ExecutionError, shown
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex
from msa.hlo.verifier import verify
from msa.runtime.machine.assigned import (
    AssignedPlaces,
    assign_buffers,
    assigned_places,
    life_ends,
)
from msa.runtime.machine.faults import memory_text, misplaced
from msa.runtime.machine.in_place import in_place_pairs
from msa.runtime.machine.memory import ALIGNMENT, ALTERNATE
from msa.runtime.machine.storage_sets import (
    PairsOf,
    StorageSets,
    leaf_indices,
    position_text,
)

Chunks = Mapping[str, tuple[int, int]]
"""`name{index}` of a defining position -> (offset, size) in the alternate memory."""

_KEY: Final = re.compile(r"(.*)\{([0-9,]*)\}\Z", re.DOTALL)


class Placement:
    """Storage sets of a module with their spaces, sizes and planned addresses.

    Args:
        module: what will run.
        chunks: planned places, or None to let the machine find all addresses.
        alternate_bytes: capacity of the alternate memory.
        pairs: the in-place rule.
        alternate_space: number of the alternate memory space.

    Attributes:
        planned: set -> (offset, bytes) in the alternate memory.
        assigned: places in the other memories; none before `assign`.
        ends: sets whose lives end with an instruction; none before `assign`.

    Raises:
        HloVerifyError: the module is malformed.
        SanitizerError: positions that share storage were given different places, or
            a place is too small or outside the memory.
    """

    __slots__ = (
        "alternate_space",
        "assigned",
        "ends",
        "leaves",
        "locals",
        "module",
        "planned",
        "sets",
        "shards",
        "sizes",
        "spaces",
    )

    def __init__(
        self,
        module: Module,
        chunks: Chunks | None,
        alternate_bytes: int,
        pairs: PairsOf = in_place_pairs,
        alternate_space: int = ALTERNATE,
    ) -> None:
        verify(module)
        self.module = module
        self.assigned = AssignedPlaces()
        self.ends: dict[Instruction, list[int]] = {}
        self.alternate_space = alternate_space
        self.sets = StorageSets(module, pairs)
        self.spaces = self.sets.spaces()
        self.sizes: dict[int, int] = {}
        self.shards: dict[int, int] = {}
        self.leaves: dict[Instruction, list[tuple[ShapeIndex, int]]] = {}
        self.locals: dict[object, set[int]] = {}
        for (instruction, index), root in self.sets.locations():
            shape = instruction.shape.subshape(index)
            size, shard = shape.byte_size(), shape.shard_byte_size()
            self.sizes[root] = max(size, self.sizes.get(root, -1))
            self.shards[root] = max(shard, self.shards.get(root, -1))
            if self.sets.callers.get(instruction.computation, 0) > 1:
                self.locals.setdefault(instruction.computation, set()).add(root)
        self.planned: dict[int, tuple[int, int]] = {}
        if chunks is not None:
            self._plan(module, chunks, alternate_bytes)

    def assign(
        self, buffers: BufferAssignment | None = None, alignment: int = ALIGNMENT
    ) -> None:
        """Take the places that no plan states from a buffer assignment.

        Args:
            buffers: an assignment of the module; None makes the project's own.
            alignment: bytes that its offsets are multiples of.

        Raises:
            SanitizerError: positions that share storage have different places, or
                one is too small.
        """
        if buffers is None:
            planned = self.alternate_space if self.planned else None
            buffers = assign_buffers(self.module, planned, alignment)
        if buffers is not None:
            rest = (x for x in self.sets.locations() if x[1] not in self.planned)
            self.assigned = assigned_places(buffers, rest, self.sizes)
            self.ends = life_ends(buffers.live, self.sets.locations())

    def leaf_sets(self, instruction: Instruction) -> list[tuple[ShapeIndex, int]]:
        """Leaf indices of an instruction with their sets."""
        found = self.leaves.get(instruction)
        if found is None:
            found = [
                (index, self.sets.set_of(instruction, index))
                for index in leaf_indices(instruction)
            ]
            self.leaves[instruction] = found
        return found

    def _plan(self, module: Module, chunks: Chunks, capacity: int) -> None:
        named: dict[str, Instruction] = {}
        shared: set[str] = set()
        for computation in module.computations:
            for i in computation.instructions:
                if named.setdefault(i.name, i) is not i:
                    shared.add(i.name)
        stated: dict[int, str] = {}
        for key, (offset, size) in _checked(chunks):
            match = _KEY.match(key)
            instruction = named.get(match[1]) if match else None
            if match is None or instruction is None:
                raise ExecutionError(f"the plan places {key!r}, which does not exist")
            if instruction.name in shared:
                raise ExecutionError(
                    f"the plan places {key!r}, which several instructions are called",
                    hint="module.make_names_unique() tells them apart",
                )
            index = tuple(int(i) for i in match[2].split(",") if i)
            if index not in leaf_indices(instruction):
                raise ExecutionError(f"the plan places {key!r}, which is not an array")
            if not self.sets.has(instruction, index):
                raise ExecutionError(
                    f"the plan places {key!r}, which lies in no memory",
                    hint="place results of scheduled computations only",
                )
            root = self.sets.set_of(instruction, index)
            space = self.alternate_space
            problem = None
            parties = (key, memory_text(space))
            known = self.planned.get(root)
            if self.spaces[root] != space:
                kind = "split storage"
                parties = (key, memory_text(self.spaces[root]))
                problem = (
                    "has a place in the alternate memory but is in space "
                    f"{self.spaces[root]}"
                )
            elif known is not None and known[0] != offset:
                kind, parties = "split storage", (stated[root], key)
                problem = (
                    f"at {offset} and {stated[root]} at {known[0]} must share storage"
                )
            elif size < self.shards[root]:
                kind = "out of bounds"
                parties = (key, self._largest_position(root))
                problem = f"needs {self.shards[root]} bytes, its place has {size}"
            elif offset < 0 or offset + size > capacity:
                kind = "out of bounds"
                problem = (
                    f"at [{offset}, {offset + size}) lies outside the {capacity} "
                    "bytes of the alternate memory"
                )
            if problem is not None:
                raise misplaced(
                    instruction,
                    f"{key} {problem}",
                    kind=kind,
                    space=space,
                    address=offset,
                    size=size,
                    parties=parties,
                )
            self.planned[root] = (offset, size)
            stated[root] = key
        self._require_addresses()

    def _require_addresses(self) -> None:
        """Everything in the alternate memory has a place there."""
        space = self.alternate_space
        for (instruction, index), root in self.sets.locations():
            if self.spaces[root] == space and root not in self.planned:
                name = position_text(instruction, index)
                raise misplaced(
                    instruction,
                    f"{name} is in the alternate memory without an address",
                    kind="no address",
                    space=space,
                    size=self.sizes[root],
                    parties=(name, memory_text(space)),
                )

    def _largest_position(self, root: int) -> str:
        """A position of a set that needs as many bytes as any."""
        (instruction, index), _ = max(
            (x for x in self.sets.locations() if x[1] == root),
            key=lambda x: x[0][0].shape.subshape(x[0][1]).shard_byte_size(),
        )
        return position_text(instruction, index)


def _checked(chunks: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    """The places of a plan, each a pair of whole numbers under a name."""
    if not isinstance(chunks, Mapping):
        raise ExecutionError(
            f"places are a mapping from positions to (offset, size), not {shown(chunks)}"
        )
    for key, place in chunks.items():
        pair = isinstance(place, tuple | list) and len(place) == 2
        whole = pair and all(hasattr(n, "__index__") for n in place)
        if not (isinstance(key, str) and whole):
            raise ExecutionError(
                f"the place of {shown(key)} is no (offset, size) in bytes: {shown(place)}"
            )
        yield key, tuple(place)
