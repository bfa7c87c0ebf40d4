"""Which number in layouts means which memory, and what may be placed in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from msa.analysis.alias import AliasAnalysis
from msa.analysis.values import Value
from msa.assignment import Options
from msa.hlo.module import Module
from msa.passes.binding import GpuColoring, Kind, MemoryDomain, Platform
from msa.passes.binding.coloring import assign_colors, wish_of
from msa.target import Target

_FIRST_FREE: Final = 3
"""Smaller numbers have a meaning on some platform."""

PLACED: Final = "msa_placed_in"
"""Frontend attribute of a module whose values have been placed; the memory space."""


def with_fast_memory(
    platform: Platform, target: Target, wanted: int
) -> tuple[Platform, int]:
    """The platform with the memory that values are placed in, and its number.

    Args:
        platform: whose memory the wanted number may be, or be another's: a GPU's
            collective memory is no place to move values to and fro, so the fast
            memory gets a number of its own there.
        target: its sizes and rates.
        wanted: number in layouts.

    >>> gpu, number = with_fast_memory(
    ...     Platform.preset("gpu"), Target.preset("tpu_v5e"), 1)
    >>> number, gpu.domain(1).kind.value, gpu.domain(3).kind.value
    (3, 'collective', 'vmem')
    """
    known = platform.domains.get(wanted)
    if known is not None and known.kind is Kind.VMEM:
        return platform, wanted
    free = (n for n in count(_FIRST_FREE) if n not in platform.domains)
    number = wanted if known is None else next(free)
    memory = MemoryDomain(
        Kind.VMEM,
        number,
        target.alternate_read_bandwidth,
        target.alternate_write_bandwidth,
        target.alternate_memory_bytes,
        target.alignment_bytes,
    )
    return platform.with_memory(memory, "fast"), number


def without_collective(
    options: Options, alias: AliasAnalysis, coloring: GpuColoring
) -> Options:
    """Options of a placement that leaves the buffers of collectives alone.

    What others reach must stay where it is mapped: neither its values nor its readers
    may be placed in fast memory. What the options forbid already stays forbidden.
    """
    positions: set[tuple[str, str, tuple[int, ...]]] = set()
    uses: set[tuple[str, str, int, tuple[int, ...]]] = set()
    for buffer in alias.buffers:
        wish = wish_of(alias, buffer, coloring.wishes)
        if wish is None or wish.reason == "layout":
            continue
        for value in buffer.values:
            for x, index in value.positions:
                positions.add((x.computation.name, x.name, index))
            for use in value.uses:
                x = use.instruction
                uses.add(
                    (x.computation.name, x.name, use.operand_number, use.operand_index)
                )
    if not positions:
        return options

    def free_place(place: Any) -> bool:
        x = place.instruction
        return (x.computation.name, x.name, place.index) not in positions

    def free_use(use: Any) -> bool:
        x = use.instruction
        key = (x.computation.name, x.name, use.operand_number, use.operand_index)
        return key not in uses

    return options.replace(
        is_position_allowed_in_alternate_mem_fn=_both(
            options.is_position_allowed_in_alternate_mem_fn, free_place
        ),
        is_use_allowed_in_alternate_mem_fn=_both(
            options.is_use_allowed_in_alternate_mem_fn, free_use
        ),
    )


def mark_placed(module: Module, space: int) -> None:
    """Note in a module that its values have been placed in a memory."""
    noted = dict(module.attributes.get("frontend_attributes") or {})
    noted[PLACED] = str(space)
    module.attributes = MappingProxyType(
        {**module.attributes, "frontend_attributes": tuple(noted.items())}
    )


def is_placed(module: Module, space: int) -> bool:
    """Whether `mark_placed` was called for the module and the memory."""
    noted = dict(module.attributes.get("frontend_attributes") or {})
    return noted.get(PLACED) == str(space)


def as_placed(options: Options) -> Options:
    """Options of a placement that keeps what is in fast memory and adds nothing."""
    space = options.alternate_memory_space

    def in_fast(place: Any) -> bool:
        shape = place.instruction.shape.subshape(place.index)
        return bool(shape.memory_space == space)

    def reads_fast(use: Any) -> bool:
        shape = use.operand.shape.subshape(use.operand_index)
        return bool(shape.memory_space == space)

    return options.replace(
        enable_cross_program_prefetch=False,
        is_position_allowed_in_alternate_mem_fn=in_fast,
        is_use_allowed_in_alternate_mem_fn=reads_fast,
    )


def _both(
    given: Callable[[Any], bool] | None, added: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    if given is None:
        return added
    return lambda subject: given(subject) and added(subject)


def colors_of(alias: AliasAnalysis, coloring: GpuColoring) -> Callable[[Value], int]:
    """The memory space of every value of a placed module.

    Args:
        alias: of the placed module; its layouts say what is in which memory.
        coloring: what is in collective memory besides.

    Raises:
        BindingError: a buffer of a collective has been placed elsewhere.
    """
    colors = assign_colors(alias, coloring.wishes)
    return lambda value: colors[value.id]
