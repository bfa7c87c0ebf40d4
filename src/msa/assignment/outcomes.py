"""Why a segment was or was not given fast memory, and the log of such decisions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Final, NamedTuple

from msa.assignment.allocation import Use


class Outcome(IntFlag):
    """Results of trying to allocate a segment; failures are or-ed.

    Reference: `AllocationResult` of
    `xla/service/memory_space_assignment/allocation_value.h`.
    """

    SUCCESS = 0
    OUT_OF_MEMORY = 1
    PREVIOUS_NOT_IN_ALTERNATE = 2
    LIVE_RANGE_TOO_LONG = 4
    LIVE_RANGE_TOO_SHORT = 8
    OUT_OF_ASYNC_COPIES = 16
    VIOLATES_ASYNC_COPY_RESOURCE = 32
    REQUIRES_UNCOMMIT = 64
    ALL_SLICES_HAVE_THE_SAME_START_TIME = 128
    CONFLICTING_PREFERRED_OFFSETS = 256
    SYNC_DATA_MOVE_REPLACEMENT = 512


# The algorithm or-s these for every segment: plain integers are ten times as fast.
SUCCESS: Final = 0
OUT_OF_MEMORY: Final = 1
PREVIOUS_NOT_IN_ALTERNATE: Final = 2
LIVE_RANGE_TOO_LONG: Final = 4
LIVE_RANGE_TOO_SHORT: Final = 8
OUT_OF_ASYNC_COPIES: Final = 16
VIOLATES_ASYNC_COPY_RESOURCE: Final = 32
REQUIRES_UNCOMMIT: Final = 64
SAME_SLICE_STARTS: Final = 128
CONFLICTING_PREFERRED_OFFSETS: Final = 256
SYNC_DATA_MOVE_REPLACEMENT: Final = 512


#: All combinations by number; making one takes longer than the segment's look-up.
OUTCOMES: Final = tuple(Outcome(number) for number in range(1024))


class Served(Enum):
    """How a use came to its value."""

    NO_COPY = "stays in alternate memory"
    PREFETCH = "prefetched"
    DEFAULT = "read from default memory"
    SAME_STEP = "read by the instruction that was just served"
    MIRRORED = "served by the allocation around its region"
    DROPPED = "nothing was allocated"


class Skip(Enum):
    """Why a buffer was not considered at all."""

    NOT_PLACEABLE = "scalar, tuple or foreign memory space"
    TOO_LARGE = "larger than the fast memory"
    ROOM_RESERVED = "larger than what reserved values leave of the fast memory"
    CROSS_PROGRAM = "already fetched before the program starts"
    RESERVED_BY_USER = "its place was fixed by the program"


class Decision(NamedTuple):
    """What was decided for one use.

    Attributes:
        value, use: what is read, and where.
        start, end: the segment, inclusive steps.
        served: how the use gets its value.
        failures: what the greedy pass ran into (all attempts or-ed); the search
            records none. `Reason` says what stands in the way in the finished plan.
        required_default: the use or its alias must read default memory.
        attempt: number of the attempt at these buffers, from 0.
    """

    value: int
    use: Use
    start: int
    end: int
    served: Served
    failures: Outcome = Outcome.SUCCESS
    required_default: bool = False
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class BufferDecision:
    """What was decided for a whole buffer before its uses were looked at."""

    value: int
    skipped: Skip
