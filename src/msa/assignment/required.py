"""Required assignments: a value must be in a given memory at a given step.

A requirement matters only to requests that start or end exactly at its step. Requests
add requirements for the places that alias what they read, so that those places, when
their turn comes, agree.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from msa.assignment.allocation import AliasedOffset, MemorySpace
from msa.assignment.ledgers.transaction import Transaction
from msa.assignment.problem import Problem
from msa.errors import InternalError


class RequiredBy(Enum):
    """Where a requirement comes from."""

    ALIASED_USE = "aliased use"
    USE_NOT_ALLOWED = "use not allowed"
    INEFFICIENT_SITE = "inefficient site"
    LOOP_PARAMETER = "loop-optimized parameter"
    CONDITIONAL_OUTPUT = "conditional output"
    BRANCH_OUTPUT = "conditional computation output"
    POSITION_NOT_ALLOWED = "position not allowed"
    PROGRAM_OUTPUT = "program output"
    CALL_RESULT = "result of a call"
    CONSTANT = "constant"
    PROGRAM_INPUT = "program input"
    BLOCK_PREFETCH_SOURCE = "block prefetch source"


class Required(NamedTuple):
    """The memory, the shared offset if it is alternate memory, and the reason."""

    space: MemorySpace
    offset: AliasedOffset | None
    by: RequiredBy

    def agrees(self, other: Required) -> bool:
        """Whether both ask for the same place."""
        return self.space is other.space and _number(self) == _number(other)


def _number(required: Required) -> int:
    return -1 if required.offset is None else required.offset.offset


class ContradictionError(InternalError):
    """Two requirements that cannot both be met; the attempt is taken back."""


class RequiredAssignments:
    """At most one requirement per value and step."""

    __slots__ = ("_by_place", "_permanent", "_stride", "_transaction")

    def __init__(self, problem: Problem, transaction: Transaction) -> None:
        self._stride = problem.end + 1
        self._by_place: dict[int, Required] = {}
        self._permanent: set[int] = set()
        self._transaction = transaction

    def at(self, value: int, step: int) -> Required | None:
        """The requirement for the value at the step."""
        return self._by_place.get(value * self._stride + step)

    def is_default(self, value: int, step: int) -> bool:
        """Whether the value must be in default memory at the step."""
        required = self._by_place.get(value * self._stride + step)
        return required is not None and required.space is MemorySpace.DEFAULT

    def is_permanent(self, value: int, step: int) -> bool:
        """Whether there is a requirement that no rollback takes away."""
        return value * self._stride + step in self._permanent

    def add(
        self, value: int, step: int, required: Required, *, pending: bool = True
    ) -> None:
        """Add a requirement; one that is there already has to agree.

        Raises:
            ContradictionError: it contradicts one that is there.
        """
        place = value * self._stride + step
        if not pending:
            self._permanent.add(place)
        known = self._by_place.get(place)
        if known is not None:
            if not known.agrees(required):
                raise ContradictionError(
                    f"value {value} is required at step {step} in "
                    f"{known.space.value} ({known.by.value}) and in "
                    f"{required.space.value} ({required.by.value})"
                )
            return
        self._by_place[place] = required
        if pending:
            self._transaction.record(self._by_place.pop, place)

    def require_default(
        self, value: int, step: int, by: RequiredBy, *, pending: bool = True
    ) -> None:
        """The value must be in default memory at the step."""
        self.add(value, step, Required(MemorySpace.DEFAULT, None, by), pending=pending)


def add_permanent_requirements(
    problem: Problem, required: RequiredAssignments, *, calls: bool
) -> None:
    """Inputs, outputs and constants are where the program's caller expects them.

    With `calls`, so are the results of calls.
    """
    entry = problem.regions[0]
    parameters = set(entry.parameters)
    for value in problem.values:
        for position in () if value.reserved else value.positions:
            step = position.step
            if step in parameters:
                _require_buffer(
                    problem, required, value.buffer, step, RequiredBy.PROGRAM_INPUT
                )
            if step == entry.root:
                _require_buffer(
                    problem, required, value.buffer, step, RequiredBy.PROGRAM_OUTPUT
                )
            if calls and problem.opcodes[step] == "call":
                _require_call_result(problem, required, value.id, step)
        if value.is_constant and not value.is_tuple:
            _require_buffer(
                problem,
                required,
                value.buffer,
                value.position.step,
                RequiredBy.CONSTANT,
            )
    for value in problem.values:
        if not value.definable and not value.reserved:
            required.require_default(
                value.id,
                value.position.step,
                RequiredBy.POSITION_NOT_ALLOWED,
                pending=False,
            )


def _require_call_result(
    problem: Problem, required: RequiredAssignments, value: int, call: int
) -> None:
    """What a call returns is in default memory, when it is made and afterwards.

    The value is the same inside and outside, but nothing reads it in between that
    could hand its place on.
    """
    required.require_default(value, call, RequiredBy.CALL_RESULT, pending=False)
    for number in problem.called.get(call, ()):
        root = problem.regions[number].root
        required.require_default(value, root, RequiredBy.CALL_RESULT, pending=False)


def _require_buffer(
    problem: Problem,
    required: RequiredAssignments,
    buffer: int,
    step: int,
    by: RequiredBy,
) -> None:
    for member in problem.buffers[buffer]:
        required.require_default(member, step, by, pending=False)
