"""One flow from a module to addresses: offload, rematerialize, bind, place, check."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from msa.analysis import AnalysisManager, prepare
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.assignment import Assignment, assign
from msa.errors import PlanError
from msa.hlo import verify
from msa.hlo.module import Module
from msa.passes.binding import Binding, Platform, bind_memory_spaces, can_use_allocation
from msa.passes.offload import LegalizeHostOffload, offload_to_host
from msa.passes.propagation import check_memory_spaces, propagate_memory_spaces
from msa.passes.rematerialization import Rematerialization, rematerialize
from msa.pipeline.options import PipelineOptions
from msa.pipeline.result import Address, PipelineResult, StageRecord
from msa.target import Target

T = TypeVar("T")


def run(
    module: Module,
    target: Target,
    options: PipelineOptions | None = None,
    *,
    platform: Platform | str = "tpu",
) -> PipelineResult:
    """Take a module through every stage, in a fixed order; it is not changed.

    Prepare (schedule, missing copies), follow host annotations, rematerialize to the
    limit of default memory, bind values to memories, place in fast memory, carry
    spaces into fusions, give every value an address, prove the result by execution.
    Each stage leaves a record.

    Args:
        module: the program.
        target: the machine.
        options: of the stages.
        platform: whose memories values are bound to.

    Raises:
        MsaError: a stage's own error; with `fail_fast`, also a violation.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[64,64]{1,0} parameter(0)
    ...   y = f32[64,64]{1,0} negate(x)
    ...   ROOT z = f32[64,64]{1,0} exponential(y)
    ... }''')
    >>> result = run(module, msa.Target.preset("tpu_v5e"))
    >>> [record.name for record in result.records][:3], result.violations
    (['prepare', 'offload', 'rematerialize'], ())
    >>> result.address("y").space
    1
    """
    return _Flow(module, target, options or PipelineOptions(), platform).run()


class _Flow:
    def __init__(
        self,
        module: Module,
        target: Target,
        options: PipelineOptions,
        platform: Platform | str,
    ) -> None:
        self.module = module
        self.target = target
        self.options = options
        if isinstance(platform, str):
            platform = Platform.preset(platform, target)
        self.platform = platform
        self.records: list[StageRecord] = []
        self.violations: list[str] = []
        self.reference = module
        self.analyses = AnalysisManager(module)

    def run(self) -> PipelineResult:
        self._stage("prepare", self._prepare)
        self._stage("offload", self._offload)
        rematerialization = self._stage("rematerialize", self._rematerialize)
        binding = self._stage("bind", self._bind)
        prepared = self.module
        plan = self._stage("place", self._place)
        self._stage("propagate", self._propagate)
        self._stage("audit", lambda: self._audit(plan))
        buffers = self._stage("buffers", self._buffers)
        proof = self._stage("prove", lambda: self._prove(plan))
        sizes: dict[int, int] = {}
        for allocation in buffers.allocations:
            sizes[allocation.color] = sizes.get(allocation.color, 0) + allocation.size
        return PipelineResult(
            self.module,
            prepared,
            tuple(self.records),
            plan,
            binding,
            rematerialization,
            buffers,
            sizes,
            _places(self.analyses, buffers, plan),
            tuple(self.violations),
            proof,
        )

    def _stage(self, name: str, work: Callable[[], tuple[T, str]]) -> T:
        before, start = self.module, time.perf_counter()
        result, summary = work()
        self.records.append(
            StageRecord(
                name,
                summary,
                self.module != before,
                before.instruction_count,
                self.module.instruction_count,
                time.perf_counter() - start,
            )
        )
        return result

    def _report(self, violations: list[str]) -> None:
        self.violations += violations
        if violations and self.options.fail_fast:
            raise PlanError(violations[0], where=self.records[-1].name)

    # -- stages --------------------------------------------------------------

    def _prepare(self) -> tuple[None, str]:
        verify(self.module)
        self.module = prepare(self.module)
        return None, f"{self.module.instruction_count} instructions"

    def _offload(self) -> tuple[None, str]:
        legal = self.module.clone()
        LegalizeHostOffload().apply(legal, AnalysisManager(legal))
        result = offload_to_host(
            legal,
            automatic_host_compute=self.options.automatic_host_compute,
        )
        self.reference = self.module
        if result.module == self.module:
            return None, "no annotations"
        self.module = self.reference = prepare(result.module)
        return None, f"{len(result.host_compute)} operations run on the host"

    def _rematerialize(self) -> tuple[Rematerialization | None, str]:
        limit = self.options.memory_limit_bytes
        if limit is None:
            return None, "no limit"
        result = rematerialize(self.module, limit, **self.options.rematerialization)
        self.module = result.module
        if not result.fits:
            self._report([result.summary().splitlines()[0]])
        return result, f"{result.before_bytes} -> {result.after_bytes} bytes"

    def _bind(self) -> tuple[Binding, str]:
        alias = AnalysisManager(self.module).alias
        binding = bind_memory_spaces(
            self.module, self.platform, self.options.binding, alias=alias
        )
        self._report(list(binding.violations))
        kinds: dict[str, int] = {}
        for row in binding.rows:
            kinds[row.domain.kind.value] = kinds.get(row.domain.kind.value, 0) + 1
        return binding, ", ".join(f"{n} in {k}" for k, n in sorted(kinds.items()))

    def _place(self) -> tuple[Assignment, str]:
        plan = assign(self.module, self.target, self.options.assignment)
        self.module = plan.module
        before, after = plan.estimate.before_seconds, plan.estimate.after_seconds
        if after > before:
            self._report([f"placement takes {after:.3g} s instead of {before:.3g} s"])
        return plan, f"{len(plan.copies)} copies, {before:.3g} s -> {after:.3g} s"

    def _propagate(self) -> tuple[None, str]:
        self.module = propagate_memory_spaces(self.module)
        found = check_memory_spaces(self.module, inside_fusions=True)
        self._report(found)
        return None, f"{len(found)} inconsistent values"

    def _audit(self, plan: Assignment) -> tuple[None, str]:
        plan.verify()
        verify(self.module)
        return None, "plan and module verified"

    def _buffers(self) -> tuple[BufferAssignment, str]:
        self.analyses = AnalysisManager(self.module)
        buffers = BufferAssignment.run(
            self.module,
            BufferAssignmentOptions(
                can_use=can_use_allocation, temp_color=self.options.temporary_space
            ),
            live=self.analyses.live_ranges,
        )
        total = sum(a.size for a in buffers.allocations)
        return buffers, f"{len(buffers.allocations)} allocations, {total} bytes"

    def _prove(self, plan: Assignment) -> tuple[str, str]:
        if not self.options.prove:
            return "", "not asked for"
        # The interpreter knows no annotations: what follows them is compared with
        # the module in which they have been followed.
        from msa.runtime.proving.prove import prove_lowered

        proof = prove_lowered(
            self.reference,
            self.module,
            self.target,
            chunks=plan.chunks,
            scratch=plan.scoped_chunks,
            seed=self.options.seed,
            alternate_space=plan.options.alternate_memory_space,
        )
        return str(proof), str(proof)


def _places(
    analyses: AnalysisManager, buffers: BufferAssignment, plan: Assignment
) -> dict[str, Address]:
    """Addresses of all values with storage, by defining position."""
    space = plan.options.alternate_memory_space
    values = {v.id: v for v in analyses.dataflow.values}
    places: dict[str, Address] = {}
    for allocation in buffers.allocations:
        for number, (offset, _) in allocation.assigned.items():
            value = values.get(number)
            if value is not None and not allocation.is_thread_local:
                places[str(value.position)] = Address(
                    allocation.color, allocation.index, offset
                )
    for place, (offset, _) in plan.chunks.items():
        places[place] = Address(space, -1, offset)
    return places
