"""Giving a fused update a target of its own.

A copy of the operand does not help a fusion that updates a parameter in place and
reads the same parameter elsewhere: the reads would follow to the copy. The other
reads get a parameter of their own, which keeps reading the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.copy_insertion.hazards import reads_elsewhere, update_chain
from msa.analysis.in_place import in_place_pairs
from msa.hlo.instruction import Instruction

if TYPE_CHECKING:
    from msa.hlo.module import Module


def split_fused_target(fusion: Instruction, operand: int) -> bool:
    """Move reads besides the update to a new operand; True if there were any.

    Changes the fusion, and its body for all fusions that share it only when the body
    is its own; a shared body is cloned first.
    """
    pairs = [p for p in in_place_pairs(fusion) if p[0][0] == operand]
    for (_, index), output in pairs:
        if index or len(fusion.operand_indices(fusion.operands[operand])) > 1:
            continue
        if not reads_elsewhere(fusion, operand, index, output):
            continue
        chain = update_chain(fusion, operand, output)
        if chain is None:
            continue
        _own_body(fusion)
        chain = update_chain(fusion, operand, output)
        assert chain is not None
        _split(fusion, operand, chain)
        return True
    return False


def _own_body(fusion: Instruction) -> None:
    from msa.analysis.copy_insertion.flatten_calls import clone_computation

    body = fusion.fused_computation
    module: Module = body.module
    callers = sum(
        body in x.called_computations
        for c in module.computations
        for x in c.instructions
        if x.called_computations
    )
    if callers > 1:
        names = {c.name for c in module.computations}
        number = 1
        while f"{body.name}.clone.{number}" in names:
            number += 1
        clone = clone_computation(module, body, f"{body.name}.clone.{number}")
        module.computations.remove(clone)
        module.computations.insert(module.computations.index(body), clone)
        fusion.called_computations = (clone,)


def _split(fusion: Instruction, operand: int, chain: list[Instruction]) -> None:
    """The chain keeps the parameter; everything else reads a twin of it."""
    body = fusion.fused_computation
    update = chain[0]
    target = body.parameters[operand]
    twin = Instruction(
        body.module.unique_instruction_name(target.name),
        "parameter",
        target.shape,
        (),
        {"parameter_number": len(body.parameters)},
        metadata_text=target.metadata_text,
    )
    body.add(twin)
    # The twin must precede its readers where the order of insertion is printed.
    body.instructions.insert(0, body.instructions.pop())
    twins = {target: twin}
    links = set(chain)
    for link in reversed(chain):
        if link is update or link is target:
            continue
        source = link.operands[0]
        copy = Instruction(
            body.module.unique_instruction_name(link.name),
            link.opcode,
            link.shape,
            (twins[source],),
            link.attributes,
            metadata_text=link.metadata_text,
        )
        body.add(copy)
        body.instructions.insert(
            body.instructions.index(link) + 1, body.instructions.pop()
        )
        twins[link] = copy
    for link, copy in twins.items():
        for user in link.users:
            slots = user.operand_indices(link)
            for slot in slots:
                on_chain = user in links and (user is not update or slot == 0)
                if not on_chain and user is not copy:
                    user.replace_operand(slot, copy)
    fusion.append_operand(fusion.operands[operand])
