"""Planning with measured costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msa.analysis.costs import CostOptions
from msa.analysis.costs.properties import Properties
from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation import simulate
from msa.analysis.trip_counts import TripCounts
from msa.assignment import Assignment, Options, assign
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.runtime.profile.profile import Profile
from msa.target import Target

_SAME = 1e-6


class ProfiledCostModel:
    """Modelled costs corrected by a profile.

    The profile is of the module with everything in default memory. What an
    instruction took is split by what is known: bytes, where they were counted, replace
    the modelled ones; time that traffic does not explain is arithmetic. Copies get the
    bandwidth that was measured.

    Attributes:
        target: with the measured bandwidth of copies.
        profile: what was measured.

    >>> import msa
    >>> target = msa.Target.preset("tpu_v5e")
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { p = f32[1024,1024]{1,0} parameter(0)
    ...           ROOT n = f32[1024,1024]{1,0} negate(p) }''')
    >>> model = ProfiledCostModel(target, Profile({"n": 50.0}))
    >>> f"{model.seconds(module):.1e}"
    '5.0e-05'
    """

    __slots__ = ("_base_target", "profile", "target")

    def __init__(self, target: Target, profile: Profile) -> None:
        self._base_target = target
        self.profile = profile
        rates = [rate for rate in profile.copy_bandwidths.values() if rate > 0]
        if rates:
            rate = min(*rates, target.default_memory_bandwidth)
            target = target.replace(async_copy_bandwidth=rate)
        self.target = target

    @property
    def cost_options(self) -> CostOptions:
        """Settings of the cost analysis with which plans are made."""
        return CostOptions(measured=self.correct)

    def correct(self, instruction: Instruction, modelled: Properties) -> None:
        """Make the modelled figures of an instruction agree with what it took."""
        cost = self.profile.costs.get(instruction.name)
        if cost is None:
            return
        seconds = cost * 1e-6
        target = self._base_target
        moved = self.profile.traffic.get(instruction.name)
        if moved is not None and modelled.bytes_accessed > 0:
            _scale_bytes(modelled, moved / modelled.bytes_accessed)
        memory = modelled.bytes_accessed / target.default_memory_bandwidth
        compute = max(
            modelled.flops / target.flops_per_second,
            modelled.transcendentals / target.transcendentals_per_second,
        )
        if seconds < memory * (1 - _SAME):
            _scale_bytes(modelled, seconds / memory)
        elif seconds > memory * (1 + _SAME):
            if seconds > compute:
                modelled.flops = seconds * target.flops_per_second
            compute = max(compute, seconds)
        if compute > seconds > 0:
            factor = seconds / compute
            modelled.flops *= factor
            modelled.transcendentals *= factor

    def options(
        self,
        base: Options | None = None,
        *,
        latencies: Mapping[str, float] | None = None,
    ) -> Options:
        """Options whose factors of asynchronous instructions follow the profile.

        An operation that took longer beside the program than alone slows copies as
        much: what it leaves of their bandwidth is divided by that.

        Args:
            base: the options to start from.
            latencies: microseconds that asynchronous operations take alone, by the
                name of their start.
        """
        options = base or Options()
        alone = dict(latencies or {})
        slowdowns = {
            source: max(1.0, measured / alone[source])
            for (source, _), measured in self.profile.latencies.items()
            if alone.get(source, 0.0) > 0
        }
        inner = options.async_instruction_bw_adjustment_factor_fn
        if not slowdowns:
            return options
        return dataclasses.replace(
            options,
            async_instruction_bw_adjustment_factor_fn=_slowed(inner, slowdowns),
        )

    def seconds(self, module: Module) -> float:
        """Time of a scheduled module at measured costs."""
        return simulate(
            module,
            self.target,
            trip_counts=TripCounts.run(module, use_backend_config=False),
            analyses=AnalysisManager(module, cost_options=self.cost_options),
        ).elapsed_seconds


@dataclass(frozen=True, slots=True)
class Replanned:
    """Plans without and with a profile, both judged by it.

    Attributes:
        base: the plan by the model alone.
        plan: the one to use: by the profile, unless the other is faster.
        predicted: seconds that the model alone expected of `base`.
        base_seconds, seconds: of `base` and `plan`, at measured costs.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> result = replan(module, msa.Target.preset("tpu_v5e"), Profile({"n": 5.0}))
    >>> result.seconds <= result.base_seconds
    True
    """

    base: Assignment
    plan: Assignment
    predicted: float
    base_seconds: float
    seconds: float

    @property
    def change(self) -> float:
        """Seconds that the profile saves (not negative)."""
        return self.base_seconds - self.seconds


def replan(
    module: Module, target: Target, profile: Profile, options: Options | None = None
) -> Replanned:
    """Plan anew with what was measured.

    Args:
        module: the program, as it was when it was measured.
        target: the machine.
        profile: of a run with everything in default memory.
        options: of both plans.

    Raises:
        CapacityError, HloError, OptionsError: as `msa.assign`.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> result = replan(module, msa.Target.preset("tpu_v5e"), Profile({"n": 5.0}))
    >>> result.change >= 0
    True
    """
    model = ProfiledCostModel(target, profile)
    base = assign(module, target, options)
    informed = assign(
        module, model.target, model.options(options), cost_options=model.cost_options
    )
    base_seconds = model.seconds(base.module)
    seconds = model.seconds(informed.module)
    best = informed if seconds <= base_seconds else base
    return Replanned(
        base,
        best,
        base.estimate.after_seconds,
        base_seconds,
        min(seconds, base_seconds),
    )


def _scale_bytes(modelled: Properties, factor: float) -> None:
    modelled.bytes_accessed *= factor
    for key in modelled.keyed:
        if key[0] in ("operand", "out"):
            modelled.keyed[key] *= factor


def _slowed(
    inner: Callable[[Instruction], float | None] | None, slowdowns: Mapping[str, float]
) -> Callable[[Instruction], float | None]:
    def factor(instruction: Instruction) -> float | None:
        known = inner(instruction) if inner is not None else None
        slowdown = slowdowns.get(instruction.name)
        if slowdown is None or instruction.user_count != 1:
            return known
        return (1.0 if known is None else known) / slowdown

    return factor
