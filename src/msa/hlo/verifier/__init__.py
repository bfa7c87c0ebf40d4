"""The verifier: every rule that a module breaks, in one report.

Source of the rules: `xla/service/hlo_verifier.cc`.
"""

from __future__ import annotations

from msa.collection import collection_paused
from msa.errors import HloVerifyError
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.hlo.verifier.asynchronous import check_async_operations
from msa.hlo.verifier.calls import check_calls
from msa.hlo.verifier.computations import Findings, check_computation
from msa.hlo.verifier.configuration import check_configuration
from msa.hlo.verifier.devices import check_devices
from msa.hlo.verifier.instructions import InstructionChecker
from msa.hlo.verifier.report import Report
from msa.hlo.verifier.scheduling import check_schedule

__all__ = ["find_violations", "verify"]


def verify(module: Module) -> None:
    """Check a module against the rules of the IR; linear in its size.

    Checked are operand counts, shapes, element types and dimension numbers of every
    known opcode, layouts, called computations and the call graph, asynchronous
    pairs, names, the graph's edges and its acyclicity, parameters and roots, the
    schedule, aliases and buffer donors, and the entry's layout. Opcodes that the
    library does not know are passed over.

    Raises:
        HloVerifyError: the module breaks rules; `violations` lists every one with
            instruction, computation and source line.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   p = f32[4,8] parameter(0)
    ...   ROOT n = f32[3,8] negate(p)
    ... }''', verify=False)
    >>> find_violations(module)
    ['line 4: n in main: negate gives f32[4,8], not f32[3,8]']
    """
    violations = find_violations(module)
    if violations:
        raise HloVerifyError(violations)


def find_violations(module: Module) -> list[str]:
    """What `verify` would complain about, as text; empty for a good module."""
    expect(module, Module, where="verify", what="a Module", hint="msa.parse(text)")
    report, findings = Report(), Findings()
    checker = InstructionChecker(report)
    with collection_paused():
        for computation in module.computations:
            check_computation(report, computation, checker, findings)
        check_calls(report, module, findings.callers)
        check_async_operations(report, findings.asynchronous)
        check_devices(report, module, findings.collectives)
        check_schedule(report, module, findings.disordered)
        check_configuration(report, module)
    return report.violations
