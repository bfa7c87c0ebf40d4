"""What the simulation of a lowered module knows of steps, beyond what decides plans.

Decisions count in single precision, as XLA's do. The simulation does not round, drops
what lowering removes because nothing reads it, and lets calls and branches take what
their parts take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msa.hlo.shape import Shape

if TYPE_CHECKING:
    from msa.analysis.costs import InstructionCosts
    from msa.hlo.instruction import Instruction
    from msa.target import Target

#: Bytes that a copy's two halves are said to access per byte that it moves.
COPY_ACCESSES = 4.0


@dataclass(frozen=True, slots=True)
class Modelled:
    """Costs of steps as they are simulated.

    Attributes:
        flop_seconds, transcendental_seconds: of arithmetic, per step.
        accessed: bytes read and written, per step; of what runs regions, all of theirs.
        removable: steps that lowering removes if nothing reads them.
        forwarded: elements of tuples that are made here → the steps that readers read
            instead.
        copy_bytes: what the pair of a copy accesses besides four times its bytes.
    """

    flop_seconds: Sequence[float]
    transcendental_seconds: Sequence[float]
    accessed: Sequence[float]
    removable: frozenset[int] = frozenset()
    forwarded: Mapping[int, int] = field(default_factory=dict)
    copy_bytes: float = 0.0

    def compute_seconds(self) -> list[float]:
        """Seconds of arithmetic, per step."""
        return [
            max(0.0, a, b)
            for a, b in zip(self.flop_seconds, self.transcendental_seconds, strict=True)
        ]


def modelled(
    steps: Sequence[Instruction], costs: InstructionCosts, target: Target
) -> Modelled:
    """The costs of a flattened schedule as `msa.simulate` counts them. Linear."""
    from msa.assignment.lowering.simplify import forwarded_tuples, is_removable

    time = {x: step for step, x in enumerate(steps)}
    rows = [costs.properties(x) for x in steps]
    computations = dict.fromkeys(x.computation for x in steps)
    forwarded = {
        time[x]: time[y]
        for computation in computations
        for x, y in forwarded_tuples(computation).items()
        if x in time and y in time
    }
    word = Shape.array("u32", ())
    return Modelled(
        [p.flops / target.flops_per_second for p in rows],
        [p.transcendentals / target.transcendentals_per_second for p in rows],
        [p.bytes_accessed for p in rows],
        frozenset(step for step, x in enumerate(steps) if is_removable(x)),
        forwarded,
        float(
            costs.size(word)
            + costs.options.shape_size(Shape.tuple_of(word, word, word))
        ),
    )
