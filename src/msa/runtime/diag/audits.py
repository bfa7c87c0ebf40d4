"""Checks of a placement, and every violation as a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from msa.analysis.buffer_assignment import BufferAssignment
from msa.assignment import Assignment
from msa.assignment.verification import verify_plan
from msa.dealloc import check, place_in_function
from msa.dealloc.from_hlo import lower_module
from msa.errors import MsaError, PlanError
from msa.hlo.module import Module
from msa.target import Target


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A violation.

    Attributes:
        rule, text: what is broken, and how.
        where: the instruction or place, with its step where there is one.
        numbers: the figures by name: `step`, `offset`, `other_offset`, bytes.

    >>> AuditRow("overlap", "a and b", "step 3, a{}", {"offset": 0}).numbers
    {'offset': 0}
    """

    rule: str
    text: str
    where: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything that is wrong with a placement; `checks` names what was looked at.

    >>> AuditReport("m", ("plan",), (AuditRow("overlap", "a and b"),)).clean
    False
    """

    module: str
    checks: tuple[str, ...]
    rows: tuple[AuditRow, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "clean": self.clean}

    def to_text(self) -> str:
        """For a terminal."""
        head = f"{self.module}: {len(self.rows)} violations ({', '.join(self.checks)})"
        return "\n".join([head, *map(_shown, self.rows)])


def _shown(row: AuditRow) -> str:
    figures = ", ".join(f"{name} {n}" for name, n in row.numbers.items())
    place = f"{row.where}: " if row.where else ""
    return f"  {row.rule}: {place}{row.text}" + (f" ({figures})" if figures else "")


def joined(*reports: AuditReport) -> AuditReport:
    """Several audits of one module as one.

    >>> joined(AuditReport("m", ("plan",), ()), AuditReport("m", ("lifetimes",), ())).checks
    ('plan', 'lifetimes')
    """
    return AuditReport(
        reports[0].module,
        tuple(check for report in reports for check in report.checks),
        tuple(row for report in reports for row in report.rows),
    )


def audit(
    module: Module,
    result: Assignment | BufferAssignment | Chunks,
    target: Target | None = None,
    *,
    original: Module | None = None,
) -> AuditReport:
    """Check what a planner or an assigner says against the module.

    Plans: chunks that overlap while both are needed, capacity and alignment, values
    read before their copy has ended, buffers split between memories, sources freed
    too early, loops. Assignments: ranges that overlap, sizes, sharing.

    Args:
        module: the placed module.
        result: a plan, a buffer assignment, or chunks by `name{index}`.
        target: needed for chunks.
        original: the module before, needed for chunks.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { p = f32[1024]{0} parameter(0) n = f32[1024]{0} negate(p)
    ...           ROOT a = f32[1024]{0} abs(n) }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> audit(plan.module, plan).clean
    True
    """
    if isinstance(result, Assignment):
        return _audited(module, "plan", result.verify)
    if isinstance(result, BufferAssignment):
        return _audited(module, "buffer assignment", result.verify)
    if target is None or original is None:
        raise PlanError("auditing chunks needs the target and the original module")
    known, before = target, original
    return _audited(module, "plan", lambda: verify_plan(before, module, result, known))


def audit_lifetimes(module: Module, *, max_paths: int = 50) -> AuditReport:
    """Check that every buffer of a module is freed once on every explored path.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> audit_lifetimes(module).clean
    True
    """
    program = lower_module(module)
    freed, placed = place_in_function(program.function)
    report = check(freed, program.function, placed.marked, max_paths=max_paths)
    rows = [
        AuditRow(finding.kind.value, str(finding), finding.object)
        for finding in report.findings
    ]
    rows += [AuditRow("meaning", text) for text in report.differences]
    return AuditReport(module.name, ("lifetimes",), tuple(rows))


Chunks = dict[str, tuple[int, int]]
"""`name{index}` → offset and bytes."""


def _audited(module: Module, what: str, verify: Any) -> AuditReport:
    rows: tuple[AuditRow, ...] = ()
    try:
        verify()
    except PlanError as error:
        rows = tuple(
            AuditRow(rule or what, text, where, dict(numbers))
            for rule, text, where, numbers in error.rows
        )
    except MsaError as error:
        rows = (AuditRow(type(error).__name__, error.message, error.where),)
    return AuditReport(module.name, (what,), rows)
