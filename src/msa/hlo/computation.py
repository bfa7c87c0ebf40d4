"""Computations: ordered instructions with parameters and a root.

Source: `xla/hlo/ir/hlo_computation.h`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msa.errors import HloError
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction

if TYPE_CHECKING:
    from msa.hlo.module import Module
    from msa.hlo.shape import Shape


class Computation:
    """A named list of instructions; the last added is the root unless one is set.

    Attributes:
        name: unique in the module.
        instructions: in order of insertion (operands before users as read).
        root: the result.
        module: the module that holds it.
        execution_thread: `main` unless stated.

    >>> import msa
    >>> entry = msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }").entry
    >>> [x.name for x in entry.instructions], entry.root.name, entry.is_entry
    (['p', 'n'], 'n', True)
    """

    __slots__ = (
        "_parameters",
        "execution_thread",
        "instructions",
        "module",
        "name",
        "root",
    )

    def __init__(self, name: str, execution_thread: str = "main") -> None:
        self.name = name
        self.execution_thread = execution_thread
        self.instructions: list[Instruction] = []
        self.root: Instruction = None  # type: ignore[assignment]  # set by add
        self.module: Module = None  # type: ignore[assignment]  # set by the module
        self._parameters: list[Instruction] = []

    @property
    def parameters(self) -> list[Instruction]:
        """Parameters ordered by number."""
        return self._parameters

    @property
    def is_entry(self) -> bool:
        """Whether the module starts here."""
        return self.module is not None and self.module.entry is self

    # -- changing ------------------------------------------------------------

    def add(self, instruction: Instruction, *, root: bool = False) -> Instruction:
        """Append an instruction; amortised O(1)."""
        instruction.computation = self
        if self.module is not None:
            instruction.id = self.module.take_id()
        self.instructions.append(instruction)
        if instruction.opcode == "parameter":
            insort(self._parameters, instruction, key=_number)
        if root or self.root is None:
            self.root = instruction
        return instruction

    def append_read(self, instruction: Instruction) -> None:
        """`add` for the reader, which does the rest (root, order, ids) later."""
        instruction.computation = self
        self.instructions.append(instruction)
        if instruction.opcode == "parameter":
            self._parameters.append(instruction)

    def sort_parameters(self) -> None:
        """Order parameters by number after `append_read`."""
        self._parameters.sort(key=_number)

    def create(
        self,
        name: str,
        opcode: str,
        shape: Shape,
        operands: Iterable[Instruction] = (),
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        called_computations: tuple[Computation, ...] = (),
        metadata_text: str | None = None,
    ) -> Instruction:
        """Build and append an instruction under a name made unique in the module."""
        unique = self.module.unique_instruction_name(name)
        return self.add(
            Instruction(
                unique,
                opcode,
                shape,
                tuple(operands),
                attributes,
                called_computations,
                metadata_text=metadata_text,
            )
        )

    def remove(self, instructions: Iterable[Instruction]) -> None:
        """Remove instructions that nothing outside the set uses; linear.

        Raises:
            HloError: one of them is the root or still has users.
        """
        doomed = set(instructions)
        if self.root in doomed:
            raise HloError(f"the root of {self.name} cannot be removed")
        for instruction in reversed(self.instructions):
            if instruction in doomed:
                instruction.detach()
        self.instructions = [x for x in self.instructions if x not in doomed]
        self._parameters = [x for x in self._parameters if x not in doomed]

    # -- orders --------------------------------------------------------------

    def post_order(self) -> list[Instruction]:
        """Operands and control predecessors before users, deterministic.

        Walks start at instructions without users, in insertion order; control
        predecessors are explored first (last listed first), then operands.
        """
        done: set[Instruction] = set()
        visiting: set[Instruction] = set()
        order: list[Instruction] = []
        for start in self.instructions:
            if start._users or start in done:
                continue
            stack = [start]
            while stack:
                top = stack[-1]
                if top in done:
                    stack.pop()
                    continue
                if top not in visiting:
                    visiting.add(top)
                    before = [x for x in top.operands[::-1] if x not in done]
                    if top.control_predecessors:
                        before += [x for x in top.control_predecessors if x not in done]
                    if before:
                        stack += before
                        continue
                stack.pop()
                done.add(top)
                order.append(top)
        return order

    def accept_order(
        self,
        key: Callable[[Instruction], Any] | None = None,
    ) -> list[Instruction]:
        """Depth-first visiting order: dead instructions' trees first, the root last.

        Children are operands in order, then control predecessors; `key` sorts them.

        Raises:
            HloError: the graph has a cycle.
        """
        state: dict[Instruction, bool] = {}  # False while on the stack
        order: list[Instruction] = []
        starts = [
            x for x in self.instructions if x.is_dead and not x.control_successors
        ]
        for start in (*starts, self.root):
            if start in state:
                continue
            state[start] = False
            stack = [(start, _children(start, key))]
            while stack:
                instruction, children = stack[-1]
                child = next(children, None)
                if child is None:
                    stack.pop()
                    state[instruction] = True
                    order.append(instruction)
                elif child not in state:
                    state[child] = False
                    stack.append((child, _children(child, key)))
                elif not state[child]:
                    raise HloError(f"cycle in {self.name} through {child.name}")
        return order

    def __reduce__(self) -> tuple[Any, ...]:
        from msa.hlo.pickling import computation_at, place_of_computation

        return computation_at, place_of_computation(self)

    def __repr__(self) -> str:
        return f"<Computation {self.name}: {len(self.instructions)} instructions>"


def _number(parameter: Instruction) -> int:
    number: int = parameter.attributes["parameter_number"]
    return number


def _children(
    instruction: Instruction, key: Callable[[Instruction], Any] | None
) -> Iterator[Instruction]:
    children = (*instruction.operands, *instruction.control_predecessors)
    return iter(children if key is None else sorted(children, key=key))
