"""Plan modules on many targets: the curve from capacity to modelled time."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import json
import math
import multiprocessing
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msa.assignment import Options, assign
from msa.errors import ExecutionError, FileFormatError, MsaError, OptionsError
from msa.files import write_text
from msa.hlo import Module, parse
from msa.hlo.arguments import expect
from msa.report.sweep_arguments import Modules, check_places, targets_of, texts_of
from msa.report.tables import format_table
from msa.target import Target
from msa.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]

_UNITS: Final = 2
"""Units of work for each worker."""

_LONG: Final = 1_000_000
"""Bytes of text to plan that take some seconds."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One plan of a sweep; times in seconds, sizes in bytes.

    `error` is empty for a plan that was made, else the reason why there is none.

    >>> SweepRow("m", "tpu_v5e", 1 << 20, before_seconds=2.0, after_seconds=1.0).copies
    0
    """

    module: str
    target: str
    alternate_memory_bytes: int
    before_seconds: float = 0.0
    after_seconds: float = 0.0
    lower_bound_seconds: float = 0.0
    copy_stall_seconds: float = 0.0
    alternate_peak_bytes: int = 0
    copies: int = 0
    speedup: float = 1.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Rows of a sweep in the order modules × targets.

    >>> SweepResult((SweepRow("m", "tpu_v5e", 1 << 20),)).to_csv().splitlines()[1].split(",")[0]
    'm'
    """

    rows: tuple[SweepRow, ...]

    def curve(self, module: str, target: str) -> list[SweepRow]:
        """Plans of one module on one machine by growing capacity."""
        mine = [
            row
            for row in self.rows
            if (row.module, row.target) == (module, target) and not row.error
        ]
        return sorted(mine, key=lambda row: row.alternate_memory_bytes)

    def knee(self, module: str, target: str) -> SweepRow | None:
        """The capacity after which more memory stops paying.

        The point of the curve (capacity on a logarithmic axis, time) that lies
        farthest below the straight line between its ends; None for fewer than
        three points or a curve that never falls.
        """
        curve = self.curve(module, target)
        sizes = [math.log2(max(1, row.alternate_memory_bytes)) for row in curve]
        if len(curve) < 3 or sizes[0] == sizes[-1]:
            return None
        first, last = curve[0].after_seconds, curve[-1].after_seconds
        best, depth = None, 0.0
        for size, row in zip(sizes, curve, strict=True):
            share = (size - sizes[0]) / (sizes[-1] - sizes[0])
            below = first + (last - first) * share - row.after_seconds
            if below > depth:
                best, depth = row, below
        return best

    def table(self) -> str:
        """A table for people; `*` marks the knee of each curve."""
        return format_table(self.columns, self.cells(), right={3, 4, 5, 6, 7})

    @property
    def columns(self) -> tuple[str, ...]:
        """Heads of the table."""
        head = ("module", "target", "fast memory", "before", "after", "×", "bound")
        return (*head, "copies")

    def cells(self) -> list[tuple[str, ...]]:
        """Rows of the table as text."""
        knees = {
            id(self.knee(module, target))
            for module, target in {(row.module, row.target) for row in self.rows}
        }
        body: list[tuple[str, ...]] = []
        for row in self.rows:
            size = format_bytes(row.alternate_memory_bytes)
            mark = "*" if id(row) in knees else ""
            start = (row.module, row.target, size + mark)
            if row.error:
                body.append((*start, "", "", "", "", row.error))
                continue
            body.append(
                (
                    *start,
                    format_seconds(row.before_seconds),
                    format_seconds(row.after_seconds),
                    f"{row.speedup:.2f}",
                    format_seconds(row.lower_bound_seconds),
                    str(row.copies),
                )
            )
        return body

    def to_csv(self, path: str | Path | None = None) -> str:
        """Rows as CSV with a header; also written to `path` when given."""
        out = io.StringIO()
        names = [field.name for field in fields(SweepRow)]
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in self.rows)
        return write_text(out.getvalue(), path)

    def plot(self) -> Figure:
        """Curves with matplotlib (extra `viz`), knees marked."""
        from msa.report.plots import plot_sweep

        return plot_sweep(self)

    def __str__(self) -> str:
        return self.table()


def sweep(
    modules: Modules,
    targets: Iterable[Target | str],
    options: Options | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    journal: str | Path | None = None,
) -> SweepResult:
    """Plan every module on every target.

    Parameters:
        modules: modules or paths, or a mapping from names to them.
        targets: machines or preset names.
        options: planning options for all plans.
        executor: any `concurrent.futures.Executor`; a process pool by default. Work
            is sent as text, so remote executors (Dask's) need no shared files.
        progress: called as `(stage, done, total)` after each plan.
        journal: file that keeps finished rows; a second call with the same journal
            goes on where an interrupted one stopped.

    A plan that fails with a typed error becomes a row with `error` set. Where targets of
    one name differ in more than capacity, rows of the later ones say in what.

    Raises:
        OptionsError: there is nothing to plan, modules share a name, or an argument is
            of another kind.
        TargetError: a target is none, or has an unknown name.
        FileFormatError: `journal` is no journal, or cannot be one.
        ExecutionError: the executor lost its workers or cancelled work.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> base = msa.Target.preset("tpu_v5e")
    >>> targets = [base.replace(alternate_memory_bytes=s) for s in ("1MiB", "8MiB")]
    >>> with ThreadPoolExecutor(1) as pool:
    ...     result = sweep([module], targets, executor=pool)
    >>> [row.speedup > 1 for row in result.rows]
    [False, True]
    """
    given = Options() if options is None else options
    options = expect(given, Options, where="sweep", what="Options", error=OptionsError)
    check_places(executor, journal)
    machines = targets_of(targets)
    texts = texts_of(modules)
    if not texts or not machines:
        raise OptionsError("a sweep needs at least one module and one target")
    jobs = [(name, text, t) for name, text in texts.items() for t in machines]
    keys = [_key(text, target, options) for _, text, target in jobs]
    finished = _read_journal(journal)
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    todo = sorted(i for key, i in first.items() if key not in finished)
    if executor is not None:
        _run(jobs, keys, todo, options, finished, executor, progress, journal)
    elif len(todo) == 1 or (os.cpu_count() or 1) == 1:
        for count, i in enumerate(todo):
            _keep(finished, keys[i], plan_row(*jobs[i], options), journal)
            if progress is not None:
                progress("sweep", count + 1, len(todo))
    elif todo:
        with process_pool() as pool:
            _run(jobs, keys, todo, options, finished, pool, progress, journal)
    named = [(name, label) for name in texts for label in _labels(machines)]
    return SweepResult(
        tuple(
            replace(finished[key], module=name, target=label)
            for key, (name, label) in zip(keys, named, strict=True)
        )
    )


def process_pool(jobs: int | None = None) -> ProcessPoolExecutor:
    """Worker processes for a sweep; all cores by default.

    Processes are forked where that is the system's way, except when JAX is loaded: its
    threads do not survive a fork.
    """
    context = multiprocessing.get_context("spawn") if "jax" in sys.modules else None
    return ProcessPoolExecutor(jobs, mp_context=context)


def plan_row(name: str, text: str, target: Target, options: Options) -> SweepRow:
    """Plan one module on one target."""
    start = SweepRow(name, target.name, target.alternate_memory_bytes)
    try:
        plan = assign(_parsed(text), target, options)
        plan.verify()
    except MsaError as error:
        return SweepRow(*_place(start), error=f"{type(error).__name__}: {error}")
    estimate = plan.estimate
    return SweepRow(
        *_place(start),
        before_seconds=estimate.before_seconds,
        after_seconds=estimate.after_seconds,
        lower_bound_seconds=estimate.lower_bound_seconds,
        copy_stall_seconds=estimate.copy_stall_seconds,
        alternate_peak_bytes=plan.alternate_peak_bytes,
        copies=len(plan.copies),
        speedup=estimate.speedup,
    )


def _place(row: SweepRow) -> tuple[str, str, int]:
    return row.module, row.target, row.alternate_memory_bytes


@functools.lru_cache(maxsize=2)
def _parsed(text: str) -> Module:
    """A worker plans the same module on several targets: parse and analyse once."""
    return parse(text)


def _labels(machines: Sequence[Target]) -> list[str]:
    """Names of targets; where others of the name differ from the first, also in what."""
    firsts: dict[str, Target] = {}
    labels = []
    for machine in machines:
        first = firsts.setdefault(machine.name, machine).to_dict()
        other = [
            f"{field} {value:g}"
            for field, value in machine.to_dict().items()
            if field not in ("name", "alternate_memory_bytes") and value != first[field]
            if field != "async_copy_bandwidth"
            or (value, first[field])
            != (machine.default_memory_bandwidth, first["default_memory_bandwidth"])
        ]
        labels.append(", ".join((machine.name, *other)))
    return labels


def _run(
    jobs: Sequence[tuple[str, str, Target]],
    keys: Sequence[str],
    todo: Sequence[int],
    options: Options,
    finished: dict[str, SweepRow],
    executor: Executor,
    progress: Progress | None,
    journal: str | Path | None,
) -> None:
    futures: dict[Future[list[SweepRow]], list[int]] = {}
    # Some executors take work for the same that is given the same arguments, even if
    # it was cancelled.
    call = uuid.uuid4().hex
    count = 0
    try:
        for unit in _units(jobs, todo, executor):
            name, text, _ = jobs[unit[0]]
            targets = [jobs[i][2] for i in unit]
            future = executor.submit(_called, call, name, text, targets, options)
            futures[future] = unit
        for future in _completed(futures):
            for i, row in zip(futures[future], future.result(), strict=True):
                _keep(finished, keys[i], row, journal)
                count += 1
                if progress is not None:
                    progress("sweep", count, len(todo))
    except (BrokenExecutor, CancelledError) as error:
        raise ExecutionError(
            f"the executor lost work: {type(error).__name__} {error}".rstrip(),
            where="sweep",
            hint="give an executor that runs, and journal= to keep finished rows",
        ) from error
    finally:
        for future in futures:
            future.cancel()


def _called(
    call: str, name: str, text: str, targets: Sequence[Target], options: Options
) -> list[SweepRow]:
    """Plans of one module on some targets, by the call that wants them."""
    return [plan_row(name, text, target, options) for target in targets]


def _units(
    jobs: Sequence[tuple[str, str, Target]], todo: Sequence[int], executor: Executor
) -> list[list[int]]:
    """Jobs that one worker does in a row: plans of one module, which it reads once.

    A worker of a process pool gets two units or more, the longest first, so that
    all end together; none takes long, as rows are kept when their unit is done. For
    other executors, every job is a unit.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return [[i] for i in todo]
    workers: int = getattr(executor, "_max_workers", os.cpu_count() or 1)
    total = sum(len(jobs[i][1]) for i in todo)
    most = min(_LONG, total // (_UNITS * workers))
    units: list[list[int]] = []
    for i in todo:
        text = jobs[i][1]
        same = bool(units) and jobs[units[-1][0]][1] is text
        if same and (len(units[-1]) + 1) * len(text) <= most:
            units[-1].append(i)
        else:
            units.append([i])
    return sorted(units, key=lambda unit: -len(unit) * len(jobs[unit[0]][1]))


def _completed(
    futures: Mapping[Future[list[SweepRow]], list[int]],
) -> Iterable[Future[list[SweepRow]]]:
    """Futures as they finish; other kinds of futures in order of submission."""
    if all(isinstance(future, Future) for future in futures):
        return as_completed(futures)
    return list(futures)


def _keep(
    finished: dict[str, SweepRow], key: str, row: SweepRow, journal: str | Path | None
) -> None:
    finished[key] = row
    if journal is not None:
        with Path(journal).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"key": key, "row": asdict(row)}) + "\n")


def _read_journal(journal: str | Path | None) -> dict[str, SweepRow]:
    finished: dict[str, SweepRow] = {}
    if journal is None:
        return finished
    path = Path(journal)
    if not path.exists():
        if not path.parent.is_dir():
            raise FileFormatError("there is no such folder", where=str(path.parent))
        return finished
    try:
        text = path.read_bytes()
    except OSError as error:
        raise FileFormatError(
            f"cannot read the journal: {error.strerror}", where=str(path)
        ) from error
    *lines, torn = text.split(b"\n")
    if torn[: len(_ENTRY)] != _ENTRY[: len(torn)]:
        lines.append(torn)
        torn = b""
    for number, line in enumerate(lines, 1):
        try:
            entry: dict[str, Any] = json.loads(line)
            finished[entry["key"]] = SweepRow(**entry["row"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"not a sweep journal: {error}", where=f"{journal}:{number}"
            ) from error
    if torn:
        # The run was stopped while it wrote its last line; the next begins anew there.
        os.truncate(path, len(text) - len(torn))
    return finished


_ENTRY = b'{"key": "'


def _key(text: str, target: Target, options: Options) -> str:
    parts = (text, json.dumps(target.to_dict(), sort_keys=True), repr(options))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
