"""Measuring candidates, once per operation and device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msa.analysis.dot_strategy import choose_for, plan_gemv, run_gemv
from msa.errors import OptionsError
from msa.hlo.instruction import Instruction
from msa.runtime.autotune.cache import AutotuneCache
from msa.runtime.autotune.key import AutotuneKey
from msa.runtime.diag.redzones import RedzoneAllocator
from msa.runtime.perf.device import DeviceDescription

Array = NDArray[Any]
Kernel = Callable[[Sequence[Array], Array], None]
"""Reads the inputs and writes the output, in place."""

Measure = Callable[[Callable[[], None]], float]
"""Runs the function once; seconds, or any other cost."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration (plain data) and the code that it stands for.

    >>> def double(inputs, output):
    ...     output[...] = 2 * inputs[0]
    >>> Candidate({"tile": 8}, double).config
    {'tile': 8}
    """

    config: Mapping[str, Any]
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a candidate.

    Attributes:
        config: which.
        seconds: median of the measured runs; infinite when it is disqualified.
        failure: why it is disqualified, or an empty string.

    >>> Trial({"tile": 8}, 1e-3).failure
    ''
    """

    config: Mapping[str, Any]
    seconds: float
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The best configuration, and the trials (none when it was known).

    >>> Tuning({"tile": 8}, (), cached=True).config
    {'tile': 8}
    """

    config: Mapping[str, Any]
    trials: tuple[Trial, ...]
    cached: bool


def clock(run: Callable[[], None]) -> float:
    """Seconds of one run by the clock."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def autotune(
    instruction: Instruction,
    candidates: Sequence[Candidate],
    inputs: Sequence[Array],
    output_like: Array,
    reference: Array,
    *,
    device: DeviceDescription,
    cache: AutotuneCache,
    measure: Measure = clock,
    repeats: int = 5,
    zone_bytes: int = 4096,
    tolerance: float = 1e-4,
) -> Tuning:
    """The fastest candidate that computes the right thing and stays in its buffers.

    Every candidate runs once to warm up and `repeats` times measured, the median
    counts. Inputs and output lie between zones of known bytes; a candidate that
    changes one, or an input, or whose result differs from the reference, is out.

    Args:
        instruction: what is tuned; gives the key.
        candidates: at least one.
        inputs: arrays that the kernels read.
        output_like: shape and type of the result.
        reference: the right result.
        device: part of the key.
        cache: a known key is not measured again; new results are kept.
        measure: how a run is timed.
        repeats: measured runs.
        zone_bytes: of each zone.
        tolerance: relative and absolute.

    Raises:
        OptionsError: no candidate is left.

    >>> import msa
    >>> root = msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT a = f32[4] add(p, p) }").entry.root
    >>> def double(inputs, output):
    ...     output[...] = 2 * inputs[0]
    >>> x = np.ones(4, np.float32)
    >>> found = autotune(
    ...     root, [Candidate({"n": 1}, double)], [x], x, 2 * x,
    ...     device=DeviceDescription.preset("cpu_like"), cache=AutotuneCache())
    >>> found.config, found.cached
    ({'n': 1}, False)
    """
    key = AutotuneKey.of(instruction, device)
    known = cache.lookup(key)
    if known is not None:
        return Tuning(known["config"], (), cached=True)
    trials = tuple(
        _try(
            candidate,
            inputs,
            output_like,
            reference,
            measure,
            repeats,
            zone_bytes,
            tolerance,
        )
        for candidate in candidates
    )
    fit = [trial for trial in trials if not trial.failure]
    if not fit:
        reasons = (
            "; ".join(f"{t.config}: {t.failure}" for t in trials) or "there is none"
        )
        raise OptionsError(f"no candidate for {instruction.name} is left: {reasons}")
    best = min(fit, key=lambda trial: trial.seconds)
    cache.insert(key, {"config": dict(best.config), "seconds": best.seconds})
    return Tuning(best.config, trials, cached=False)


def _try(
    candidate: Candidate,
    inputs: Sequence[Array],
    output_like: Array,
    reference: Array,
    measure: Measure,
    repeats: int,
    zone_bytes: int,
    tolerance: float,
) -> Trial:
    zones = RedzoneAllocator(zone_bytes)
    placed = [zones.place(f"input {i}", value) for i, value in enumerate(inputs)]
    output = zones.place("output", np.zeros_like(output_like))

    def run() -> None:
        candidate.kernel(placed, output)

    run()
    seconds = statistics.median(measure(run) for _ in range(max(1, repeats)))
    failure = ""
    violations = zones.check()
    if violations:
        failure = str(violations[0])
    elif any(not np.array_equal(a, b) for a, b in zip(placed, inputs, strict=True)):
        failure = "an input was changed"
    elif not np.allclose(output, reference, rtol=tolerance, atol=tolerance):
        failure = "the result differs from the reference"
    return Trial(candidate.config, float("inf") if failure else seconds, failure)


def gemv_candidates(
    dot: Instruction, factors: Sequence[int] = (2, 4, 8, 16)
) -> list[Candidate]:
    """Both kernels of a matrix–vector product, with several tiling factors.

    The kernels take the matrix (rows are the result) and the vector.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[16,64] parameter(0)
    ...   b = f32[64,1] parameter(1)
    ...   ROOT d = f32[16,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> len(gemv_candidates(module.entry.root))
    8
    """
    choice = choose_for(dot)
    size = dot.operands[0].shape.as_array.element_type.byte_width
    found = []
    for column_major in (False, True):
        for factor in factors:
            plan = plan_gemv(
                choice.m,
                choice.k,
                choice.n,
                column_major=column_major,
                element_bytes=size,
                tiling_factor=factor,
            )

            def kernel(
                inputs: Sequence[Array], output: Array, plan: Any = plan
            ) -> None:
                output[...] = run_gemv(inputs[0], inputs[1], None, plan).result

            config = {"kernel": str(plan.kernel), "tiling_factor": factor}
            found.append(Candidate(config, kernel))
    return found
