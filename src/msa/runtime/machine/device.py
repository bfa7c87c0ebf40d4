"""One device of the simulated machine: an interpreter over references to memory."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from msa.errors import UnsupportedError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.channels import is_host_transfer
from msa.runtime.evaluator.code import Code, Step
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.interpreter import Frame, Interpreter
from msa.runtime.evaluator.values import Value, map_leaves
from msa.runtime.machine.asynchronous import Places, inner_places
from msa.runtime.machine.blocks import Block, Extent, Life, Reference
from msa.runtime.machine.fused_updates import FusedUpdates, split_fusion
from msa.runtime.machine.hazards import HalfMasks, Output, is_pointwise, references_in
from msa.runtime.machine.memory import POISON
from msa.runtime.machine.spaces import Spaces
from msa.runtime.machine.storage_sets import position_text
from msa.runtime.machine.updates import InPlaceUpdate

_RENAMING: Final = frozenset(
    {"opt-barrier", "domain", "add-dependency", "all-reduce-done"}
)
JOIN_TARGET: Final = "ConcatBitcast"
"""Custom call that names adjoining slices as one value."""

_SECOND: Final = frozenset({"all-gather-done", "collective-permute-done"})
_PACKED_STARTS: Final = frozenset({"all-gather-start", "collective-permute-start"})

_ALWAYS_CHECKED: Final = 3
"""Executions of an instruction whose in-place results are always checked."""

_CHECK_CHANCE: Final = 0.01
"""Share of the later executions that are checked too."""


class Device(Interpreter):
    """Executes instructions on memories.

    Values are `Reference`s (or tuples of them, or None for tokens). Operations
    without data movement hand references on; all others read memory, compute as the
    evaluator does, and write at the address of their storage set.

    Attributes:
        spaces: the memories.
        numpy_chance: decides which elements in-place checks write first.
    """

    inline_fusions = False

    def __init__(
        self,
        context: Context,
        spaces: Spaces,
        *,
        chance: random.Random,
        timing: str | None,
        scratch: Mapping[str, tuple[int, int]],
    ) -> None:
        super().__init__(context)
        self.spaces = spaces
        self.placement = spaces.placement
        self.numpy_chance = np.random.Generator(np.random.PCG64(chance.getrandbits(32)))
        self._chance = chance
        self._timing = timing
        self._scratch = scratch
        self._inner = Interpreter(context)
        self._constants: dict[Instruction, Value] = {}
        self._splits: dict[Instruction, FusedUpdates | None] = {}
        self._checked: dict[Instruction, int] = {}
        self._waiting: dict[Computation, Places] = {}

    # -- what the interpreter asks for ---------------------------------------------

    def scalar(self, value: Value) -> Any:
        """The number in a scalar reference."""
        return np.asarray(self.spaces.load(value, "control flow"))[()]

    def contents(self, value: Value) -> Value:
        """A value out of memory's reach."""
        if isinstance(value, Reference):
            return np.array(self.spaces.load(value, "result"))
        if isinstance(value, tuple):
            return tuple(self.contents(x) for x in value)
        return value

    def starts_late(self, step: Step) -> bool:
        """Asynchronous computations run at either end, and might all the way.

        Until one that is late runs, its inner places are scribbled over at each step.
        """
        if self._timing == "eager":
            return False
        late = self._timing == "late" or self._chance.random() < 0.5
        if late:
            instruction = step.instruction
            places = inner_places(instruction, self.placement)
            self._waiting[instruction.called_computations[0]] = places
        return late

    def entered(self, frame: Frame, caller: Step | None) -> None:
        """A computation with several call sites gets buffers of its own per call.

        A loop may write to its scratch whenever it is the loop's turn.
        """
        self.spaces.forget(frame.code.computation)
        self._waiting.pop(frame.code.computation, None)
        if caller is not None and caller.instruction.opcode == "while":
            self._scribble(caller.instruction)

    def reached(self, step: Step) -> None:
        """Write to the scratch of an operation that runs other computations."""
        self._scribble(step.instruction)
        self.spaces.end_lives(step.instruction)

    def _scribble(self, instruction: Instruction) -> Extent | None:
        """Fill the scratch of an instruction, if it has some, with poison.

        Whoever needs what lay there finds out when it reads it.
        """
        place = self._scratch.get(instruction.name)
        if place is None:
            return None
        return self.spaces.claim_scratch(instruction.name, *place)

    def received(self, step: Step, operands: Sequence[Value], result: Value) -> Value:
        """Store what a collective brought."""
        made = self._received(step.instruction, operands, result)
        self.spaces.end_lives(step.instruction)
        return made

    def _received(
        self, instruction: Instruction, operands: Sequence[Value], result: Value
    ) -> Value:
        self._scribble(instruction)
        if instruction.opcode == "send":
            return (operands[0], None, None)
        if instruction.opcode == "recv-done":
            for landing in references_in([operands[0][0]]):
                self.spaces.check(landing, instruction.name, landing=True)
        if instruction.opcode not in _PACKED_STARTS:
            return self._store_tree(instruction, result)
        given = operands[0] if len(operands) == 1 else tuple(operands)
        made = self._store_tree(instruction, result, prefix=(1,))
        extra = len(instruction.shape.children) - 2
        return (given, made[1], *(None for _ in range(extra)))

    def compute(self, step: Step, operands: Sequence[Value]) -> Value:
        """Execute one instruction."""
        self.spaces.tick()
        for places in self._waiting.values():
            for name, place in places.items():
                self.spaces.claim_scratch(name, *place)
        made = self._execute(step.instruction, operands)
        self.spaces.end_lives(step.instruction)
        return made

    def _execute(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        opcode = instruction.opcode
        scratch = self._scribble(instruction)
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            return operands[0][instruction.tuple_index]
        if opcode in _RENAMING or (opcode == "copy" and instruction.shape.is_tuple):
            return operands[0]
        if opcode == "bitcast":
            source = operands[0]
            if not isinstance(source, Reference):
                return source
            return Reference(source.life, instruction.shape)
        if opcode == "copy-start":
            return self._start_copy(instruction, operands[0])
        if opcode == "copy-done":
            target: Reference = operands[0][0]
            self.spaces.finish_copy(target, instruction.name)
            return Reference(target.life, instruction.shape)
        if opcode in _SECOND:
            return operands[0][1]
        if opcode == "send":
            return (operands[0], None, None)
        if opcode == "send-done":
            for sent in references_in([operands[0][0]]):
                self.spaces.check(sent, instruction.name)
            return None
        if opcode == "recv-done":
            return (operands[0][0], None)
        if opcode == "constant":
            return self._constant(instruction)
        if instruction.attributes.get("custom_call_target") == JOIN_TARGET:
            joined = self._join(instruction, operands)
            if joined is not None:
                return joined
        result = self._operate(instruction, operands, scratch)
        if opcode == "recv" and not is_host_transfer(instruction):
            for landing in references_in([result[0]]):
                landing.life.block.cells()[:] = POISON
                landing.life.extent.filled = False
        return result

    # -- definitions -----------------------------------------------------------------

    def _start_copy(self, instruction: Instruction, source: Reference) -> Value:
        target = self.spaces.start_copy(
            instruction.name,
            source,
            self.placement.sets.set_of(instruction, (0,)),
            instruction.shape.children[0],
            position_text(instruction, (0,)),
        )
        return (target, source, None)

    def _join(
        self, instruction: Instruction, operands: Sequence[Reference]
    ) -> Reference | None:
        """Slices become one value where they lie; None without planned places."""
        spaces = self.spaces
        block = spaces.block(self.placement.sets.set_of(instruction, ()))
        if not spaces.is_planned(block):
            return None
        name = position_text(instruction, ())
        address = block.address
        for operand in operands:
            spaces.check(operand, instruction.name)
            part = operand.life.block
            if part.memory is not block.memory or part.address != address:
                spaces.fail(
                    "misplaced slice",
                    f"{operand.life.extent.name} at {part.address} should be at "
                    f"{address}",
                    instruction.name,
                    block,
                    (operand.life.extent.name, name),
                )
            address += operand.shape.byte_size()
        cells = self.joined_cells(instruction, operands, block)
        life = spaces.claim(block, name, instruction.name)
        block.cells()[: len(cells)] = cells
        return Reference(life, instruction.shape)

    def joined_cells(
        self, instruction: Instruction, operands: Sequence[Reference], block: Block
    ) -> Array:
        """The cells of joined slices: those that are there."""
        del operands
        return block.cells()[: self.spaces.codec.cell_count(instruction.shape)].copy()

    def _constant(self, instruction: Instruction) -> Value:
        """Constants lie in memory once, unless the plan gives them a place."""
        known = self._constants.get(instruction)
        if known is None:
            known = self._store_tree(instruction, self._result(instruction, ()))
            blocks = [x.life.block for x in references_in([known])]
            if not any(map(self.spaces.is_planned, blocks)):
                self._constants[instruction] = known
                for block in blocks:
                    self.spaces.protect(block, "constant")
        return known

    def _store_tree(
        self, instruction: Instruction, value: Value, prefix: ShapeIndex = ()
    ) -> Value:
        """Define every array of a result (those under `prefix`)."""
        made: dict[ShapeIndex, Reference] = {}
        outputs = [
            self.output(instruction, index, root, _item(value, index))
            for index, root in self.placement.leaf_sets(instruction)
            if index[: len(prefix)] == prefix
        ]
        for output in outputs:
            made[output.index] = self.write(instruction, output)
        return map_leaves(instruction.shape, lambda index, _: made.get(index))

    def output(
        self, instruction: Instruction, index: ShapeIndex, root: int, value: Value
    ) -> Output:
        """A result with its destination; its cells are out of memory's reach."""
        shape = instruction.shape.subshape(index)
        cells = self.spaces.codec.encode(shape, value)
        if instruction.shape.is_tuple and cells.base is not None:
            cells = cells.copy()  # it may be a view of what is written before it
        return Output(index, shape, self.spaces.block(root), cells)

    def write(self, instruction: Instruction, output: Output) -> Reference:
        """Write a result to its destination: a new value begins there."""
        name = position_text(instruction, output.index)
        life = self.spaces.claim(output.block, name, instruction.name)
        output.block.cells()[: len(output.data)] = output.data
        return Reference(life, output.shape)

    # -- computing -------------------------------------------------------------------

    def load_tree(self, value: Value, where: str) -> Value:
        """What the references in a value stand for."""
        if isinstance(value, Reference):
            return self.spaces.load(value, where)
        if isinstance(value, tuple):
            return tuple(self.load_tree(x, where) for x in value)
        return value

    def _result(self, instruction: Instruction, arrays: Sequence[Value]) -> Value:
        if instruction.opcode == "fusion":
            return self.evaluate(instruction.fused_computation, arrays)
        return self.kernel(instruction)(*arrays)

    def evaluate(self, start: Computation | Code, arrays: Sequence[Value]) -> Value:
        """Run a fused computation."""
        run = self._inner.run(start, arrays)
        try:
            request = next(run)
        except StopIteration as stop:
            return stop.value
        raise UnsupportedError(
            "a collective inside a fusion",
            subject="fusion",
            where=request.instruction.name,
        )

    def _operate(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        scratch: Extent | None,
    ) -> Value:
        refuse_dynamic(instruction)
        updated = self._update_in_place(instruction, operands, scratch)
        if updated is not None:
            return updated
        arrays = [self.load_tree(x, instruction.name) for x in operands]
        outputs = self._outputs(instruction, self._result(instruction, arrays))
        if self.check_overlap(instruction, operands, outputs, scratch):
            self._check_in_place(instruction, operands, outputs)
        made: dict[ShapeIndex, Reference] = {}
        for output in outputs:
            made[output.index] = self.write(instruction, output)
        return map_leaves(instruction.shape, lambda index, _: made.get(index))

    def _outputs(self, instruction: Instruction, value: Value) -> list[Output]:
        """Every result with its destination and cells."""
        return [
            self.output(instruction, index, root, _item(value, index))
            for index, root in self.placement.leaf_sets(instruction)
        ]

    # -- results in the place of operands ------------------------------------------------

    def check_overlap(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        outputs: Sequence[Output],
        scratch: Extent | None,
    ) -> bool:
        """No result may overlap an operand, except in exactly its place.

        Returns whether one is in the same place and its elements must be checked.
        """
        lives = [r.life for r in references_in(operands)]
        shared = False
        for output in outputs:
            block = output.block
            same = [x for x in lives if x.block.same_place(block)]
            shared = shared or bool(same)
            if not self.spaces.is_placed(block):
                continue
            extents = [
                x.extent
                for x in lives
                if x not in same and x.block.memory is block.memory
            ]
            if scratch is not None and self.spaces.is_planned(block):
                extents.append(scratch)
            for extent in extents:
                if extent.overlaps(block.address, block.size):
                    self._overlap(instruction, output, extent)
            for life in same:
                if life.block is not block and not self.may_replace(
                    instruction, life, operands
                ):
                    self._overlap(instruction, output, life.extent)
        return shared and not is_pointwise(instruction)

    def may_replace(
        self, instruction: Instruction, life: Life, operands: Sequence[Value]
    ) -> bool:
        """Whether a result may take the place of an operand of other storage.

        Here elements decide, see `_check_in_place`.
        """
        del instruction, life, operands
        return True

    def _overlap(
        self, instruction: Instruction, output: Output, extent: Extent
    ) -> None:
        name = position_text(instruction, output.index)
        self.spaces.fail(
            "overlap",
            f"{name} overlaps {extent.name}, which the same instruction uses",
            instruction.name,
            output.block,
            (extent.name, name),
        )

    def is_checked_now(self, instruction: Instruction) -> bool:
        """Whether to look for in-place hazards: the first times, then now and then."""
        times = self._checked.get(instruction, 0)
        self._checked[instruction] = times + 1
        return times < _ALWAYS_CHECKED or self._chance.random() < _CHECK_CHANCE

    def _check_in_place(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        outputs: Sequence[Output],
    ) -> None:
        """Write half of the elements in place, compute again, and compare the rest.

        An element may be replaced by a function of itself; if the other half of the
        result changes, the operation also reads elements that it has overwritten.
        """
        if not self.is_checked_now(instruction):
            return
        held = [r.life.block for r in references_in(operands)]
        early = HalfMasks(self.numpy_chance)
        saved = []
        for output in outputs:
            if any(block.same_place(output.block) for block in held):
                view = output.block.cells()[: len(output.data)]
                saved.append((view, view.copy()))
                early.write_half(view, output)
        arrays = [self.load_tree(x, instruction.name) for x in operands]
        again = self._outputs(instruction, self._result(instruction, arrays))
        for view, before in saved:
            view[:] = before
        for first, second in zip(outputs, again, strict=True):
            if not early.rest_agrees(first, second):
                self.hazard(instruction, first.index, first.block)

    def hazard(self, instruction: Instruction, index: ShapeIndex, block: Block) -> None:
        """Report an in-place result that reads what it has overwritten."""
        name = position_text(instruction, index)
        self.spaces.fail(
            "in-place hazard",
            f"{name} is computed from elements that it has already overwritten",
            instruction.name,
            block,
            (block.extent.name if block.extent is not None else name, name),
        )

    def _update_in_place(
        self,
        instruction: Instruction,
        operands: Sequence[Value],
        scratch: Extent | None,
    ) -> Value | None:
        """Write only the updated elements; None if that is not what happens here."""
        if instruction.opcode == "dynamic-update-slice":
            split = None
        elif instruction.opcode == "fusion":
            if instruction not in self._splits:
                self._splits[instruction] = split_fusion(instruction)
            split = self._splits[instruction]
            if split is None:
                return None
        else:
            return None
        return InPlaceUpdate(self, instruction, operands, split, scratch).run()


def refuse_dynamic(instruction: Instruction) -> None:
    """Arrays in memory have static sizes.

    Raises:
        UnsupportedError: the result has not.
    """
    shape: Shape = instruction.shape
    if shape.dynamic or (
        shape.is_tuple and any(leaf.dynamic for _, leaf in shape.leaves())
    ):
        raise UnsupportedError(
            f"{instruction.opcode} of dynamic size in memory",
            subject=instruction.opcode,
            where=instruction.name,
        )


def _item(value: Value, index: ShapeIndex) -> Value:
    for i in index:
        value = value[i]
    return value
