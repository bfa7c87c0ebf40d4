"""Operations that write into an operand: results that must share its storage.

Source: `xla/hlo/analysis/alias_info.cc`, `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msa.analysis.async_chains import bound_operands, chain_start, is_unbound
from msa.analysis.dataflow.definitions import is_in_place_permute
from msa.analysis.values import index_text
from msa.errors import HloError
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex


class OperandIndex(NamedTuple):
    """A node of an operand."""

    operand_number: int
    operand_index: ShapeIndex

    def __str__(self) -> str:
        return f"{self.operand_number}{index_text(self.operand_index)}"


InPlacePair = tuple[OperandIndex, ShapeIndex]
"""A node of an operand and the node of the result that is written into it."""

Pairs = tuple[InPlacePair, ...]

PairsHook = Callable[[Instruction], Iterable[InPlacePair] | None]
"""A machine's own answer for an instruction, or None for the usual one."""

_NONE: Final[Pairs] = ()
_TOP: Final[Pairs] = ((OperandIndex(0, ()), ()),)


class InPlacePairs:
    """In-place pairs of instructions, computed once each.

    Args:
        hook: replaces the answer for the instructions that it knows.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   x = f32[8] parameter(0)
    ...   u = f32[2] parameter(1)
    ...   i = s32[] parameter(2)
    ...   ROOT d = f32[8] dynamic-update-slice(x, u, i)
    ... }''')
    >>> [(str(operand), out) for operand, out in InPlacePairs()(module.entry.root)]
    [('0{}', ())]
    """

    __slots__ = ("_annotated", "_discovered", "_hook", "_hooked")

    def __init__(self, hook: PairsHook | None = None) -> None:
        self._hook = hook
        self._hooked: dict[Instruction, Pairs | None] = {}
        self._discovered: dict[Instruction, Pairs] = {}
        self._annotated: dict[Instruction, Pairs] = {}

    def __call__(self, instruction: Instruction) -> Pairs:
        """The pairs of an instruction, empty for most.

        Raises:
            HloError: a fused operation states two operands for one result.
        """
        opcode = instruction.opcode
        if self._hook is not None:
            if instruction not in self._hooked:
                found = self._hook(instruction)
                self._hooked[instruction] = None if found is None else tuple(found)
            replaced = self._hooked[instruction]
            if replaced is not None:
                return replaced
        if opcode == "fusion":
            known = self._annotated.get(instruction)
            if known is None:
                known = (*self._discover(instruction), *_annotation(instruction))
                self._annotated[instruction] = known
            return known
        rule = _RULES.get(opcode)
        return _NONE if rule is None else rule(instruction)

    @property
    def has_hook(self) -> bool:
        """Whether any instruction may have pairs, not only the usual opcodes."""
        return self._hook is not None

    def must_alias(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
    ) -> bool:
        """Whether a node of `user` is written into a node of `operand`."""
        return any(
            output == user_index
            and pair.operand_index == operand_index
            and user.operands[pair.operand_number] is operand
            for pair, output in self(user)
        )

    # -- fusions -------------------------------------------------------------

    def _discover(self, fusion: Instruction) -> Pairs:
        """Pairs that follow from what a fusion does, nested fusions first."""
        stack = [fusion]
        while stack:
            top = stack[-1]
            if top in self._discovered:
                stack.pop()
                continue
            inner = [
                x
                for x in top.fused_computation.instructions
                if x.opcode == "fusion" and x not in self._discovered
            ]
            if inner:
                stack.extend(inner)
            else:
                stack.pop()
                self._discovered[top] = self._discover_one(top)
        return self._discovered[fusion]

    def _discover_one(self, fusion: Instruction) -> Pairs:
        pairs: list[InPlacePair] = []
        root = fusion.fused_computation.root
        for leaf, _ in fusion.shape.leaves():
            source, index = follow(root, leaf)
            target = self._written_operand(source, index)
            if target is None:
                continue
            end, end_index = follow(*target)
            if end.opcode == "fusion":
                for pair, output in self(end):
                    if output == end_index:
                        operand = end.operands[pair.operand_number]
                        end, end_index = follow(operand, pair.operand_index)
                        break
            if end.opcode == "parameter":
                pairs.append((OperandIndex(end.parameter_number, end_index), leaf))
        return tuple(pairs)

    def _written_operand(
        self, source: Instruction, index: ShapeIndex
    ) -> tuple[Instruction, ShapeIndex] | None:
        """The operand that the fused operation writes into, and where in it."""
        if source.opcode == "fusion":
            inner = self._discovered[source]
        else:
            inner = self(source)
        matching = [pair for pair, output in inner if output == index]
        if not matching:
            return None
        if len(matching) > 1:
            raise HloError(
                f"{source.name}{index_text(index)} is written into "
                f"{len(matching)} operands",
                where=source.name,
            )
        number, operand_index = matching[0]
        if number >= len(source.operands):
            return None
        return source.operands[number], operand_index


def in_place_pairs(instruction: Instruction) -> Pairs:
    """The pairs of one instruction; see `InPlacePairs` for many.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e { a = f32[8] parameter(0) u = f32[1] parameter(1) i = s32[] parameter(2)
    ...           ROOT d = f32[8] dynamic-update-slice(a, u, i) }''')
    >>> len(in_place_pairs(module.entry.root))
    1
    """
    return InPlacePairs()(instruction)


def follow_tuple_indirection(
    instruction: Instruction, index: ShapeIndex
) -> tuple[Instruction, ShapeIndex]:
    """Where an element comes from: through tuples, then get-tuple-elements."""
    while instruction.opcode == "tuple" and index:
        if index[0] >= len(instruction.operands):
            break
        instruction, index = instruction.operands[index[0]], index[1:]
    while instruction.opcode == "get-tuple-element":
        index = (instruction.tuple_index, *index)
        instruction = instruction.operands[0]
    return instruction, index


def follow(
    instruction: Instruction, index: ShapeIndex
) -> tuple[Instruction, ShapeIndex]:
    """`follow_tuple_indirection`, then through bitcasts of whole results."""
    instruction, index = follow_tuple_indirection(instruction, index)
    while not index and instruction.opcode == "bitcast":
        instruction = instruction.operands[0]
    return instruction, index


# -- rules per opcode ----------------------------------------------------------


def _annotation(instruction: Instruction) -> Pairs:
    stated = instruction.attributes.get("output_to_operand_aliasing", ())
    return tuple(
        (OperandIndex(number, index), output) for output, number, index in stated
    )


def _first(instruction: Instruction) -> Pairs:
    return _TOP


def _second(instruction: Instruction) -> Pairs:
    return ((OperandIndex(1, ()), ()),)


def _each(count: int) -> Pairs:
    if count == 1:
        return _TOP
    return tuple((OperandIndex(i, ()), (i,)) for i in range(count))


def _scatter(instruction: Instruction) -> Pairs:
    return _each(len(instruction.operands) // 2)


def _all_reduce_start(instruction: Instruction) -> Pairs:
    return _each(len(instruction.operands))


def _permute(instruction: Instruction, prefix: ShapeIndex = ()) -> Pairs:
    if not is_in_place_permute(instruction):
        return _NONE
    pairs: list[InPlacePair] = [(OperandIndex(1, ()), prefix)]
    shape = instruction.operands[1].shape
    if shape.is_tuple:
        pairs.extend(
            (OperandIndex(1, (i,)), (*prefix, i)) for i in range(len(shape.children))
        )
    return tuple(pairs)


def _permute_start(instruction: Instruction) -> Pairs:
    return _permute(instruction, (1,))


def _is_bound(shape: Shape, index: ShapeIndex) -> bool:
    """Whether a node exists and is not within a slot that is bound later."""
    for i in index:
        if is_unbound(shape) or not shape.is_tuple or i >= len(shape.children):
            return False
        shape = shape.children[i]
    return not is_unbound(shape)


def _bound_at(
    start: Instruction, instruction: Instruction, first: int, slot: int
) -> Pairs:
    """Pairs of a chain whose operand is bound at one operation.

    `first` is the number of the first operand that the operation binds, `slot` the
    operand slot in which it stands.
    """
    found: list[InPlacePair] = []
    for (logical, index), output in _annotation(start):
        number = logical - first + slot
        if not slot <= number < len(instruction.operands):
            continue
        if _is_bound(instruction.shape, output):
            found.append((OperandIndex(number, index), output))
    return tuple(found)


def _async_start(instruction: Instruction) -> Pairs:
    return _bound_at(instruction, instruction, 0, 0)


def _async_update(instruction: Instruction) -> Pairs:
    start = chain_start(instruction)
    if start is None:
        return _NONE
    before = len(bound_operands(instruction.operands[0]))
    return _bound_at(start, instruction, before, 1)


def _async_done(instruction: Instruction) -> Pairs:
    start = chain_start(instruction)
    if start is None:
        return _NONE
    return tuple(
        (OperandIndex(0, (0, logical, *index)), output[1:])
        for (logical, index), output in _annotation(start)
        if output[:1] == (1,) and instruction.shape.has_index(output[1:])
    )


_RULES: Final[dict[str, Callable[[Instruction], Pairs]]] = {
    "all-reduce-start": _all_reduce_start,
    "async-done": _async_done,
    "async-start": _async_start,
    "async-update": _async_update,
    "collective-permute": _permute,
    "collective-permute-start": _permute_start,
    "custom-call": _annotation,
    "dynamic-update-slice": _first,
    "ragged-all-to-all": _second,
    "scatter": _scatter,
    "set-dimension-size": _first,
}

IN_PLACE_OPCODES: Final[Sequence[str]] = (*_RULES, "fusion")
"""Opcodes that may have pairs."""
