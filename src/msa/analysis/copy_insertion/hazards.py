"""Updates in place that read the storage they overwrite.

An update in place may read the old contents only where it writes them, element by
element. A fused update that reads another part of the same buffer sees a mixture of
old and new; such storage must not be shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.hlo.opcode import is_elementwise

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction
    from msa.hlo.shape import ShapeIndex


def reads_elsewhere(
    instruction: Instruction,
    operand_number: int,
    operand_index: ShapeIndex,
    output_index: ShapeIndex,
) -> bool:
    """Whether an in-place result destroys contents that are still read.

    True when the operand of the pair is read through another operand slot, or when
    a fused update reads its target in another way than by the slice that it
    overwrites. Annotated pairs of custom calls are trusted apart from the slots.
    Linear in the fused computation.

    Args:
        instruction: what updates in place.
        operand_number, operand_index: the storage that it takes over.
        output_index: the part of its result that lives there.

    >>> import msa
    >>> module = msa.parse('''
    ... fused {
    ...   p = f32[8] parameter(0)
    ...   i = s32[] parameter(1)
    ...   s = f32[3] slice(p), slice={[0:3]}
    ...   ROOT d = f32[8] dynamic-update-slice(p, s, i)
    ... }
    ... ENTRY e {
    ...   x = f32[8] parameter(0)
    ...   i = s32[] parameter(1)
    ...   ROOT f = f32[8] fusion(x, i), kind=kLoop, calls=fused
    ... }''')
    >>> reads_elsewhere(module.entry.root, 0, (), ())
    True
    """
    operand = instruction.operands[operand_number]
    slots = instruction.operand_indices(operand)
    if instruction.opcode != "fusion":
        return len(slots) > 1
    chain = update_chain(instruction, operand_number, output_index)
    if chain is None:
        return len(slots) > 1
    parameters = instruction.fused_computation.parameters
    update = chain[0]
    for slot in slots:
        allowed = set(chain) if slot == operand_number else set()
        if not _only_overwritten(parameters[slot], operand_index, update, allowed):
            return True
    return False


def update_chain(
    fusion: Instruction, operand_number: int, output_index: ShapeIndex
) -> list[Instruction] | None:
    """From the update at a fused root back to the parameter, or None.

    The update comes first; the instructions between it and the parameter follow.
    """
    source, _ = _follow(fusion.fused_computation.root, output_index)[-1]
    if source.opcode not in ("dynamic-update-slice", "scatter") or (
        source.opcode == "scatter" and source.shape.is_tuple
    ):
        return None
    chain = [source]
    chain.extend(x for x, _ in _follow(source.operands[0], ()))
    end = chain[-1]
    if end.opcode != "parameter" or end.parameter_number != operand_number:
        return None
    return chain


def _follow(
    instruction: Instruction, index: ShapeIndex
) -> list[tuple[Instruction, ShapeIndex]]:
    """Backwards through tuples, elements and bitcasts; everything passed."""
    path = [(instruction, index)]
    while True:
        if instruction.opcode == "tuple" and index:
            instruction, index = instruction.operands[index[0]], index[1:]
        elif instruction.opcode == "get-tuple-element":
            index = (instruction.tuple_index, *index)
            instruction = instruction.operands[0]
        elif instruction.opcode == "bitcast" and not index:
            instruction = instruction.operands[0]
        else:
            return path
        path.append((instruction, index))


def _only_overwritten(
    parameter: Instruction,
    index: ShapeIndex,
    update: Instruction,
    chain: set[Instruction],
) -> bool:
    """Whether all reads of a fused parameter are the update or what it overwrites."""
    work = [(parameter, index)]
    while work:
        value, at = work.pop()
        for user in value._users:
            if user.opcode == "get-tuple-element" and at:
                if user.tuple_index == at[0]:
                    work.append((user, at[1:]))
            elif user is update:
                if user.operand_indices(value) != (0,) or user not in chain:
                    return False
            elif user.opcode == "bitcast" and user in chain:
                work.append((user, at))
            elif not _is_overwritten_slice(user, value, update):
                return False
    return True


def _is_overwritten_slice(
    user: Instruction, value: Instruction, update: Instruction
) -> bool:
    """Whether a read takes exactly the elements that the update writes."""
    if user.opcode != "dynamic-slice" or update.opcode != "dynamic-update-slice":
        return False
    if user.operands[0] is not value or value.shape != update.operands[0].shape:
        return False
    written = update.operands[1]
    if user.shape.dimensions != written.shape.dimensions:
        return False
    if not _same_starts(user.operands[1:], update.operands[2:]):
        return False
    # From the slice to the written value: element by element only.
    seen = {user}
    work = [user]
    while work:
        current = work.pop()
        if current.is_root:
            return False
        for reader in current._users:
            if reader is update:
                if reader.operand_indices(current) != (1,):
                    return False
            elif not all(
                is_elementwise(reader, i) for i in reader.operand_indices(current)
            ):
                return False
            elif reader not in seen:
                seen.add(reader)
                work.append(reader)
    return True


def _same_starts(a: tuple[Instruction, ...], b: tuple[Instruction, ...]) -> bool:
    return len(a) == len(b) and all(
        x is y
        or (
            x.opcode == y.opcode == "constant"
            and x.attributes["literal"] == y.attributes["literal"]
        )
        for x, y in zip(a, b, strict=True)
    )
