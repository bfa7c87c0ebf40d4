"""Requests: what is asked for one segment, the span from one use to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msa.assignment.allocation import AliasedOffset
from msa.assignment.allocation_values import AllocationValue, SegmentUse


@dataclass(slots=True, eq=False)
class AllocationRequest:
    """One segment of an allocation value.

    Attributes:
        source: whose allocations are looked at.
        target: whose allocations are added to; the same but for replaced
            synchronous copies.
        use: the use at the end of the segment.
        start, end: inclusive steps of the segment.
        latest_prefetch: a prefetch has to land before this step.
        size: bytes.
        all_use_times: of all allocation values handled together, ascending.
        earliest_prefetch: no prefetch starts before, if given.
        preferred_prefetch: the search for a start begins here, if given.
        preferred_offset: the address that aliases have.
        allow_no_copy, prefer_no_copy, require_no_copy: may, should or must the value
            stay where it is.
        allow_prefetch: may a copy be made.
        require_copy: must a copy be made (replacement of `replaces`).
        replaces: step of the synchronous copy or slice to replace.
        replaces_slice: whether that is a slice.
        required_copy_latest: the replacement has to land before this step.
        only_extend: no use is served, the allocation only lasts to the end.
        no_copy_start: first step at which the storage is not yet held.
        together: allocation values of the proposal, in the order they are handled.
        number: how many of them were handled before.
        size_override: bytes that are copied, if not all of them (windows).
        window: whether the copy is a window of the operand.
        start_in_alternate, …: colours that the ends must have.
    """

    source: AllocationValue
    target: AllocationValue
    use: SegmentUse
    start: int
    end: int
    latest_prefetch: int
    size: int
    all_use_times: list[int]
    earliest_prefetch: int | None = None
    preferred_prefetch: int | None = None
    preferred_offset: AliasedOffset | None = None
    allow_no_copy: bool = True
    prefer_no_copy: bool = False
    require_no_copy: bool = False
    allow_prefetch: bool = True
    require_copy: bool = False
    replaces: int | None = None
    replaces_slice: bool = False
    required_copy_latest: int = 0
    only_extend: bool = False
    no_copy_start: int | None = None
    together: Sequence[AllocationValue] = ()
    number: int = 0
    size_override: int | None = None
    window: bool = False
    start_in_alternate: bool = False
    end_in_alternate: bool = False
    start_in_default: bool = False
    end_in_default: bool = False

    @property
    def copied_bytes(self) -> int:
        """Bytes that a prefetch for the use moves."""
        if self.size_override is not None:
            return self.size_override
        return self.target.value.size

    @property
    def handled(self) -> Iterator[AllocationValue]:
        """Allocation values handled before, whose storage may be shared; last first."""
        return (self.together[n] for n in range(self.number - 1, -1, -1))
