"""Filters that pick values and uses by size, place, name or printed text.

Reference: the messages of
`xla/service/memory_space_assignment/memory_space_assignment.proto`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from msa.assignment.allocation import Index
from msa.errors import OptionsError

#: Gives the text of an instruction; printing is slow and mostly not needed.
Text = Callable[[], str]

#: Priorities of values that must come first or last.
FIRST = -(2**63)
LAST = 2**63 - 1


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise OptionsError(f"bad regular expression {pattern!r}: {error}") from None


def _instruction_matches(
    by_name: str | None, by_text: str | None, name: str, text: Text
) -> bool:
    return (by_name is None or full_match(by_name, name)) and (
        by_text is None or full_match(by_text, text())
    )


def full_match(pattern: str, text: str) -> bool:
    """Whether the whole text matches.

    Raises:
        OptionsError: the pattern is not a regular expression.

    >>> full_match("add.*", "add.3"), full_match("add", "add.3")
    (True, False)
    """
    return _compiled(pattern).fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class HloOperandFilter:
    """Uses: every condition that is given must hold.

    `size_gte`, `size_lte` are bytes of the value; `operand_number` and `tuple_index`
    are those of the use; the expressions are of the using instruction.
    """

    instruction_name_regex: str | None = None
    operand_number: int | None = None
    size_gte: int | None = None
    size_lte: int | None = None
    tuple_index: Index | None = None
    instruction_regex: str | None = None

    def matches(
        self, size: int, name: str, text: Text, operand: int, index: Index
    ) -> bool:
        """Whether the use of a value of `size` bytes matches."""
        return (
            (self.size_gte is None or size >= self.size_gte)
            and (self.size_lte is None or size <= self.size_lte)
            and (self.operand_number is None or operand == self.operand_number)
            and (self.tuple_index is None or index == self.tuple_index)
            and _instruction_matches(
                self.instruction_name_regex, self.instruction_regex, name, text
            )
        )


@dataclass(frozen=True, slots=True)
class HloRandomFilter:
    """A random share of instructions, chosen by what they compute, not by name.

    A number in [0, 1) is drawn from the fingerprint and the seed (BLAKE2b here, so
    the selection differs from XLA's); it is selected if it lies in the range.

    >>> HloRandomFilter().selects("f"), HloRandomFilter(1, 0.0, 0.0).selects("f")
    (True, False)
    """

    seed: int = 1234
    selection_range_begin: float = 0.0
    selection_range_end: float = 1.0

    def selects(self, fingerprint: str) -> bool:
        """Whether an instruction with that fingerprint is in the share."""
        text = f"{len(fingerprint)}:{fingerprint}:{self.seed}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        draw = (int.from_bytes(digest, "big") >> 11) / 2**53
        return self.selection_range_begin <= draw < self.selection_range_end


@dataclass(frozen=True, slots=True)
class HloPositionMatcher:
    """Values by their defining position; every given condition must hold.

    `hlo_use_filter` asks for at least one matching use.
    """

    instruction_regex: str | None = None
    instruction_name_regex: str | None = None
    tuple_index: Index | None = None
    size_gte: int | None = None
    size_lte: int | None = None
    hlo_use_filter: HloOperandFilter | None = None
    hlo_random_filter: HloRandomFilter | None = None

    def matches_place(self, size: int, name: str, text: Text, index: Index) -> bool:
        """Whether size, index and expressions match, uses and chance aside."""
        return (
            (self.size_gte is None or size >= self.size_gte)
            and (self.size_lte is None or size <= self.size_lte)
            and (self.tuple_index is None or index == self.tuple_index)
            and self.matches_instruction(name, text)
        )

    def matches_instruction(self, name: str, text: Text) -> bool:
        """Whether the expressions match, everything else aside."""
        return _instruction_matches(
            self.instruction_name_regex, self.instruction_regex, name, text
        )


@dataclass(frozen=True, slots=True)
class PreferredPrefetchOverride:
    """When to start prefetches for matching uses; exactly one rule.

    Attributes:
        hlo_operand_filter: which uses.
        prefetch_eagerness: 0 earliest … 1 latest.
        after_instruction, before_instruction: names or text of an instruction.
    """

    hlo_operand_filter: HloOperandFilter
    prefetch_eagerness: float | None = None
    after_instruction: HloPositionMatcher | None = None
    before_instruction: HloPositionMatcher | None = None

    def __post_init__(self) -> None:
        eagerness = self.prefetch_eagerness
        if eagerness is not None and not 0 <= eagerness <= 1:
            raise OptionsError(
                f"prefetch_eagerness must be in [0, 1], got {eagerness!r}"
            )
        rules = (eagerness, self.after_instruction, self.before_instruction)
        if sum(rule is not None for rule in rules) > 1:
            raise OptionsError(
                "a PreferredPrefetchOverride takes one of prefetch_eagerness, "
                "after_instruction and before_instruction"
            )


@dataclass(frozen=True, slots=True)
class MsaSortOrderOverride:
    """Put matching values first, last or at a given place in the order.

    As in XLA, `assign_first` and `assign_last` count when they are given, whatever
    their truth.
    """

    hlo_position_matcher: HloPositionMatcher
    assign_first: bool | None = None
    assign_last: bool | None = None
    assign_value: int | None = None
    apply_to_cross_program_prefetches: bool = False

    def priority(self, number: int) -> int | None:
        """Priority of a match by the override of that number; None: go on looking.

        >>> MsaSortOrderOverride(HloPositionMatcher(), assign_first=True).priority(2)
        -9223372036854775806
        """
        if self.assign_first is not None:
            return FIRST + number
        if self.assign_last is not None:
            return LAST - number
        return self.assign_value
