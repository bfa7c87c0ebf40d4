"""Which nodes of an instruction's result are new values.

Everything else forwards values that exist already.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msa.analysis.shape_nodes import ShapeNodes, shape_nodes
from msa.hlo.instruction import Instruction
from msa.hlo.primitive import TUPLE

FORWARDING: Final = frozenset(
    {
        "add-dependency",
        "all-reduce-done",
        "conditional",
        "copy-done",
        "domain",
        "get-tuple-element",
        "opt-barrier",
        "while",
    }
)
"""Opcodes that create no value at all, whatever the settings."""

Places = tuple[int, ...]


def is_in_place_permute(instruction: Instruction) -> bool:
    """Whether a collective-permute writes into a given buffer."""
    return len(instruction.operands) == 4 and "slice_sizes" in instruction.attributes


def _tuples(nodes: ShapeNodes) -> list[int]:
    return [i for i, shape in enumerate(nodes.shapes) if shape.element_type is TUPLE]


def _at(nodes: ShapeNodes, *indices: tuple[int, ...]) -> Places:
    return tuple(nodes.number[x] for x in indices if x in nodes.number)


def _below(nodes: ShapeNodes, test: Callable[[int], bool]) -> list[int]:
    return [i for i, x in enumerate(nodes.indices) if x and test(x[0])]


def _top(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return (0,)


def _copy_start(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return _at(nodes, (), (0,), (2,))


def _all_gather_start(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return tuple(sorted({*_tuples(nodes), *_below(nodes, lambda i: i == 1)}))


def _tuple_result(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return (0,) if instruction.shape.is_tuple else ()


def _permute_start(instruction: Instruction, nodes: ShapeNodes) -> Places:
    indices: list[tuple[int, ...]] = [(), (1,)]
    indices.extend((i,) for i in range(2, len(instruction.shape.children)))
    operands = instruction.operands
    count = 0
    if is_in_place_permute(instruction):
        if operands[1].shape.is_tuple:
            count = len(operands[1].shape.children)
    elif len(operands) > 1:
        count = len(operands)
    indices.extend((1, i) for i in range(count))
    return tuple(sorted(_at(nodes, *indices)))


def _recv_done(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return _at(nodes, (), (1,))


def _send(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return _at(nodes, (), (1,), (2,))


def _async_start(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return tuple(sorted({*_tuples(nodes), *_below(nodes, lambda i: i > 1)}))


def _async_later(instruction: Instruction, nodes: ShapeNodes) -> Places:
    return tuple(_tuples(nodes))


_PARTIAL: Final[dict[str, Callable[[Instruction, ShapeNodes], Places]]] = {
    "copy": _top,
    "tuple": _top,
    "copy-start": _copy_start,
    "all-gather-start": _all_gather_start,
    "all-gather-done": _tuple_result,
    "collective-permute-done": _tuple_result,
    "collective-permute-start": _permute_start,
    "recv-done": _recv_done,
    "send": _send,
    "async-start": _async_start,
    "async-update": _async_later,
    "async-done": _async_later,
}
"""Opcodes that create values at some nodes only."""


def defined_places(instruction: Instruction, *, thread_excluded: bool) -> Places | None:
    """Places of new values in a result, or None for all of them.

    Parameters, calls and bitcasts depend on the analysis' settings and are decided
    by the caller. `thread_excluded`: the thread that runs an asynchronous operation
    is not analysed, so that its result appears at the start.
    """
    opcode = instruction.opcode
    if opcode in FORWARDING:
        return ()
    rule = _PARTIAL.get(opcode)
    if rule is None:
        return None
    nodes = shape_nodes(instruction.shape)
    places = rule(instruction, nodes)
    if thread_excluded and opcode == "async-start":
        places = tuple(sorted({*places, *_below(nodes, lambda i: i == 1)}))
    return places
