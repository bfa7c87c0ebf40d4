"""Deep copies of modules."""

from __future__ import annotations

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.schedule import Schedule


def clone_module(module: Module) -> Module:
    """A copy that shares only immutable values with the original; linear.

    Instructions keep their order, names and ids' order; ids are dense again.
    """
    copy = Module(module.name)
    copy.aliases = module.aliases
    copy.buffer_donors = module.buffer_donors
    copy.entry_layout = module.entry_layout
    copy.replica_count = module.replica_count
    copy.num_partitions = module.num_partitions
    copy.attributes = module.attributes
    copy.stack_frames = module.stack_frames
    computations = {
        c: Computation(c.name, c.execution_thread) for c in module.computations
    }
    instructions: dict[Instruction, Instruction] = {}
    for old, new in computations.items():
        for source in old.instructions:
            twin = Instruction(
                source.name,
                source.opcode,
                source.shape,
                (),
                source.attributes,
                tuple(computations[c] for c in source.called_computations),
                (),
                source.metadata_text,
                source.backend_config,
            )
            twin.line = source.line
            instructions[source] = twin
            new.append_read(twin)
        new.sort_parameters()
    for source, twin in instructions.items():
        # Operands may come later in insertion order, so edges are a second pass.
        twin.operands = tuple(instructions[x] for x in source.operands)
        twin._users = {instructions[x]: None for x in source._users}
        if source.control_predecessors:
            twin.control_predecessors = tuple(
                instructions[x] for x in source.control_predecessors
            )
        if source._control_successors:
            twin._control_successors = {
                instructions[x]: None for x in source._control_successors
            }
    for old, new in computations.items():
        new.root = instructions[old.root]
        copy.add(new)
    copy.entry = computations[module.entry]
    if module.schedule is not None:
        copy.schedule = Schedule(
            {
                computations[c]: tuple(
                    instructions[x] for x in module.schedule.sequence(c)
                )
                for c in module.schedule
            }
        )
    return copy
