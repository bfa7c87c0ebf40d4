"""Why a buffer leaks, is freed twice or is used after it: one path, followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from msa.dealloc.edges import Interfaces
from msa.dealloc.flow import ValueFlow
from msa.dealloc.interpreter import Finding, Handle, HeapObject, Interpreter, Misuse
from msa.dealloc.ir import Function, Operation, Value


class Cause(StrEnum):
    """What is behind a misuse."""

    MISSED_ALIAS = "unhandled alias"
    LOOP = "control-flow loop"
    INTERFACE = "missing interface"
    CRITICAL_EDGE = "critical edge"
    TERMINATOR = "terminator-only block"
    BY_HAND = "hand-written dealloc"
    NO_DEALLOC = "no dealloc"


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """A moment in a buffer's life.

    Attributes:
        what: `alloc`, `flows into`, `use`, `dealloc`, `return`.
        name: the value by which it was reached.
        operation: kind of the operation; `block`: where.
        after: whether the buffer was freed already.
    """

    what: str
    name: str
    operation: str
    block: str
    after: bool = False


@dataclass(frozen=True, slots=True)
class LifetimeDiagnosis:
    """One misuse, explained.

    Attributes:
        misuse: what happened; `object`: to which buffer.
        decisions: outcomes of branches and trip counts on the path.
        life: of the buffer, in order.
        missed: `(from, to)`: names between which it moved unseen by the value flow,
            or None.
        cause: the likeliest; `suggestion`: what would mend it.

    >>> LifetimeDiagnosis("leak", "a", (), (), None, Cause.NO_DEALLOC, "free it").to_dict()["cause"]
    'no dealloc'
    """

    misuse: str
    object: str
    decisions: tuple[int, ...]
    life: tuple[LifeEvent, ...]
    missed: tuple[str, str] | None
    cause: Cause
    suggestion: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "cause": str(self.cause)}

    def to_text(self) -> str:
        """For a terminal."""
        path = ", ".join(map(str, self.decisions)) or "straight"
        lines = [f"{self.misuse} of {self.object} on path {path} ({self.cause})"]
        lines += [
            f"  {e.what} {e.name} [{e.operation} in {e.block}]"
            + (" after it was freed" if e.after else "")
            for e in self.life
        ]
        if self.missed:
            lines.append(f"  the value flow misses {self.missed[0]} → {self.missed[1]}")
        return "\n".join([*lines, f"  try: {self.suggestion}"])


def diagnose(
    function: Function,
    finding: Finding,
    *,
    interfaces: Interfaces | None = None,
    flow: ValueFlow | None = None,
) -> LifetimeDiagnosis:
    """Follow the object of a finding along its path.

    Args:
        function: as it was checked.
        finding: one of its misuses.
        interfaces: what is known of custom operations.
        flow: the value flow that placed the frees; worked out anew by default.

    Linear in the length of the path.

    >>> from msa.dealloc import check, parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> [finding] = check(function).findings
    >>> diagnosis = diagnose(function, finding)
    >>> diagnosis.misuse, str(diagnosis.cause), [e.what for e in diagnosis.life]
    ('leak', 'no dealloc', ['alloc', 'use'])
    """
    follower = _Follower(function, finding)
    follower.run()
    missed = follower.missed(flow or ValueFlow.run(function, interfaces))
    cause = _cause(function, finding, follower, missed, interfaces or Interfaces())
    return LifetimeDiagnosis(
        finding.kind.value,
        finding.object,
        finding.decisions,
        tuple(follower.life),
        missed,
        cause,
        _suggestion(finding, cause, follower, missed),
    )


class _Follower(Interpreter):
    """Runs a path and notes what happens to objects of one name."""

    def __init__(self, function: Function, finding: Finding) -> None:
        super().__init__(function, finding.decisions)
        self.name = finding.object
        self.life: list[LifeEvent] = []
        self.names: list[Value] = []
        self.steps: list[tuple[Value | None, Value]] = []
        self.freed_by: list[Operation] = []

    def _is_mine(self, value: Any) -> bool:
        return isinstance(value, Handle) and value.object.name == self.name

    def _note(self, what: str, value: Value, operation: str, block: str) -> None:
        handle = self.values.get(value)
        freed = isinstance(handle, Handle) and handle.object.freed
        self.life.append(LifeEvent(what, value.name, operation, block, freed))

    def _new(self, value: Value, *, stack: bool = False) -> HeapObject:
        made = super()._new(value, stack=stack)
        if value.name == self.name:
            self.life.append(
                LifeEvent("alloc", value.name, _kind(value), value.block.name)
            )
            self.names.append(value)
        return made

    def _bind(self, targets: Sequence[Value], values: Sequence[Any]) -> None:
        sources = {id(v): k for k, v in self.values.items() if self._is_mine(v)}
        super()._bind(targets, values)
        for target, value in zip(targets, values, strict=True):
            if self._is_mine(value):
                self._flowed(sources.get(id(value)), target)

    def _flowed(self, source: Value | None, target: Value) -> None:
        self.steps.append((source, target))
        self.names.append(target)
        self._note("flows into", target, "pass", target.block.name)

    def _operation(self, op: Operation) -> None:
        mine = [v for v in op.operands if self._is_mine(self.values.get(v))]
        if mine and not op.regions:
            what = "dealloc" if op.kind == "dealloc" else "use"
            if op.kind == "dealloc":
                self.freed_by.append(op)
            self._note(what, mine[0], op.kind, mine[0].block.name)
        super()._operation(op)
        if op.kind != "select" and not op.regions:
            for result in op.results:
                if self._is_mine(self.values.get(result)) and result.name != self.name:
                    self._flowed(mine[0] if mine else None, result)

    def missed(self, flow: ValueFlow) -> tuple[str, str] | None:
        """The first step of the object that the value flow does not know."""
        for source, target in self.steps:
            if source is None or target in flow.resolve(source):
                continue
            return source.name, target.name
        return None


def _kind(value: Value) -> str:
    return "argument" if value.is_argument else "alloc"


def _cause(
    function: Function,
    finding: Finding,
    follower: _Follower,
    missed: tuple[str, str] | None,
    interfaces: Interfaces,
) -> Cause:
    if missed is not None:
        return Cause.MISSED_ALIAS
    operations = list(function.walk())
    if any(op.regions and interfaces.edges(op) is None for op in operations):
        return Cause.INTERFACE
    if _has_loop(function):
        return Cause.LOOP
    if finding.kind in (Misuse.DOUBLE_FREE, Misuse.USE_AFTER_FREE):
        return Cause.BY_HAND
    if not any(op.kind == "dealloc" for op in operations):
        return Cause.NO_DEALLOC
    if _on_critical_edge(follower):
        return Cause.CRITICAL_EDGE
    last = follower.names[-1].block if follower.names else None
    if last is not None and len(last.operations) == 1:
        return Cause.TERMINATOR
    return Cause.NO_DEALLOC if not follower.freed_by else Cause.BY_HAND


def _has_loop(function: Function) -> bool:
    """Whether blocks branch back."""
    for region in function.regions():
        place = {block: i for i, block in enumerate(region.blocks)}
        for block in region.blocks:
            for successor in block.terminator.successors:
                if place.get(successor.block, len(place)) <= place[block]:
                    return True
    return False


def _on_critical_edge(follower: _Follower) -> bool:
    """Whether the object was passed by a branch into a block that others enter too."""
    for source, target in follower.steps:
        if source is None or not target.is_argument:
            continue
        block = target.block
        before = block.region.predecessors().get(block, [])
        if len(before) > 1 and any(len(op.successors) > 1 for op, _ in before):
            return True
    return False


def _suggestion(
    finding: Finding,
    cause: Cause,
    follower: _Follower,
    missed: tuple[str, str] | None,
) -> str:
    last = follower.names[-1] if follower.names else None
    where = f"^{last.block.name}" if last is not None else "its block"
    if cause is Cause.MISSED_ALIAS and missed is not None:
        return f"declare that {missed[0]} flows into {missed[1]}, or clone it there"
    if cause is Cause.LOOP:
        return "write the loop as `for` or `while`"
    if cause is Cause.INTERFACE:
        return "describe the operation's regions to the interfaces"
    if finding.kind is Misuse.DOUBLE_FREE:
        return f"remove a dealloc, or clone {finding.object} before it is shared"
    if finding.kind is Misuse.USE_AFTER_FREE:
        return f"free {finding.object} after its last use in {where}, or clone it"
    if cause is Cause.CRITICAL_EDGE:
        return f"split the edge into {where} and free {finding.object} there"
    return f"dealloc {finding.object} at the end of {where}"
