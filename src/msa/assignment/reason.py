"""Why a value is where it is: one word for programs, one sentence for people."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a use reads the memory that it reads; equal to its lower-case text.

    Reasons are found in the finished plan, not in the order in which it was made.

    Attributes:
        FAST: it reads fast memory.
        TAKEN_BACK: this attempt was taken back and made anew.
        NOT_PLACEABLE: scalars, tuples and values of other memory spaces.
        TOO_LARGE: larger than the fast memory.
        ROOM_RESERVED: larger than what reserved values leave.
        FIXED: the program fixed its place.
        FETCHED_AHEAD: an input that is fetched before the program starts.
        MUST_BE_SLOW: the program, or a colouring, asks for slow memory there.
        RESULT: the caller expects it in slow memory.
        NOT_READ: nothing reads it.
        HANDED_ON: the use moves none of its bytes.
        NO_GAIN: fast memory would save no time there.
        NO_ROOM: no hole in fast memory is large enough for as long as needed.
        NO_TIME: a copy takes longer than there is time before the use.
        MEMORY_BUSY: instructions keep slow memory busy, so a copy cannot be hidden.
        NO_BANDWIDTH: other copies use the bandwidth in that time.
        TOO_MANY_COPIES: as many copies as the options allow are under way.
        TIED: it shares its storage with values that cannot all be in fast memory.
        RULE: a rule of the strategy.
        OPEN: nothing stands in the way in the finished plan.

    >>> import msa
    >>> msa.Reason("no_room") is msa.Reason.NO_ROOM
    True
    >>> msa.Reason.NO_GAIN.sentence
    'it would gain nothing'
    """

    FAST = "fast"
    TAKEN_BACK = "taken_back"
    NOT_PLACEABLE = "not_placeable"
    TOO_LARGE = "too_large"
    ROOM_RESERVED = "room_reserved"
    FIXED = "fixed"
    FETCHED_AHEAD = "fetched_ahead"
    MUST_BE_SLOW = "must_be_slow"
    RESULT = "result"
    NOT_READ = "not_read"
    HANDED_ON = "handed_on"
    NO_GAIN = "no_gain"
    NO_ROOM = "no_room"
    NO_TIME = "no_time"
    MEMORY_BUSY = "memory_busy"
    NO_BANDWIDTH = "no_bandwidth"
    TOO_MANY_COPIES = "too_many_copies"
    TIED = "tied"
    RULE = "rule"
    OPEN = "open"

    @property
    def sentence(self) -> str:
        """What it means, in a few words."""
        return _SENTENCES[self]

    @property
    def change(self) -> str:
        """What would have to change where no figures say it better; may be empty."""
        return _CHANGES.get(self, "")


_SENTENCES = {
    Reason.FAST: "it reads fast memory",
    Reason.TAKEN_BACK: "this attempt was taken back and made anew",
    Reason.NOT_PLACEABLE: (
        "scalars, tuples and values of other memory spaces stay where they are"
    ),
    Reason.TOO_LARGE: "larger than the fast memory",
    Reason.ROOM_RESERVED: ("larger than what reserved values leave of the fast memory"),
    Reason.FIXED: "its place was fixed by the program",
    Reason.FETCHED_AHEAD: "already fetched before the program starts",
    Reason.MUST_BE_SLOW: "it must be in slow memory there",
    Reason.RESULT: "part of the result, which the caller expects in slow memory",
    Reason.NOT_READ: "nothing reads it, so fast memory would not help",
    Reason.HANDED_ON: "none of its bytes are read there: it is only handed on",
    Reason.NO_GAIN: "it would gain nothing",
    Reason.NO_ROOM: "no room",
    Reason.NO_TIME: "too little time before the use to hide a copy",
    Reason.MEMORY_BUSY: "the instructions before the use keep slow memory busy",
    Reason.NO_BANDWIDTH: "no copy bandwidth left in that time",
    Reason.TOO_MANY_COPIES: "too many copies at once",
    Reason.TIED: "it shares storage with values that cannot all be in fast memory",
    Reason.RULE: "a rule of the strategy",
    Reason.OPEN: "nothing stands in the way in the finished plan",
}

_CHANGES = {
    Reason.TOO_LARGE: "smaller tiles, a smaller type, or more fast memory",
    Reason.ROOM_RESERVED: "fewer or smaller values with a place fixed by the program",
    Reason.MUST_BE_SLOW: "the program or the colouring that asks for slow memory",
    Reason.RESULT: "the program's interface",
    Reason.TOO_MANY_COPIES: "a higher limit of copies at once in the options",
}
