"""Proof of a plan by execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msa.hlo.module import Module
from msa.runtime.evaluator.execute import execute
from msa.runtime.machine.machine import Machine
from msa.runtime.machine.memory import ALTERNATE
from msa.runtime.machine.placement import Chunks
from msa.runtime.proving.compare import require_equal, require_same_interface
from msa.runtime.proving.inputs import elided_contents, random_inputs, stand_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msa.assignment import Assignment
    from msa.target import Target

_TIMINGS: Final = ("late", "eager", "random", None)


@dataclass(frozen=True, slots=True)
class ProofRun:
    """One execution that agreed.

    Attributes:
        timing: of the copies; None if each drew its own.
        seed: of the machine.
    """

    timing: str | None
    seed: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What was executed, all of it in agreement.

    Attributes:
        module: name of the planned module.
        outputs: arrays compared per run.
        runs: executions of the planned module.
        arrays: True if arrays were computed; False if values stood for them.
    """

    module: str
    outputs: int
    runs: tuple[ProofRun, ...]
    arrays: bool = True

    def __str__(self) -> str:
        timings = ", ".join(run.timing or "mixed" for run in self.runs)
        how = "arrays" if self.arrays else "values"
        return (
            f"{self.module}: {self.outputs} outputs equal as {how} in "
            f"{len(self.runs)} runs ({timings})"
        )


def prove_plan(plan: Assignment, inputs: Any = None, seed: int = 0) -> Proof:
    """Execute the original and the planned module of an assignment and compare.

    Args:
        plan: what `msa.assign` returned.
        inputs: one value per entry parameter; random ones if None.
        seed: of inputs, contents of elided constants, and copy timings.

    Raises:
        ExecutionError: a result differs.
        SanitizerError: the planned module makes an illegal access.
        UnsupportedError: an opcode that cannot be executed.
    """
    return prove_lowered(
        plan.original,
        plan.module,
        plan.target,
        chunks=plan.chunks,
        scratch=plan.scoped_chunks,
        inputs=inputs,
        seed=seed,
        capacity=plan.problem.machine.capacity,
        alternate_space=plan.options.alternate_memory_space,
    )


def prove_lowered(
    original: Module,
    lowered: Module,
    target: Target,
    *,
    chunks: Chunks | None = None,
    scratch: Mapping[str, tuple[int, int]] | None = None,
    inputs: Sequence[Any] | None = None,
    seed: int = 0,
    timings: Sequence[str | None] = _TIMINGS,
    capacity: int | None = None,
    alternate_space: int = ALTERNATE,
) -> Proof:
    """Execute two modules, the second on the machine once per timing, and compare.

    See `prove_plan`; `chunks` and `scratch` are those of `Machine.run`, `capacity`
    replaces the target's.
    """
    require_same_interface(original, lowered)
    if capacity is not None:
        target = target.replace(alternate_memory_bytes=capacity)
    given = random_inputs(original, seed) if inputs is None else list(inputs)
    fill = elided_contents(seed)
    shape = original.entry.root.shape
    expected = execute(original, given, elided=fill, stand_in=stand_in)
    done: list[ProofRun] = []
    for number, timing in enumerate(timings):
        machine = Machine(
            target,
            seed=seed + number,
            timing=timing,
            alternate_space=alternate_space,
        )
        got = machine.run(
            lowered,
            given,
            chunks=chunks,
            scratch=scratch,
            elided=fill,
            stand_in=stand_in,
        )
        where = f"{lowered.name}, copies {timing or 'mixed'}, seed {seed + number}"
        require_equal(shape, expected, got, where)
        done.append(ProofRun(timing, seed + number))
    count = sum(1 for _, leaf in shape.leaves() if leaf.is_array)
    return Proof(lowered.name, count, tuple(done))
