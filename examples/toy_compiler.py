"""Memory space assignment for another compiler's IR, without HLO.

The toy compiler knows straight-line programs of tiles. `to_problem` states such a
program as an `msa.assignment.Problem`; `plan` prints where each tile lives.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.assignment import Options, Problem, run_greedy
from msa.assignment.allocation import Position, Use
from msa.assignment.problem import Machine, Region, Value


@dataclass(frozen=True)
class Op:
    """One instruction of the toy compiler: it reads tiles and makes one."""

    name: str
    reads: tuple[str, ...]
    bytes: int
    seconds: float = 0.0


def to_problem(ops: list[Op], machine: Machine) -> Problem:
    """The program as a problem; the last operation makes the result."""
    step_of = {op.name: step for step, op in enumerate(ops)}
    operands = [tuple(step_of[name] for name in op.reads) for op in ops]
    uses: list[list[Use]] = [[] for _ in ops]
    for step, sources in enumerate(operands):
        for number, source in enumerate(sources):
            uses[source].append(Use(step, number))
    values = []
    for step, op in enumerate(ops):
        given = not op.reads  # inputs come in slow memory, and stay to the end
        last = max((use.step for use in uses[step]), default=step)
        values.append(
            Value(
                id=step,
                buffer=step,
                size=op.bytes,
                positions=(Position(step),),
                uses=tuple(uses[step]),
                live=(step, len(ops) if given or op is ops[-1] else last),
                position_bytes=(0.0 if given else float(op.bytes),),
                use_bytes=tuple(float(op.bytes) for _ in uses[step]),
                definable=not given,
                live_out=op is ops[-1],
            )
        )
    traffic = [
        float(bool(op.reads) * op.bytes + sum(ops[s].bytes for s in operands[step]))
        for step, op in enumerate(ops)
    ]
    inputs = tuple(step for step, op in enumerate(ops) if not op.reads)
    return Problem(
        name="toy",
        machine=machine,
        opcodes=["parameter" if not op.reads else "tile-op" for op in ops],
        names=[op.name for op in ops],
        operands=operands,
        region_of=[0] * len(ops),
        called={},
        regions=[Region("main", "entry", -1, 0, len(ops), len(ops) - 1, inputs)],
        values=values,
        buffers=[(step,) for step in range(len(ops))],
        compute_seconds=[op.seconds for op in ops],
        total_bytes=traffic,
        keys=ops,
    )


def plan(ops: list[Op], machine: Machine) -> list[str]:
    """One line per allocation in fast memory."""
    problem = to_problem(ops, machine)
    problem.check()
    result = run_greedy(problem, Options())
    return [
        f"{problem.names[a.position.step]}: {a.kind} at {a.chunk.offset}, "
        f"steps {a.start} to {a.end}"
        for a in result.allocations
        if a.chunk is not None
    ]


PROGRAM = [
    Op("weights", (), 4096),
    Op("input", (), 4096),
    Op("scaled", ("input",), 4096),
    Op("shifted", ("scaled",), 4096),
    Op("mixed", ("shifted", "scaled"), 4096),
    Op("output", ("mixed", "weights"), 4096),
]
SRAM = Machine(
    capacity=16384,
    alignment=64,
    default_bandwidth=4e9,
    alternate_read_bandwidth=16e9,
    alternate_write_bandwidth=16e9,
)

if __name__ == "__main__":
    print("\n".join(plan(PROGRAM, SRAM)))
