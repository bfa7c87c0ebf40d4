"""Handing loop-invariant values into loops through one more tuple element.

Reference: `ParentAllocation::Process` and `PostProcess` in
`xla/service/memory_space_assignment/allocation.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import ParentAllocation
from msa.assignment.lowering.state import LoweringState, Place
from msa.assignment.lowering.tuples import (
    elements_of,
    give_prefix,
    keep_prefix,
    make_tuple,
)
from msa.hlo.shape import Shape


def lower_parent(state: LoweringState, allocation: ParentAllocation) -> None:
    """The loop's state gets the original as its last element; the body reads it.

    The body's result is completed by `complete_parent`, once the body's own uses are
    in place.
    """
    loop = state.steps[allocation.loop]
    producer = state.producer(state.place_of(allocation.original))
    count = len(loop.shape.children)
    wide = Shape.tuple_of(*loop.shape.children, producer.shape)
    state.edit_tuple(loop, 0, (count,), producer)
    parameters = [c.parameters[0] for c in loop.called_computations]
    for grown in (loop, *parameters):
        grown.shape = wide
    if state.options.faithful:
        give_prefix(state, loop, count)
    for grown in (loop, *parameters):
        keep_prefix(state, grown, count)
    parameter = parameters[0]
    state.places[allocation] = Place(parameter, (count,))
    state.update_uses(allocation.uses, state.element(parameter, count))


def complete_parent(state: LoweringState, allocation: ParentAllocation) -> None:
    """Pass the element on to the next iteration."""
    parameter, (number,) = state.places[allocation]
    body = parameter.computation
    passed = state.element(parameter, number)
    root = body.root
    if root.opcode == "tuple":
        root.append_operand(passed)
        root.shape = Shape.tuple_of(*root.shape.children, passed.shape)
    else:
        body.root = make_tuple(root, [*elements_of(state, root), passed])
