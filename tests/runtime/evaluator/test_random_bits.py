"""Generators: the papers' test vectors, and how XLA maps counters to elements.

The mapping rows are what jaxlib's `rng_bit_generator` gives for the state
`[7, 2**63 + 11]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator_support import run
from msa.errors import UnsupportedError
from msa.runtime.evaluator.random_bits import philox, threefry

THREEFRY = [
    (0, 0, 0x6B200159, 0x99BA4EFE),
    (2**64 - 1, 2**64 - 1, 0x1CB996FC, 0xBB002BE7),
]


@pytest.mark.parametrize(("key", "counter", "low", "high"), THREEFRY)
def test_threefry_vectors(key: int, counter: int, low: int, high: int) -> None:
    with np.errstate(over="ignore"):
        got = threefry(np.uint64(key), np.array([counter], dtype=np.uint64))
    assert [int(x[0]) for x in got] == [low, high]


def test_philox_vector() -> None:
    zero = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        got = philox(np.uint64(0), (zero, zero))
    assert [int(x[0]) for x in got] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


STATE = [7, 2**63 + 11]
ROWS: list[tuple[str, str, int, Any]] = [
    ("rng_default", "u32[5]", 2, [3262814599, 239812978, 1169195064, 2526871093, 825079044]),
    ("rng_philox", "u64[3]", 2,
     [1029988900929182087, 10852828706811969592, 9517833273211729156]),
    ("rng_philox", "u16[3]", 1, [39303, 16754, 32824]),
    ("rng_three_fry", "u32[5]", 3,
     [1696452957, 1706349040, 1683788518, 4038546360, 2980231104]),
    ("rng_three_fry", "u32[4,3]", 6,
     [[1696452957, 1683788518, 2980231104], [1706349040, 4038546360, 2956758079],
      [1954155919, 907151718, 3756129259], [3381373624, 1357440558, 25608121]]),
    ("rng_three_fry", "u64[3]", 3,
     [7328713324057448797, 17345424541263631078, 12699179254469015488]),
    ("rng_three_fry", "u8[6]", 3, [93, 240, 230, 184, 192, 63]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "shape", "advance", "bits"),
    ROWS,
    ids=[f"{r[0]}-{r[1]}" for r in ROWS],
)
def test_bits(algorithm: str, shape: str, advance: int, bits: Any) -> None:
    body = (
        "s = u64[2] parameter(0)\n"
        f"ROOT r = (u64[2], {shape}) rng-bit-generator(s), algorithm={algorithm}"
    )
    state, got = run(body, STATE)
    assert state.tolist() == [7, 2**63 + 11 + advance]
    assert got.tolist() == bits


@pytest.mark.parametrize("shape", ["u64[1]", "u64[4]", "u64[]", "u64[2,1]", "s64[2]"])
def test_a_state_of_another_shape_is_refused(shape: str) -> None:
    body = f"ROOT s = {shape} rng-get-and-update-state(), delta=1"
    with pytest.raises(UnsupportedError, match=r"is u64\[2\], not") as caught:
        run(body)
    assert caught.value.subject == "rng-get-and-update-state"
