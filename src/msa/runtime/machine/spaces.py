"""The memory spaces of one device: lives of values, copies in flight, the sanitizer."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from msa.errors import SanitizerError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.runtime.machine.blocks import (
    Block,
    Extent,
    Life,
    Occupancy,
    OwnedBlock,
    Reference,
    SplitBlock,
)
from msa.runtime.machine.faults import memory_text
from msa.runtime.machine.memory import (
    POISON,
    AllocatedMemory,
    Codec,
    FixedMemory,
    GrowingMemory,
    Memory,
    used_up,
)
from msa.runtime.machine.placement import Placement
from msa.runtime.machine.transfers import TIMINGS, Transfer

_IN_FLIGHT: Final = "is still being copied by"


class Spaces:
    """Blocks, the values in them, and who may touch them when.

    Args:
        placement: storage sets, planned and assigned addresses.
        alternate_bytes: capacity of the alternate memory.
        default_limit: bytes of each other memory.
        codec: how values lie in cells.
        chance: decides copy timings.
        timing: one for all copies, or None to draw one for each.

    Attributes:
        clock: instructions executed so far.
    """

    def __init__(
        self,
        placement: Placement,
        *,
        alternate_bytes: int,
        default_limit: int,
        codec: Codec,
        chance: random.Random,
        timing: str | None,
    ) -> None:
        self.placement = placement
        self.codec = codec
        self.clock = 0
        self.alternate = FixedMemory(placement.alternate_space, alternate_bytes, codec)
        self._occupancies: dict[Memory, Occupancy] = {
            self.alternate: Occupancy(self.alternate)
        }
        self._protected: dict[Memory, Occupancy] = {}
        self._assigned: dict[int, AllocatedMemory] = {}
        for space, allocations in placement.assigned.allocations.items():
            if placement.assigned.end(space) > default_limit:
                raise used_up(default_limit)
            memory = AllocatedMemory(space, allocations, codec)
            self._assigned[space] = memory
            self._occupancies[memory] = Occupancy(memory)
            self._protected[memory] = Occupancy(memory)
        self._limit = default_limit
        self._chance = chance
        self._timing = timing
        self._memories: dict[int, GrowingMemory] = {}
        self._bound: dict[int, weakref.ref[OwnedBlock]] = {}
        self._placed: dict[int, Block] = {}
        self._transfers: list[Transfer] = []

    def tick(self) -> None:
        """One instruction begins; copies in flight may move on."""
        self.clock += 1
        for transfer in self._transfers:
            transfer.tick(self._chance)

    # -- blocks ------------------------------------------------------------------

    def block(self, root: int) -> Block:
        """The block of a storage set, allocated when it has none."""
        placed = self._placed.get(root) or self._place(root)
        if placed is not None:
            return placed
        bound = self._bound.get(root)
        block = None if bound is None else bound()
        if block is None:
            space = self.placement.spaces[root]
            memory = self._memories.get(space)
            if memory is None:
                start = self.placement.assigned.end(space)
                memory = GrowingMemory(space, self._limit, self.codec, start)
                self._memories[space] = memory
            size = self.placement.sizes[root]
            block = OwnedBlock(memory, memory.allocate(size), size)
            block.cells()[:] = POISON
            self._bound[root] = weakref.ref(block)
        return block

    def _place(self, root: int) -> Block | None:
        """The block of a set whose address the plan or the assignment states."""
        placement = self.placement
        whole = placement.sizes[root]
        if root in placement.planned:
            offset, size = placement.planned[root]
            block = (
                Block(self.alternate, offset, size)
                if placement.shards[root] >= whole
                else SplitBlock(self.alternate, offset, size, whole)
            )
        elif root in placement.assigned.places:
            space, address, size = placement.assigned.places[root]
            block = Block(self._assigned[space], address, size)
        else:
            return None
        self._placed[root] = block
        return block

    def protect(self, block: Block, owner: str) -> None:
        """Forbid to write over the value in a block; `owner` says whose it is."""
        block.read_only = owner
        if block.memory in self._protected and block.extent is not None:
            self._protected[block.memory].claim(block.extent)

    def is_planned(self, block: Block) -> bool:
        """Whether the plan decided the block's address."""
        return block.memory is self.alternate

    def is_placed(self, block: Block) -> bool:
        """Whether the plan or the assignment decided the block's address."""
        return block.memory in self._occupancies

    def forget(self, computation: Computation) -> None:
        """Give a computation with several call sites new buffers for this call."""
        for root in self.placement.locals.get(computation, ()):
            self._bound.pop(root, None)

    # -- lives ---------------------------------------------------------------------

    def claim(self, block: Block, name: str, where: str) -> Life:
        """Begin the life of the value `name` in a block.

        Raises:
            SanitizerError: the block is read-only, or a copy in flight uses it.
        """
        if block.read_only:
            self.fail(
                "read-only",
                f"{name} would overwrite a {block.read_only}",
                where,
                block,
                (block.extent.name if block.extent else block.read_only, name),
            )
        protected = self._protected.get(block.memory)
        if protected is not None:
            for other in protected.overlapping(block.address, block.size):
                self.fail(
                    "read-only",
                    f"{name} would overwrite {other.name}",
                    where,
                    block,
                    (other.name, name),
                )
        for transfer in self._transfers:
            self._keep_clear(transfer, block, name, where)
        extent = Extent(name, block.address, block.size, self.clock)
        old = block.extent
        if old is not None and not old.overwritten_by:
            old.overwritten_by = name
        block.extent = extent
        occupancy = self._occupancies.get(block.memory)
        if occupancy is not None:
            occupancy.claim(extent)
        return Life(block, extent, occupancy)

    def claim_scratch(self, name: str, offset: int, size: int) -> Extent:
        """Let an instruction scribble over part of the alternate memory."""
        block = Block(self.alternate, offset, size)
        if not self.alternate.contains(offset, size):
            self.fail(
                "out of bounds",
                f"the scratch of {name} lies outside",
                name,
                block,
                (f"scratch of {name}", memory_text(self.alternate.space)),
            )
        life = self.claim(block, f"scratch of {name}", name)
        block.cells()[:] = POISON
        return life.extent

    def _keep_clear(
        self, transfer: Transfer, block: Block, name: str, where: str
    ) -> None:
        for reference, side in (
            (transfer.source, "source"),
            (transfer.target, "destination"),
        ):
            other = reference.life
            if other.block.memory is block.memory and other.extent.overlaps(
                block.address, block.size
            ):
                self.fail(
                    f"write to in-flight {side}",
                    f"{name} overwrites {other.extent.name}, which {_IN_FLIGHT} "
                    f"{transfer.name}",
                    where,
                    block,
                    (other.extent.name, name),
                )

    def end_lives(self, instruction: Instruction) -> None:
        """Free the values whose planned lives end with an instruction."""
        for root in self.placement.ends.get(instruction, ()):
            block = self._placed.get(root)
            if block is None or block.extent is None or block.read_only:
                continue
            block.extent.freed_by = instruction.name
            self._occupancies[block.memory].release(block.extent)

    def check(self, reference: Reference, where: str, *, landing: bool = False) -> None:
        """Check that a value may be read, or (`landing`) that data may arrive there.

        Raises:
            SanitizerError: its bytes are not there any more, or not yet.
        """
        life = reference.life
        extent, block = life.extent, life.block
        if extent.freed_by:
            self.fail(
                "use after free",
                f"{extent.name} (defined at step {extent.step}) was given up after "
                f"{extent.freed_by}",
                where,
                block,
                (extent.name, extent.overwritten_by or extent.freed_by),
            )
        if extent.overwritten_by or block.extent is not extent:
            other = extent.overwritten_by
            self.fail(
                "use after overwrite",
                f"{extent.name} (defined at step {extent.step}) was overwritten by "
                f"{other}",
                where,
                block,
                (extent.name, other),
            )
        if not extent.filled and not landing:
            self.fail(
                "uninitialised read",
                f"nothing has been written to {extent.name} (there since step "
                f"{extent.step})",
                where,
                block,
                (extent.name, where),
            )
        for transfer in self._transfers:
            if transfer.target.life is life:
                self.fail(
                    "read of in-flight destination",
                    f"{extent.name} {_IN_FLIGHT} {transfer.name}",
                    where,
                    block,
                    (extent.name, transfer.name),
                )

    # -- values ---------------------------------------------------------------------

    def load(self, reference: Reference, where: str) -> Any:
        """The value of a reference, checked."""
        self.check(reference, where)
        shape = reference.shape
        cells = reference.life.block.cells()
        return self.codec.decode(shape, cells[: self.codec.cell_count(shape)])

    def store(
        self, root: int, shape: Shape, name: str, value: Any, where: str
    ) -> Reference:
        """Define a value in the block of its storage set."""
        block = self.block(root)
        cells = self.codec.encode(shape, value)
        life = self.claim(block, name, where)
        block.cells()[: len(cells)] = cells
        return Reference(life, shape)

    # -- copies ---------------------------------------------------------------------

    def start_copy(
        self, name: str, source: Reference, root: int, shape: Shape, position: str
    ) -> Reference:
        """Begin a copy; it lands at some moment until `finish_copy`."""
        self.check(source, name)
        block = self.block(root)
        life = self.claim(block, position, name)
        block.cells()[:] = POISON
        target = Reference(life, shape)
        timing = self._timing or self._chance.choice(TIMINGS)
        count = self.codec.cell_count(source.shape)
        self._transfers.append(
            Transfer(name, source, target, count, timing, self._chance)
        )
        return target

    def finish_copy(self, target: Reference, where: str) -> None:
        """Wait for a copy; both sides must have stayed intact all the way."""
        for place, transfer in enumerate(self._transfers):
            if transfer.target.life is target.life:
                del self._transfers[place]
                self.check(transfer.source, where)
                self.check(target, where)
                transfer.finish()
                return

    def finish(self) -> None:
        """Check at the end of a run that all copies have been waited for."""
        for transfer in self._transfers:
            source, target = (x.life for x in (transfer.source, transfer.target))
            self.fail(
                "unfinished copy",
                f"nobody waited for the copy of {source.extent.name} to "
                f"{target.extent.name}",
                transfer.name,
                target.block,
                (source.extent.name, target.extent.name),
            )

    # -- reports ---------------------------------------------------------------------

    def fail(
        self, kind: str, message: str, where: str, block: Block, parties: Iterable[str]
    ) -> NoReturn:
        """Report an illegal access."""
        end = block.address + block.size
        raise SanitizerError(
            f"{message} (space {block.memory.space}, bytes [{block.address}, {end}))",
            kind=kind,
            step=self.clock,
            instruction=where,
            space=block.memory.space,
            address=block.address,
            size=block.size,
            parties=tuple(parties),
        )
