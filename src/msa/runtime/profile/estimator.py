"""Costs and latencies of instructions: measured where known, else estimated.

Source: `xla/service/profile_guided_latency_estimator.{h,cc}`. There a latency is
multiplied by the cycles per microsecond both when it is loaded and when it is looked
up; here once. With one cycle per microsecond both are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.runtime.profile.profile import Profile
from msa.runtime.status import FailedPrecondition, InvalidArgument

_LOG = logging.getLogger("msa.runtime.profile")
_LOW: Final = 1.0
_P2P: Final = frozenset({"send", "send-done", "recv", "recv-done"})
_GENERIC: Final = frozenset({"async-start", "async-update", "async-done"})
_COLLECTIVES: Final = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
_ASYNC_COLLECTIVES: Final = _P2P | frozenset(
    f"{name}-{end}" for name in _COLLECTIVES for end in ("start", "done")
)
_FREE: Final = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "opt-barrier",
        "iota",
        "partition-id",
        "replica-id",
    }
)


class Estimator(Protocol):
    """Costs in cycles.

    >>> estimator: Estimator = ConstantEstimator()
    """

    def node_cost(self, instruction: Instruction) -> float:
        """Cycles of an instruction."""
        ...

    def latency(self, source: Instruction, target: Instruction) -> float:
        """Cycles that must pass between two instructions."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantEstimator:
    """The same cost and latency for everything.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> ConstantEstimator(cost=2.0).node_cost(module.entry.root)
    2.0
    """

    cost: float = 1.0
    between: float = 1.0

    def node_cost(self, instruction: Instruction) -> float:
        """The constant."""
        return self.cost

    def latency(self, source: Instruction, target: Instruction) -> float:
        """The constant."""
        return self.between


@dataclass(slots=True)
class Aggregator:
    """Counts what the profile knew, and names what it did not.

    >>> Aggregator().missing
    set()
    """

    found: int = 0
    missing: set[str] = field(default_factory=set)


class ProfileGuidedEstimator:
    """A profile in front of another estimator.

    Args:
        base: asked where the profile knows nothing.
        profile: measured costs, by name.
        cycles_per_us: scale of the result.
        aggregator: gathers statistics; needed by `check_accuracy`.

    >>> import msa
    >>> module = msa.parse("ENTRY e { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }")
    >>> estimator = ProfileGuidedEstimator(ConstantEstimator(7.0), Profile({"n": 120.0}))
    >>> [estimator.node_cost(x) for x in module.entry.instructions]
    [7.0, 120.0]
    """

    def __init__(
        self,
        base: Estimator,
        profile: Profile,
        *,
        cycles_per_us: float = 1.0,
        aggregator: Aggregator | None = None,
    ) -> None:
        self.base = base
        self.profile = profile
        self.cycles_per_us = cycles_per_us
        self.aggregator = aggregator

    def node_cost(self, instruction: Instruction) -> float:
        """Cycles: 1 for ends of collectives, else measured, else estimated."""
        if is_async_collective(instruction):
            return _LOW
        cost = self._cost(instruction)
        self._note(instruction, cost is not None)
        if cost is None:
            return self.base.node_cost(instruction)
        return cost * self.cycles_per_us

    def latency(self, source: Instruction, target: Instruction) -> float:
        """Cycles between two instructions.

        A measured latency; else, for the start and end of an asynchronous operation
        or of a transfer, the measured cost of the start; else an estimate. Transfers
        of a module without a schedule take 1.
        """
        if not _is_scheduled(source) and {source.opcode, target.opcode} & _P2P:
            return _LOW
        for first in _names(source):
            for second in _names(target):
                known = self.profile.latencies.get((first, second))
                if known is not None:
                    return known * self.cycles_per_us
        cost = self._cost(source)
        if cost is not None and is_pair(source, target):
            return cost * self.cycles_per_us
        return self.base.latency(source, target)

    def check_accuracy(self, module: Module, *, strict: bool = False) -> Aggregator:
        """How much of the entry and the loop bodies the profile knows.

        Raises:
            FailedPrecondition: there is no aggregator.
            InvalidArgument: strict, and something is missing.
        """
        if self.aggregator is None:
            raise FailedPrecondition(
                "the estimator gathers no statistics",
                hint="ProfileGuidedEstimator(…, aggregator=Aggregator())",
            )
        for computation in _judged(module):
            for x in computation.instructions:
                if x.opcode not in _FREE and not is_async_collective(x):
                    self._note(x, self._cost(x) is not None)
        missing = sorted(self.aggregator.missing)
        if missing and strict:
            raise InvalidArgument(
                f"the profile lacks {len(missing)} instructions: "
                f"{', '.join(missing[:5])}",
                hint="discard the profile, or record it for this module",
            )
        for name in missing:
            _LOG.warning("the profile lacks %s", name)
        return self.aggregator

    def _cost(self, instruction: Instruction) -> float | None:
        for name in _names(instruction):
            cost = self.profile.costs.get(name)
            if cost is not None:
                return cost
        return None

    def _note(self, instruction: Instruction, found: bool) -> None:
        if self.aggregator is None:
            return
        if found:
            self.aggregator.found += 1
        else:
            self.aggregator.missing.add(instruction.name)


def is_async_collective(instruction: Instruction) -> bool:
    """Whether this starts or ends a collective operation or a transfer."""
    if instruction.opcode in _ASYNC_COLLECTIVES:
        return True
    wrapped = _wrapped(instruction)
    return wrapped is not None and wrapped.opcode in _COLLECTIVES


def is_pair(source: Instruction, target: Instruction) -> bool:
    """Whether `target` ends what `source` starts."""
    if not target.operands:
        return False
    opcode = source.opcode
    ends = {"send": "send-done", "recv": "recv-done"}.get(opcode)
    if ends is None:
        ends = opcode.removesuffix("-start") + "-done"
        if opcode == ends or not opcode.endswith("-start"):
            return False
    start = target.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    return target.opcode == ends and start is source


def longest_first(
    estimator: Estimator, pairs: Sequence[tuple[Instruction, Instruction]]
) -> list[tuple[Instruction, Instruction]]:
    """Asynchronous pairs in the order in which a scheduler should start them.

    The longest latency first: it needs most of what can hide it. Ties keep their
    order.

    >>> longest_first(ConstantEstimator(), [])
    []
    """
    return sorted(pairs, key=lambda pair: -estimator.latency(*pair))


def _wrapped(instruction: Instruction) -> Instruction | None:
    start = instruction
    while start.opcode in ("async-update", "async-done") and start.operands:
        start = start.operands[0]
    if start.opcode != "async-start" or not start.called_computations:
        return None
    return start.called_computations[0].root


def _names(instruction: Instruction) -> Iterator[str]:
    """Names under which something may have been recorded."""
    yield instruction.name
    if instruction.opcode in _GENERIC:
        wrapped = _wrapped(instruction)
        if wrapped is not None:
            yield wrapped.name


def _is_scheduled(instruction: Instruction) -> bool:
    module = instruction.computation.module
    return module is not None and module.is_scheduled


def _judged(module: Module) -> Iterator[Computation]:
    yield module.entry
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode == "while":
                yield x.while_body
