"""Checking a planned module from scratch.

Nothing of the algorithm is used, only the two modules and the table of offsets:
values, storage and times are worked out anew from the planned module as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping

from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.analysis.manager import AnalysisManager
from msa.assignment.verification.findings import Findings
from msa.assignment.verification.meaning import check_meaning
from msa.assignment.verification.overlap import check_overlap
from msa.assignment.verification.storage import Storage
from msa.assignment.verification.transfers import check_transfers
from msa.errors import HloVerifyError, PlanError
from msa.hlo.module import Module
from msa.hlo.verifier import verify as verify_module
from msa.target import Target

Chunks = Mapping[str, tuple[int, int]]
"""`name{index}` (or a name, for scratch) → offset and size in bytes."""


def verify_plan(
    original: Module,
    module: Module,
    chunks: Chunks,
    target: Target,
    *,
    scoped: Chunks | None = None,
    capacity: int | None = None,
    alternate_memory_space: int = 1,
) -> None:
    """Check that `module` is `original` with its values placed, and placed right.

    * It is a valid, completely scheduled module.
    * Every instruction of the original computes the same from the same values: what
      was put between only copies or renames them.
    * Copies start before they end, once each, and cross memories; nothing reads a
      result before its copy has ended.
    * All places of a buffer are in one memory; each buffer in alternate memory has
      one chunk, aligned, within capacity, and large enough.
    * No two chunks share bytes at a step at which both are needed, scratch included.
    * Values that share storage are not needed at once.

    Args:
        original: the scheduled module that was planned.
        module: the planned module.
        chunks: places in alternate memory.
        target: the machine; its alignment and (unless given) capacity are kept.
        scoped: scratch of instructions.
        capacity: bytes of alternate memory.
        alternate_memory_space: its number in layouts.

    Raises:
        PlanError: a rule is broken; `violations` lists all that were found.

    O(n log n) in the size of the module.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> verify_plan(plan.original, plan.module, plan.chunks, plan.target)
    """
    try:
        verify_module(module)
    except HloVerifyError as error:
        raise PlanError(
            f"the planned module is not valid: {error.violations[0]}",
            rule="valid module",
            violations=error.violations,
        ) from error
    findings = Findings()
    if not module.is_scheduled:
        findings.add("schedule", "the planned module has no schedule")
        findings.check()
    analyses = AnalysisManager(module)
    check_transfers(findings, original, module, alternate_memory_space)
    check_meaning(findings, original, module)
    findings.check()  # what follows relies on the values
    storage = Storage(analyses, findings, alternate_memory_space)
    storage.place(
        chunks,
        scoped or {},
        target.alternate_memory_bytes if capacity is None else capacity,
        target.alignment_bytes,
    )
    storage.check_spaces(original)
    check_overlap(findings, storage)
    for conflict in find_conflicts(
        analyses.dataflow, analyses.schedule, analyses.in_place
    ):
        findings.add(
            "shared storage",
            f"the storage of {conflict.value} is overwritten while it is needed: "
            f"{conflict.reason}",
            where=str(conflict.slot),
        )
    findings.check()
