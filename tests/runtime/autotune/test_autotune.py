"""Keys, caches and stores of tuned configurations, and the tuner."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest

import msa
from msa.errors import OptionsError
from msa.runtime.autotune import (
    CURRENT_VERSION,
    AutotuneCache,
    AutotuneKey,
    CacheMode,
    Candidate,
    Environment,
    MemoryStore,
    StoreMode,
    TieredCache,
    TunedValue,
    autotune,
    gemv_candidates,
)
from msa.runtime.autotune.cache import CacheStats
from msa.runtime.diag.redzones import RedzoneAllocator
from msa.runtime.perf import DeviceDescription
from msa.runtime.status import InternalStatus, InvalidArgument, ResourceExhausted

A100 = DeviceDescription.preset("a100_40")
KEY = AutotuneKey("device", "hlo")
OTHER = AutotuneKey("device", "other")

FUSION = """
{name} {{
  {p} = f32[{size}] parameter(0)
  {q} = f32[{size}] parameter(1)
  ROOT {r} = f32[{size}] {op}({p}, {q}){meta}
}}
ENTRY e {{
  a = f32[{size}] parameter(0)
  b = f32[{size}] parameter(1)
  ROOT {f} = f32[{size}] fusion(a, b), kind=kLoop, calls={name}
}}"""
NAMES = {"name": "fused", "p": "p", "q": "q", "r": "r", "f": "f"}


def fusion(**changes: str):
    words = {**NAMES, "op": "add", "size": "64", "meta": "", **changes}
    return msa.parse(FUSION.format(**words)).entry.root


# -- keys (PT-9) -----------------------------------------------------------------------


def test_the_version_is_in_the_key_K2() -> None:
    assert CURRENT_VERSION == 49
    old, new = AutotuneKey("d", "h", 48), AutotuneKey("d", "h", 49)
    assert str(new) == "<key model='d', hlo='h', version=49>"
    assert old != new
    assert hash(old) != hash(new)
    assert old.file_stem != new.file_stem


def test_file_names_K2_PT9() -> None:
    digest = hashlib.sha256(str(KEY).encode()).digest()
    assert base64.urlsafe_b64decode(KEY.file_stem + "=") == digest
    assert set(KEY.file_stem) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )


def test_names_do_not_matter_and_shapes_do_K3() -> None:
    key = AutotuneKey.of(fusion(), A100)
    renamed = fusion(name="z", p="x1", q="x2", r="x3", f="g")
    assert AutotuneKey.of(renamed, A100) == key
    noted = fusion(meta=', metadata={op_name="somewhere"}')
    assert AutotuneKey.of(noted, A100) == key
    assert AutotuneKey.of(fusion(size="65"), A100) != key
    assert AutotuneKey.of(fusion(op="multiply"), A100) != key
    kind = fusion()
    kind.attributes = {**kind.attributes, "kind": "kInput"}
    assert AutotuneKey.of(kind, A100) != key


def test_layouts_attributes_and_configs_matter_K3_PT9() -> None:
    text = (
        "ENTRY e {{ p = f32[8,8]{{{layout}}} parameter(0)"
        " ROOT t = f32[8,8]{{1,0}} transpose(p), dimensions={{{dims}}}{config} }}"
    )

    def key(layout: str = "1,0", dims: str = "1,0", config: str = "") -> AutotuneKey:
        root = msa.parse(
            text.format(layout=layout, dims=dims, config=config)
        ).entry.root
        return AutotuneKey.of(root, A100)

    keys = [
        key(),
        key(layout="0,1"),
        key(dims="0,1"),
        key(config=', backend_config={"a":1}'),
    ]
    assert len(set(keys)) == 4
    assert key(config=', backend_config={"a":1,"b":2}') == key(
        config=', backend_config={"b":2,"a":1}'
    )


def test_the_device_is_in_the_key_PT12() -> None:
    root = fusion()
    key = AutotuneKey.of(root, A100)
    assert AutotuneKey.of(root, A100.replace(core_count=1)) != key
    assert AutotuneKey.of(root, A100.replace(device_memory_size=1)) == key


# -- the cache (PT-10) -----------------------------------------------------------------


def test_the_file_cache_K4(tmp_path: Path) -> None:
    cache = AutotuneCache(tmp_path / "cache")
    assert cache.lookup(KEY) is None
    assert cache.insert(KEY, {"tile": 8})
    path = cache.path_of(KEY)
    assert path is not None
    assert path.name == KEY.file_stem + ".json"
    first = path.read_text()
    assert not cache.insert(KEY, {"tile": 16})
    assert path.read_text() == first
    cache.clear()
    assert len(cache) == 0
    assert cache.lookup(KEY) == {"tile": 8}
    assert len(cache) == 1
    assert cache.stats() == CacheStats(1, 1)
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []


def test_reading_and_no_folder_write_nothing_K4(tmp_path: Path) -> None:
    reader = AutotuneCache(tmp_path, CacheMode.READ)
    assert reader.insert(KEY, {"tile": 8})
    assert list(tmp_path.iterdir()) == []
    nowhere = AutotuneCache("")
    assert nowhere.insert(KEY, {"tile": 8})
    assert nowhere.path_of(KEY) is None


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"version": 3}', '{"version": 3, "results": [7]}']
)
def test_damaged_files_are_refused_PT10(tmp_path: Path, damage: str) -> None:
    cache = AutotuneCache(tmp_path)
    path = cache.path_of(KEY)
    assert path is not None
    path.write_text(damage)
    with pytest.raises(InvalidArgument):
        cache.lookup(KEY)


def test_a_file_of_another_key_is_refused_PT10(tmp_path: Path) -> None:
    cache = AutotuneCache(tmp_path)
    cache.insert(OTHER, {})
    (tmp_path / f"{OTHER.file_stem}.json").rename(tmp_path / f"{KEY.file_stem}.json")
    with pytest.raises(InvalidArgument, match="other keys"):
        cache.lookup(KEY)


@pytest.mark.parametrize("name", ["all.json", "all.bin"])
def test_save_and_load_K5(tmp_path: Path, name: str) -> None:
    cache = AutotuneCache()
    cache.insert(OTHER, {"b": 2})
    cache.insert(KEY, {"a": 1})
    cache.save(tmp_path / name)
    raw = (tmp_path / name).read_bytes()
    assert raw.startswith(b"MSAT") == name.endswith(".bin")
    fresh = AutotuneCache()
    assert fresh.load(tmp_path / name) == 2
    assert (fresh.lookup(KEY), fresh.lookup(OTHER)) == ({"a": 1}, {"b": 2})
    with pytest.raises(InternalStatus, match="tuned already"):
        fresh.load(tmp_path / name)
    assert fresh.load(tmp_path / name, override=True) == 2
    cache.save(tmp_path / name, keys={KEY})
    subset = AutotuneCache()
    assert subset.load(tmp_path / name) == 1
    assert subset.lookup(OTHER) is None


def test_structures_K5_PT10(tmp_path: Path) -> None:
    cache = AutotuneCache()
    cache.insert(OTHER, {})
    cache.insert(KEY, {})
    path = tmp_path / "all.json"
    cache.save(path)
    data = json.loads(path.read_text())
    assert data["version"] == 3
    assert [row["hlo"] for row in data["results"]] == ["hlo", "other"]
    path.write_text(json.dumps({**data, "version": 2}))
    with pytest.raises(InvalidArgument, match="structure 2"):
        AutotuneCache().load(path)
    del data["results"][0]["version"]
    path.write_text(json.dumps(data))
    unversioned = AutotuneCache()
    unversioned.load(path)
    assert unversioned.lookup(KEY) == {}
    data["results"].append(data["results"][0])
    path.write_text(json.dumps(data))
    with pytest.raises(InternalStatus, match="tuned twice"):
        AutotuneCache().load(path)
    with pytest.raises(InvalidArgument):
        AutotuneCache().load(tmp_path / "missing.json")
    with pytest.raises(InvalidArgument):
        cache.save("/dev/null/x.json")


def test_threads_keep_one_result_PT10(tmp_path: Path) -> None:
    cache = AutotuneCache(tmp_path)
    kept: list[int] = []

    def work(number: int) -> None:
        if cache.insert(KEY, {"by": number}):
            kept.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert cache.lookup(KEY) == {"by": kept[0]}
    assert len(kept) == 1


# -- tiers (PT-11) ---------------------------------------------------------------------

ROOT = fusion()
NOW, BEFORE = Environment("2"), Environment("1")


def tiers(primary: MemoryStore, secondary: MemoryStore | None, environment=NOW, **more):
    return TieredCache(primary, secondary, device="d", environment=environment, **more)


def test_secondary_hits_are_promoted_K6() -> None:
    first, second = MemoryStore(), MemoryStore()
    tiers(second, None).insert(ROOT, TunedValue({"t": 1}))
    cache = tiers(first, second)
    assert cache.lookup(ROOT) == TunedValue({"t": 1})
    assert first.lookup(cache.key_of(ROOT), NOW) == TunedValue({"t": 1})
    assert cache.lookup(fusion(size="9")) is None
    assert cache.stats() == CacheStats(1, 1)


def test_inserts_reach_both_and_not_read_only_K6() -> None:
    first, second = MemoryStore(), MemoryStore(StoreMode.READ_ONLY)
    cache = tiers(first, second)
    cache.insert(ROOT, TunedValue({"t": 1}))
    assert first.lookup(cache.key_of(ROOT), NOW) is not None
    assert second.lookup(cache.key_of(ROOT), NOW) is None
    third = MemoryStore()
    tiers(first, third).insert(ROOT, TunedValue({"t": 2}))
    assert third.lookup(cache.key_of(ROOT), NOW) is not None


def test_loose_matches_K6() -> None:
    key = tiers(MemoryStore(), None).key_of(ROOT)
    loose = MemoryStore(loose_backend_version="b7")
    loose.insert(key, BEFORE, TunedValue({}, "gemm", "b7"))
    assert loose.lookup(key, NOW) is not None
    other = MemoryStore(loose_backend_version="b8")
    other.insert(key, BEFORE, TunedValue({}, "gemm", "b7"))
    assert other.lookup(key, NOW) is None
    assert other.lookup(key, BEFORE) is not None
    strict = MemoryStore()
    strict.insert(key, BEFORE, TunedValue({}, "gemm", "b7"))
    assert strict.lookup(key, NOW) is None


def test_append_never_replaces_PT11() -> None:
    key = tiers(MemoryStore(), None).key_of(ROOT)
    append, write = MemoryStore(StoreMode.READ_APPEND), MemoryStore()
    for store in (append, write):
        assert store.insert(key, NOW, TunedValue({"t": 1}))
        store.insert(key, NOW, TunedValue({"t": 2}))
        assert store.insert(key, BEFORE, TunedValue({"t": 3}))
    assert append.lookup(key, NOW).config == {"t": 1}
    assert write.lookup(key, NOW).config == {"t": 2}


class Broken(MemoryStore):
    def lookup(self, key, environment):
        raise InternalStatus("the disk is gone")


class Counting(MemoryStore):
    asked = 0

    def lookup(self, key, environment):
        self.asked += 1
        return super().lookup(key, environment)


def test_a_broken_first_store_is_a_miss_PT11() -> None:
    second = Counting()
    cache = tiers(Broken(), second)
    assert cache.lookup(ROOT) is None
    assert second.asked == 0
    assert cache.stats().misses == 1


def test_the_fingerprint_is_computed_once_K6() -> None:
    calls: list[str] = []

    def counted(instruction) -> str:
        calls.append(instruction.name)
        return msa.hlo.fingerprint(instruction)

    cache = tiers(MemoryStore(), MemoryStore(), fingerprint_of=counted)
    cache.lookup(ROOT)
    assert len(calls) == 1
    assert len(cache.key_of(ROOT).fingerprint) == 32


# -- the tuner (PT-12) -----------------------------------------------------------------


def costs(*seconds: float):
    """A measure that says what the runs cost, in order."""
    rows = list(seconds)

    def measure(run) -> float:
        run()
        return rows.pop(0)

    return measure


def double(inputs, output) -> None:
    output[...] = 2 * inputs[0]


def tune(candidates, cache=None, **more):
    data = np.arange(4, dtype=np.float32)
    return autotune(
        ROOT,
        candidates,
        [data],
        data,
        2 * data,
        device=A100,
        cache=cache if cache is not None else AutotuneCache(),
        **more,
    )


def test_the_median_decides_PT12() -> None:
    candidates = [Candidate({"n": 1}, double), Candidate({"n": 2}, double)]
    found = tune(candidates, measure=costs(3, 1, 9, 4, 2, 2), repeats=3)
    # Medians: 3 of (3, 1, 9) and 2 of (4, 2, 2).
    assert found.config == {"n": 2}
    assert [t.seconds for t in found.trials] == [3, 2]


def test_known_keys_are_not_measured_PT12() -> None:
    cache = AutotuneCache()
    tune([Candidate({"n": 1}, double)], cache)
    again = tune([], cache, measure=costs())
    assert again.cached
    assert again.config == {"n": 1}


def test_candidates_that_misbehave_are_out_PT12() -> None:
    def past_the_end(inputs, output) -> None:
        double(inputs, output)
        memory = output.base
        while memory.base is not None:
            memory = memory.base
        memory[-1] = 0

    def changes_input(inputs, output) -> None:
        double(inputs, output)
        inputs[0][0] = 5

    def wrong(inputs, output) -> None:
        output[...] = 3 * inputs[0]

    bad = [
        Candidate({"n": i}, kernel)
        for i, kernel in enumerate((past_the_end, changes_input, wrong))
    ]
    found = tune([*bad, Candidate({"n": "good"}, double)])
    assert found.config == {"n": "good"}
    failures = [t.failure for t in found.trials]
    assert "zone after" in failures[0]
    assert failures[1:] == [
        "an input was changed",
        "the result differs from the reference",
        "",
    ]
    with pytest.raises(OptionsError, match="no candidate"):
        tune(bad)
    with pytest.raises(OptionsError, match="there is none"):
        tune([])


def test_gemv_is_tuned_PT12() -> None:
    root = msa.parse(
        """
ENTRY main {
  a = f32[16,64] parameter(0)
  b = f32[64,1] parameter(1)
  ROOT d = f32[16,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    ).entry.root
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((16, 64)).astype(np.float32)
    vector = rng.standard_normal(64).astype(np.float32)
    want = matrix @ vector
    cache = AutotuneCache()
    found = autotune(
        root,
        gemv_candidates(root),
        [matrix, vector],
        want,
        want,
        device=A100,
        cache=cache,
        repeats=1,
    )
    assert not any(t.failure for t in found.trials)
    assert len({json.dumps(dict(t.config)) for t in found.trials}) == 8
    assert len(cache) == 1


# -- red zones (DX-11) -----------------------------------------------------------------


def test_red_zones_DX11() -> None:
    zones = RedzoneAllocator(16)
    first = zones.allocate("a", 8)
    zones.allocate("b", 8)
    first[:] = 1
    assert zones.check() == []
    zones.whole("a")[15] = 7
    zones.whole("b")[16 + 8 + 2] = 0
    zones.whole("b")[16 + 8 + 5] = 0
    found = zones.check()
    rows = [(v.buffer, v.side, v.offset, v.expected, v.actual) for v in found]
    assert rows == [("a", "before", 15, 255, 7), ("b", "after", 2, 255, 0)]
    assert zones.check() == []  # the zones were reset
    assert (first == 1).all()


def test_zones_do_not_count_against_the_limit_DX11() -> None:
    zones = RedzoneAllocator(1024, limit=100)
    zones.allocate("a", 60)
    assert zones.allocated_bytes == 60
    with pytest.raises(ResourceExhausted):
        zones.allocate("b", 41)
    zones.allocate("b", 40)
    with pytest.raises(OptionsError):
        zones.allocate("b", 0)
    default = RedzoneAllocator()
    assert (default.size, default.pattern, default.limit) == (8 << 20, 0xFF, 4 << 30)
