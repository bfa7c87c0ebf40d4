"""Random programs: no leak, no double free, no use after free, idempotent."""

from __future__ import annotations

import pytest

from dealloc_programs import random_program, random_scripts
from msa.dealloc import (
    DeallocationOptions,
    check,
    parse_function,
    place_in_function,
    print_function,
)
from msa.dealloc.errors import BufferIRError

RULES = {
    "BD-DEV-2": "split_edges",
    "BD-DEV-3": "insert_before_terminator",
    "BD-DEV-5": "own_returns",
    "BD-DEV-6": "last_use_in_block",
    "BD-DEV-7": "rerun_safe",
}


def holds(seed: int, options: DeallocationOptions | None = None) -> bool:
    before = random_program(seed)
    try:
        after, report = place_in_function(before, options)
        again, _ = place_in_function(after, options)
    except BufferIRError:
        return False
    result = check(after, before, report.marked, scripts=random_scripts(seed))
    return result.clean and print_function(again) == print_function(after)


@pytest.mark.parametrize("block", range(10))
def test_programs_are_clean_on_every_path(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        assert holds(seed), seed


@pytest.mark.slow
def test_twenty_thousand_programs() -> None:
    assert [seed for seed in range(20_000) if not holds(seed)] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_without_a_rule_programs_fail(rule: str) -> None:
    """The programs are strong enough to need every rule of the pass."""
    options = DeallocationOptions(**{rule: False})
    assert any(not holds(seed, options) for seed in range(600))


def test_text_round_trips() -> None:
    for seed in range(150):
        text = print_function(random_program(seed))
        assert print_function(parse_function(text)) == text


def test_the_input_is_not_changed() -> None:
    for seed in range(30):
        function = random_program(seed)
        before = print_function(function)
        place_in_function(function)
        assert print_function(function) == before
