"""Descriptions of devices and the text that stands for them in keys."""

from __future__ import annotations

import pytest

import msa
from msa.errors import TargetError
from msa.runtime.perf import DeviceDescription, MatrixUnit, bandwidth_from_clocks
from msa.runtime.perf.device import clock_hz

# Cores, clock, bandwidth, cache and capability are the specification's.
TEXTS = {
    "a100_40": (
        "CUDA: 8.0, Cores: 108, GPU clock: 1.41 GHz, Memory bandwidth: 1555 GB/s, "
        "L2 cache: 40 MB, DNN version: 0.0.0"
    ),
    "a100_80": (
        "CUDA: 8.0, Cores: 108, GPU clock: 1.41 GHz, Memory bandwidth: 2039 GB/s, "
        "L2 cache: 40 MB, DNN version: 0.0.0"
    ),
    "mi200": (
        "ROCM: gfx90a, Cores: 110, GPU clock: 1.7 GHz, Memory bandwidth: 1638 GB/s, "
        "L2 cache: 8 MB, DNN version: 0.0.0"
    ),
    "rtx6000pro": (
        "CUDA: 12.0, Cores: 188, GPU clock: 2.6 GHz, Memory bandwidth: 1792 GB/s, "
        "L2 cache: 128 MB, DNN version: 0.0.0"
    ),
    "bmg_g21": (
        "oneAPI: BMG_G21, Cores: 20, GPU clock: 2.85 GHz, Memory bandwidth: 456 GB/s, "
        "L2 cache: 18 MB, DNN version: 0.0.0"
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_device_text_K1_PT9(name: str) -> None:
    assert DeviceDescription.preset(name).to_text() == TEXTS[name]


def test_all_presets_load_PT1() -> None:
    for name in DeviceDescription.presets():
        device = DeviceDescription.preset(name)
        assert device.name == name
        assert device.peak_flops > 0
    assert {"tpu_like", "cpu_like", *TEXTS} == set(DeviceDescription.presets())


def test_bandwidth_is_rounded_to_whole_gigabytes_PT9() -> None:
    device = DeviceDescription.preset("a100_40")
    same = device.replace(memory_bandwidth=1555.4e9)
    other = device.replace(memory_bandwidth=1555.6e9)
    assert same.to_text() == device.to_text() != other.to_text()


@pytest.mark.parametrize(
    ("field", "value", "shows"),
    [
        ("core_count", 109, True),
        ("clock_rate_ghz", 1.42, True),
        ("memory_bandwidth", 1556e9, True),
        ("l2_cache_size", 41 << 20, True),
        ("capability", "8.6", True),
        ("dnn_version", (9, 1, 0), True),
        ("device_memory_size", 1 << 30, False),
        ("fpus_per_core", 128, False),
    ],
)
def test_what_the_key_sees_PT12(field: str, value: object, shows: bool) -> None:
    device = DeviceDescription.preset("a100_40")
    assert (device.replace(**{field: value}).to_text() != device.to_text()) == shows


def test_clocks_PT1() -> None:
    # 2 × 877 MHz × 4096 bit / 8
    assert bandwidth_from_clocks(877e6, 4096) == 898_048_000_000
    assert clock_hz(1_410_000, "CUDA") == clock_hz(1410, "ROCM") == 1.41e9
    with pytest.raises(TargetError, match="reports no clock"):
        clock_hz(1, "CPU")


def test_matrix_units_by_hand_PT1() -> None:
    # NVIDIA A100: 312 TFLOP/s in bf16, 19.5 in f32 without and f64 with the units.
    device = DeviceDescription.preset("a100_40")
    assert device.matrix_flops("bf16") == pytest.approx(312e12, rel=1e-3)
    assert device.matrix_flops("f64") == pytest.approx(19.5e12, rel=1e-3)
    assert device.matrix_flops("u64") == device.peak_flops
    assert device.peak_flops == pytest.approx(19.5e12, rel=1e-3)


def test_a_target_is_a_device() -> None:
    target = msa.Target.preset("tpu_v5e")
    device = DeviceDescription.of_target(target)
    assert device.memory_bandwidth == target.default_memory_bandwidth
    assert device.peak_flops == pytest.approx(target.flops_per_second)


@pytest.mark.parametrize(
    "changes", [{"platform": "abacus"}, {"core_count": 0}, {"memory_bandwidth": -1.0}]
)
def test_bad_descriptions_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(TargetError):
        DeviceDescription.preset("a100_40").replace(**changes)
    with pytest.raises(TargetError, match="unknown device"):
        DeviceDescription.preset("nothing")


@pytest.mark.parametrize(
    "field",
    ["core_count", "clock_rate_ghz", "memory_bandwidth", "dram_to_l2_transaction_size"],
)
@pytest.mark.parametrize(
    "value", [0, -1, float("inf"), float("nan"), "x", None, True, 1e308, 5e-324]
)
def test_pt1_rates_are_finite_and_positive(field: str, value: object) -> None:
    device = DeviceDescription.preset("a100_40")
    with pytest.raises(TargetError, match=f"{field} must be positive") as caught:
        device.replace(**{field: value})
    assert caught.value.where == "a100_40"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("l2_cache_size", -1),
        ("l1_cache_size_per_core", float("nan")),
        ("device_memory_size", None),
        ("copy_bandwidths", {"h2d": 0}),
        ("copy_bandwidths", {"h2d": float("inf")}),
        ("copy_bandwidths", 5),
        ("matrix_units", {"f32": 5}),
        ("matrix_units", 5),
    ],
)
def test_pt1_sizes_links_and_units_are_checked(field: str, value: object) -> None:
    with pytest.raises(TargetError):
        DeviceDescription.preset("a100_40").replace(**{field: value})


def test_pt1_a_cache_may_be_missing() -> None:
    device = DeviceDescription.preset("a100_40").replace(l2_cache_size=0)
    assert "L2 cache: 0 MB" in device.to_text()


@pytest.mark.parametrize("given", [(0, 64), (-1, 64), (float("nan"), 64), ("x", 64)])
def test_pt1_clocks_are_positive(given: tuple[float, int]) -> None:
    with pytest.raises(TargetError, match="memory_clock_hz must be positive"):
        bandwidth_from_clocks(*given)


@pytest.mark.parametrize("given", [(0, 1), (1, float("inf")), (1, 1, -1.0)])
def test_pt1_matrix_units_do_something(given: tuple[int, int]) -> None:
    with pytest.raises(TargetError):
        MatrixUnit(*given)
