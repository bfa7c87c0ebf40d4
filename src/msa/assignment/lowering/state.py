"""What lowering knows while it edits a clone of the module.

Steps are those of the input module's flattened schedule; `steps[i]` is the clone's
instruction at step `i`. Allocations live at a `Place` of the clone: for a copy, the
`copy-done` that it became.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msa.assignment.allocation import Allocation, Use
from msa.assignment.lowering.tracing import trace
from msa.assignment.options import Options
from msa.errors import PlanError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.schedule import Schedule
from msa.hlo.shape import Shape, ShapeIndex


class Place(NamedTuple):
    """A node of an instruction's result."""

    instruction: Instruction
    index: ShapeIndex = ()  # type: ignore[assignment]  # hides the unused tuple.index

    @property
    def shape(self) -> Shape:
        """Shape of the node."""
        return self.instruction.shape.subshape(self.index)

    @property
    def text(self) -> str:
        """`name{index}`, as plans write positions."""
        return f"{self.instruction.name}{{{','.join(map(str, self.index))}}}"


class TransferStep(NamedTuple):
    """One thing that must be put into the schedule for an allocation.

    Attributes:
        start: the instruction that begins the copy, or None (a join of slices).
        start_after: step after which it goes.
        done: the instruction that ends it.
        done_before: step before which it goes.
        to_alternate: direction.
    """

    start: Instruction | None
    start_after: int
    done: Instruction
    done_before: int
    to_alternate: bool


class LoweringState:
    """A clone of the module, and the edits made so far.

    Attributes:
        module: the clone.
        options: of the plan.
        steps: the clone's instruction per step of the input's flattened schedule.
        places: where each lowered allocation lives.
        transfers: instructions to schedule, in order of allocation.
        redirected: elements whose tuples may be rebuilt; others read the original.
        renamed: elements of loops' results whose names replace others.
        copy_of: allocation → (start, done) instructions that move its bytes.
        start_shapes: (target, source) → the shape of a `copy-start`.
    """

    __slots__ = (
        "_elements",
        "_kept",
        "_tuple_edits",
        "copy_of",
        "module",
        "options",
        "places",
        "redirected",
        "renamed",
        "start_shapes",
        "steps",
        "transfers",
    )

    def __init__(
        self, module: Module, flattened: Sequence[Instruction], options: Options
    ) -> None:
        self.module, twins = clone_with_twins(module)
        self.options = options
        self.steps = [twins[instruction.id] for instruction in flattened]
        self.places: dict[Allocation, Place] = {}
        self.transfers: list[TransferStep] = []
        self.copy_of: dict[Allocation, list[tuple[Instruction, Instruction]]] = {}
        self.redirected: set[Instruction] = set()
        self.renamed: set[Instruction] = set()
        self.start_shapes: dict[tuple[Shape, Shape], Shape] = {}
        self._kept: list[tuple[Use, Instruction]] = []
        self._elements: dict[Instruction, dict[int, Instruction]] = {}
        self._tuple_edits: dict[
            tuple[Instruction, int], dict[ShapeIndex, Instruction]
        ] = {}

    # -- reading an allocation -------------------------------------------------

    def place_of(self, allocation: Allocation) -> Place:
        """Where an allocation lives in the clone."""
        try:
            return self.places[allocation]
        except KeyError:
            raise PlanError(
                f"a {allocation.kind} allocation of value {allocation.value} is used "
                "before it is made",
                where=f"step {allocation.start}",
            ) from None

    def producer(self, place: Place) -> Instruction:
        """An instruction whose whole result is the node at `place`."""
        instruction = place.instruction
        for number in place.index:
            instruction = self.element(instruction, number)
        return instruction

    def element(self, of: Instruction, number: int) -> Instruction:
        """The get-tuple-element of one element, made when there is none yet."""
        known = self._elements.get(of)
        if known is None:
            known = {}
            for user in of._users:
                if user.opcode == "get-tuple-element" and user not in self.redirected:
                    known.setdefault(user.tuple_index, user)
            self._elements[of] = known
        if number not in known:
            return self.new_element(of, number)
        return known[number]

    def new_element(self, of: Instruction, number: int) -> Instruction:
        """A new get-tuple-element, which names the element from now on."""
        made = of.computation.create(
            "get-tuple-element",
            "get-tuple-element",
            of.shape.subshape((number,)),
            (of,),
            {"index": number},
        )
        self._elements.setdefault(of, {})[number] = made
        return made

    def redirect(self, allocations: Iterable[Allocation]) -> None:
        """Note the elements whose originals are read by others.

        Those that copies serve, and those of tuples that hold a value twice: either
        may be read from a tuple that is rebuilt, of which it must not be a part.
        """
        for allocation in allocations:
            elements: set[Instruction] = set()
            for use in allocation.uses:
                user = self.steps[use.step]
                if user.opcode == "get-tuple-element":
                    if allocation.is_copy_like or user in elements:
                        self.redirected.add(user)
                    elements.add(user)

    # -- writing uses ----------------------------------------------------------

    def update_uses(self, uses: Iterable[Use], producer: Instruction) -> None:
        """Make the uses read `producer`. Uses inside tuples wait for `apply_edits`."""
        for use in uses:
            user = self.steps[use.step]
            operand = user.operands[use.operand]
            if use.index or operand.shape.is_tuple:
                self.edit_tuple(user, use.operand, use.index, producer)
            elif trace(operand, ()) != trace(producer, ()):
                user.replace_operand(
                    use.operand, self.as_shape(producer, operand.shape)
                )
            elif operand is not producer:
                self._kept.append((use, producer))

    def as_shape(self, producer: Instruction, shape: Shape) -> Instruction:
        """The producer, through a bitcast when the reader wants another shape."""
        if producer.shape.compatible(shape) and _same_layout(producer.shape, shape):
            return producer
        if shape.layout is not None:
            shape = shape.with_memory_space(0)
        return producer.computation.create("bitcast", "bitcast", shape, (producer,))

    def edit_tuple(
        self,
        user: Instruction,
        operand: int,
        index: ShapeIndex,
        producer: Instruction,
    ) -> None:
        """Note that the tuple read by `user` shall hold `producer` at `index`."""
        edits = self._tuple_edits.setdefault((user, operand), {})
        edits[index] = producer

    def apply_edits(self) -> None:
        """Rebuild the edited tuples, each once however many elements change."""
        from msa.assignment.lowering.tuples import rebuild_operand

        self._check_kept()
        for (user, operand), edits in self._tuple_edits.items():
            rebuild_operand(self, user, operand, edits)
        self._tuple_edits.clear()

    def _check_kept(self) -> None:
        """Uses that read the right value by a view still must.

        A view on the way may have been given another operand meanwhile. From the
        first step to the last: what is put right may be such a view itself.
        """
        for use, producer in sorted(self._kept, key=lambda item: item[0].step):
            user = self.steps[use.step]
            operand = user.operands[use.operand]
            if trace(operand, ()) != trace(producer, ()):
                user.replace_operand(
                    use.operand, self.as_shape(producer, operand.shape)
                )
        self._kept.clear()

    # -- making copies ---------------------------------------------------------

    def record_transfer(
        self,
        allocation: Allocation,
        start: Instruction,
        done: Instruction,
        start_after: int,
        done_before: int,
    ) -> None:
        """Remember a pair that moves bytes for an allocation."""
        self.transfers.append(
            TransferStep(start, start_after, done, done_before, allocation.is_alternate)
        )
        self.copy_of.setdefault(allocation, []).append((start, done))


def create(
    computation: Computation,
    opcode: str,
    shape: Shape,
    operands: Iterable[Instruction],
    attributes: Mapping[str, Any] | None = None,
) -> Instruction:
    """A new instruction named after its opcode."""
    return computation.create(opcode, opcode, shape, operands, attributes or {})


def clone_with_twins(module: Module) -> tuple[Module, list[Instruction]]:
    """A clone, and the clone's instruction by the original's id. Linear."""
    copy = module.clone()
    twins: list[Instruction] = [None] * module.id_limit  # type: ignore[list-item]
    for old, new in zip(module.computations, copy.computations, strict=True):
        for source, twin in zip(old.instructions, new.instructions, strict=True):
            twins[source.id] = twin
    if copy.schedule is None:
        copy.schedule = Schedule()
    return copy, twins


def _same_layout(a: Shape, b: Shape) -> bool:
    """Equality of array layouts but for memory space and split configuration."""
    if a.layout is None or b.layout is None:
        return True
    return (
        a.layout.minor_to_major == b.layout.minor_to_major
        and a.layout.tiles == b.layout.tiles
        and a.layout.element_size_in_bits == b.layout.element_size_in_bits
    )
