"""Profiles, the estimator that reads them, and plans made with them."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

import msa
from msa.analysis import AnalysisManager, CostOptions, TripCounts
from msa.errors import FileFormatError
from msa.runtime.perf import DeviceDescription, ProfilerSim, record_simulation
from msa.runtime.profile import (
    Aggregator,
    ConstantEstimator,
    Profile,
    ProfiledCostModel,
    ProfileGuidedEstimator,
    longest_first,
    replan,
)
from msa.runtime.status import FailedPrecondition, InvalidArgument

TPU = msa.Target.preset("tpu_v5e")

COLLECTIVES = """
HloModule m, is_scheduled=true
wrapped {
  q = f32[64] parameter(0)
  ROOT slow = f32[64] custom-call(q), custom_call_target="work"
}
wrapped2 {
  q = f32[64] parameter(0)
  ROOT quick = f32[64] custom-call(q), custom_call_target="work"
}
ENTRY main {
  a = f32[64] parameter(0)
  b = f32[64] parameter(1)
  start1 = ((f32[64]), f32[64], u32[]) async-start(a), calls=wrapped
  start2 = ((f32[64]), f32[64], u32[]) async-start(b), calls=wrapped2
  d1 = f32[64] async-done(start1)
  d2 = f32[64] async-done(start2)
  ROOT r = f32[64] add(d1, d2)
}"""

TRANSFERS = """
HloModule t{scheduled}
ENTRY main {{
  a = f32[64] parameter(0)
  k = token[] after-all()
  s = (f32[64], u32[], token[]) send(a, k), channel_id=1
  e = token[] send-done(s), channel_id=1
  ROOT r = f32[64] negate(a)
}}"""


def by_name(module):
    return {x.name: x for c in module.computations for x in c.instructions}


# -- the estimator (PT-17) -------------------------------------------------------------


@pytest.mark.parametrize(
    "profile",
    [
        Profile(latencies={("slow", "d1"): 200.0, ("quick", "d2"): 10.0}),
        Profile(latencies={("start1", "d1"): 200.0, ("start2", "d2"): 10.0}),
        Profile(costs={"slow": 200.0, "quick": 10.0}),
    ],
    ids=["wrapped latencies", "latencies", "costs"],
)
def test_the_longer_pair_comes_first_K7(profile: Profile) -> None:
    x = by_name(msa.parse(COLLECTIVES))
    estimator = ProfileGuidedEstimator(ConstantEstimator(), profile)
    pairs = [(x["start2"], x["d2"]), (x["start1"], x["d1"])]
    assert longest_first(estimator, pairs) == [pairs[1], pairs[0]]
    assert [estimator.latency(*pair) for pair in pairs] == [10.0, 200.0]


def test_a_cost_under_the_wrapped_name_K8() -> None:
    x = by_name(msa.parse(COLLECTIVES))
    estimator = ProfileGuidedEstimator(
        ConstantEstimator(), Profile(costs={"slow": 120.0})
    )
    assert estimator.latency(x["start1"], x["d1"]) == 120.0
    assert estimator.latency(x["start2"], x["d2"]) == 1.0
    assert estimator.latency(x["start1"], x["d2"]) == 1.0  # no pair: the base


def test_transfers_use_costs_K9() -> None:
    profile = Profile(costs={"s": 50.0})
    estimator = ProfileGuidedEstimator(ConstantEstimator(9, 9), profile)
    x = by_name(msa.parse(TRANSFERS.format(scheduled=", is_scheduled=true")))
    assert estimator.latency(x["s"], x["e"]) == 50.0
    loose = by_name(msa.parse(TRANSFERS.format(scheduled="")))
    assert estimator.latency(loose["s"], loose["e"]) == 1.0
    assert estimator.node_cost(x["s"]) == 1.0
    assert estimator.node_cost(x["r"]) == 9


def test_cycles_scale_once_PT17() -> None:
    x = by_name(msa.parse(COLLECTIVES))
    profile = Profile({"r": 3.0}, {("start1", "d1"): 5.0})
    estimator = ProfileGuidedEstimator(ConstantEstimator(), profile, cycles_per_us=100)
    assert estimator.node_cost(x["r"]) == 300
    assert estimator.latency(x["start1"], x["d1"]) == 500


def test_accuracy_K10(caplog: pytest.LogCaptureFixture) -> None:
    module = msa.parse(COLLECTIVES)
    profile = Profile({"slow": 1.0, "quick": 1.0})
    bare = ProfileGuidedEstimator(ConstantEstimator(), profile)
    with pytest.raises(FailedPrecondition):
        bare.check_accuracy(module)
    estimator = ProfileGuidedEstimator(
        ConstantEstimator(), profile, aggregator=Aggregator()
    )
    with caplog.at_level(logging.WARNING, "msa.runtime.profile"):
        found = estimator.check_accuracy(module)
    assert found.missing == {"r"}
    assert found.found == 4  # starts and ends of both pairs
    assert "lacks r" in caplog.text
    with pytest.raises(InvalidArgument, match="discard the profile"):
        estimator.check_accuracy(module, strict=True)
    whole = ProfileGuidedEstimator(
        ConstantEstimator(),
        Profile({"slow": 1.0, "quick": 1.0, "r": 1.0}),
        aggregator=Aggregator(),
    )
    assert whole.check_accuracy(module, strict=True).missing == set()


def test_loop_bodies_are_judged_K10() -> None:
    module = msa.parse(
        """
body { p = (s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  inside = s32[] add(i, i) ROOT t = (s32[]) tuple(inside) }
cond { p = (s32[]) parameter(0) ROOT c = pred[] constant(false) }
ENTRY e { z = s32[] parameter(0) t = (s32[]) tuple(z)
  ROOT w = (s32[]) while(t), condition=cond, body=body }"""
    )
    estimator = ProfileGuidedEstimator(
        ConstantEstimator(), Profile(), aggregator=Aggregator()
    )
    assert estimator.check_accuracy(module).missing == {"inside", "w"}


# -- files and timelines (PT-16) -------------------------------------------------------


def test_the_file_format_PT16(tmp_path: Path) -> None:
    text = (
        '{"costs": [{"name": "a", "cost_us": 5}],'
        ' "latencies": [{"source": "s", "target": "d", "latency_us": 2.5}]}'
    )
    profile = Profile.from_json(text)
    assert profile.costs == {"a": 5.0}
    assert profile.latencies == {("s", "d"): 2.5}
    full = Profile({"a": 5.0}, {}, {"a": 64.0}, {"DefaultToAlternate": 1e9})
    full.to_json(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == full


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '{"costs": [{"name": "a"}]}',
        '{"costs": [{"name": "a", "cost_us": -1}]}',
        '{"costs": [{"name": "a", "cost_us": "NaN"}]}',
        '{"latencies": [{"source": "a"}]}',
    ],
)
def test_bad_files_are_refused_PT16(text: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError):
        Profile.from_json(text)
    with pytest.raises(FileFormatError):
        Profile.load(tmp_path / "missing.json")


def test_medians_over_runs_PT16() -> None:
    runs = []
    for seconds in (3.0, 1.0, 2.0):
        run = ProfilerSim([DeviceDescription.preset("a100_40")])
        run.kernel("k", 0.0, seconds, bytes_read=8 * seconds)
        run.kernel("twice", 0.0, 1.0)
        run.kernel("twice", 5.0, 8.0)
        run.kernel("loop", 0.0, 10.0, runs=5)
        runs.append(run)
    profile = Profile.from_timeline(runs)
    assert profile.costs == {"k": 2e6, "twice": 2e6, "loop": 2e6}
    assert profile.traffic["k"] == 16.0


COPY = """
HloModule m, is_scheduled=true
ENTRY main {
  w = f32[1024,1024]{1,0} parameter(0)
  s = (f32[1024,1024]{1,0:S(1)}, f32[1024,1024]{1,0}, u32[]) copy-start(w)
  d = f32[1024,1024]{1,0:S(1)} copy-done(s)
  ROOT r = f32[1024,1024]{1,0} negate(d)
}"""


def test_async_pairs_give_latencies_and_bandwidth_PT16() -> None:
    module = msa.parse(COPY)
    target = TPU.replace(async_copy_bandwidth="200GB/s")
    run = record_simulation(msa.simulate(module, target))
    profile = Profile.from_timeline([run], module)
    size = 4 << 20
    assert profile.latencies == {("s", "d"): pytest.approx(size / 200e9 * 1e6)}
    assert profile.copy_bandwidths == {"DefaultToAlternate": pytest.approx(200e9)}
    model = ProfiledCostModel(TPU, profile)
    assert model.target.async_copy_bandwidth == pytest.approx(200e9)


# -- feedback (PT-18) ------------------------------------------------------------------


def test_modelled_costs_become_measured_ones_PT18() -> None:
    """Slower than traffic explains: arithmetic. Faster: less traffic."""
    module = msa.parse(COPY)
    root = module.entry.root
    for cost in (100.0, 20.0, 5.0, 1.0):
        model = ProfiledCostModel(TPU, Profile({"r": cost}))
        costs = AnalysisManager(module, cost_options=model.cost_options).costs
        p = costs.properties(root)
        memory = p.bytes_accessed / TPU.default_memory_bandwidth
        compute = p.flops / TPU.flops_per_second
        assert max(memory, compute) == pytest.approx(cost * 1e-6, rel=1e-5)
    untouched = AnalysisManager(module).costs.properties(root)
    assert untouched.bytes_accessed == 8 << 20


def test_slowed_operations_leave_less_bandwidth_PT18() -> None:
    module = msa.parse(COLLECTIVES)
    x = by_name(module)
    model = ProfiledCostModel(TPU, Profile({}, {("start1", "d1"): 30.0}))
    factor = model.options(
        latencies={"start1": 10.0}
    ).async_instruction_bw_adjustment_factor_fn
    assert factor is not None
    assert factor(x["start1"]) == pytest.approx(1 / 3)
    assert factor(x["r"]) is None
    base = msa.Options(async_instruction_bw_adjustment_factor_fn=lambda i: 0.6)
    scaled = model.options(
        base, latencies={"start1": 10.0}
    ).async_instruction_bw_adjustment_factor_fn
    assert scaled is not None
    assert scaled(x["start1"]) == pytest.approx(0.2)
    assert scaled(x["r"]) == 0.6
    assert model.options(base) is base


def hidden_truth(seed: int) -> CostOptions:
    """A machine on which instructions cost other than the model thinks."""

    def change(instruction, p) -> None:
        rng = random.Random(f"{seed}/{instruction.name}")
        p.flops *= 10 ** rng.uniform(-1, 3)
        p.transcendentals *= 10 ** rng.uniform(-1, 2)
        factor = 10 ** rng.uniform(-0.5, 0.5)
        p.bytes_accessed *= factor
        for key in p.keyed:
            if key[0] in ("operand", "out"):
                p.keyed[key] *= factor

    return CostOptions(measured=change)


def true_simulation(module, truth: CostOptions):
    return msa.simulate(
        module,
        TPU16,
        trip_counts=TripCounts.run(module, use_backend_config=False),
        analyses=AnalysisManager(module, cost_options=truth),
    )


TPU16 = TPU.replace(alternate_memory_bytes="1MiB")
DATA = Path(__file__).parents[2] / "data"
PROGRAMS = ["mlp_forward", "quantized_matmul", "nested_while", "ring_buffer_loop"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_planning_with_a_profile_is_never_worse_PT18(name: str) -> None:
    """Hidden true costs → profile → plan: judged by the true costs."""
    module = msa.load(DATA / f"{name}.opt.hlo")
    before = msa.assign(module, TPU16)
    for seed in range(2):
        truth = hidden_truth(seed)
        run = record_simulation(true_simulation(before.original, truth))
        profile = Profile.from_timeline([run], before.original)
        result = replan(module, TPU16, profile)
        base = true_simulation(result.base.module, truth).elapsed_seconds
        informed = true_simulation(result.plan.module, truth).elapsed_seconds
        assert informed <= base * (1 + 1e-6)
        assert result.change >= 0
        # The measured program is predicted as it was measured.
        predicted = ProfiledCostModel(TPU16, profile).seconds(before.original)
        want = true_simulation(before.original, truth).elapsed_seconds
        assert predicted == pytest.approx(want, rel=1e-3)
