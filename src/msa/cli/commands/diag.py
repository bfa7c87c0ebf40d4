"""`msa diag`: usage, peaks, timelines, leaks, shortfalls, comparisons, audits."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msa.cli import arguments, files
from msa.errors import FileFormatError, OptionsError

if TYPE_CHECKING:
    from msa.analysis import BufferAssignment
    from msa.hlo import Module

EXAMPLES = (
    "msa diag peak examples/gpt2_small_forward.hlo.gz --top 20",
    "msa diag roofline examples/gpt2_small_forward.hlo.gz --alternate-memory 16MiB",
)
EXIT_ONE = "something was found that should not be: a leak, a shortfall, a violation"

KINDS: Final = {
    "usage": "allocations by memory space and size, and the values in each",
    "peak": "what is live where memory is fullest",
    "timeline": "memory in use over time",
    "leaks": "buffers that a path does not free (HLO, or text of the buffer IR)",
    "oom": "why a limit is exceeded, and what to try (needs --limit)",
    "compare": "two modules side by side (needs a second file)",
    "audit": "check the planned module against its offsets, and that all is freed",
    "roofline": "instructions that memory bandwidth limits",
    "loops": "one iteration of each loop: bound, and what fast memory makes of it",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    lines = "\n".join(f"  {name:<10}{text}" for name, text in KINDS.items())
    parser.epilog = f"kinds:\n{lines}\n\n{parser.epilog}"
    parser.add_argument("kind", choices=list(KINDS), metavar="KIND")
    arguments.add_module(parser)
    parser.add_argument("other", nargs="?", metavar="MODULE", help="to compare with")
    arguments.add_target(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--space", type=int, help="memory space (default: all)")
    parser.add_argument("--top", type=int, default=15, help="rows (default: 15)")
    parser.add_argument("--limit", metavar="SIZE", help="bytes, such as 16GiB")


def run(options: argparse.Namespace) -> int:
    """Diagnose; 1 if something was found that should not be."""
    data, text, found = _RUN[options.kind](options)
    if options.json:
        text = json.dumps(data, indent=1, sort_keys=True)
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 1 if found else 0


_Outcome = tuple[Any, str, bool]


def _assignment(options: argparse.Namespace) -> BufferAssignment:
    from msa.analysis import BufferAssignment

    return BufferAssignment.run(_ready(files.read_module(options.module)))


def _ready(module: Module) -> Module:
    from msa.analysis import CallGraph, prepare

    if module.is_scheduled and CallGraph.run(module).is_flattened:
        return module
    return prepare(module)


def _usage(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.diag import usage_report
    from msa.runtime.diag.usage import PlacedAllocation

    if options.module.endswith(".json"):
        rows = [
            PlacedAllocation(a.index, a.size, a.color)
            for a in _saved_allocations(options.module)
        ]
        report = usage_report(_in_space(rows, options), more_than_k=options.top)
    else:
        from msa.runtime.diag.usage import placed_allocations

        placed = placed_allocations(_assignment(options))
        report = usage_report(_in_space(placed, options), more_than_k=options.top)
    return report.to_dict(), report.to_text(), False


def _in_space(rows: list[Any], options: argparse.Namespace) -> list[Any]:
    return [r for r in rows if options.space in (None, r.color)]


def _saved_allocations(path: str) -> list[Any]:
    from msa.analysis.buffer_assignment import load_allocations

    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot be read: {error}", where=path) from error
    return load_allocations(data)


def _peak(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.diag import peak_report

    report = peak_report(_assignment(options))
    data = report.to_dict()
    if options.space is not None:
        data["spaces"] = [s for s in data["spaces"] if s["space"] == options.space]
    return data, report.to_text(options.top), False


def _timeline(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.diag import usage_timeline

    timeline = usage_timeline(_assignment(options), options.space)
    return timeline.to_dict(), timeline.to_text(), False


def _leaks(options: argparse.Namespace) -> _Outcome:
    from msa.dealloc import check, parse, place_in_function
    from msa.dealloc.from_hlo import lower_module
    from msa.runtime.diag import buffer_leaks, leak_report

    text = files.read_text(options.module)
    leaks = []
    if text.lstrip().startswith("func"):
        for function in parse(text).functions.values():
            leaks += buffer_leaks(check(function).findings, function.name)
    else:
        import msa

        program = lower_module(_ready(msa.parse(text)))
        freed, _ = place_in_function(program.function)
        leaks += buffer_leaks(check(freed).findings, freed.name)
    report = leak_report(leaks)
    return report.to_dict(), report.to_text(), report.failed


def _oom(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.diag import assignment_shortfall
    from msa.units import parse_bytes

    if options.limit is None:
        raise OptionsError("oom needs a limit", hint="--limit 16GiB")
    limit = parse_bytes(options.limit)
    found = assignment_shortfall(
        _assignment(options), limit, space=options.space or 0, top=options.top
    )
    if found is None:
        return {"shortfall": 0}, "it fits", False
    return found.to_dict(), found.to_text(), True


def _compare(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.diag import compare

    if options.other is None:
        raise OptionsError("compare needs two modules", hint="msa diag compare A B")
    before, after = files.read_module(options.module), files.read_module(options.other)
    result = compare(before, after, arguments.target_of(options))
    return result.to_dict(), result.to_text(), False


def _audit(options: argparse.Namespace) -> _Outcome:
    import msa
    from msa.runtime.diag import audit, audit_lifetimes
    from msa.runtime.diag.audits import joined

    plan = msa.assign(files.read_module(options.module), arguments.target_of(options))
    report = joined(audit(plan.module, plan), audit_lifetimes(plan.original))
    return report.to_dict(), report.to_text(), not report.clean


def _roofline(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.perf import DeviceDescription, bandwidth_limited

    target = arguments.target_of(options)
    report = bandwidth_limited(
        files.read_module(options.module),
        DeviceDescription.of_target(target),
        top=options.top,
        fast_bandwidth=target.alternate_read_bandwidth,
    )
    return report.to_dict(), report.to_text(), False


def _loops(options: argparse.Namespace) -> _Outcome:
    from msa.runtime.perf import loop_bound

    module, target = files.read_module(options.module), arguments.target_of(options)
    bounds = [
        loop_bound(x, target)
        for computation in module.computations
        for x in computation.instructions
        if x.opcode == "while"
    ]
    bounds.sort(key=lambda b: (-b.seconds * (b.trips or 1), b.loop))
    text = "\n".join(b.to_text() for b in bounds[: options.top]) or "no loops"
    return {"loops": [b.to_dict() for b in bounds[: options.top]]}, text, False


_RUN: Final[dict[str, Callable[[argparse.Namespace], _Outcome]]] = {
    "usage": _usage,
    "peak": _peak,
    "timeline": _timeline,
    "leaks": _leaks,
    "oom": _oom,
    "compare": _compare,
    "audit": _audit,
    "roofline": _roofline,
    "loops": _loops,
}
