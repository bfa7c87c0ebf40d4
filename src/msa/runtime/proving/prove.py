"""Proof of a plan by execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msa.errors import ExecutionError
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.runtime.machine.memory import ALTERNATE
from msa.runtime.machine.placement import Chunks
from msa.runtime.proving.compare import require_same_interface
from msa.runtime.proving.runs import ArrayRuns, Planned, Runs, SymbolRuns
from msa.runtime.proving.work import work_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msa.assignment import Assignment
    from msa.target import Target

_TIMINGS: Final = ("late", "eager", "random", None)

ALL_ON_ARRAYS: Final = 2e8
"""Modules with at most this much work run on arrays with every copy timing."""

ONCE_ON_ARRAYS: Final = 2e9
"""With at most this much they run on arrays once, with mixed timings, and on symbols
with every timing; beyond that on symbols only."""


@dataclass(frozen=True, slots=True)
class ProofRun:
    """One execution that agreed.

    Attributes:
        timing: of the copies; None if each drew its own.
        seed: of the machine.
        arrays: True if arrays were computed, False if symbols stood for them.
    """

    timing: str | None
    seed: int
    arrays: bool = True

    def __str__(self) -> str:
        return f"{'arrays' if self.arrays else 'symbols'}/{self.timing or 'mixed'}"


@dataclass(frozen=True, slots=True)
class Proof:
    """What was executed, all of it in agreement.

    Attributes:
        module: name of the planned module.
        outputs: arrays compared per run.
        runs: executions of the planned module.
        work: of one execution, in elements (see `work_of`).

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> proof = plan.prove()
    >>> proof.outputs, len(proof.runs) > 1
    (1, True)
    """

    module: str
    outputs: int
    runs: tuple[ProofRun, ...]
    work: float

    def __str__(self) -> str:
        runs = ", ".join(map(str, self.runs))
        return f"{self.module}: {self.outputs} outputs equal in {runs}"


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

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> prove_plan(plan).outputs
    1
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
    work_limits: tuple[float, float] = (ALL_ON_ARRAYS, ONCE_ON_ARRAYS),
) -> Proof:
    """Execute two modules, the second on the machine once per timing, and compare.

    See `prove_plan`; `chunks` and `scratch` are those of `Machine.run`, `capacity`
    replaces the target's. `work_limits` decide what runs on arrays (see
    `ALL_ON_ARRAYS`, `ONCE_ON_ARRAYS`); with inputs given, arrays always run.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> prove_lowered(plan.original, plan.module, plan.target, chunks=plan.chunks).outputs
    1
    """
    if not timings:
        raise ExecutionError(
            "a proof needs at least one copy timing", hint="leave `timings` out"
        )
    expect(
        seed, int, where="prove", what="a whole number as seed", error=ExecutionError
    )
    require_same_interface(original, lowered)
    if capacity is not None:
        target = target.replace(alternate_memory_bytes=capacity)
    planned = Planned(lowered, target, chunks, scratch or {}, alternate_space)
    work = work_of(original)
    done: list[ProofRun] = []
    if work <= work_limits[1] or inputs is not None:
        some = timings if work <= work_limits[0] else timings[-1:]
        arrays = ArrayRuns(original, planned, inputs, seed)
        done += _compare(arrays, lowered.name, some, seed, arrays=True)
    if work > work_limits[0]:
        symbols = SymbolRuns(original, planned, seed)
        done += _compare(symbols, lowered.name, timings, seed, arrays=False)
    leaves = original.entry.root.shape.leaves()
    count = sum(1 for _, leaf in leaves if leaf.is_array)
    return Proof(lowered.name, count, tuple(done), work)


def _compare(
    runs: Runs, name: str, timings: Sequence[str | None], seed: int, *, arrays: bool
) -> list[ProofRun]:
    """Run on the machine once per timing and compare each time."""
    done = []
    for number, timing in enumerate(timings):
        run = ProofRun(timing, seed + number, arrays)
        runs.compare(runs.on_machine(run.seed, timing), f"{name}, {run}")
        done.append(run)
    return done
