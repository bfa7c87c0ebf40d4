from __future__ import annotations

from pathlib import Path

import pytest

from msa.errors import MsaError, TargetError, UnitError
from msa.target import Target


def test_v5e_has_the_published_figures() -> None:
    t = Target.preset("tpu_v5e")
    assert t.default_memory_bandwidth == 819e9
    assert t.alternate_read_bandwidth == t.alternate_write_bandwidth == 8.19e12
    assert t.flops_per_second == 197e12
    assert t.transcendentals_per_second == 6.2e12
    assert t.alignment_bytes == 1024
    assert t.alternate_memory_bytes == 128 * 1024 * 1024
    assert t.async_copy_bandwidth == 819e9


@pytest.mark.parametrize("name", Target.presets())
def test_every_preset_loads_and_is_described(name: str) -> None:
    target = Target.preset(name)
    assert target.name == name
    assert f"{name}:" in (Target.preset.__doc__ or "")
    assert target.alternate_read_bandwidth > target.default_memory_bandwidth


def test_the_expected_presets_are_there() -> None:
    expected = {
        "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "trainium2", "h100", "edge_npu",
    }  # fmt: skip
    assert expected <= set(Target.presets())


def test_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(TargetError, match="tpu_v5e"):
        Target.preset("tpu_v5")


def test_replace_reads_quantities_and_follows_the_copy_bandwidth() -> None:
    t = Target.preset("tpu_v5e").replace(
        alternate_memory_bytes="16MiB", default_memory_bandwidth="400GB/s"
    )
    assert t.alternate_memory_bytes == 16 * 1024 * 1024
    assert t.async_copy_bandwidth == 400e9
    slow = t.replace(async_copy_bandwidth="100GB/s")
    assert slow.async_copy_bandwidth_scaling_factor == 0.25
    assert slow.replace(default_memory_bandwidth="200GB/s").async_copy_bandwidth == 1e11


@pytest.mark.parametrize(
    "changes",
    [
        {"alternate_memory": "16MiB"},
        {"alignment_bytes": 0},
        {"flops_per_second": 0},
        {"flops_per_second": 1e-300},  # 0 in single precision
        {"transcendentals_per_second": 1e-40},
        {"alternate_read_bandwidth": 1e40},
        {"default_memory_bandwidth": 0},
        {"async_copy_bandwidth": "900GB/s"},
        {"alternate_memory_bytes": "many"},
    ],
)
def test_bad_fields_are_typed_errors(changes: dict[str, object]) -> None:
    with pytest.raises((TargetError, UnitError)):
        Target.preset("tpu_v5e").replace(**changes)


def test_files(tmp_path: Path) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text('preset = "tpu_v5e"\nalternate_memory_bytes = "4MiB"\n')
    assert Target.load(toml).alternate_memory_bytes == 4 << 20
    json = tmp_path / "npu.json"
    json.write_text(
        '{"alternate_memory_bytes": "1MiB", "alignment_bytes": 64,'
        '"default_memory_bandwidth": "10GB/s", "alternate_read_bandwidth": "100GB/s",'
        '"alternate_write_bandwidth": "100GB/s", "flops_per_second": "1T",'
        '"transcendentals_per_second": "10G"}'
    )
    target = Target.load(json)
    assert target.name == "npu"
    assert Target.from_dict(target.to_dict()) == target


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "x = ["),
        ("a.json", "{"),
        ("a.json", "[]"),
        ("a.json", '{"alternate_memory_bytes": 1}'),
        ("a.json", '{"preset": "tpu_v5e", "colour": 1}'),
        ("a.json", '{"colour": 1}'),
    ],
)
def test_bad_files_are_typed_errors(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(MsaError):
        Target.load(path)


def test_missing_file_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot read"):
        Target.load(tmp_path / "none.toml")
