"""Asynchronous operations: `call-start(…)` and its like stand for wrapped computations.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES, VARIADIC, AttributeSpec, OpcodeInfo
from msa.hlo.parser.instruction import add_to_scope, check_operand_count, read_operands
from msa.hlo.parser.state import ReaderState, Scope, Task
from msa.hlo.parser.tail import Tail, read_tail
from msa.hlo.shape import Shape

_NATIVE: Final = frozenset(
    {"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"}
)
_PHASES: Final = ("start", "update", "done")
_START_ATTRIBUTES: Final = ("async_execution_thread", "output_to_operand_aliasing")
# Said once in text, true of the start and of the operation that it wraps.
_SHARED_ATTRIBUTES: Final = ("frontend_attributes", "statistics", "origin")
_UNBOUND: Final = Shape.tuple_of()


def split_sugar(opcode: str) -> tuple[str, str] | None:
    """`slice-start` as (`slice`, `start`); None when it is not sugar.

    >>> split_sugar("slice-start"), split_sugar("copy-update")
    (('slice', 'start'), None)
    """
    base, dash, phase = opcode.rpartition("-")
    if not dash or phase not in _PHASES:
        return None
    if base == "async":
        return "", phase
    if base not in OPCODES or base in _NATIVE:
        return None
    return base, phase


def read_async(
    state: ReaderState,
    scope: Scope,
    name: str,
    at: int,
    shape: Shape | None,
    opcode: str,
) -> Task:
    """Read an async instruction from its operands on."""
    split = split_sugar(opcode)
    assert split is not None  # the caller asked
    base, phase = split
    cursor = state.cursor
    if shape is None:
        cursor.fail(f"cannot infer shape for opcode: async-{phase}", at=at)
    operands: tuple[Instruction, ...] = yield read_operands(state, scope)
    if phase != "done":
        _check_shape(state, shape, at)
    if phase == "start":
        info = _start_info(base) if base else OPCODES["async-start"]
        tail: Tail = yield read_tail(state, scope, info)
        instruction = _make_start(state, name, base, shape, operands, tail, at)
    else:
        info = OPCODES[f"async-{phase}"]
        tail = yield read_tail(state, scope, info)
        instruction = _make_later(state, name, base, phase, shape, operands, tail, at)
    add_to_scope(state, scope, instruction, at)
    return instruction


def _check_shape(state: ReaderState, shape: Shape, at: int) -> None:
    if shape.is_tuple and len(shape.children) >= 2 and shape.children[0].is_tuple:
        return
    state.cursor.fail(
        "AsyncStart and AsyncUpdate expect the op shape to be in the form of "
        f"((async-operands), async-outputs, state), got {shape}",
        at=at,
        expected="((operand shapes), result shape, context shapes)",
    )


@lru_cache(maxsize=256)
def _start_info(base: str) -> OpcodeInfo:
    """The row of `base` with the attributes of a start added."""
    info = OPCODES[base]
    extra = {
        "async_execution_thread": AttributeSpec("async_execution_thread", "string"),
        "output_to_operand_aliasing": AttributeSpec(
            "output_to_operand_aliasing", "aliasing"
        ),
    }
    return OpcodeInfo(
        f"{base}-start",
        info.arity,
        MappingProxyType({**extra, **info.attributes}),
        info.called,
        {
            "async_execution_thread": "main",
            "output_to_operand_aliasing": (),
            **info.defaults,
        },
        info.always_printed,
        True,
    )


def _make_start(
    state: ReaderState,
    name: str,
    base: str,
    shape: Shape,
    operands: tuple[Instruction, ...],
    tail: Tail,
    at: int,
) -> Instruction:
    attributes: Mapping[str, Any] = tail.attributes
    if base:
        attributes, inner = _split_attributes(base, tail.attributes)
        wrapped = _wrap(state, base, shape, inner, tail, at)
    else:
        (wrapped,) = tail.called["calls"]
    wrapped.execution_thread = attributes.get("async_execution_thread", "main")
    if wrapped in state.async_starts:
        state.cursor.fail(
            f"computation {wrapped.name} is called by more than one async op", at=at
        )
    start = Instruction(
        name,
        "async-start",
        shape,
        operands,
        attributes,
        (wrapped,),
        tail.predecessors,
        tail.metadata,
        tail.backend_config,
    )
    state.async_starts[wrapped] = start
    return start


def _split_attributes(
    base: str, attributes: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What the start keeps, and what the wrapped operation gets."""
    own = OPCODES[base].attributes
    outer, inner = {}, {}
    for name, value in attributes.items():
        if name in own:
            inner[name] = value
        elif name in _SHARED_ATTRIBUTES:
            outer[name] = inner[name] = value
        elif name in _START_ATTRIBUTES or name in ("sharding", "parameter_replication"):
            outer[name] = value
        else:
            inner[name] = value
    return MappingProxyType(outer), MappingProxyType(inner)


def _wrap(
    state: ReaderState,
    base: str,
    shape: Shape,
    attributes: Mapping[str, Any],
    tail: Tail,
    at: int,
) -> Computation:
    """A computation of parameters and one operation, as the text describes it."""
    info = OPCODES[base]
    called = tail.callees(info)
    stated = list(shape.children[0].children)
    wanted = 0 if info.arity == VARIADIC else info.arity
    if base in ("call", "fusion") and called:
        expected = [p.shape for p in called[0].parameters]
        stated += expected[len(stated) :]
    stated += [_UNBOUND] * (wanted - len(stated))
    wrapped = Computation(state.unique_computation_name("async_wrapped"))
    parameters = []
    for number, parameter_shape in enumerate(stated):
        parameter = Instruction(
            f"async_param.{number}" if number else "async_param",
            "parameter",
            parameter_shape,
            (),
            MappingProxyType({"parameter_number": number}),
        )
        parameter.line = state.line_at(at)
        parameters.append(parameter)
        wrapped.append_read(parameter)
    check_operand_count(state, info, len(parameters), at)
    root = Instruction(
        "async_op",
        base,
        shape.children[1],
        tuple(parameters),
        attributes,
        called,
        (),
        tail.metadata,
        tail.backend_config,
    )
    root.line = state.line_at(at)
    wrapped.append_read(root)
    wrapped.root = root
    state.finish(wrapped)
    return wrapped


def _make_later(
    state: ReaderState,
    name: str,
    base: str,
    phase: str,
    shape: Shape,
    operands: tuple[Instruction, ...],
    tail: Tail,
    at: int,
) -> Instruction:
    cursor = state.cursor
    if not operands or operands[0].opcode not in ("async-start", "async-update"):
        cursor.fail(
            "AsyncUpdate and AsyncDone expect a single async op as their operand",
            at=at,
            expected="an async-start or async-update",
        )
    if phase == "done" and len(operands) != 1:
        cursor.fail(f"async-done expects 1 operands, but has {len(operands)}", at=at)
    wrapped = operands[0].called_computations[0]
    if base and wrapped.root.opcode != base:
        cursor.fail(
            f"Expect async wrapped opcode to be {wrapped.root.opcode}, but got {base}",
            at=at,
            expected=wrapped.root.opcode,
        )
    start = state.async_starts[wrapped]
    thread = start.attributes.get("async_execution_thread", "main")
    attributes = dict(tail.attributes)
    if tail.called and tail.called["calls"] != (wrapped,):
        cursor.fail(
            "Expect async wrapped computation to be the one of the start, "
            f"{wrapped.name}",
            at=at,
        )
    if attributes.pop("async_execution_thread", thread) != thread:
        cursor.fail(f"Expect async_execution_thread to be {thread}", at=at)
    if wrapped.root.name == "async_op":
        _bind(wrapped, operands, phase, shape)
    return Instruction(
        name,
        f"async-{phase}",
        shape,
        operands,
        MappingProxyType(attributes),
        (wrapped,),
        tail.predecessors,
        tail.metadata,
        tail.backend_config,
    )


def _bind(
    wrapped: Computation, operands: tuple[Instruction, ...], phase: str, shape: Shape
) -> None:
    """Give unbound parameters and the result the shapes that later phases state."""
    root = wrapped.root
    if phase == "done":
        if root.shape is _UNBOUND or root.shape == _UNBOUND:
            root.shape = shape
        return
    stated = shape.children[0].children
    parameters = wrapped.parameters
    for number, parameter_shape in enumerate(stated):
        if number < len(parameters):
            if parameters[number].shape == _UNBOUND or len(operands) > 1:
                parameters[number].shape = parameter_shape
            continue
        parameter = Instruction(
            f"async_param.{number}" if number else "async_param",
            "parameter",
            parameter_shape,
            (),
            MappingProxyType({"parameter_number": number}),
        )
        wrapped.instructions.remove(root)
        wrapped.append_read(parameter)
        parameter.id = wrapped.module.take_id()
        wrapped.instructions.append(root)
        root.append_operand(parameter)
    if root.shape == _UNBOUND:
        root.shape = shape.children[1]
