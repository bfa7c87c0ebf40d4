"""Which memory each value lives in, and why."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msa.analysis.alias import AliasAnalysis
from msa.analysis.values import HloBuffer, Value
from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.arguments import module_of, one_of, options_of
from msa.passes.binding.annotations import placed_domain, placement_of
from msa.passes.binding.coloring import (
    GpuColoring,
    Wish,
    annotation_wishes,
    compose,
    layout_wishes,
    wish_of,
)
from msa.passes.binding.domains import Kind, MemoryDomain, Platform
from msa.passes.binding.kernels import KernelBudget, KernelPlace, bind_kernel
from msa.passes.binding.legality import DomainOf, violations
from msa.passes.runs import runs_of


@dataclass(frozen=True, slots=True)
class BindingOptions:
    """Settings of `bind_memory_spaces`.

    Attributes:
        coloring: what asks for collective memory (on GPUs).
        constant_limit: largest constant in constant memory, bytes.
        kernel: memory of a kernel (on GPUs).
    """

    coloring: GpuColoring = field(default_factory=GpuColoring)
    constant_limit: int = 64 << 10
    kernel: KernelBudget = field(default_factory=KernelBudget)

    def __post_init__(self) -> None:
        one_of(self.coloring, GpuColoring, "BindingOptions.coloring")
        one_of(self.kernel, KernelBudget, "BindingOptions.kernel")
        one_of(self.constant_limit, int, "BindingOptions.constant_limit")


@dataclass(frozen=True, slots=True)
class Bound:
    """A value and its memory.

    Attributes:
        value: defining position, as text.
        bytes: of the value.
        domain: where it lives.
        reason: `layout`, `annotation`, `collective`, `offload`, `constant`,
            `fused-register`, `fused-shared`, `spill`, `placement` or `default`.
        note: in words.
        score: seconds of all its reads and writes there.
        rejected: other memories and their score or why not, best first.
    """

    value: str
    bytes: int
    domain: MemoryDomain
    reason: str
    note: str
    score: float
    rejected: tuple[tuple[Kind, str], ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """Where all values of a module live.

    Attributes:
        platform: whose memories they are.
        rows: one per value, in order of definition.
        violations: what the platform does not allow.

    >>> import msa
    >>> module = msa.parse("ENTRY e { ROOT x = f32[8]{0:S(1)} parameter(0) }")
    >>> print(bind_memory_spaces(module).explain("x").splitlines()[0])
    x{}: vmem (layout: x asks for memory space 1)
    """

    platform: Platform
    rows: tuple[Bound, ...]
    violations: tuple[str, ...]

    def of(self, value: str) -> Bound:
        """The row of a value by its defining position, such as `x{}`.

        Raises:
            HloError: there is no such value.
        """
        for row in self.rows:
            if row.value == value or row.value == f"{value}{{}}":
                return row
        raise HloError(f"no value is defined at {value!r}")

    def explain(self, value: str) -> str:
        """Why a value lives where it does, in a few lines."""
        row = self.of(value)
        lines = [f"{row.value}: {row.domain.kind.value} ({row.reason}: {row.note})"]
        lines += [f"  not {kind.value}: {why}" for kind, why in row.rejected]
        return "\n".join(lines)

    def by_gain(self) -> list[tuple[str, float]]:
        """Values in main memory by the seconds that a faster one would save."""
        gains = []
        for row in self.rows:
            fast = self.platform.kind(Kind.VMEM)
            if row.domain.kind is Kind.HBM and fast is not None and row.score:
                share = row.domain.read_bandwidth / fast.read_bandwidth
                gains.append((row.value, row.score * (1 - share)))
        return sorted(gains, key=lambda g: (-g[1], g[0]))


def bind_memory_spaces(
    module: Module,
    platform: Platform | str = "tpu",
    options: BindingOptions | None = None,
    *,
    alias: AliasAnalysis | None = None,
) -> Binding:
    """Say for every value which memory it lives in, and why; nothing is changed.

    Spaces in layouts come first, then annotations, collectives, host values,
    constants and what stays inside a kernel; everything else is in main memory.
    Near linear.

    Raises:
        BindingError: wishes about one buffer contradict each other, or one cannot be
            understood or granted.
        OptionsError: the platform has no memory of a number in a layout.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[8]{0:S(1)} parameter(0)
    ...   ROOT y = f32[8]{0} negate(x)
    ... }''')
    >>> binding = bind_memory_spaces(module)
    >>> [(row.value, row.domain.kind.value, row.reason) for row in binding.rows]
    [('x{}', 'vmem', 'layout'), ('y{}', 'hbm', 'default')]
    """
    module = module_of(module, "bind_memory_spaces")
    if isinstance(platform, str):
        platform = Platform.preset(platform)
    platform = one_of(platform, Platform, "bind_memory_spaces")
    options = options_of(options, BindingOptions, "bind_memory_spaces")
    analysis = alias or AliasAnalysis.run(module)
    return _Binder(module, platform, options, analysis).run()


class _Binder:
    def __init__(
        self,
        module: Module,
        platform: Platform,
        options: BindingOptions,
        alias: AliasAnalysis,
    ) -> None:
        self.module = module
        self.platform = platform
        self.options = options
        self.alias = alias
        self.runs = runs_of(module)
        self.collective = platform.kind(Kind.COLLECTIVE)
        # Without collective memory there is nothing that collectives could ask for.
        self.wishes = compose(layout_wishes, annotation_wishes)
        if self.collective is not None:
            self.wishes = options.coloring.wishes
        self.kernels: dict[Instruction, KernelPlace] = {}
        self.bodies: set[Computation] = set()
        for computation in module.computations:
            for x in computation.instructions:
                if x.opcode == "fusion":
                    self.bodies.add(x.fused_computation)
        if platform.kind(Kind.REGISTER) is not None:
            for body in self.bodies:
                self.kernels |= bind_kernel(body, options.kernel)

    def run(self) -> Binding:
        rows = []
        for value in self.alias.dataflow.values:
            buffer = self.alias.buffer_of(value)
            domain, reason, note = self._choose(value, buffer)
            rows.append(
                Bound(
                    str(value.position),
                    value.byte_size(),
                    domain,
                    reason,
                    note,
                    self._score(value, domain),
                    self._rejected(value, domain),
                )
            )
        return Binding(self.platform, tuple(rows), tuple(self._violations(rows)))

    # -- choosing ------------------------------------------------------------

    def _choose(self, value: Value, buffer: HloBuffer) -> tuple[MemoryDomain, str, str]:
        wish = wish_of(self.alias, buffer, self.wishes)
        if wish is not None:
            return self._wished(wish, buffer)
        x = value.instruction
        asked = placed_domain(x, self.platform)
        if asked is not None and value.shape.is_array:
            return asked, "annotation", f"{x.name} asks for {placement_of(x)}"
        if x.opcode == "constant" and value.shape.is_array:
            small = value.byte_size() <= self.options.constant_limit
            memory = self.platform.kind(Kind.CONSTANT) if small else None
            note = "small and never written" if memory else "never written"
            return memory or self.platform.domain(0), "constant", note
        place = self.kernels.get(x)
        if place is not None:
            memory = self.platform.kind(place.kind)
            assert memory is not None
            return memory, place.reason, place.note
        return self.platform.domain(0), "default", "nothing asks for another memory"

    def _wished(self, wish: Wish, buffer: HloBuffer) -> tuple[MemoryDomain, str, str]:
        domain = self.platform.domain(wish.color)
        reason = wish.reason
        if reason == "layout" and not self._at_interface(buffer):
            host = domain.kind in (Kind.HOST_PINNED, Kind.HOST_UNPINNED)
            reason = "offload" if host else "placement"
        note = f"{wish.by} asks for memory space {wish.color}"
        if domain.kind is Kind.HBM and wish.color:
            note += ", which is the same memory here"
        return domain, reason, note

    def _at_interface(self, buffer: HloBuffer) -> bool:
        """Whether a buffer is an argument or a result of the program."""
        entry = self.module.entry
        return any(
            p.instruction.computation is entry
            and (p.instruction.opcode == "parameter" or p.instruction.is_root)
            for value in buffer.values
            for p in value.positions
        )

    # -- scores --------------------------------------------------------------

    def _score(self, value: Value, domain: MemoryDomain) -> float:
        """Seconds of all reads and writes of a value in a memory."""
        if not value.shape.is_array:
            return 0.0
        size = value.byte_size()
        writes = self.runs.get(value.instruction.computation, 1.0)
        if value.instruction.opcode in ("parameter", "constant"):
            writes = 0.0
        reads = sum(
            self.runs.get(use.instruction.computation, 1.0) for use in value.uses
        )
        return size * (reads / domain.read_bandwidth + writes / domain.write_bandwidth)

    def _rejected(
        self, value: Value, chosen: MemoryDomain
    ) -> tuple[tuple[Kind, str], ...]:
        others = {d.kind: d for d in self.platform.domains.values()}
        found = []
        for kind, domain in others.items():
            if kind is chosen.kind:
                continue
            score = self._score(value, domain)
            if domain.capacity is not None and value.byte_size() > domain.capacity:
                why = f"{value.byte_size()} bytes are more than {domain.capacity}"
                found.append((float("inf"), kind, why))
            else:
                found.append((score, kind, f"{score:.3g} s, not asked for"))
        found.sort(key=lambda row: (row[0], row[1].value))
        return tuple((kind, why) for _, kind, why in found)

    def _violations(self, rows: list[Bound]) -> Iterator[str]:
        return violations(
            self.alias,
            self.platform,
            _domains(rows, self.alias),
            self.options.coloring,
        )


def check_binding(
    module: Module,
    binding: Binding,
    options: BindingOptions | None = None,
    *,
    alias: AliasAnalysis | None = None,
) -> list[str]:
    """What a binding of a module's values breaks on its platform, as text. Linear.

    Args:
        module: whose values they are.
        binding: of all of them, made here or by hand.
        options: what asks for collective memory.
        alias: of the module, if at hand.

    Raises:
        HloError: the binding is not of this module.

    >>> import msa
    >>> from msa.passes import bind_memory_spaces
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   h = f32[8]{0:S(5)} parameter(0)
    ...   ROOT y = f32[8]{0} negate(h)
    ... }''')
    >>> check_binding(module, bind_memory_spaces(module, "tpu"))
    ['h{}: y cannot read host-pinned memory']
    """
    module = module_of(module, "check_binding")
    binding = one_of(binding, Binding, "check_binding")
    coloring = options_of(options, BindingOptions, "check_binding").coloring
    analysis = alias or AliasAnalysis.run(module)
    domains = _domains(binding.rows, analysis)
    return list(violations(analysis, binding.platform, domains, coloring))


def _domains(rows: Sequence[Bound], alias: AliasAnalysis) -> DomainOf:
    """The memory of a value by its place among the rows."""
    values = alias.dataflow.values
    for row, value in itertools.zip_longest(rows, values):
        if row is None or value is None or row.value != str(value.position):
            there = "nothing" if value is None else value.position
            bound = "nothing" if row is None else row.value
            raise HloError(
                f"the binding is not of this module: it binds {bound} where the module "
                f"defines {there}",
                hint="bind_memory_spaces makes one",
            )
    domains = {v.id: row.domain for v, row in zip(values, rows, strict=True)}
    return lambda value: domains[value.id]
