"""Facts as plain data, and their agreement with recorded ones."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

import msa
from msa.analysis import facts

SHARED = os.environ.get("MSA_SHARED")
TARGET = msa.Target.preset("tpu_v5e")
LARGE = {"gpt36_train", "resnet20_cifar_train", "transformer8_train"}


def recorded() -> list[str]:
    if SHARED is None:
        return []
    found = Path(SHARED, "golden", "analyses").glob("*.json.gz")
    return sorted(path.name.removesuffix(".json.gz") for path in found)


def read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def nine_digits(x: float) -> float:
    return float(f"{x:.9g}")


@pytest.mark.skipif(SHARED is None, reason="MSA_SHARED does not name recorded facts")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else [])
        for name in recorded()
    ],
)
def test_facts_equal_the_recorded_ones(name) -> None:
    folder = Path(SHARED or "")
    text = next(folder.glob(f"corpus/{name}.opt.hlo*"))
    want = json.loads(read(folder / "golden" / "analyses" / f"{name}.json.gz"))
    got = facts(msa.parse(read(text)), TARGET)
    assert got["flattened_schedule"] == want["flattened_schedule"]
    assert got["computation_spans"] == want["computation_spans"]
    by_id = {}
    assert len(got["values"]) == len(want["values"])
    for mine, theirs in zip(got["values"], want["values"], strict=True):
        by_id[theirs["id"]] = mine["position"]
        live = theirs["live"]
        assert mine == {k: v for k, v in theirs.items() if k != "id"} | {
            "live": mine["live"] if live is None else live
        }
    assert got["buffers"] == [[by_id[i] for i in b] for b in want["buffers"]]
    for mine, theirs in zip(got["instructions"], want["instructions"], strict=True):
        assert mine[:2] == theirs[:2]
        assert [nine_digits(x) for x in mine[2:]] == [
            nine_digits(x) for x in theirs[2:]
        ]
    for number, benefit in want["memory_boundedness"].items():
        found = got["memory_boundedness"][by_id[int(number)]]
        assert nine_digits(found) == nine_digits(benefit)
    assert got["elapsed_default_memory"] == pytest.approx(
        want["elapsed_default_memory"],
        rel=1e-4,  # recorded in single precision
    )


def test_facts_are_plain_data() -> None:
    module = msa.parse("""
HloModule m, is_scheduled=true
body { bp = (f32[8]) parameter(0)  g = f32[8] get-tuple-element(bp), index=0
  n = f32[8] negate(g)  ROOT br = (f32[8]) tuple(n) }
cond { cp = (f32[8]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main { p = f32[8] parameter(0)  c = f32[8] copy(p)  t = (f32[8]) tuple(c)
  ROOT w = (f32[8]) while(t), condition=cond, body=body }""")
    found = facts(module, TARGET)
    assert json.loads(json.dumps(found)) == found
    assert found["computation_spans"] == {
        "main": [0, 10],
        "cond": [3, 5],
        "body": [5, 9],
    }
    rows = {row["position"]: row for row in found["values"]}
    assert rows["w{0}"]["is_phi"]
    assert rows["w{0}"]["live_out"]
    assert rows["c{}"]["uses"] == ["w:0{0}"]
    assert rows["n{}"]["positions"] == ["n{}", "br{0}"]
    assert sorted(
        {"c{}", "n{}"} & set(next(b for b in found["buffers"] if "c{}" in b))
    ) == ["c{}", "n{}"]
    assert [row[7] for row in found["instructions"]] == [1, 1, 1, 5, 5, 5, 5, 5, 5, 1]
    assert set(found["memory_boundedness"]) >= {"c{}", "n{}", "p{}"}


def test_facts_need_a_schedule() -> None:
    module = msa.parse("ENTRY main { ROOT p = f32[] parameter(0) }")
    with pytest.raises(msa.ScheduleError):
        facts(module, TARGET)
