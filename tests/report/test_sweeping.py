"""Sweeps: rows, journals that were torn, knees of curves."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import msa
import msa.testing
from msa.errors import ExecutionError, FileFormatError, OptionsError, TargetError
from msa.report import SweepResult, SweepRow, sweep
from msa.report.sweeping import _units, process_pool

TEXT = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[1024,1024]{1,0} parameter(0)
  b = f32[1024,1024]{1,0} negate(a)
  ROOT c = f32[1024,1024]{1,0} exponential(b)
}
"""
MIB = 1 << 20
BASE = msa.Target.preset("tpu_v5e")
TARGETS = [BASE.replace(alternate_memory_bytes=n * MIB) for n in (1, 4, 8)]


def swept(modules: object, targets: object = TARGETS, **more: object) -> SweepResult:
    with ThreadPoolExecutor(1) as pool:
        return sweep(modules, targets, executor=pool, **more)  # type: ignore[arg-type]


def curve(*points: tuple[int, float]) -> SweepResult:
    return SweepResult(
        tuple(SweepRow("m", "t", size, after_seconds=time) for size, time in points)
    )


def test_one_program_under_two_names_has_rows_of_both() -> None:
    module, told = msa.parse(TEXT), []
    result = swept({"a": module, "b": module}, progress=lambda *x: told.append(x))
    assert [row.module for row in result.rows] == ["a"] * 3 + ["b"] * 3
    assert result.curve("a", "tpu_v5e")[1].speedup > 1
    # It is planned once per target.
    assert told == [("sweep", n, 3) for n in (1, 2, 3)]


def test_a_target_given_twice_is_planned_once() -> None:
    told: list[object] = []
    result = swept(
        [msa.parse(TEXT)], [*TARGETS, *TARGETS], progress=lambda *x: told.append(x)
    )
    assert (len(result.rows), len(told)) == (6, 3)


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    longer = TEXT.replace("b = ", "x = f32[8]{0} parameter(1)\n  b = ")
    modules = {"a": msa.parse(TEXT), "b": msa.parse(longer)}
    told: list[object] = []
    journal = tmp_path / "journal"
    with process_pool(2) as pool:
        rows = sweep(
            modules,
            TARGETS,
            executor=pool,
            journal=journal,
            progress=lambda *x: told.append(x),
        )
    assert rows == swept(modules)
    assert told == [("sweep", n, 6) for n in range(1, 7)]
    assert len(journal.read_text().splitlines()) == 6


def test_a_worker_plans_one_module_on_several_targets() -> None:
    jobs = [("a", "x" * 10, t) for t in TARGETS * 4]
    jobs += [("b", "y" * 1000, t) for t in TARGETS * 4]
    everything = range(len(jobs))
    with process_pool(2) as pool:
        units = _units(jobs, everything, pool)
    # No unit is more than half of what a worker does; the long ones come first, the
    # short ones are one unit together.
    assert sorted(i for unit in units for i in unit) == list(everything)
    assert [len(unit) for unit in units] == [3] * 4 + [12]
    assert all(len({jobs[i][0] for i in unit}) == 1 for unit in units)
    with ThreadPoolExecutor(2) as threads:
        assert len(_units(jobs, everything, threads)) == len(jobs)


@pytest.mark.parametrize("left", [0, 3, 40, -1])
def test_a_torn_journal_is_gone_on_with_more_than_once(
    tmp_path: Path, left: int
) -> None:
    journal = tmp_path / "journal"
    module = msa.parse(TEXT)
    expected = swept([module], journal=journal)
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    journal.write_text(lines[0] + lines[1][:left])
    told: list[object] = []
    again = swept([module], journal=journal, progress=lambda *x: told.append(x))
    assert (again, len(told)) == (expected, 2)
    told.clear()
    again = swept([module], journal=journal, progress=lambda *x: told.append(x))
    assert (again, told) == (expected, [])
    assert sorted(journal.read_text().splitlines()) == sorted(map(str.strip, lines))


@pytest.mark.parametrize("data", [b"not a journal", b"null\n", b"[1]\n", b"\xff\xfe\n"])
def test_another_file_is_no_journal_and_left_alone(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="not a sweep journal"):
        swept([msa.parse(TEXT)], journal=path)
    assert path.read_bytes() == data


def test_where_no_journal_can_be_nothing_is_planned(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "journal"):
        with pytest.raises(FileFormatError, match=r"journal|folder"):
            swept([msa.parse(TEXT)], journal=path)


def test_targets_are_a_sequence() -> None:
    for targets in (BASE, "tpu_v5e", None, 5):
        with pytest.raises(OptionsError, match="sequence"):
            swept([msa.parse(TEXT)], targets)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (msa.parse(TEXT), "sequence or a mapping"),
        (Path("m.hlo"), "sequence or a mapping"),
        (None, "sequence or a mapping"),
        ([None], "modules and paths, not None"),
        ({"a": 5}, "modules and paths, not 5"),
        ({5: msa.parse(TEXT)}, "names as text, not 5"),
        ([msa.parse(TEXT), msa.parse(TEXT)], "two modules are named 'm'"),
        ([], "at least one module"),
    ],
)
def test_what_is_no_module_is_refused(modules: object, message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        swept(modules)


def test_other_arguments_of_the_wrong_kind_are_refused() -> None:
    modules = [msa.parse(TEXT)]
    for target in (None, 5, [BASE]):
        with pytest.raises(TargetError, match="takes targets and names of presets"):
            swept(modules, [BASE, target])
    with pytest.raises(OptionsError, match="takes Options, not 'search'"):
        swept(modules, options="search")
    with pytest.raises(OptionsError, match="takes the path of a journal, not 5"):
        swept(modules, journal=5)
    with pytest.raises(OptionsError, match="`submit`, and 4 has none"):
        sweep(modules, TARGETS, executor=4)  # type: ignore[arg-type]


def test_bandwidths_of_one_name_are_curves_apart() -> None:
    faster = [t.replace(default_memory_bandwidth=1e12) for t in TARGETS]
    result = swept([msa.parse(TEXT)], [*TARGETS, *faster])
    other = "tpu_v5e, default_memory_bandwidth 1e+12"
    for name, rate in (("tpu_v5e", 819e9), (other, 1e12)):
        rows = result.curve("m", name)
        assert [row.alternate_memory_bytes // MIB for row in rows] == [1, 4, 8]
        # Two operations read and write 4 MiB each.
        for row in rows:
            assert row.before_seconds == pytest.approx(16 * MIB / rate)


def test_curves_apart_where_the_later_target_copies_as_fast_as_it_reads() -> None:
    slow = BASE.replace(async_copy_bandwidth=1e11)
    assert BASE.async_copy_bandwidth == BASE.default_memory_bandwidth == 819e9
    found = swept([msa.parse(TEXT)], [slow, BASE]).rows
    assert [row.target for row in found] == [
        "tpu_v5e",
        "tpu_v5e, async_copy_bandwidth 8.19e+11",
    ]


def test_knees_are_found_between_powers_of_two() -> None:
    found = curve((4 * MIB, 9.0), (5 * MIB, 5.0), (6 * MIB, 4.9), (7 * MIB, 4.8))
    knee = found.knee("m", "t")
    assert knee is not None
    assert knee.alternate_memory_bytes == 5 * MIB


def test_flat_rising_and_short_curves_have_no_knee() -> None:
    flat = [(n * MIB, 1.0) for n in (1, 2, 4)]
    rising = [(MIB, 1.0), (2 * MIB, 1.5), (4 * MIB, 2.0)]
    for points in (flat, rising, flat[:1], flat[:2], [], [(MIB, 2.0)] * 3):
        assert curve(*points).knee("m", "t") is None


class Remembering(Executor):
    """Work with the same arguments is one piece of work, as Dask has it.

    A piece that was cancelled stays so.
    """

    def __init__(self) -> None:
        self._known: dict[object, Future[Any]] = {}

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        key = (fn, repr(args))
        if key not in self._known:
            future = self._known[key] = Future()
            if len(self._known) % 3:
                future.set_result(fn(*args, **kwargs))
        return self._known[key]


def stop(stage: str, done: int, total: int) -> None:
    if done == 2:
        raise KeyboardInterrupt


def test_a_sweep_that_was_interrupted_is_gone_on_with_on_the_same_executor(
    tmp_path: Path,
) -> None:
    executor, journal = Remembering(), tmp_path / "journal"
    module = msa.parse(TEXT)
    with pytest.raises(KeyboardInterrupt):
        sweep([module], TARGETS, executor=executor, progress=stop, journal=journal)
    rest = sweep([module], TARGETS, executor=executor, journal=journal)
    assert rest.rows == swept([module]).rows


def test_lost_workers_are_a_typed_error(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(Exception, match="terminated"):
            pool.submit(os._exit, 1).result()
        with pytest.raises(ExecutionError, match="lost work: BrokenProcessPool"):
            sweep([msa.parse(TEXT)], TARGETS, executor=pool)


@pytest.mark.oracle
def test_on_a_dask_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    journal = tmp_path / "journal"
    modules = {"a": msa.parse(TEXT), "b": msa.testing.random_module(1, size=30)}
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        with pytest.raises(KeyboardInterrupt):
            sweep(modules, TARGETS, executor=executor, progress=stop, journal=journal)
        kept = len(journal.read_text().splitlines())
        told: list[object] = []
        rest = sweep(
            modules,
            TARGETS,
            executor=executor,
            journal=journal,
            progress=lambda *x: told.append(x),
        )
    assert kept == 2
    assert len(told) == 2 * len(TARGETS) - kept
    assert rest.rows == swept(modules).rows
