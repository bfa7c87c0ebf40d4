"""Who may touch which memory: a table per platform, and what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final

from msa.analysis.alias import AliasAnalysis
from msa.analysis.values import Value
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.passes.binding.coloring import GpuColoring
from msa.passes.binding.domains import Access, Kind, MemoryDomain, Platform
from msa.passes.binding.symmetric import collective_kind

_FORWARDS: Final = frozenset(
    [
        "bitcast",
        "call",
        "conditional",
        "get-tuple-element",
        "opt-barrier",
        "parameter",
        "tuple",
        "while",
        "after-all",
        "domain",
    ]
)
_MOVES: Final = frozenset(
    [
        "copy",
        "copy-start",
        "copy-done",
        "dynamic-slice",
        "dynamic-update-slice",
        "slice",
        "async-start",
        "async-update",
        "async-done",
        "infeed",
        "outfeed",
        "send",
        "send-done",
        "recv",
        "recv-done",
    ]
)
_VERBS: Final = {
    Access.KERNEL_READ: "cannot read",
    Access.KERNEL_WRITE: "cannot write",
    Access.COPY: "cannot copy from or to",
    Access.COLLECTIVE: "cannot reach",
    Access.HOST: "runs on the host and cannot touch",
}

DomainOf = Callable[[Value], MemoryDomain]


def legality(platform: Platform) -> Mapping[Kind, frozenset[Access]]:
    """What may be done with each memory of a platform.

    >>> from msa.passes.binding import Access, Kind, Platform
    >>> tpu, gpu = (legality(Platform.preset(name)) for name in ("tpu", "gpu"))
    >>> Access.KERNEL_READ in tpu[Kind.HOST_PINNED]
    False
    >>> Access.KERNEL_READ in gpu[Kind.HOST_PINNED]
    True
    >>> Access.COLLECTIVE in gpu[Kind.SHARED]
    False
    """
    domains = (*platform.domains.values(), *platform.inside.values())
    return {domain.kind: domain.allows for domain in domains}


def access_of(x: Instruction, *, writes: bool, fused: bool) -> Access | None:
    """How an instruction touches what it reads or writes; None if it does not.

    Moves between memories are copies, whoever performs them, but inside a fused body
    they are part of the kernel; a custom call may do anything, so nothing is said of
    it.
    """
    if collective_kind(x):
        return Access.COLLECTIVE
    if _on_host(x):
        return Access.HOST
    if x.opcode in _MOVES and not fused:
        return Access.COPY
    if x.opcode in _FORWARDS or x.opcode in ("custom-call", "constant"):
        return None
    return Access.KERNEL_WRITE if writes else Access.KERNEL_READ


def violations(
    alias: AliasAnalysis,
    platform: Platform,
    domain_of: DomainOf,
    coloring: GpuColoring,
) -> Iterator[str]:
    """Everything in a binding that the platform does not allow, as text. Linear.

    Checked: each reader and the writer of a value against the memory's row of the
    table; storage shared with an argument; one memory per storage; and collectives
    whose buffers are wanted in collective memory.
    """
    bodies = {
        x.fused_computation
        for computation in alias.module.computations
        for x in computation.instructions
        if x.opcode == "fusion"
    }
    for value in alias.dataflow.values:
        if not value.shape.is_array:
            continue
        domain = domain_of(value)
        for problem in _problems(value, domain, platform, coloring, bodies):
            yield f"{value.position}: {problem}"
    for buffer in alias.buffers:
        arrays = [v for v in buffer.values if v.shape.is_array]
        domains = {domain_of(v).kind: v for v in reversed(arrays)}
        if len(domains) > 1:
            places = " and ".join(
                f"{v.position} in {kind.value}"
                for kind, v in sorted(domains.items(), key=lambda row: row[0].value)
            )
            yield f"buffer {buffer.id} is bound to several memories: {places}"
        given = next((v for v in arrays if _is_argument(v, alias)), None)
        for value in arrays if given is not None else ():
            domain = domain_of(value)
            if Access.ARGUMENT not in domain.allows:
                yield (
                    f"{value.position}: {domain.kind.value} memory does not hold "
                    f"the argument {given}"
                )


def _problems(
    value: Value,
    domain: MemoryDomain,
    platform: Platform,
    coloring: GpuColoring,
    bodies: Container[Computation],
) -> Iterator[str]:
    found: dict[str, None] = {}
    touches = [(value.instruction, True)]
    touches += [(use.instruction, False) for use in value.uses]
    for x, writes in touches:
        access = access_of(x, writes=writes, fused=x.computation in bodies)
        if access is None:
            continue
        # The host passes scalars along with the call.
        scalar = access is Access.HOST and value.shape.element_count == 1
        if access not in domain.allows and not scalar:
            found[f"{x.name} {_VERBS[access]} {domain.kind.value} memory"] = None
        elif (
            access is Access.COLLECTIVE
            and domain.kind is not Kind.COLLECTIVE
            and platform.kind(Kind.COLLECTIVE) is not None
            and coloring.wants_symmetric(x)
        ):
            found[f"{x.name} needs collective memory, not {domain.kind.value}"] = None
    yield from found


def _on_host(x: Instruction) -> bool:
    attributes = dict(x.attributes.get("frontend_attributes") or {})
    return attributes.get("_xla_compute_type") == "host"


def _is_argument(value: Value, alias: AliasAnalysis) -> bool:
    x = value.instruction
    return x.opcode == "parameter" and x.computation is alias.module.entry
