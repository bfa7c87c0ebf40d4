"""The planned module computes what the original computes.

Both modules are read the same way: through instructions that only name or move a
value (tuples, bitcasts, copies, loop state that is handed on unchanged) down to the
instruction that made it. Every instruction of the original must then be there, with
the same operation, reading the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msa.assignment.verification.findings import Findings
from msa.assignment.verification.tracing import Tracer
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex

_NAMING: Final = frozenset({"bitcast", "get-tuple-element", "tuple"})
_MOVES: Final = frozenset(
    {"async-done", "async-start", "copy", "copy-done", "copy-start", "slice"}
)
_JOINS: Final = frozenset({"ConcatBitcast", "WindowPrefetch"})
_REPLACEABLE: Final = frozenset({"copy", "dynamic-slice", "fusion", "slice"})


def check_meaning(findings: Findings, original: Module, module: Module) -> None:
    """Compare the two modules; linear but for the depth of loops."""
    _Comparison(findings, original, module).run()


class _Comparison:
    __slots__ = ("_after", "_before", "_findings", "_module", "_original")

    def __init__(self, findings: Findings, original: Module, module: Module) -> None:
        self._findings = findings
        self._original = original
        self._module = module
        self._before = Tracer(original)
        self._after = Tracer(module)

    def run(self) -> None:
        computations = {c.name: c for c in self._module.computations}
        schedule = self._original.schedule
        assert schedule is not None
        for computation in self._original.computations:
            twin = computations.get(computation.name)
            if twin is None:
                if computation in schedule and self._is_called(computation):
                    self._findings.add(
                        "same program",
                        "a computation is gone that the program runs",
                        computation.name,
                    )
            elif computation in schedule:
                self._compare(computation, twin)
            else:
                self._compare_body(computation, twin)
        if self._original.aliases != self._module.aliases:
            self._findings.add("same program", "input/output aliases differ")

    def _is_called(self, computation: Computation) -> bool:
        """Whether something calls it that is still there."""
        if computation is self._original.entry:
            return True
        kept = {x.name for c in self._module.computations for x in c.instructions}
        return any(
            computation in x.called_computations and x.name in kept
            for c in self._original.computations
            for x in c.instructions
        )

    # -- what runs step by step --------------------------------------------------

    def _compare(self, before: Computation, after: Computation) -> None:
        twins = {x.name: x for x in after.instructions}
        for x in before.instructions:
            twin = twins.get(x.name)
            if twin is None:
                self._missing(x)
            elif x.opcode not in _NAMING:
                self._compare_instruction(x, twin)
        known = {x.name for x in before.instructions}
        for y in after.instructions:
            if y.name not in known and not _is_plumbing(y):
                self._findings.add(
                    "same program", f"{y.opcode} was put in", f"{after.name}, {y.name}"
                )
        self._compare_results(before.root, after.root, f"result of {before.name}")

    def _missing(self, x: Instruction) -> None:
        """Only what nothing reads, what names, or what a copy replaces may go."""
        if x.opcode in _NAMING or x.opcode in _REPLACEABLE or not x.users:
            return
        if x.opcode == "parameter" or _is_needed(x, self._before):
            self._findings.add(
                "same program",
                f"{x.opcode} is gone that the program needs",
                f"{x.computation.name}, {x.name}",
            )

    def _compare_instruction(self, x: Instruction, y: Instruction) -> None:
        where = f"{x.computation.name}, {x.name}"
        if x.opcode != y.opcode:
            self._findings.add("same program", f"{x.opcode} became {y.opcode}", where)
            return
        if x.attributes is not y.attributes and dict(x.attributes) != dict(
            y.attributes
        ):
            self._findings.add(
                "same program", f"attributes of {x.opcode} differ", where
            )
        called = x.called_computations or y.called_computations
        if called and [c.name for c in x.called_computations] != [
            c.name for c in y.called_computations
        ]:
            self._findings.add("same program", "it calls other computations", where)
        extra = len(y.operands) - len(x.operands)
        if extra < 0 or (extra and x.opcode != "fusion"):
            self._findings.add(
                "same values",
                f"it reads {len(y.operands)} operands, not {len(x.operands)}",
                where,
            )
            return
        for number, (a, b) in enumerate(zip(x.operands, y.operands, strict=False)):
            self._compare_results(a, b, f"{where}, operand {number}")
        may_grow = x.opcode == "while" or (
            x.opcode == "parameter" and not x.computation.is_entry
        )
        if not may_grow and not x.shape.equal_ignoring_memory_space(
            y.shape, shards=True
        ):
            self._findings.add(
                "same program", f"its shape {x.shape} became {y.shape}", where
            )

    def _compare_results(self, a: Instruction, b: Instruction, where: str) -> None:
        """Every array of `a` is the same value as that of `b` at its place."""
        for index, leaf in a.shape.leaves():
            if not b.shape.has_index(index):
                self._findings.add(
                    "same values", f"element {list(index)} is missing", where
                )
                return
            other = b.shape.subshape(index)
            if not leaf.equal_ignoring_memory_space(other, shards=True):
                self._findings.add(
                    "same values", f"it reads {other} instead of {leaf}", where
                )
                continue
            old = self._before.origin(a, index)
            new = self._after.origin(b, index)
            if old != new:
                self._findings.add(
                    "same values", f"it reads {new} instead of {old}", where
                )

    # -- bodies of fusions and the like ------------------------------------------

    def _compare_body(self, before: Computation, after: Computation) -> None:
        """Lowering leaves them alone but for parameters that it adds."""
        names = [x.name for x in before.instructions]
        twins: Mapping[str, Instruction] = {x.name: x for x in after.instructions}
        for x in before.instructions:
            y = twins.get(x.name)
            if (
                y is None
                or x.opcode != y.opcode
                or x.shape != y.shape
                or [o.name for o in x.operands] != [o.name for o in y.operands]
                or (x.attributes is not y.attributes and x.attributes != y.attributes)
            ):
                self._findings.add(
                    "same program", "it differs", f"{before.name}, {x.name}"
                )
        known = set(names)
        for y in after.instructions:
            if y.name not in known and y.opcode != "parameter":
                self._findings.add(
                    "same program", "it was put in", f"{after.name}, {y.name}"
                )
        if before.root.name != after.root.name:
            self._findings.add(
                "same program", f"its root is {after.root.name}", before.name
            )


def _is_plumbing(x: Instruction) -> bool:
    return (
        x.opcode in _NAMING
        or x.opcode in _MOVES
        or x.attributes.get("custom_call_target") in _JOINS
    )


def _is_needed(x: Instruction, tracer: Tracer) -> bool:
    """Whether something with an effect, or the result, depends on an instruction.

    Who reads another element of a tuple, however deep, does not depend on this one, and
    who reads an element that a loop hands on unchanged does not depend on the loop.
    """
    # Where the value lies in what an instruction makes; () for all of it.
    start: tuple[Instruction, ShapeIndex] = (x, ())
    work, seen = [start], {start}
    while work:
        current, place = work.pop()
        if current.is_root or current.opcode in ("copy-start", "send", "outfeed"):
            return True
        for user in current.users:
            readers: list[tuple[Instruction, ShapeIndex]] = [(user, ())]
            if user.opcode == "tuple":
                readers = [(user, (i, *place)) for i in user.operand_indices(current)]
            elif user.opcode == "get-tuple-element":
                other = place and user.tuple_index != place[0]
                if other or tracer.hands_on(current, user.tuple_index):
                    readers = []
                else:
                    readers = [(user, place[1:])]
            for reader in readers:
                if reader not in seen:
                    seen.add(reader)
                    work.append(reader)
    return False
