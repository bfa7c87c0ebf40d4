"""Steps without control flow: arithmetic, movement, updates, fusions, async pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.primitive import F32, PRIMITIVE_TYPES, S32, U32, PrimitiveType
from msa.hlo.shape import Shape
from msa.testing.random_modules.scope import Scope
from msa.testing.random_modules.values import Lineage, Storage, Variable

_NARROW: Final = (PRIMITIVE_TYPES["s8"], PRIMITIVE_TYPES["bf16"])
_UNARY: Final = {
    "s32": ("negate", "not", "abs", "sign"),
    "f32": ("negate", "abs", "tanh", "floor"),
    "s8": ("negate", "not", "abs", "sign"),
    "bf16": ("negate", "abs", "floor"),
}
BINARY: Final = {
    "s32": ("add", "subtract", "multiply", "maximum", "minimum", "xor", "and", "or"),
    "f32": ("add", "subtract", "maximum", "minimum"),
    "s8": ("add", "subtract", "multiply", "maximum", "xor", "and", "or"),
    "bf16": ("add", "subtract", "maximum", "minimum"),
}


def random_shape(scope: Scope) -> Shape:
    """A vector or a matrix of one of a few sizes, so that shapes often agree."""
    random, longest = scope.random, scope.shop.options.vector
    kind: PrimitiveType = S32 if random.random() < 0.75 else F32
    if scope.is_unusual():
        kind = random.choice((*_NARROW, kind))
    count = random.choice((longest, longest, longest // 2, longest // 4))
    if random.random() < 0.3 and count >= 8:
        return Shape.array(kind, (4, count // 4))
    return Shape.array(kind, (max(1, count),))


def unary(scope: Scope) -> None:
    """One elementwise operation."""
    variable = scope.pick()
    if variable is not None:
        define_unary(scope, variable)


def define_unary(scope: Scope, variable: Variable) -> Variable:
    """An elementwise operation on one value."""
    shape = variable.shape
    opcode = scope.random.choice(_UNARY[shape.element_type.name])
    return scope.define(scope.emit(opcode, shape, [scope.read(variable)]))


def binary(scope: Scope) -> None:
    """One elementwise operation on two values (perhaps the same)."""
    left = scope.pick()
    if left is None:
        return
    right = scope.pick_like(left.shape)
    assert right is not None
    opcode = scope.random.choice(BINARY[left.shape.element_type.name])
    operands = [scope.read(left), scope.read(right)]
    scope.define(scope.emit(opcode, left.shape, operands))


def rearrange(scope: Scope) -> None:
    """Transpose, reverse, reshape, pad, concatenate or broadcast."""
    variable = scope.pick_array()
    if variable is None:
        return
    shape, random = variable.shape, scope.random
    kind, sizes = shape.element_type, shape.dimensions
    way = random.randrange(5)
    operand = scope.read(variable)
    if way == 0 and len(sizes) == 2:
        flipped = Shape.array(kind, sizes[::-1])
        made = scope.emit("transpose", flipped, [operand], {"dimensions": (1, 0)})
    elif way == 1:
        axis = random.randrange(len(sizes))
        made = scope.emit("reverse", shape, [operand], {"dimensions": (axis,)})
    elif way == 2 and sizes[0] >= 2:
        half = sizes[0] // 2
        zero = scope.constant(0, kind)
        operand = scope.read(variable)
        ranges = ((-half, half, 0), *((0, 0, 0) for _ in sizes[1:]))
        made = scope.emit("pad", shape, [operand, zero], {"padding": ranges})
    elif way == 3 and len(sizes) == 1:
        rows = Shape.array(kind, (2, *sizes))
        made = scope.emit("broadcast", rows, [operand], {"dimensions": (1,)})
        if sizes[0] * 2 > 4 * scope.shop.options.vector:
            return
    else:
        flat = Shape.array(kind, (shape.element_count,))
        if len(sizes) == 1 and sizes[0] % 4 == 0:
            flat = Shape.array(kind, (4, sizes[0] // 4))
        made = scope.emit("reshape", flat, [operand])
    scope.define(made)


def reducer(scope: Scope, opcode: str, kind: PrimitiveType) -> Computation:
    """A computation of two scalars."""
    inner = Scope(scope.shop, "reducer", 0, 0)
    scalar = Shape.array(kind)
    a, b = inner.parameter(scalar, 0), inner.parameter(scalar, 1)
    root = inner.emit(opcode, scalar, [a, b])
    return scope.shop.finish(inner, root, scheduled=False)


def reduce(scope: Scope) -> None:
    """Sum or maximum over the first dimension or all of them."""
    variable = scope.pick_array()
    if variable is None:
        return
    shape = variable.shape
    kind, sizes = shape.element_type, shape.dimensions
    opcode = scope.random.choice(("add", "maximum"))
    callee = reducer(scope, opcode, kind)
    init = scope.constant(0, kind)
    everything = scope.random.random() < 0.5
    axes = tuple(range(len(sizes))) if everything else (0,)
    result = Shape.array(kind, () if everything else sizes[1:])
    operands = [scope.read(variable), init]
    made = scope.emit("reduce", result, operands, {"dimensions": axes}, [callee])
    scope.define(made)


def dot(scope: Scope) -> None:
    """A matrix product of two matrices, or a dot of two vectors."""
    left = scope.pick_array()
    right = None if left is None else scope.pick_like(left.shape)
    if left is None or right is None:
        return
    sizes = left.shape.dimensions
    axis = len(sizes) - 1
    result = Shape.array(left.shape.element_type, (sizes[0], sizes[0])[: 2 * axis])
    attributes = {
        "lhs_contracting_dims": (axis,),
        "rhs_contracting_dims": (axis,),
    }
    operands = [scope.read(left), scope.read(right)]
    scope.define(scope.emit("dot", result, operands, attributes))


def take_slice(scope: Scope) -> None:
    """A static or dynamic slice of half the first dimension."""
    variable = scope.pick_array()
    if variable is None or variable.shape.dimensions[0] < 2:
        return
    shape = variable.shape
    sizes = shape.dimensions
    half = sizes[0] // 2
    result = Shape.array(shape.element_type, (half, *sizes[1:]))
    if scope.random.random() < 0.5:
        start = scope.random.randrange(sizes[0] - half + 1)
        ranges = ((start, start + half, 1), *((0, n, 1) for n in sizes[1:]))
        made = scope.emit("slice", result, [scope.read(variable)], {"slice": ranges})
    else:
        starts = [scope.index(half), *(scope.constant(0) for _ in sizes[1:])]
        attributes = {"dynamic_slice_sizes": result.dimensions}
        made = scope.emit(
            "dynamic-slice", result, [scope.read(variable), *starts], attributes
        )
    scope.define(made)


# -- in place ----------------------------------------------------------------------


def _update_for(scope: Scope, target: Variable) -> Variable:
    """Something to write into part of `target`."""
    shape = target.shape
    sizes = shape.dimensions
    count = scope.random.choice((1, max(1, sizes[0] // 2)))
    part = Shape.array(shape.element_type, (count, *sizes[1:]))
    found = scope.pick(lambda v: v.shape == part and v is not target)
    return scope.fresh(part) if found is None else found


def update(scope: Scope) -> None:
    """A dynamic-update-slice, in place where the operand may be overwritten."""
    target = scope.pick_array()
    if target is not None:
        update_once(scope, target)


def update_once(scope: Scope, target: Variable) -> Variable | None:
    """Update a value, or a copy of it; None if nothing fits."""
    target = scope.owned(target)
    piece = _update_for(scope, target)
    if piece.storage is target.storage:
        return None
    sizes = target.shape.dimensions
    starts = [scope.index(sizes[0]), *(scope.constant(0) for _ in sizes[1:])]
    if any(s is target.instruction for s in starts):
        return None
    piece_read = scope.read(piece)
    storage = scope.consume(target)
    operands = [target.instruction, piece_read, *starts]
    made = scope.emit("dynamic-update-slice", target.shape, operands)
    return scope.record(made, storage)


def scatter(scope: Scope) -> None:
    """Add rows to some places of a vector or matrix, in place."""
    target = scope.pick_array()
    if target is None:
        return
    target = scope.owned(target)
    sizes = target.shape.dimensions
    kind = target.shape.element_type
    callee = reducer(scope, "add" if kind is S32 else "maximum", kind)
    indices = scope.fresh(Shape.array(S32, (3, 1)))
    rows = scope.fresh(Shape.array(kind, (3, *sizes[1:])))
    attributes = {
        "update_window_dims": tuple(range(1, len(sizes))),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
    }
    reads = [scope.read(indices), scope.read(rows)]
    storage = scope.consume(target)
    made = scope.emit(
        "scatter", target.shape, [target.instruction, *reads], attributes, [callee]
    )
    scope.record(made, storage)


# -- fusions ------------------------------------------------------------------------


def _fused(
    scope: Scope, operands: list[Variable], extra: int
) -> tuple[Scope, list[Variable]]:
    """The inside of a fusion: parameters, then a few elementwise operations."""
    inner = Scope(scope.shop, "fused", 0, extra)
    for number, operand in enumerate(operands):
        parameter = inner.parameter(operand.shape, number)
        inner.record(parameter, Storage(Lineage(-1, carried=True), frozen=True))
    parameters = list(inner.variables)
    for _ in range(extra):
        inner.random.choice((unary, binary, binary))(inner)
    return inner, parameters


def fusion(scope: Scope) -> None:
    """A loop fusion of one to three operands."""
    operands = _distinct(scope, scope.random.randrange(1, 4))
    if not operands:
        return
    inner, _ = _fused(scope, operands, scope.random.randrange(1, 5))
    root = inner.variables[-1]
    if root.storage.lineage.carried:
        root = define_unary(inner, root)
    callee = scope.shop.finish(inner, root.instruction, scheduled=False)
    reads = [scope.read(x) for x in operands]
    made = scope.emit("fusion", root.shape, reads, {"kind": "kLoop"}, [callee])
    scope.define(made)


def _distinct(scope: Scope, count: int) -> list[Variable]:
    chosen: dict[Instruction, Variable] = {}
    for _ in range(count):
        variable = scope.pick()
        if variable is not None:
            chosen[variable.instruction] = variable
    return list(chosen.values())


def multi_output_fusion(scope: Scope) -> None:
    """A loop fusion with a tuple of two results; perhaps only one is used."""
    first = scope.pick_array()
    second = None if first is None else scope.pick_like(first.shape)
    if first is None or second is None:
        return
    operands = [first] if second.instruction is first.instruction else [first, second]
    inner, parameters = _fused(scope, operands, 2)
    roots = [define_unary(inner, parameters[0]), define_unary(inner, parameters[-1])]
    if scope.is_shared():
        roots[1] = roots[0]
    shape = Shape.tuple_of(*(r.shape for r in roots))
    root = inner.emit("tuple", shape, [r.instruction for r in roots])
    callee = scope.shop.finish(inner, root, scheduled=False)
    reads = [scope.read(x) for x in operands]
    made = scope.emit("fusion", shape, reads, {"kind": "kLoop"}, [callee])
    born = scope.place - 1
    for number in range(2 if scope.random.random() < 0.8 else 1):
        scope.define(element(scope, made, number), born)


def element(scope: Scope, whole: Instruction, index: int) -> Instruction:
    """A get-tuple-element."""
    shape = whole.shape.children[index]
    return scope.emit("get-tuple-element", shape, [whole], {"index": index})


def update_fusion(scope: Scope) -> None:
    """A fusion that ends in a dynamic-update-slice of one operand: in place.

    What it writes is computed from another operand, or from the very elements that
    it replaces (which an in-place loop may read).
    """
    target = scope.pick_array()
    if target is None:
        return
    target = scope.owned(target)
    shape = target.shape
    sizes = shape.dimensions
    count = max(1, sizes[0] // 2)
    part = Shape.array(shape.element_type, (count, *sizes[1:]))
    other = scope.pick(lambda v: v.shape == part and v.storage is not target.storage)
    other = scope.fresh(part) if other is None else other
    start = scope.index(sizes[0])
    if start is target.instruction or not target.storage.is_owned:
        return
    inner = Scope(scope.shop, "fused_update", 0, 8)
    whole = inner.parameter(shape, 0)
    piece = inner.parameter(part, 1)
    place = inner.parameter(Shape.array(S32), 2)
    starts = [place, *(inner.constant(0) for _ in sizes[1:])]
    opcode = scope.random.choice(BINARY[shape.element_type.name])
    if scope.random.random() < 0.5:
        sliced = inner.emit(
            "dynamic-slice",
            part,
            [whole, *starts],
            {"dynamic_slice_sizes": part.dimensions},
        )
        new = inner.emit(opcode, part, [sliced, piece])
    else:
        new = inner.emit(opcode, part, [piece, piece])
    root = inner.emit("dynamic-update-slice", shape, [whole, new, *starts])
    callee = scope.shop.finish(inner, root, scheduled=False)
    reads = [scope.read(other), start]
    storage = scope.consume(target)
    made = scope.emit(
        "fusion", shape, [target.instruction, *reads], {"kind": "kLoop"}, [callee]
    )
    scope.record(made, storage)


# -- names of the same storage ----------------------------------------------------------


def copy(scope: Scope) -> None:
    """A plain copy."""
    variable = scope.pick()
    if variable is not None:
        scope.copy(variable)


def constant(scope: Scope) -> None:
    """A constant, which nothing may overwrite."""
    kind = scope.random.choice((S32, F32))
    made = scope.constant(scope.random.randrange(-5, 20), kind)
    scope.record(made, Storage(Lineage(-1), frozen=True))


def barrier(scope: Scope) -> None:
    """An optimization barrier around a tuple: new names for the same storage."""
    operands = _distinct(scope, scope.random.randrange(1, 4))
    if not operands:
        return
    reads = [scope.read(x) for x in operands]
    shape = Shape.tuple_of(*(x.shape for x in reads))
    whole = scope.emit("tuple", shape, reads)
    behind = scope.emit("opt-barrier", shape, [whole])
    for number, variable in enumerate(operands):
        scope.read(variable)
        scope.record(element(scope, behind, number), variable.storage)


def bitcast(scope: Scope) -> None:
    """The same bytes under another shape."""
    variable = scope.pick_array()
    if variable is None:
        return
    shape = variable.shape
    flat = Shape.array(shape.element_type, (shape.element_count,))
    if len(shape.dimensions) == 1 and shape.element_count % 4 == 0:
        flat = Shape.array(shape.element_type, (4, shape.element_count // 4))
    made = scope.emit("bitcast", flat, [scope.read(variable)])
    scope.record(made, variable.storage)


def dead(scope: Scope) -> None:
    """Something that nothing will read."""
    variable = scope.pick()
    if variable is not None:
        define_unary(scope, variable)
        scope.variables.pop()


# -- asynchronous ----------------------------------------------------------------------


def async_start(scope: Scope) -> None:
    """Start an elementwise operation or a slice that runs on."""
    variable = scope.pick_array()
    if variable is None or len(scope.started) >= 3:
        return
    shape = variable.shape
    inner = Scope(scope.shop, "async_wrapped", 0, 4)
    parameter = inner.parameter(shape, 0)
    if shape.dimensions[0] >= 2 and scope.random.random() < 0.5:
        half = shape.dimensions[0] // 2
        result = Shape.array(shape.element_type, (half, *shape.dimensions[1:]))
        ranges = ((half, 2 * half, 1), *((0, n, 1) for n in shape.dimensions[1:]))
        root = inner.emit("slice", result, [parameter], {"slice": ranges})
    else:
        root = inner.emit("negate", shape, [parameter])
    callee = scope.shop.finish(inner, root, scheduled=True)
    operands = Shape.tuple_of(shape)
    whole = Shape.tuple_of(operands, root.shape, Shape.array(U32))
    start = scope.emit("async-start", whole, [scope.read(variable)], called=[callee])
    variable.storage.readers += 1
    scope.started.append((start, (variable,)))


def async_done(scope: Scope) -> None:
    """Wait for one started operation."""
    if not scope.started:
        return
    place = scope.random.randrange(len(scope.started))
    start, operands = scope.started.pop(place)
    for variable in operands:
        variable.storage.readers -= 1
        scope.read(variable)
    result = start.shape.children[1]
    called = start.called_computations
    made = scope.emit("async-done", result, [start], called=called)
    while start.opcode == "async-update":
        start = start.operands[0]
    # Its result may be written from the start on.
    scope.define(made, scope.computation.instructions.index(start))


Step = Callable[[Scope], None]

STEPS: Final[dict[str, Step]] = {
    "unary": unary,
    "binary": binary,
    "rearrange": rearrange,
    "reduce": reduce,
    "dot": dot,
    "slice": take_slice,
    "update": update,
    "scatter": scatter,
    "fusion": fusion,
    "update_fusion": update_fusion,
    "multi_output_fusion": multi_output_fusion,
    "copy": copy,
    "constant": constant,
    "barrier": barrier,
    "bitcast": bitcast,
    "dead": dead,
    "async_start": async_start,
    "async_done": async_done,
}
"""Steps by the name of their weight."""
