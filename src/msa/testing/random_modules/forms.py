"""Less usual steps: chains of updates, stated aliases, asynchronous spans, host memory."""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.primitive import F32, PRED, PRIMITIVE_TYPES, S32, U32
from msa.hlo.shape import Shape
from msa.testing.random_modules.scope import Scope
from msa.testing.random_modules.steps import (
    BINARY,
    Step,
    binary,
    element,
    unary,
    update_once,
)
from msa.testing.random_modules.values import Lineage, Storage, Variable

_KINDS: Final = (S32, F32, PRIMITIVE_TYPES["s8"], PRIMITIVE_TYPES["bf16"])
_HOST_SPACE: Final = 5


def convert(scope: Scope) -> None:
    """The same numbers in another type."""
    variable = scope.pick_array()
    if variable is not None:
        kind = scope.random.choice(_KINDS)
        shape = Shape.array(kind, variable.shape.dimensions)
        scope.define(scope.emit("convert", shape, [scope.read(variable)]))


def update_chain(scope: Scope) -> None:
    """Several dynamic-update-slices of one buffer, one after the other."""
    target = scope.pick_array()
    if target is None:
        return
    for _ in range(scope.random.randrange(2, 5)):
        updated = update_once(scope, target)
        if updated is None:
            return
        target = updated


def double_update(scope: Scope) -> None:
    """A fusion that updates one or two operands in place and gives the update too."""
    first = scope.pick_array()
    if first is None:
        return
    first = scope.owned(first)
    shape = first.shape
    second = scope.pick_like(shape)
    targets = [first]
    if second is not None and scope.random.random() < 0.6:
        second = scope.owned(second)
        if second.storage is not first.storage:
            targets.append(second)
    sizes = shape.dimensions
    part = Shape.array(shape.element_type, (max(1, sizes[0] // 2), *sizes[1:]))
    piece = scope.pick(
        lambda v: v.shape == part and all(v.storage is not t.storage for t in targets)
    )
    piece = scope.fresh(part) if piece is None else piece
    start = scope.index(sizes[0])
    if any(start is t.instruction or not t.storage.is_owned for t in targets):
        return
    inner = Scope(scope.shop, "fused_updates", 0, 12)
    wholes = [inner.parameter(shape, i) for i in range(len(targets))]
    given = inner.parameter(part, len(targets))
    place = inner.parameter(Shape.array(S32), len(targets) + 1)
    starts = [place, *(inner.constant(0) for _ in sizes[1:])]
    opcode = scope.random.choice(BINARY[shape.element_type.name])
    new = inner.emit(opcode, part, [given, given])
    roots = [
        inner.emit("dynamic-update-slice", shape, [whole, new, *starts])
        for whole in wholes
    ]
    roots.append(new)
    result = Shape.tuple_of(*(r.shape for r in roots))
    callee = scope.shop.finish(
        inner, inner.emit("tuple", result, roots), scheduled=False
    )
    reads = [scope.read(piece), start]
    storages = [scope.consume(t) for t in targets]
    operands = [*(t.instruction for t in targets), *reads]
    made = scope.emit("fusion", result, operands, {"kind": "kLoop"}, [callee])
    born = scope.place - 1
    for number, storage in enumerate(storages):
        scope.record(element(scope, made, number), storage)
    if scope.random.random() < 0.8:
        scope.define(element(scope, made, len(storages)), born)


def stated_alias(scope: Scope) -> None:
    """An elementwise fusion that says that its result lives in an operand."""
    target = scope.pick_array()
    if target is None:
        return
    target = scope.owned(target)
    shape = target.shape
    other = scope.pick(lambda v: v.shape == shape and v.storage is not target.storage)
    other = scope.fresh(shape) if other is None else other
    inner = Scope(scope.shop, "fused_in_place", 0, 4)
    a, b = inner.parameter(shape, 0), inner.parameter(shape, 1)
    opcode = scope.random.choice(BINARY[shape.element_type.name])
    root = inner.emit(opcode, shape, [a, b])
    callee = scope.shop.finish(inner, root, scheduled=False)
    reads = [scope.read(other)]
    storage = scope.consume(target)
    attributes = {"kind": "kLoop", "output_to_operand_aliasing": (((), 0, ()),)}
    operands = [target.instruction, *reads]
    made = scope.emit("fusion", shape, operands, attributes, [callee])
    scope.record(made, storage)


def offload(scope: Scope) -> None:
    """A copy to the host's memory and, some steps later, one back."""
    variable = scope.pick_array()
    if variable is None:
        return
    shape = variable.shape
    away = shape.with_memory_space(_HOST_SPACE)
    host = scope.emit("copy", away, [scope.read(variable)])
    for _ in range(scope.random.randrange(3)):
        scope.random.choice((unary, binary))(scope)
    scope.define(scope.emit("copy", shape, [host]))


def async_span(scope: Scope) -> None:
    """Start several operations that run on together, perhaps with an update between."""
    first = scope.pick_array()
    second = None if first is None else scope.pick_like(first.shape)
    if first is None or second is None or len(scope.started) >= 3:
        return
    operands: tuple[Variable, ...] = (first, second)
    if second.instruction is first.instruction:
        operands = (first,)
    inner = Scope(scope.shop, "async_span", 0, 6)
    for number, operand in enumerate(operands):
        parameter = inner.parameter(operand.shape, number)
        inner.record(parameter, Storage(Lineage(-1, carried=True), frozen=True))
    for _ in range(scope.random.randrange(1, 4)):
        scope.random.choice((unary, binary, binary))(inner)
    root = inner.variables[-1]
    callee = scope.shop.finish(inner, root.instruction, scheduled=True)
    bound = Shape.tuple_of(*(x.shape for x in operands))
    whole = Shape.tuple_of(bound, root.shape, Shape.array(U32))
    reads = [scope.read(x) for x in operands]
    handle = scope.emit("async-start", whole, reads, called=[callee])
    for operand in operands:
        operand.storage.readers += 1
    if scope.random.random() < 0.3:
        unary(scope)
        handle = scope.emit("async-update", whole, [handle], called=[callee])
    scope.started.append((handle, operands))


def scalar_loop(scope: Scope) -> None:
    """A loop whose whole state is a counter."""
    first = scope.random.randrange(4)
    limit = scope.random.randrange(4)
    counter = Shape.array(S32)
    inner = Scope(scope.shop, "counting", scope.depth + 1, 0)
    body_root = inner.emit(
        "add", counter, [inner.parameter(counter, 0), inner.constant(1)]
    )
    body = scope.shop.finish(inner, body_root, scheduled=True)
    inner = Scope(scope.shop, "counted", scope.depth + 1, 0)
    operands: list[Instruction] = [inner.parameter(counter, 0), inner.constant(limit)]
    root = inner.emit("compare", Shape.array(PRED), operands, {"direction": "LT"})
    condition = scope.shop.finish(inner, root, scheduled=True)
    start = scope.emit("copy", counter, [scope.constant(first)])
    config = f'{{"known_trip_count":{{"n":"{max(0, limit - first)}"}}}}'
    made = scope.emit(
        "while", counter, [start], NO_ATTRIBUTES, [body, condition], config
    )
    scope.define(made)


FORMS: Final[dict[str, Step]] = {
    "convert": convert,
    "update_chain": update_chain,
    "double_update": double_update,
    "stated_alias": stated_alias,
    "offload": offload,
    "async_span": async_span,
    "scalar_loop": scalar_loop,
}
"""Steps by the name of their weight."""
