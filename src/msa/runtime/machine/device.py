"""One device of the simulated machine: an interpreter over references to memory."""

from __future__ import annotations

import random
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from msa.errors import SanitizerError, UnsupportedError
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.code import Step
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.indexing import clamped_starts
from msa.runtime.evaluator.interpreter import Frame, Interpreter
from msa.runtime.evaluator.values import (
    Value,
    coded_view,
    from_bytes,
    map_leaves,
    to_bytes,
)
from msa.runtime.machine.blocks import (
    Block,
    Extent,
    Life,
    Occupancy,
    OwnedBlock,
    Reference,
)
from msa.runtime.machine.memory import ALTERNATE, POISON, FixedMemory, GrowingMemory
from msa.runtime.machine.placement import Placement
from msa.runtime.machine.storage_sets import position_text
from msa.runtime.machine.transfers import TIMINGS, Transfer

_RENAMING: Final = frozenset({"opt-barrier", "domain", "add-dependency"})
_LIBRARY: Final = frozenset({"custom-call", "sort", "cholesky", "triangular-solve"})
"""Operations that work in place by an algorithm of their own, not element by element."""


class Device(Interpreter):
    """Executes instructions on byte memories.

    Values are `Reference`s (or tuples of them, or None for tokens). Operations
    without data movement hand references on; all others read bytes, compute as the
    evaluator does, and write bytes at the address of their storage set.
    """

    inline_fusions = False

    def __init__(
        self,
        context: Context,
        placement: Placement,
        *,
        alternate_bytes: int,
        default_limit: int,
        chance: random.Random,
        timing: str | None,
        scratch: Mapping[str, tuple[int, int]],
    ) -> None:
        super().__init__(context)
        self.placement = placement
        self.clock = 0
        self.chance = chance
        self.timing = timing
        self.scratch = scratch
        self.alternate = FixedMemory(ALTERNATE, alternate_bytes)
        self.occupancy = Occupancy(self.alternate)
        self._limit = default_limit
        self._memories: dict[int, GrowingMemory] = {}
        self._bound: dict[int, weakref.ref[OwnedBlock]] = {}
        self._fixed: dict[int, Block] = {}
        self._constants: dict[Instruction, Value] = {}
        self.transfers: list[Transfer] = []
        self._inner = Interpreter(context)
        self._numpy_chance = np.random.Generator(
            np.random.PCG64(chance.getrandbits(32))
        )

    # -- blocks -----------------------------------------------------------------

    def _block(self, root: int) -> Block:
        """The block of a storage set, allocated when it has none."""
        space = self.placement.spaces[root]
        if root in self.placement.planned:
            fixed = self._fixed.get(root)
            if fixed is None:
                offset, size = self.placement.planned[root]
                fixed = self._fixed[root] = Block(self.alternate, offset, size)
            return fixed
        bound = self._bound.get(root)
        block = None if bound is None else bound()
        if block is None:
            memory = self._memories.get(space)
            if memory is None:
                memory = self._memories[space] = GrowingMemory(space, self._limit)
            size = self.placement.sizes[root]
            block = OwnedBlock(memory, memory.allocate(size), size)
            block.bytes()[:] = POISON
            self._bound[root] = weakref.ref(block)
        return block

    def _claim(self, block: Block, name: str, step: Instruction | None) -> Life:
        """Begin the life of a new value in a block; checks who is in the way."""
        extent = Extent(name, block.address, block.size, self.clock)
        where = step.name if step is not None else name
        if block.read_only:
            self._fail(
                f"{name} would overwrite a {block.read_only}",
                "read-only",
                where,
                block,
                name,
            )
        for transfer in self.transfers:
            self._check_transfer(transfer, block, name, where)
        planned = block.memory is self.alternate
        old = block.extent
        if old is not None and not old.overwritten_by:
            old.overwritten_by = name
        block.extent = extent
        if planned:
            self.occupancy.claim(extent)
        return Life(block, extent, self.occupancy if planned else None)

    def _check_transfer(
        self, transfer: Transfer, block: Block, name: str, where: str
    ) -> None:
        for reference, kind in (
            (transfer.source, "write to in-flight source"),
            (transfer.target, "write to in-flight destination"),
        ):
            other = reference.life.block
            if other.memory is block.memory and reference.life.extent.overlaps(
                block.address, block.size
            ):
                self._fail(
                    f"{name} overwrites what {transfer.name} is copying",
                    kind,
                    where,
                    block,
                    reference.life.extent.name,
                    name,
                )

    def _fail(
        self, message: str, kind: str, where: str, block: Block, *parties: str
    ) -> None:
        raise SanitizerError(
            f"{message} (space {block.memory.space}, bytes "
            f"[{block.address}, {block.address + block.size}))",
            kind=kind,
            step=self.clock,
            instruction=where,
            space=block.memory.space,
            address=block.address,
            size=block.size,
            parties=parties,
        )

    # -- reading and writing arrays -------------------------------------------------

    def load(self, reference: Reference, where: str) -> Array:
        """The array of a reference; a view of memory where its type allows.

        Raises:
            SanitizerError: its bytes are not there (any more, or yet).
        """
        life = reference.life
        extent, block = life.extent, life.block
        if extent.overwritten_by or block.extent is not extent:
            self._fail(
                f"{extent.name} (defined at step {extent.step}) was overwritten by "
                f"{extent.overwritten_by}",
                "use after overwrite",
                where,
                block,
                extent.name,
                extent.overwritten_by,
            )
        for transfer in self.transfers:
            if transfer.target.life is life:
                self._fail(
                    f"{transfer.name} has not been waited for",
                    "read of in-flight destination",
                    where,
                    block,
                    extent.name,
                    transfer.name,
                )
        size = reference.shape.byte_size()
        return from_bytes(reference.shape.as_array, block.bytes()[:size])

    def _load_tree(self, value: Value, where: str) -> Value:
        if isinstance(value, Reference):
            return self.load(value, where)
        if isinstance(value, tuple):
            return tuple(self._load_tree(x, where) for x in value)
        return value

    def store(
        self, root: int, shape: Shape, name: str, array: Array, step: Instruction | None
    ) -> Reference:
        """Define a value from an array."""
        block = self._block(root)
        data = to_bytes(shape.as_array, array)
        life = self._claim(block, name, step)
        block.bytes()[: len(data)] = data
        return Reference(life, shape)

    # -- what the interpreter asks for -------------------------------------------------

    def scalar(self, value: Value) -> Any:
        """The number in a scalar reference."""
        return np.asarray(self.load(value, "control flow"))[()]

    def contents(self, value: Value) -> Value:
        """Arrays of a value, copied out of memory."""
        if isinstance(value, Reference):
            return np.array(self.load(value, "result"))
        if isinstance(value, tuple):
            return tuple(self.contents(x) for x in value)
        return value

    def starts_late(self, step: Step) -> bool:
        """Asynchronous computations run at either end."""
        del step
        if self.timing == "eager":
            return False
        return self.timing == "late" or self.chance.random() < 0.5

    def entered(self, frame: Frame, caller: Step | None) -> None:
        """A computation with several call sites gets buffers of its own per call."""
        del caller
        for root in self.placement.locals.get(frame.code.computation, ()):
            self._bound.pop(root, None)

    def received(self, step: Step, operands: Sequence[Value], result: Value) -> Value:
        """Store what a collective brought."""
        instruction = step.instruction
        if instruction.opcode in ("all-gather-start", "collective-permute-start"):
            given = operands[0] if len(operands) == 1 else tuple(operands)
            made = self._store_tree(instruction, result, prefix=(1,))
            extra = len(instruction.shape.children) - 2
            return (given, made[1], *(None for _ in range(extra)))
        return self._store_tree(instruction, result)

    def compute(self, step: Step, operands: Sequence[Value]) -> Value:
        """Execute one instruction."""
        self.clock += 1
        for transfer in self.transfers:
            transfer.tick(self.chance)
        instruction = step.instruction
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            return operands[0][instruction.tuple_index]
        if opcode in _RENAMING or (opcode == "copy" and instruction.shape.is_tuple):
            return operands[0]
        if opcode == "bitcast":
            source = operands[0]
            if isinstance(source, Reference):
                return Reference(source.life, instruction.shape)
            return source
        if opcode == "copy-start":
            return self._start_copy(instruction, operands[0])
        if opcode == "copy-done":
            return self._finish_copy(instruction, operands[0])
        if opcode in ("all-gather-done", "collective-permute-done"):
            return operands[0][1]
        if opcode == "all-reduce-done":
            return operands[0]
        if opcode == "constant":
            return self._constant(instruction)
        return self._operate(instruction, operands)

    # -- copies -------------------------------------------------------------------------

    def _start_copy(self, instruction: Instruction, source: Reference) -> Value:
        self.load(source, instruction.name)
        shape = instruction.shape.children[0]
        root = self.placement.sets.set_of(instruction, (0,))
        block = self._block(root)
        life = self._claim(block, position_text(instruction, (0,)), instruction)
        block.bytes()[:] = POISON
        target = Reference(life, shape)
        timing = self.timing or self.chance.choice(TIMINGS)
        self.transfers.append(
            Transfer(instruction.name, source, target, timing, self.chance)
        )
        return (target, source, None)

    def _finish_copy(self, instruction: Instruction, started: Value) -> Value:
        target: Reference = started[0]
        for place, transfer in enumerate(self.transfers):
            if transfer.target.life is target.life:
                del self.transfers[place]
                # Both sides must have stayed intact all the way.
                self.load(transfer.source, instruction.name)
                self.load(target, instruction.name)
                transfer.finish()
                break
        return Reference(target.life, instruction.shape)

    # -- computing ------------------------------------------------------------------------

    def _constant(self, instruction: Instruction) -> Value:
        known = self._constants.get(instruction)
        if known is None:
            value = self.kernel(instruction)()
            known = self._store_tree(instruction, value)
            if instruction.shape.memory_space != ALTERNATE:
                self._constants[instruction] = known
                for _, root in self.placement.leaf_sets(instruction):
                    self._block(root).read_only = "constant"
        return known

    def _store_tree(
        self, instruction: Instruction, value: Value, prefix: ShapeIndex = ()
    ) -> Value:
        """Define every array of a result (those under `prefix`)."""
        roots = dict(self.placement.leaf_sets(instruction))
        pieces: dict[ShapeIndex, Array] = {}
        for index in roots:
            if index[: len(prefix)] == prefix:
                item = value
                for i in index:
                    item = item[i]
                pieces[index] = np.array(item)

        def leaf(index: ShapeIndex, shape: Shape) -> Value:
            if index not in pieces:
                return None
            name = position_text(instruction, index)
            return self.store(roots[index], shape, name, pieces[index], instruction)

        return map_leaves(instruction.shape, leaf)

    def _evaluate(self, instruction: Instruction, arrays: Sequence[Value]) -> Value:
        if instruction.opcode != "fusion":
            return self.kernel(instruction)(*arrays)
        run = self._inner.run(instruction.fused_computation, arrays)
        try:
            next(run)
        except StopIteration as stop:
            return stop.value
        raise UnsupportedError(
            "a collective inside a fusion", subject="fusion", where=instruction.name
        )

    def _operate(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        scratch = self._claim_scratch(instruction)
        if instruction.opcode == "dynamic-update-slice":
            updated = self._update_in_place(instruction, operands)
            if updated is not None:
                return updated
        shape = instruction.shape
        if shape.is_tuple is False and shape.dynamic:
            raise UnsupportedError(
                f"{instruction.opcode} of dynamic size in memory",
                subject=instruction.opcode,
                where=instruction.name,
            )
        arrays = [self._load_tree(x, instruction.name) for x in operands]
        value = self._evaluate(instruction, arrays)
        outputs = self._outputs(instruction, value)
        self._check_outputs(instruction, operands, outputs, scratch)
        made: dict[ShapeIndex, Reference] = {}
        for index, leaf_shape, block, data in outputs:
            life = self._claim(block, position_text(instruction, index), instruction)
            block.bytes()[: len(data)] = data
            made[index] = Reference(life, leaf_shape)
        return map_leaves(shape, lambda index, _: made.get(index))

    def _outputs(
        self, instruction: Instruction, value: Value
    ) -> list[tuple[ShapeIndex, Shape, Block, Array]]:
        """Index, shape, destination and bytes of each result."""
        rows = []
        several = instruction.shape.is_tuple
        for index, root in self.placement.leaf_sets(instruction):
            item = value
            for i in index:
                item = item[i]
            leaf_shape = instruction.shape.subshape(index)
            data = to_bytes(leaf_shape.as_array, np.asarray(item))
            if several and data.base is not None:
                data = data.copy()  # results may be views of what is written first
            rows.append((index, leaf_shape, self._block(root), data))
        return rows

    def _check_outputs(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        outputs: Sequence[tuple[ShapeIndex, Shape, Block, Array]],
        scratch: Extent | None,
    ) -> None:
        """No result may overlap an operand, except in place, element by element."""
        references = list(_references(operands))
        shared = False
        for index, _, block, _ in outputs:
            if block.memory is not self.alternate and not any(
                r.life.block is block for r in references
            ):
                continue
            name = position_text(instruction, index)
            if scratch is not None and scratch.overlaps(block.address, block.size):
                self._fail(
                    f"{name} overlaps the scratch of its instruction",
                    "overlap",
                    instruction.name,
                    block,
                    name,
                    scratch.name,
                )
            for reference in references:
                if reference.life.block is block:
                    shared = True
                elif (
                    reference.life.block.memory is block.memory
                    and reference.life.extent.overlaps(block.address, block.size)
                ):
                    self._fail(
                        f"{name} overlaps operand {reference.life.extent.name}",
                        "overlap",
                        instruction.name,
                        block,
                        reference.life.extent.name,
                        name,
                    )
        if shared and not _is_pointwise(instruction):
            self._check_in_place(instruction, operands, outputs)

    def _check_in_place(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        outputs: Sequence[tuple[ShapeIndex, Shape, Block, Array]],
    ) -> None:
        """Write half of the elements in place, compute again, and compare the rest.

        An element may be replaced by a function of itself; if the other half of the
        result changes, the operation also reads elements that it has overwritten.
        """
        held = {r.life.block: r for r in _references(operands)}
        masks = []
        saved = []
        for _, _, block, data in outputs:
            mask = self._numpy_chance.random(len(data)) < 0.5
            if block in held:
                view = block.bytes()[: len(data)]
                width = held[block].shape.as_array.element_type.byte_width
                whole = len(data) // max(1, width) * max(1, width)
                mask[:whole] = np.repeat(mask[: whole : max(1, width)], max(1, width))
                saved.append((view, view.copy()))
                view[mask] = data[mask]
            masks.append(mask)
        arrays = [self._load_tree(x, instruction.name) for x in operands]
        again = self._outputs(instruction, self._evaluate(instruction, arrays))
        for view, bytes_before in saved:
            view[:] = bytes_before
        for mask, (index, _, block, data), (_, _, _, second) in zip(
            masks, outputs, again, strict=True
        ):
            if not np.array_equal(data[~mask], second[~mask]):
                name = position_text(instruction, index)
                others = [
                    r.life.extent.name for r in held.values() if r.life.block is block
                ]
                self._fail(
                    f"{name} is computed from elements of its operand that it has "
                    "already overwritten",
                    "in-place hazard",
                    instruction.name,
                    block,
                    *others,
                    name,
                )

    def _update_in_place(
        self, instruction: Instruction, operands: Sequence[Value]
    ) -> Reference | None:
        """Write only the updated elements; None if the result is elsewhere."""
        target: Reference = operands[0]
        root = self.placement.sets.set_of(instruction, ())
        if target.life.block is not self._block(root):
            return None
        name = instruction.name
        self.load(target, name)
        block = target.life.block
        update = operands[1]
        if isinstance(update, Reference) and update.life.block is block:
            return None
        starts = tuple(np.array(self.load(x, name)) for x in operands[2:])
        data = np.array(self.load(update, name))
        if update.life.block.memory is block.memory and update.life.extent.overlaps(
            block.address, block.size
        ):
            self._fail(
                f"{name} overlaps its update",
                "overlap",
                name,
                block,
                update.life.extent.name,
            )
        shape = instruction.shape
        sizes = instruction.operands[1].shape.dimensions
        places = clamped_starts(starts, sizes, shape.dimensions)
        life = self._claim(block, position_text(instruction, ()), instruction)
        cut = tuple(slice(s, s + n) for s, n in zip(places, sizes, strict=True))
        view = block.bytes()[: shape.byte_size()]
        coded = coded_view(shape, view)
        if coded is None:
            whole = np.array(from_bytes(shape, view))
            whole[cut] = data
            view[:] = to_bytes(shape, whole)
        else:
            from msa.runtime.evaluator.elements import to_codes

            coded[cut] = to_codes(shape.element_type, data)
        return Reference(life, shape)

    def _claim_scratch(self, instruction: Instruction) -> Extent | None:
        place = self.scratch.get(instruction.name)
        if place is None:
            return None
        offset, size = place
        block = Block(self.alternate, offset, size)
        if not self.alternate.contains(offset, size):
            self._fail(
                "scratch lies outside the memory",
                "out of bounds",
                instruction.name,
                block,
                instruction.name,
            )
        life = self._claim(block, f"scratch of {instruction.name}", instruction)
        block.bytes()[:] = POISON
        return life.extent


def _references(values: Sequence[Value]) -> list[Reference]:
    found = []
    stack = list(values)
    while stack:
        item = stack.pop()
        if isinstance(item, Reference):
            found.append(item)
        elif isinstance(item, tuple):
            stack.extend(item)
    return found


def _is_pointwise(instruction: Instruction) -> bool:
    """Whether every element depends on the same elements only, or in-place is its own."""
    opcode = instruction.opcode
    if opcode in _LIBRARY or opcode == "dynamic-update-slice":
        return True
    info = OPCODES.get(opcode)
    same = all(
        x.shape.as_array.dimensions == instruction.shape.as_array.dimensions
        and x.shape.as_array.layout == instruction.shape.as_array.layout
        for x in instruction.operands
    )
    return info is not None and info.elementwise and same
