"""Copies that move more bytes than the accesses which they make fast.

An operation that works in place may touch a few bytes of a large buffer; bringing the
whole buffer in and out costs more than it saves. Allocations that hang together in
alternate memory are weighed as a group, and if copies outweigh accesses, the places
concerned are required to be in default memory and the proposal is tried again.

Reference: `GetInefficientAllocationSites` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msa.assignment.allocation import Allocation, MemorySpace, Position, Use
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.required import RequiredBy
from msa.assignment.state import State


@dataclass(frozen=True, slots=True)
class Site:
    """A place that is not worth alternate memory: a definition or a use.

    Attributes:
        value: the value there.
        step: when it is there (corrected for loops and conditionals).
    """

    value: int
    step: int


@dataclass(slots=True)
class _Group:
    """Allocations linked through alternate memory, and what they move."""

    copy_bytes: float = 0.0
    use_bytes: float = 0.0
    sites: list[Site] = field(default_factory=list)
    merged_into: _Group | None = None


def inefficient_sites(state: State, values: list[AllocationValue]) -> list[Site]:
    """Sites of all groups in which copies outweigh accesses."""
    options = state.options
    if options.get_inefficient_allocation_sites_fn is not None:
        positions = [item.position for item in values]
        return [
            _site(state, place)
            for place in options.get_inefficient_allocation_sites_fn(positions)
        ]
    ratio = options.inefficient_use_to_copy_ratio
    if state.costs is None or not ratio or not values:
        return []
    size = values[0].size
    groups: list[_Group] = []
    links: dict[Position, _Group] = {}
    for item in values:
        uses = {use.use: use for use in item.uses}
        for allocation in item.sequence:
            if _position_space(allocation) is MemorySpace.ALTERNATE or (
                allocation.is_alternate
            ):
                group = _link(state, allocation, links, groups)
                _weigh(group, item, allocation, uses, size)
                if allocation.is_alternate:
                    linked: list[Position] = []
                    for use in allocation.uses:
                        aliases = uses[use].aliases if use in uses else linked
                        if aliases is not linked:
                            links.update(dict.fromkeys(aliases, group))
                            linked = aliases
    return [
        site
        for group in groups
        if group.merged_into is None
        and group.copy_bytes > 0
        and ratio * group.copy_bytes > group.use_bytes
        for site in group.sites
    ]


def retry_can_progress(state: State, sites: list[Site]) -> bool:
    """Whether requiring default memory at the sites would be anything new."""
    return any(not state.required.is_permanent(site.value, site.step) for site in sites)


def require_default_at(state: State, sites: list[Site]) -> None:
    """Keep the sites out of alternate memory from now on."""
    for site in sites:
        state.required.require_default(
            site.value, site.step, RequiredBy.INEFFICIENT_SITE, pending=False
        )


def _site(state: State, place: Position | Use) -> Site:
    problem = state.problem
    if isinstance(place, Position):
        return Site(problem.value_at[place], place.step)
    operand = problem.operands[place.step][place.operand]
    return Site(
        problem.value_at[Position(operand, place.index)],
        state.times.corrected(place.step),
    )


def _position_space(allocation: Allocation) -> MemorySpace:
    """Where the position's own storage is: of a copy, where it comes from."""
    return allocation.space.other if allocation.is_copy_like else allocation.space


def _link(
    state: State,
    allocation: Allocation,
    links: dict[Position, _Group],
    groups: list[_Group],
) -> _Group:
    found: list[_Group] = []
    if _position_space(allocation) is MemorySpace.ALTERNATE:
        found += _linked(links, allocation.position)
    if allocation.is_alternate:
        for use in allocation.uses:
            if state.problem.opcodes[use.step] == "tuple":
                found += _linked(links, Position(use.step, (use.operand, *use.index)))
    if not found:
        groups.append(_Group())
        return groups[-1]
    first = found[0]
    for other in found[1:]:
        if other is not first:
            first.copy_bytes += other.copy_bytes
            first.use_bytes += other.use_bytes
            first.sites += other.sites
            other.merged_into = first
    return first


def _linked(links: dict[Position, _Group], position: Position) -> list[_Group]:
    group = links.get(position)
    if group is None:
        return []
    while group.merged_into is not None:
        group = group.merged_into
    links[position] = group
    return [group]


def _weigh(
    group: _Group,
    item: AllocationValue,
    allocation: Allocation,
    uses: dict[Use, SegmentUse],
    size: int,
) -> None:
    if allocation.is_copy_like:
        group.copy_bytes += size
    if _position_space(allocation) is MemorySpace.ALTERNATE:
        value = item.value
        if value.position_bytes and allocation.position in value.positions:
            number = value.positions.index(allocation.position)
            group.use_bytes += value.position_bytes[number]
        if not allocation.is_copy_like:
            group.sites.append(Site(value.id, allocation.position.step))
    if allocation.is_alternate:
        for use in allocation.uses:
            if use in uses:
                group.use_bytes += uses[use].read_bytes
                group.sites.append(Site(item.value.id, uses[use].corrected))
