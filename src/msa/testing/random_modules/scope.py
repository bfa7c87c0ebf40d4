"""A computation under construction: emission, and the choice of operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.primitive import S32, PrimitiveType
from msa.hlo.shape import Shape
from msa.testing.random_modules.options import RandomModuleOptions
from msa.testing.random_modules.values import Lineage, Storage, Variable


class Workshop:
    """What all computations of one random module share.

    Attributes:
        module: finished computations, callees first.
        random: the only source of chance.
        options: sizes and weights.
        scheduled: computations that need a schedule, with their order.
    """

    __slots__ = ("_names", "module", "options", "random", "scheduled")

    def __init__(self, name: str, seed: int, options: RandomModuleOptions) -> None:
        self.module = Module(name)
        self.random = random.Random(seed)
        self.options = options
        self.scheduled: dict[Computation, tuple[Instruction, ...]] = {}
        self._names = 0

    def name(self, base: str) -> str:
        """A name unique in the module."""
        self._names += 1
        return f"{base}.{self._names}"

    def finish(
        self, scope: Scope, root: Instruction, *, scheduled: bool
    ) -> Computation:
        """Add a completed computation to the module."""
        computation = scope.computation
        computation.root = root
        self.module.add(computation)
        if scheduled:
            self.scheduled[computation] = tuple(computation.instructions)
        return computation


class Scope:
    """One computation being written, with the values that it may use.

    Attributes:
        depth: nesting of control flow.
        budget: instructions left to emit, roughly.
        variables: everything defined so far, oldest first.
        started: asynchronous operations whose done is still to come.
    """

    __slots__ = ("budget", "computation", "depth", "shop", "started", "variables")

    def __init__(self, shop: Workshop, name: str, depth: int, budget: int) -> None:
        self.shop = shop
        self.computation = Computation(shop.name(name))
        self.depth = depth
        self.budget = budget
        self.variables: list[Variable] = []
        self.started: list[tuple[Instruction, Sequence[Variable]]] = []

    @property
    def random(self) -> random.Random:
        """The module's source of chance."""
        return self.shop.random

    @property
    def place(self) -> int:
        """Place of the next instruction."""
        return len(self.computation.instructions)

    def is_unusual(self) -> bool:
        """Whether to take a less usual form here (see the option `variety`)."""
        variety = self.shop.options.variety
        return variety > 0 and self.random.random() < variety

    def is_shared(self) -> bool:
        """Whether to name a value twice here (see the option `sharing`)."""
        sharing = self.shop.options.sharing
        return sharing > 0 and self.random.random() < sharing

    # -- emission --------------------------------------------------------------

    def emit(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        called: Sequence[Computation] = (),
        backend_config: str | None = None,
    ) -> Instruction:
        """Append an instruction under a fresh name."""
        if attributes is not NO_ATTRIBUTES:
            attributes = MappingProxyType(dict(attributes))
        self.budget -= 1
        return self.computation.add(
            Instruction(
                self.shop.name(opcode),
                opcode,
                shape,
                tuple(operands),
                attributes,
                tuple(called),
                backend_config=backend_config,
            )
        )

    def parameter(self, shape: Shape, number: int) -> Instruction:
        """Append a parameter."""
        return self.emit("parameter", shape, (), {"parameter_number": number})

    def constant(self, value: int, kind: PrimitiveType = S32) -> Instruction:
        """Append a scalar constant."""
        shape = Shape.array(kind)
        return self.emit("constant", shape, (), {"literal": Literal(shape, str(value))})

    def define(self, instruction: Instruction, born: int | None = None) -> Variable:
        """Record a result that has storage of its own.

        `born` is the place of the instruction that writes it, if that is an earlier
        one (whose tuple this is an element of).
        """
        storage = Storage(Lineage(self.place - 1 if born is None else born))
        return self.record(instruction, storage)

    def record(self, instruction: Instruction, storage: Storage) -> Variable:
        """Record a result that lives in known storage."""
        variable = Variable(instruction, storage)
        self.variables.append(variable)
        return variable

    # -- reading and consuming ---------------------------------------------------

    def read(self, variable: Variable) -> Instruction:
        """Use a value as an operand of the next instruction."""
        variable.storage.lineage.last_use = self.place
        return variable.instruction

    def consume(self, variable: Variable) -> Storage:
        """Overwrite a value: the storage of the next version."""
        assert variable.storage.is_owned
        self.read(variable)
        variable.storage.consumed = True
        return Storage(variable.storage.lineage)

    def copy(self, variable: Variable) -> Variable:
        """A copy with storage of its own."""
        shape = variable.shape
        return self.define(self.emit("copy", shape, [self.read(variable)]))

    def owned(self, variable: Variable) -> Variable:
        """The variable if it may be overwritten, else a copy."""
        return variable if variable.storage.is_owned else self.copy(variable)

    # -- choice --------------------------------------------------------------------

    def pick(self, accept: Callable[[Variable], bool] | None = None) -> Variable | None:
        """A readable value: a recent one, or (long live ranges) any at all."""
        fitting = [
            v for v in self.variables if v.is_readable and (accept is None or accept(v))
        ]
        if not fitting:
            return None
        recent = fitting[-4:]
        return self.random.choice(recent if self.random.random() < 0.6 else fitting)

    def pick_array(self) -> Variable | None:
        """A readable value that is not a scalar."""
        return self.pick(lambda v: bool(v.shape.dimensions))

    def pick_like(self, shape: Shape) -> Variable | None:
        """A readable value of one shape."""
        return self.pick(lambda v: v.shape == shape)

    def index(self, limit: int) -> Instruction:
        """A scalar index: a constant, or (sometimes out of range) a computed one."""
        if self.random.random() < 0.5:
            scalar = self.pick(
                lambda v: v.shape.is_scalar and v.shape.element_type is S32
            )
            if scalar is not None:
                return self.read(scalar)
        return self.constant(self.random.randrange(limit + 1))

    def fresh(self, shape: Shape) -> Variable:
        """A new value of a shape, from nothing."""
        kind = shape.element_type
        if shape.dimensions and self.random.random() < 0.5:
            dimension = self.random.randrange(len(shape.dimensions))
            return self.define(
                self.emit("iota", shape, (), {"iota_dimension": dimension})
            )
        value = self.constant(self.random.randrange(-3, 9), kind)
        if not shape.dimensions:
            return self.copy(self.record(value, Storage(Lineage(-1), frozen=True)))
        return self.define(self.emit("broadcast", shape, [value], {"dimensions": ()}))
