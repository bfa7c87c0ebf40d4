"""Small problems without an IR, for tests of the algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from msa.assignment.allocation import Position, Use
from msa.assignment.problem import (
    CrossProgramCandidate,
    Machine,
    Problem,
    Region,
    Value,
)

SMALL = Machine(128, 8, 100.0, 1000.0, 1000.0)


@dataclass
class Sketch:
    """Writes straight-line problems, and loops with one carried value.

    Every operation defines one value of `size` bytes; reads cost the value's bytes.
    """

    machine: Machine = SMALL
    seconds: float = 0.0
    opcodes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    region_of: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    aliases: list[tuple[int, int]] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)

    def parameter(self, name: str, size: int = 24) -> int:
        """A program input."""
        self.parameters.append(len(self.opcodes))
        return self.op(name, (), size, opcode="parameter")

    def op(
        self,
        name: str,
        operands: tuple[int, ...] = (),
        size: int = 24,
        *,
        opcode: str = "add",
        in_place: bool = False,
    ) -> int:
        """One step; `in_place` writes into the storage of operand 0."""
        step = len(self.opcodes)
        self.opcodes.append(opcode)
        self.names.append(name)
        self.operands.append(operands)
        self.region_of.append(0)
        self.sizes.append(size)
        if in_place:
            self.aliases.append((operands[0], step))
        return step

    def chain(self, name: str, count: int, start: int, size: int = 24) -> int:
        """`count` steps, each reading the one before."""
        for number in range(count):
            start = self.op(f"{name}{number}", (start,), size, opcode="negate")
        return start

    def problem(self) -> Problem:
        """The finished problem; the last step is the program's result."""
        count = len(self.opcodes)
        uses: list[list[Use]] = [[] for _ in range(count)]
        for step, operands in enumerate(self.operands):
            for number, operand in enumerate(operands):
                uses[operand].append(Use(step, number, ()))
        buffers = self._buffers(count)
        where = {m: b for b, members in enumerate(buffers) for m in members}
        ends = [max((u.step for u in uses[s]), default=s) for s in range(count)]
        ends[count - 1] = count
        for parameter in self.parameters:
            ends[parameter] = count
        lives = {s: (s, ends[s]) for s in range(count)}
        for members in buffers:
            for one, two in pairwise(members):
                lives[two] = (two, max(lives[one][1], lives[two][1]))
                lives[one] = (one, min(lives[one][1], two))
        values = [
            Value(
                id=s,
                buffer=where[s],
                size=self.sizes[s],
                positions=(Position(s, ()),),
                uses=tuple(uses[s]),
                live=lives[s],
                position_bytes=(float(self.sizes[s]),),
                use_bytes=tuple(float(self.sizes[s]) for _ in uses[s]),
                definable=s not in self.parameters,
                live_out=s == count - 1,
            )
            for s in range(count)
        ]
        return Problem(
            name="sketch",
            machine=self.machine,
            opcodes=self.opcodes,
            names=self.names,
            operands=self.operands,
            region_of=self.region_of,
            called={},
            regions=[
                Region("main", "entry", -1, 0, count, count - 1, tuple(self.parameters))
            ],
            values=values,
            buffers=buffers,
            compute_seconds=[self.seconds] * count,
            total_bytes=[
                0.0
                if self.opcodes[s] == "parameter"
                else float(sum(self.sizes[o] for o in self.operands[s]) + self.sizes[s])
                for s in range(count)
            ],
            cross_program=[
                CrossProgramCandidate(s, tuple(uses[s])) for s in self.candidates
            ],
            keys=[None] * count,
        )

    def _buffers(self, count: int) -> list[tuple[int, ...]]:
        leader = list(range(count))
        for one, two in self.aliases:
            leader[two] = leader[one]
        groups: dict[int, list[int]] = {}
        for step in range(count):
            groups.setdefault(leader[step], []).append(step)
        return [tuple(group) for group in groups.values()]
