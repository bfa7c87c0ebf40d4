"""Checks a function on all paths, and against the meaning it had before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msa.dealloc.interpreter import Finding, Interpreter, Run, explore
from msa.dealloc.ir import Function
from msa.dealloc.verifier import verify_function
from msa.hlo.arguments import expect


@dataclass(slots=True)
class CheckReport:
    """Result of checking a function.

    Attributes:
        paths: number of paths run.
        findings: misuses of memory on any of them.
        differences: paths whose results are not those of the reference.
        alias_mutations: paths on which copying at merges changes the meaning (notes).
        peak_bytes, clone_bytes: the most of any path.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> report = check(function)
    >>> report.paths, report.clean, str(report.findings[0])
    (1, False, 'leak of a at return (path straight)')
    """

    paths: int = 0
    findings: list[Finding] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    alias_mutations: list[str] = field(default_factory=list)
    peak_bytes: int = 0
    clone_bytes: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings and not self.differences


def check(
    function: Function,
    reference: Function | None = None,
    marked: Iterable[str] = (),
    *,
    scripts: Iterable[Sequence[int]] | None = None,
    max_paths: int = 200,
    trips: Sequence[int] = (0, 1, 2),
) -> CheckReport:
    """Run a function on many paths.

    With a reference (the function before), results must equal those of the reference
    run without frees and with copies into the `marked` values; where that differs
    from the plain meaning the path is noted as an alias mutation.

    Raises:
        BufferIRError: a function breaks a rule of the IR.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> check(function).findings[0].kind.value
    'leak'
    """
    function = expect(function, Function, where="check", what="a Function")
    if reference is not None:
        reference = expect(reference, Function, where="check", what="a Function")
        verify_function(reference, frees=False)
    verify_function(function, frees=False)
    report = CheckReport()
    names = tuple(marked)
    if scripts is None:
        scripts = explore(reference or function, max_paths=max_paths, trips=trips)
    for script in scripts:
        run = Interpreter(function, script).run()
        report.paths += 1
        report.findings += run.findings
        report.peak_bytes = max(report.peak_bytes, run.peak_bytes)
        report.clone_bytes = max(report.clone_bytes, run.clone_bytes)
        if reference is None:
            continue
        plain = Interpreter(reference, script, frees=False).run()
        copied = Interpreter(reference, script, frees=False, copy_into=names).run()
        where = ",".join(map(str, script)) or "straight"
        if _observable(plain) != _observable(copied):
            report.alias_mutations.append(where)
        if _observable(run) != _observable(copied):
            report.differences.append(where)
    return report


def _observable(run: Run) -> tuple[list[list[int]], list[list[int]]]:
    return run.returned, run.arguments
