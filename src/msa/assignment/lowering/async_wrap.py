"""Turning an instruction into an asynchronous pair that wraps it.

Reference: `HloComputation::CreateAsyncInstructions` in
`xla/hlo/ir/hlo_computation.cc`.
"""

from __future__ import annotations

from msa.assignment.lowering.state import create
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.naming import NameUniquer
from msa.hlo.shape import Shape

_STATE = Shape.array("s32", ())


def wrap_asynchronously(
    instruction: Instruction,
    *,
    context: Shape = _STATE,
    names: NameUniquer | None = None,
) -> tuple[Instruction, Instruction]:
    """An `async-start`, `async-done` pair that does what `instruction` does.

    The instruction itself is left alone. The wrapped computation gets a schedule.

    Args:
        instruction: in a computation of a module.
        context: shape of the third element of the start's result.
        names: those of the module's computations, when many are made.
    """
    outer = instruction.computation
    names = names or NameUniquer(c.name for c in outer.module.computations)
    wrapped = _wrapped_computation(outer.module, instruction, names)
    operands = Shape.tuple_of(*(x.shape for x in instruction.operands))
    start = create(
        outer,
        "async-start",
        Shape.tuple_of(operands, instruction.shape, context),
        instruction.operands,
    )
    start.called_computations = (wrapped,)
    start.metadata_text = instruction.metadata_text
    start.backend_config = instruction.backend_config
    done = create(outer, "async-done", instruction.shape, (start,))
    done.called_computations = (wrapped,)
    done.metadata_text = instruction.metadata_text
    return start, done


def _wrapped_computation(
    module: Module, instruction: Instruction, names: NameUniquer
) -> Computation:
    wrapped = Computation(names.unique("async_wrapped"))
    module.add(wrapped)
    parameters = [
        wrapped.create(
            f"param_{number}",
            "parameter",
            operand.shape,
            (),
            {"parameter_number": number},
        )
        for number, operand in enumerate(instruction.operands)
    ]
    root = wrapped.create(
        instruction.name,
        instruction.opcode,
        instruction.shape,
        parameters,
        instruction.attributes,
        instruction.called_computations,
        instruction.metadata_text,
    )
    root.backend_config = instruction.backend_config
    wrapped.root = root
    if module.schedule is not None:
        module.schedule.set_sequence(wrapped, (*parameters, root))
    return wrapped
