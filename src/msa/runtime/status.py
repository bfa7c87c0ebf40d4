"""Typed failures of the simulated runtime, named after the usual status codes."""

from __future__ import annotations

from msa.errors import RuntimeMemoryError


class InternalStatus(RuntimeMemoryError):
    """A rule of the runtime was broken (device not in clique, misaligned bind …)."""


class InvalidArgument(RuntimeMemoryError):
    """An argument is wrong, or ranks disagree about it."""


class FailedPrecondition(RuntimeMemoryError):
    """The state does not allow the call (not all subscribed, still bound …)."""


class Unimplemented(RuntimeMemoryError):
    """The platform or the team cannot do this (multicast across processes …)."""


class NotFound(RuntimeMemoryError):
    """Something that had to be acquired or registered before is not there."""


class OutOfRange(RuntimeMemoryError):
    """A sub-range leaves its buffer."""


class ResourceExhausted(RuntimeMemoryError):
    """A pool has nothing left to give."""


class UnmappedAddress(RuntimeMemoryError):
    """Nothing is mapped at the address."""


class CrossesMapping(RuntimeMemoryError):
    """The range starts inside a mapping and ends outside it."""


class AccessDenied(RuntimeMemoryError):
    """The accessing device was not granted access to the mapping."""


class UseAfterUnmap(RuntimeMemoryError):
    """The range was mapped earlier and is not any more."""


class RendezvousError(RuntimeMemoryError):
    """A rendezvous was used wrongly: too many arrivals, or unequal counts."""


class RendezvousTimeout(RuntimeMemoryError):
    """A rendezvous did not complete in time; raised in every waiter.

    Attributes:
        name: of the rendezvous.
        arrived, expected: counts of participants.
        arrived_names, missing_names: who came, and who (when known) did not.
        everyone_arrived: True when only the leader's function is late.
        stacks: the Python stacks of all threads at that moment.
    """

    def __init__(
        self,
        name: str,
        *,
        arrived: int,
        expected: int,
        arrived_names: tuple[str, ...],
        missing_names: tuple[str, ...],
        everyone_arrived: bool,
        stacks: str = "",
    ) -> None:
        self.name = name
        self.arrived = arrived
        self.expected = expected
        self.arrived_names = arrived_names
        self.missing_names = missing_names
        self.everyone_arrived = everyone_arrived
        self.stacks = stacks
        if everyone_arrived:
            what = "everyone arrived, but the leader has not finished"
        else:
            missing = ", ".join(missing_names) or "unknown"
            what = (
                f"{arrived} of {expected} arrived "
                f"({', '.join(arrived_names)}); missing: {missing}"
            )
        super().__init__(
            f"rendezvous {name!r} timed out: {what}",
            hint="see .stacks for where each thread is",
        )
