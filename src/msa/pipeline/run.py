"""One flow from a module to addresses: offload, rematerialize, bind, place, check."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from msa.analysis import AnalysisManager, prepare
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.assignment import Assignment, assign
from msa.errors import CapacityError, PlanError
from msa.hlo import verify
from msa.hlo.module import Module
from msa.passes.arguments import module_of, one_of, options_of
from msa.passes.binding import (
    Binding,
    Kind,
    Platform,
    bind_memory_spaces,
    can_use_allocation,
)
from msa.passes.offload import LegalizeHostOffload, offload_to_host
from msa.passes.propagation import check_memory_spaces, propagate_memory_spaces
from msa.passes.rematerialization import Rematerialization, rematerialize
from msa.passes.suggestions import Suggestion, suggest
from msa.pipeline.options import PipelineOptions
from msa.pipeline.result import Address, PipelineResult, StageRecord
from msa.pipeline.sharing import SharedBuffers, share_buffers
from msa.pipeline.spaces import (
    as_placed,
    colors_of,
    is_placed,
    mark_placed,
    with_fast_memory,
    without_collective,
)
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
    spaces into fusions, give every value an address, map what devices share, prove the
    result by execution. Each stage leaves a record. A module that comes out is marked
    (`msa_placed_in` among its frontend attributes); given again, it keeps its placement.

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
    module = module_of(module, "pipeline.run")
    target = one_of(target, Target, "pipeline.run")
    options = options_of(options, PipelineOptions, "pipeline.run")
    if isinstance(platform, str):
        platform = Platform.preset(platform, target)
    platform = one_of(platform, Platform, "pipeline.run")
    return _Flow(module, target, options, platform).run()


class _Flow:
    def __init__(
        self,
        module: Module,
        target: Target,
        options: PipelineOptions,
        platform: Platform,
    ) -> None:
        self.module = module
        self.target = target
        self.options = options
        self.platform, self.fast = with_fast_memory(
            platform, target, options.assignment.alternate_memory_space
        )
        self.collective = self.platform.kind(Kind.COLLECTIVE)
        self.records: list[StageRecord] = []
        self.violations: list[str] = []
        self.reference = module
        self.analyses = AnalysisManager(module)

    def run(self) -> PipelineResult:
        self._stage("prepare", self._prepare)
        self._stage("offload", self._offload)
        rematerialization = self._stage("rematerialize", self._rematerialize)
        suggestions = self._stage("suggest", self._suggest)
        binding = self._stage("bind", self._bind)
        prepared = self.module
        plan = self._stage("place", self._place)
        self._stage("propagate", self._propagate)
        self._stage("audit", lambda: self._audit(plan))
        buffers = self._stage("buffers", lambda: self._buffers(plan))
        shared = self._stage("share", lambda: self._share(buffers))
        proof = self._stage("prove", lambda: self._prove(plan))
        return PipelineResult(
            self.module,
            prepared,
            tuple(self.records),
            plan,
            binding,
            suggestions,
            rematerialization,
            buffers,
            _sizes(buffers, plan),
            _places(self.analyses, buffers, plan),
            shared,
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
            self._report([result.shortfall().rstrip(":")])
        return result, f"{result.before_bytes} -> {result.after_bytes} bytes"

    def _suggest(self) -> tuple[tuple[Suggestion, ...], str]:
        found = suggest(self.module, self.target)
        asked = sum(s.annotated for s in found)
        return found, f"{len(found)} values, {asked} of them in a space already"

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
        options = self.options.assignment.replace(alternate_memory_space=self.fast)
        placed = is_placed(self.module, self.fast)
        if placed:
            options = as_placed(options)
        elif self.collective is not None:
            alias = AnalysisManager(self.module).alias
            options = without_collective(options, alias, self.options.binding.coloring)
        try:
            plan = assign(self.module, self.target, options)
        except CapacityError:
            if not placed:
                raise
            # An earlier plan found offsets that are not found again without its
            # knowledge: what is in fast memory stays there, and only that.
            aside = with_fast_memory(self.platform, self.target, 0)[1]
            plan = assign(
                self.module,
                self.target,
                options.replace(alternate_memory_space=aside),
            )
        self.module = plan.module
        before, after = plan.estimate.before_seconds, plan.estimate.after_seconds
        if after > before:
            self._report([f"placement takes {after:.3g} s instead of {before:.3g} s"])
        return plan, f"{len(plan.copies)} copies, {before:.3g} s -> {after:.3g} s"

    def _propagate(self) -> tuple[None, str]:
        self.module = propagate_memory_spaces(self.module)
        mark_placed(self.module, self.fast)
        found = check_memory_spaces(self.module, inside_fusions=True)
        self._report(found)
        return None, f"{len(found)} inconsistent values"

    def _audit(self, plan: Assignment) -> tuple[None, str]:
        plan.verify()
        verify(self.module)
        return None, "plan and module verified"

    def _buffers(self, plan: Assignment) -> tuple[BufferAssignment, str]:
        self.analyses = AnalysisManager(self.module)
        colors, reuse = None, None
        if self.collective is not None:
            colors = colors_of(self.analyses.alias, self.options.binding.coloring)
            reuse = can_use_allocation
        buffers = BufferAssignment.run(
            self.module,
            BufferAssignmentOptions(
                color=colors,
                can_use=reuse,
                temp_color=self.options.temporary_space,
                # Values in fast memory have their places from the plan.
                view_color=plan.options.alternate_memory_space,
            ),
            live=self.analyses.live_ranges,
        )
        self._report(list(self._over_limit(buffers)))
        total = sum(a.size for a in buffers.allocations)
        return buffers, f"{len(buffers.allocations)} allocations, {total} bytes"

    def _over_limit(self, buffers: BufferAssignment) -> Iterator[str]:
        """Memory spaces that hold too much, with what to try."""
        from msa.runtime.diag import assignment_shortfall

        asked = self.options.space_limit
        for space in sorted(buffers.total_by_color()):
            domain = self.platform.domains.get(space)
            limit = domain.capacity if domain else None
            if asked is not None and asked(space) > 0:
                limit = asked(space)
            if limit is None:
                continue
            found = assignment_shortfall(buffers, limit, space=space)
            if found is not None:
                name = self.platform.space_name(space)
                yield f"{name} memory: {found.to_text()}"

    def _share(self, buffers: BufferAssignment) -> tuple[SharedBuffers, str]:
        space = self.collective.space if self.collective else None
        shared = share_buffers(
            self.module,
            buffers,
            self.options.binding.coloring,
            space=space,
            processes=self.options.processes,
        )
        kinds = Counter(r.kind.value for rows in shared.requests.values() for r in rows)
        words = (f"{n} as {kind} memory" for kind, n in sorted(kinds.items()))
        return shared, ", ".join(words) or "nothing is shared"

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


def _sizes(buffers: BufferAssignment, plan: Assignment) -> dict[int, int]:
    """Bytes by memory space."""
    sizes = buffers.total_by_color()
    if plan.chunks:
        sizes[plan.options.alternate_memory_space] = plan.alternate_peak_bytes
    return sizes


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
