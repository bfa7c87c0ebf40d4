from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import UnitError
from msa.units import (
    format_bytes,
    format_seconds,
    parse_bandwidth,
    parse_bytes,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16MiB", 16 * 1024 * 1024),
        ("16 mib", 16 * 1024 * 1024),
        ("1.5KiB", 1536),
        ("1MB", 1_000_000),
        ("4096", 4096),
        ("2_000", 2000),
        ("1e3", 1000),
        (7, 7),
        ("3GiB", 3 * 2**30),
        ("64 B", 64),
    ],
)
def test_bytes(text: str | int, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("819GB/s", 819e9), ("8.19TB/s", 8.19e12), ("1GiB/s", 2.0**30), (5.5, 5.5)],
)
def test_bandwidth(text: str | float, value: float) -> None:
    assert parse_bandwidth(text) == pytest.approx(value, rel=1e-15)


def test_rate() -> None:
    assert parse_rate("197Tflop/s") == 197e12
    assert parse_rate("6.2T") == pytest.approx(6.2e12)


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "16XB", "16MiB/s", "1.5", "nan", "1 2", "0x10", "16flop"]
)
def test_bad_bytes_are_typed_errors(text: str) -> None:
    with pytest.raises(UnitError):
        parse_bytes(text)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, None, [1]])
def test_bad_numbers_are_typed_errors(value: object) -> None:
    with pytest.raises(UnitError):
        parse_bytes(value)  # type: ignore[arg-type]


@given(st.integers(0, 2**50))
def test_formatted_sizes_read_back_within_rounding(count: int) -> None:
    text = format_bytes(count)
    number, unit = text.split()
    scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    assert abs(float(number) * scale - count) <= 0.05 * scale + 1e-9


def test_seconds() -> None:
    assert format_seconds(0) == "0 ns"
    assert format_seconds(1.5e-3) == "1.5 ms"
    assert format_seconds(12.25) == "12.2 s"
