"""Each feature, spoiled on purpose, makes one of its tests fail.

A row names what is spoiled, how, and the test that has to notice.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msa.runtime.status import InvalidArgument

HERE = Path(__file__).parent
_MODULES: dict[str, Any] = {}


def module_at(path: str) -> Any:
    if path not in _MODULES:
        spec = importlib.util.spec_from_file_location(
            f"spoiled_{len(_MODULES)}", HERE / path
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _MODULES[path] = module
    return _MODULES[path]


DEVICE, TUNE, PROFILE = (
    "perf/test_device.py",
    "autotune/test_autotune.py",
    "profile/test_profile.py",
)
COUNT, REPORT, LEAKS = (
    "perf/test_counters.py",
    "diag/test_reports.py",
    "diag/test_leaks.py",
)
ROOF, DOT = "perf/test_roofline.py", "../analysis/dot_strategy/test_dot_strategy.py"

Row = tuple[str, str, Any, str, str, tuple[Any, ...]]
# Name, place, replacement, file and name of the test, its arguments ("TMP": a folder).
ROWS: list[Row] = [
    (
        "K1 print the memory size too",
        "msa.runtime.perf.device:DeviceDescription.to_text",
        lambda self: f"{self.name} {self.device_memory_size}",
        DEVICE,
        "test_device_text_K1_PT9",
        ("a100_40",),
    ),
    (
        "K2 leave the version out",
        "msa.runtime.autotune.key:AutotuneKey.__str__",
        lambda self: f"<key model='{self.device}', hlo='{self.hlo}'>",
        TUNE,
        "test_the_version_is_in_the_key_K2",
        (),
    ),
    (
        "K3 keep names",
        "msa.runtime.autotune.key:canonical_text",
        str,
        TUNE,
        "test_names_do_not_matter_and_shapes_do_K3",
        (),
    ),
    (
        "K4 never read files",
        "msa.runtime.autotune.cache:AutotuneCache._from_file",
        lambda self, key: None,
        TUNE,
        "test_the_file_cache_K4",
        ("TMP",),
    ),
    (
        "K5 accept every structure",
        "msa.runtime.autotune.storage:STRUCTURE_VERSION",
        2,
        TUNE,
        "test_structures_K5_PT10",
        ("TMP",),
    ),
    (
        "K6 do not promote",
        "msa.runtime.autotune.tiered:TieredCache._find",
        lambda self, key: (
            self.primary.lookup(key, self.environment)
            or (self.secondary and self.secondary.lookup(key, self.environment))
        ),
        TUNE,
        "test_secondary_hits_are_promoted_K6",
        (),
    ),
    (
        "K7 K8 do not look inside asynchronous operations",
        "msa.runtime.profile.estimator:_wrapped",
        lambda instruction: None,
        PROFILE,
        "test_a_cost_under_the_wrapped_name_K8",
        (),
    ),
    (
        "K9 know no pairs",
        "msa.runtime.profile.estimator:is_pair",
        lambda source, target: False,
        PROFILE,
        "test_transfers_use_costs_K9",
        (),
    ),
    (
        "K10 judge the entry only",
        "msa.runtime.profile.estimator:_judged",
        lambda module: [module.entry],
        PROFILE,
        "test_loop_bodies_are_judged_K10",
        (),
    ),
    (
        "K11 keep internal names",
        "msa.runtime.perf.counters:shown_name",
        lambda metric: metric,
        COUNT,
        "test_counter_lines_K11_PT14",
        (),
    ),
    (
        "K12 read the vector once for all row tiles",
        "msa.analysis.dot_strategy.execution:_Run._load_vector",
        lambda self, columns: self.vector[columns],
        DOT,
        "test_integers_are_exact_and_counted_PT8",
        (),
    ),
    (
        "PT2 let few blocks saturate memory",
        "msa.runtime.perf.kernels:achievable_bandwidth",
        lambda bandwidth, device, launch: bandwidth,
        "perf/test_roofline.py",
        "test_few_blocks_cannot_saturate_PT2",
        (),
    ),
    (
        "PT5 never slow down",
        "msa.runtime.perf.contention:concurrency_report",
        lambda timeline, capacity: type(
            "R", (), {"stall_seconds": 0.0, "peak_demand": 0.0, "intervals": ()}
        )(),
        ROOF,
        "test_contention_by_hand_PT5",
        (),
    ),
    (
        "PT18 believe the model",
        "msa.runtime.profile.feedback:ProfiledCostModel.correct",
        lambda self, instruction, modelled: None,
        PROFILE,
        "test_modelled_costs_become_measured_ones_PT18",
        (),
    ),
    (
        "DX2 never cut tables off",
        "msa.runtime.diag.usage:_Cut.shown",
        lambda self, sizes: (len(sizes), None),
        REPORT,
        "test_tables_stop_below_the_percentile_DX2",
        (),
    ),
    (
        "DX3 see no holes",
        "msa.runtime.diag.peak:_holes",
        lambda allocation, rows: [],
        REPORT,
        "test_live_sizes_and_holes_fill_the_temporaries_DX3",
        (),
    ),
    (
        "DX7 count suppressed leaks",
        "msa.runtime.diag.leaks:fnmatchcase",
        lambda name, pattern: False,
        LEAKS,
        "test_suppressions_DX7",
        (),
    ),
    (
        "DX9 find no cycle",
        "msa.runtime.diag.collective:_cycle",
        lambda waiting: (),
        LEAKS,
        "test_longer_cycles_DX9",
        (3,),
    ),
    (
        "DX11 look at no zone",
        "msa.runtime.diag.redzones:RedzoneAllocator.check",
        lambda self: [],
        TUNE,
        "test_red_zones_DX11",
        (),
    ),
]


def notices(test: Callable[[], None]) -> bool:
    """Whether a test fails."""
    try:
        test()
    except (AssertionError, pytest.fail.Exception, InvalidArgument, ExceptionGroup):
        return True
    return False


def test_a_spoiled_feature_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows in one test, so that none can be left out by a filter."""
    for number, (name, place, replacement, path, test, arguments) in enumerate(ROWS):
        tests = module_at(path)
        folder = tmp_path / str(number)
        folder.mkdir()
        values = [folder if a == "TMP" else a for a in arguments]
        where, _, what = place.partition(":")
        owner: Any = importlib.import_module(where)
        *parents, last = what.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        with monkeypatch.context() as spoiled:
            spoiled.setattr(owner, last, replacement)
            if not parents and hasattr(tests, last):
                spoiled.setattr(tests, last, replacement)
            spoiled_test = partial(getattr(tests, test), *values)
            assert notices(spoiled_test), name
        fresh = [tmp_path / f"{number}b" if a == "TMP" else a for a in arguments]
        getattr(tests, test)(*fresh)
