"""Value flow: through which names a buffer may be reached.

Source of the idea: `xla/mlir_hlo/deallocation/transforms/buffer_deallocation.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msa.dealloc.edges import Interfaces
from msa.dealloc.ir import VIEWS, Function, Operation, Value

UnknownOps = Literal["alias", "fresh"]


class ValueFlow:
    """Directed map from a value to those that it may flow into.

    Linear to build.
    """

    __slots__ = ("_targets",)

    def __init__(self) -> None:
        self._targets: dict[Value, dict[Value, None]] = {}

    @staticmethod
    def run(
        function: Function,
        interfaces: Interfaces | None = None,
        unknown_ops: UnknownOps = "alias",
    ) -> ValueFlow:
        """Flow of a function; unknown operations alias unless told to be fresh."""
        flow = ValueFlow()
        known = interfaces or Interfaces()
        for operation in function.walk():
            flow._operation(operation, known, unknown_ops)
            for successor in operation.successors:
                for value, argument in zip(
                    successor.arguments, successor.block.arguments, strict=True
                ):
                    flow._add(value, argument)
        return flow

    def _operation(
        self, operation: Operation, interfaces: Interfaces, unknown_ops: UnknownOps
    ) -> None:
        kind = operation.kind
        if kind in VIEWS:
            self._add(operation.operands[0], operation.results[0])
        elif kind == "select":
            self._add(operation.operands[1], operation.results[0])
            self._add(operation.operands[2], operation.results[0])
        elif kind == "call":
            for result, argument in operation.attributes.get("aliases", {}).items():
                self._add(operation.operands[argument], operation.results[result])
        elif operation.regions:
            for edge in interfaces.edges(operation) or ():
                for number, target in enumerate(edge.targets):
                    self._add(edge.carrier.operands[edge.first + number], target)
        elif kind not in ("alloc", "alloca", "clone") and unknown_ops == "alias":
            for operand in operation.operands:
                for result in operation.results:
                    self._add(operand, result)

    def _add(self, source: Value, target: Value) -> None:
        if source.is_buffer and target.is_buffer and source is not target:
            self._targets.setdefault(source, {})[target] = None

    def targets(self, value: Value) -> Iterable[Value]:
        """Values that one flows into directly, in order."""
        return self._targets.get(value, ())

    def resolve(self, value: Value) -> list[Value]:
        """The value and everything that it may flow into."""
        found = {value: None}
        work = [value]
        while work:
            for target in self._targets.get(work.pop(), ()):
                if target not in found:
                    found[target] = None
                    work.append(target)
        return list(found)

    def remove(self, values: Iterable[Value]) -> None:
        """Nothing flows into these any more."""
        gone = set(values)
        for source, targets in self._targets.items():
            if not gone.isdisjoint(targets):
                self._targets[source] = {t: None for t in targets if t not in gone}

    def sources(self) -> dict[Value, list[Value]]:
        """The map reversed."""
        reverse: dict[Value, list[Value]] = {}
        for source, targets in self._targets.items():
            for target in targets:
                reverse.setdefault(target, []).append(source)
        return reverse
