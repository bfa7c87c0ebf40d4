"""Adds instructions to one computation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msa.errors import HloError
from msa.hlo.arguments import expect
from msa.hlo.builder.constants import to_literal
from msa.hlo.builder.regions import region_parameters
from msa.hlo.builder.values import (
    ShapeLike,
    shapes_of,
    to_attributes,
    to_backend_config,
    to_metadata,
    to_shape,
    to_type,
)
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import NATIVE_ASYNC_STARTS, OPCODES
from msa.hlo.parser.cursor import nearest_name
from msa.hlo.primitive import PrimitiveType
from msa.hlo.shape import Shape
from msa.hlo.shape_inference import Signature, infer_shape

if TYPE_CHECKING:
    from msa.hlo.builder.module_builder import Builder


class ComputationBuilder:
    """Adds instructions to one computation; each opcode is a method.

    `b.dynamic_slice(x, i, dynamic_slice_sizes=(8,))` adds a `dynamic-slice`: the
    opcode with `_` for `-` (and a trailing `_` where Python has a keyword: `and_`,
    `while_`). Operands are instructions of this computation, keyword arguments are
    attributes as HLO text names them, and further:

    * `shape`: the result shape, needed where it does not follow from the operands;
    * `name`: the instruction's name, made unique in the module;
    * `metadata`, `backend_config`: text or mappings;
    * `after`: instructions that have to run before this one (control predecessors).

    Called computations (`to_apply`, `body`, `calls`, …) may be computations, builders,
    functions that take a `ComputationBuilder` and the parameters and return the root,
    or, for two scalars, the name of an opcode or comparison (`"add"`, `"GE"`).

    The root is the last instruction added unless `root` sets it.

    >>> from msa.hlo import Builder
    >>> main = Builder("m").entry()
    >>> x = main.parameter("f32[4,8]")
    >>> str(main.transpose(x, dimensions=(1, 0)).shape)
    'f32[8,4]{0,1}'
    """

    def __init__(self, builder: Builder, computation: Computation) -> None:
        self._builder = builder
        self.computation = computation
        self._root_is_set = False

    # -- any opcode ----------------------------------------------------------

    def op(
        self,
        opcode: str,
        *operands: Instruction,
        shape: ShapeLike | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | str | None = None,
        backend_config: Mapping[str, Any] | str | None = None,
        after: Iterable[Instruction] = (),
        **attributes: Any,
    ) -> Instruction:
        """Add an instruction of any opcode; see the class for the arguments.

        Raises:
            ShapeInferenceError: operands, attributes and shape do not fit.
            HloError: an operand is of another computation, an attribute is unknown,
                or the shape has to be stated.
        """
        expect(opcode, str, where="op", what="the name of an opcode")
        if opcode not in OPCODES:
            nearest = nearest_name(opcode, OPCODES)
            hint = f"did you mean {nearest!r}?" if nearest else ""
            raise HloError(f"unknown opcode {opcode!r}", hint=hint)
        for operand in (*operands, *after):
            _instruction(operand, opcode)
            if operand.computation is not self.computation:
                raise HloError(
                    f"{opcode}: {operand.name} is not in {self.computation.name}"
                )
        called = OPCODES[opcode].called
        plain = {k: v for k, v in attributes.items() if k not in called}
        values = to_attributes(opcode, plain)
        callees = self._callees(
            opcode,
            {k: attributes[k] for k in called if k in attributes},
            operands,
            values,
        )
        stated = None if shape is None else to_shape(shape)
        result = infer_shape(
            opcode,
            shapes_of(operands),
            values,
            tuple(map(Signature.of, callees)),
            stated=stated,
        )
        if stated is None and result is None:
            raise HloError(
                f"{opcode}: the result shape does not follow from the operands",
                hint="give shape=",
            )
        instruction = self.computation.create(
            name or opcode,
            opcode,
            stated or result,  # type: ignore[arg-type]  # one of them is there
            operands,
            self._builder.share(values),
            callees,
            to_metadata(metadata),
        )
        instruction.backend_config = to_backend_config(backend_config)
        for before in after:
            before.add_control_successor(instruction)
        self._follow(instruction)
        return instruction

    def _follow(self, instruction: Instruction) -> None:
        """Take the newest instruction as root, parameters only for want of others."""
        root = self.computation.root
        if not self._root_is_set and (
            instruction.opcode != "parameter" or root.opcode == "parameter"
        ):
            self.computation.root = instruction

    def __getattr__(self, name: str) -> Callable[..., Instruction]:
        opcode = name.rstrip("_").replace("_", "-")
        if name.startswith("_") or opcode not in OPCODES:
            raise AttributeError(name)
        return partial(self.op, opcode)

    def _callees(
        self,
        opcode: str,
        given: Mapping[str, Any],
        operands: tuple[Instruction, ...],
        attributes: Mapping[str, Any],
    ) -> tuple[Computation, ...]:
        callees = []
        shapes = shapes_of(operands)
        for name, value in given.items():
            listed = value if isinstance(value, list | tuple) else (value,)
            for number, callee in enumerate(listed):
                if callable(callee) or isinstance(callee, str):
                    takes = region_parameters(opcode, name, number, shapes, attributes)
                    callee = self._region(opcode, name, callee, takes)
                elif isinstance(callee, ComputationBuilder):
                    callee = callee.computation
                what = "a computation, a function or an opcode's name"
                where = f"{opcode}, {name}"
                callees.append(expect(callee, Computation, where=where, what=what))
        return tuple(callees)

    def _region(
        self, opcode: str, name: str, body: Any, parameters: Sequence[Shape]
    ) -> Computation:
        if isinstance(body, str):
            return self._builder.standard_computation(body, tuple(parameters))
        role = name if name in ("body", "condition", "select", "scatter") else opcode
        return self._builder.region(
            role if role == name else f"{opcode}_computation", body, parameters
        )

    # -- leaves --------------------------------------------------------------

    def parameter(
        self, shape: ShapeLike, *, name: str | None = None, **attributes: Any
    ) -> Instruction:
        """Add the next parameter."""
        number = len(self.computation.parameters)
        return self._leaf(
            "parameter",
            to_shape(shape),
            name or f"p{number}",
            {**attributes, "parameter_number": number},
        )

    def constant(
        self, value: Any, shape: ShapeLike | None = None, *, name: str | None = None
    ) -> Instruction:
        """Add a constant from a number, a numpy array or a tuple of them.

        Python ints and floats count as `s32` and `f32`; with a shape, a scalar fills
        an array.

        >>> from msa.hlo import Builder
        >>> str(Builder("m").entry().constant(1, "bf16[2]").attributes["literal"])
        '{1, 1}'
        """
        literal = to_literal(value, None if shape is None else to_shape(shape))
        return self._leaf(
            "constant", literal.shape, name or "constant", {"literal": literal}
        )

    def _leaf(
        self, opcode: str, shape: Shape, name: str, attributes: dict[str, Any]
    ) -> Instruction:
        """Add an instruction whose special attributes text writes as operands."""
        literal = attributes.pop("literal", None)
        values = to_attributes(opcode, attributes)
        if literal is not None:
            values["literal"] = literal
        leaf = self.computation.create(
            name, opcode, shape, (), self._builder.share(values)
        )
        self._follow(leaf)
        return leaf

    def iota(
        self, shape: ShapeLike, iota_dimension: int = 0, **options: Any
    ) -> Instruction:
        """Add an array that counts along one dimension."""
        return self.op("iota", shape=shape, iota_dimension=iota_dimension, **options)

    # -- opcodes with a natural positional argument --------------------------

    def convert(
        self, operand: Instruction, element_type: PrimitiveType | str, **options: Any
    ) -> Instruction:
        """Convert elements to another type."""
        return self._retype("convert", operand, element_type, options)

    def _retype(
        self,
        opcode: str,
        operand: Instruction,
        element_type: PrimitiveType | str,
        options: dict[str, Any],
    ) -> Instruction:
        old = _instruction(operand, opcode).shape
        new = Shape(to_type(element_type), old.dimensions, old.dynamic, old.layout)
        return self.op(opcode, operand, shape=new, **options)

    def reshape(
        self, operand: Instruction, dimensions: Iterable[int], **options: Any
    ) -> Instruction:
        """Give an array other dimensions with as many elements."""
        kind = _instruction(operand, "reshape").shape.element_type
        shape = Shape.array(kind, dimensions)
        return self.op("reshape", operand, shape=shape, **options)

    def broadcast(
        self,
        operand: Instruction,
        sizes: Iterable[int],
        dimensions: Iterable[int] = (),
        **options: Any,
    ) -> Instruction:
        """Repeat an array; `dimensions` says where the operand's dimensions go."""
        kind = _instruction(operand, "broadcast").shape.element_type
        shape = Shape.array(kind, sizes)
        return self.op(
            "broadcast", operand, shape=shape, dimensions=dimensions, **options
        )

    def compare(
        self, lhs: Instruction, rhs: Instruction, direction: str, **options: Any
    ) -> Instruction:
        """Compare elements; `direction` is EQ, NE, LT, LE, GT or GE."""
        return self.op("compare", lhs, rhs, direction=direction, **options)

    def get_tuple_element(
        self, operand: Instruction, index: int, **options: Any
    ) -> Instruction:
        """Take one element of a tuple."""
        return self.op("get-tuple-element", operand, index=index, **options)

    # -- asynchronous operations ---------------------------------------------

    def start(
        self,
        opcode: str,
        *operands: Instruction,
        contexts: Iterable[ShapeLike] = ("u32[]",),
        shape: ShapeLike | None = None,
        thread: str = "main",
        name: str | None = None,
        after: Iterable[Instruction] = (),
        **attributes: Any,
    ) -> Instruction:
        """Start an operation that runs on while later ones are issued.

        Opcodes with a start of their own (`copy`, `all-gather`, `all-reduce`,
        `collective-permute`, `send`, `recv`) use it; any other is wrapped. `shape` is
        the result of the operation where it has to be stated, for native starts that
        of the start; `contexts` are the extra elements of a wrapped start's tuple.

        >>> from msa.hlo import Builder
        >>> main = Builder("m").entry()
        >>> handle = main.start("negate", main.parameter("f32[8]"))
        >>> str(handle.shape), main.done(handle).opcode
        ('((f32[8]{0}), f32[8]{0}, u32[])', 'async-done')
        """
        expect(opcode, str, where="start", what="the name of an opcode")
        for operand in operands:
            _instruction(operand, opcode)
        native = opcode if opcode in ("send", "recv") else f"{opcode}-start"
        if native in NATIVE_ASYNC_STARTS:
            return self.op(
                native, *operands, shape=shape, name=name, after=after, **attributes
            )
        wrapped = self._builder.computation("async_wrapped", thread=thread)
        inner = [wrapped.parameter(x.shape, name="async_param") for x in operands]
        root = wrapped.op(opcode, *inner, shape=shape, name="async_op", **attributes)
        slots = Shape.tuple_of(*shapes_of(operands))
        return self.op(
            "async-start",
            *operands,
            shape=Shape.tuple_of(slots, root.shape, *map(to_shape, contexts)),
            name=name or f"{opcode}-start",
            after=after,
            async_execution_thread=thread,
            calls=wrapped,
        )

    def update(
        self,
        handle: Instruction,
        *operands: Instruction,
        shape: ShapeLike | None = None,
        name: str | None = None,
    ) -> Instruction:
        """Mark progress of a wrapped operation, or bind further operands to it."""
        update = self.op(
            "async-update", handle, *operands, shape=shape, name=name or "async-update"
        )
        update.called_computations = handle.called_computations
        return update

    def done(
        self,
        handle: Instruction,
        *,
        shape: ShapeLike | None = None,
        name: str | None = None,
        after: Iterable[Instruction] = (),
        **attributes: Any,
    ) -> Instruction:
        """Wait for a started operation and take its result."""
        _instruction(handle, "done")
        if handle.opcode in ("send", "recv"):
            opcode = f"{handle.opcode}-done"
        else:
            opcode = handle.opcode.removesuffix("-start").removesuffix("-update")
            opcode += "-done"
        done = self.op(
            opcode, handle, shape=shape, name=name, after=after, **attributes
        )
        if opcode == "async-done":
            done.called_computations = handle.called_computations
        return done

    # -- the computation -----------------------------------------------------

    def root(self, instruction: Instruction) -> Instruction:
        """Make an instruction the result of the computation."""
        _instruction(instruction, "root")
        if instruction.computation is not self.computation:
            raise HloError(f"{instruction.name} is not in {self.computation.name}")
        self.computation.root = instruction
        self._root_is_set = True
        return instruction

    def order(self, *instructions: Instruction) -> None:
        """Make instructions run in this order (control edges)."""
        for instruction in instructions:
            _instruction(instruction, "order")
        for before, after in pairwise(instructions):
            before.add_control_successor(after)

    def __repr__(self) -> str:
        return f"<ComputationBuilder {self.computation.name}>"


def _instruction(value: Instruction, where: str) -> Instruction:
    return expect(
        value,
        Instruction,
        where=where,
        what="instructions of this computation",
        hint="what parameter(), constant() and op() return",
    )
