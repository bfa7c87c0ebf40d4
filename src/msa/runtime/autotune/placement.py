"""Tuning the planner: behind how much computation a copy should hide.

The candidates are ratios of overlap to copy time; a candidate costs the modelled time
of its plan, so that nothing has to be run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msa.analysis import prepare
from msa.assignment import Options, assign
from msa.assignment.options import CostAnalysisPicker
from msa.errors import CapacityError, OptionsError
from msa.hlo.identity import fingerprint
from msa.hlo.module import Module
from msa.runtime.autotune.cache import AutotuneCache
from msa.runtime.autotune.key import AutotuneKey
from msa.runtime.autotune.tuner import Trial
from msa.target import Target

OVERLAPS: Final = ((0.5, 1.0), (0.8, 1.5), (1.0, 2.0), (1.0, 4.0))
"""Pairs (least, preferred) of overlap ÷ copy time; the second is the default."""


@dataclass(frozen=True, slots=True)
class PlacementTuning:
    """The best options for a module on a target.

    Attributes:
        options: those given, with the best ratios.
        seconds: modelled time of the plan that they make.
        trials: one per candidate; none when the best was known.
        cached: whether it was.

    >>> PlacementTuning(Options(), 1e-3, (), cached=True).options == Options()
    True
    """

    options: Options
    seconds: float
    trials: tuple[Trial, ...]
    cached: bool


def tune_placement(
    module: Module,
    target: Target,
    *,
    cache: AutotuneCache,
    overlaps: Sequence[tuple[float, float]] = OVERLAPS,
    options: Options | None = None,
) -> PlacementTuning:
    """Plan with several ratios of overlap to copy time, and keep the best.

    The key is the program whatever its names, its schedule, and every field of the
    target; a known key is not planned again. Of equal plans the first counts.

    Args:
        module: prepared first if it has no schedule.
        target: the machine.
        cache: of results.
        overlaps: pairs (least, preferred), at least one.
        options: everything else; must plan by estimated run times.

    Raises:
        OptionsError: there is no candidate, or what must be in fast memory does not
            fit with any.

    As many plans as there are candidates.

    >>> import msa
    >>> from msa.runtime.autotune import AutotuneCache, tune_placement
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }''')
    >>> cache, target = AutotuneCache(), msa.Target.preset("tpu_v5e")
    >>> len(tune_placement(module, target, cache=cache).trials)
    4
    >>> tune_placement(module, target, cache=cache).cached
    True
    """
    chosen = options or Options()
    if not isinstance(chosen.prefetch_interval_picker, CostAnalysisPicker):
        raise OptionsError(
            "ratios of overlap need prefetch_interval_picker=CostAnalysisPicker"
        )
    ready = module if module.is_scheduled else prepare(module)
    key = _key(ready, target, chosen)
    known = cache.lookup(key)
    if known is not None:
        picked = _with(chosen, known["config"])
        return PlacementTuning(picked, known["seconds"], (), cached=True)
    trials = tuple(_try(ready, target, chosen, pair) for pair in overlaps)
    fit = [trial for trial in trials if not trial.failure]
    if not fit:
        reasons = "; ".join(trial.failure for trial in trials) or "there is none"
        raise OptionsError(f"no candidate for {module.name} is left: {reasons}")
    best = min(fit, key=lambda trial: trial.seconds)
    cache.insert(key, {"config": dict(best.config), "seconds": best.seconds})
    return PlacementTuning(
        _with(chosen, best.config), best.seconds, trials, cached=False
    )


def _try(
    module: Module, target: Target, options: Options, pair: tuple[float, float]
) -> Trial:
    config = {"min_overlap": pair[0], "preferred_overlap": pair[1]}
    try:
        plan = assign(module, target, _with(options, config))
    except CapacityError as error:
        return Trial(config, float("inf"), str(error))
    return Trial(config, plan.estimate.after_seconds)


def _with(options: Options, config: Any) -> Options:
    picker = options.prefetch_interval_picker
    assert isinstance(picker, CostAnalysisPicker)
    return options.replace(
        prefetch_interval_picker=replace(
            picker,
            min_overlap_to_async_copy_ratio=config["min_overlap"],
            preferred_overlap_to_async_copy_ratio=config["preferred_overlap"],
        )
    )


def _key(module: Module, target: Target, options: Options) -> AutotuneKey:
    """Program, schedule, target and all other options."""
    order = hashlib.sha256()
    schedule = module.schedule
    assert schedule is not None  # it was prepared
    for computation in schedule:
        sequence = schedule.sequence(computation)
        place = {x: number for number, x in enumerate(sequence)}
        for x in sequence:
            reads = [place[operand] for operand in x.operands]
            order.update(f"{x.opcode} {x.shape.to_text()} {reads}\n".encode())
    order.update(repr(options).encode())
    device = json.dumps(target.to_dict(), sort_keys=True)
    return AutotuneKey(device, f"{fingerprint(module)} {order.hexdigest()}")
