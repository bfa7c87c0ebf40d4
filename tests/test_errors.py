from __future__ import annotations

import pickle

import pytest

from msa import errors

SAMPLES = [
    errors.MsaError("m", where="w", hint="h"),
    errors.HloParseError("m", line=3, column=7, source_line="abc", nearest="add"),
    errors.HloVerifyError(["a", "b"]),
    errors.CapacityError("m", step=3, needed=10, capacity=8, live=[("x", 10)]),
    errors.UnsupportedError("m", subject="rng"),
    errors.UnitError("m"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda e: type(e).__name__)
def test_errors_survive_pickling(error: errors.MsaError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_error_is_in_the_tree() -> None:
    kinds = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(kinds) > 10
    assert all(issubclass(kind, errors.MsaError) for kind in kinds)


def test_parse_error_points_at_the_column() -> None:
    error = errors.HloParseError("bad", line=1, column=3, source_line="abcdef")
    assert str(error).splitlines()[1:] == ["abcdef", "  ^"]


def test_caret_of_a_very_long_line_stays_in_view() -> None:
    line = "x" * 5000 + "?" + "y" * 5000
    error = errors.HloParseError("bad", line=1, column=5001, source_line=line)
    _, shown, caret = str(error).splitlines()
    assert len(shown) <= 160
    assert shown[caret.index("^")] == "?"


def test_verify_error_lists_every_violation_but_shows_twenty() -> None:
    error = errors.HloVerifyError([f"v{i}" for i in range(30)])
    assert len(error.violations) == 30
    assert "10 more" in str(error)


def test_capacity_error_carries_the_excess() -> None:
    assert errors.CapacityError("m", needed=10, capacity=8).over == 2
