"""The order in which buffers are considered: the most worthwhile first.

Reference: `xla/service/memory_space_assignment/buffer_interval_comparator.cc`.
"""

from __future__ import annotations

from typing import Any

from msa.assignment.filters import MsaSortOrderOverride
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.problem import CrossProgramCandidate, Problem, Value
from msa.assignment.state import State
from msa.errors import OptionsError


def sorted_intervals(state: State) -> list[MsaBufferInterval]:
    """All intervals in the order of the options, permuted by the autotuning config.

    Raises:
        OptionsError: the autotuning config does not fit the number of intervals.
    """
    intervals = [x for x in state.intervals if x is not None]
    values = state.problem.values
    key = _key(state)
    intervals.sort(key=lambda x: (not values[x.value].pinned, key(x)))
    config = state.options.autotuning_config
    if config is not None:
        if sorted(config) != list(range(len(intervals))):
            raise OptionsError(
                f"autotuning_config has {len(config)} entries; it must be a "
                f"permutation of {len(intervals)} buffer intervals"
            )
        intervals = [intervals[i] for i in config]
    return _post_processed(state, intervals)


def _post_processed(
    state: State, intervals: list[MsaBufferInterval]
) -> list[MsaBufferInterval]:
    """Coloured buffers first; with block prefetches, small and early ones first."""
    values, options = state.problem.values, state.options

    def pinned(interval: MsaBufferInterval) -> bool:
        return values[interval.value].pinned

    if options.reserved_bytes_for_block_prefetches > 0:

        def by_time(interval: MsaBufferInterval) -> tuple[int, ...]:
            value = values[interval.value]
            first = value.position.step
            last = max((state.times.corrected(u.step) for u in value.uses), default=-1)
            if value.pinned:
                return (0, 0, first, last)
            return (1, interval.size, first, last)

        return sorted(intervals, key=by_time)
    coloring = state.coloring
    if not options.allocate_colored_buffers_early or coloring is None:
        return intervals
    return sorted(
        intervals,
        key=lambda x: (
            not pinned(x),
            values[x.value].buffer not in coloring.reserved,
        ),
    )


def _key(state: State) -> Any:
    choice = state.options.buffer_interval_comparator
    if choice == "memory_boundedness":
        return lambda interval: memory_boundedness_key(state, interval)
    if choice == "spatial":
        return spatial_key
    return choice


def spatial_key(interval: MsaBufferInterval) -> tuple[int, int, int]:
    """Largest first, then longest, then by id."""
    return (-interval.size, interval.start - interval.end, interval.value)


def memory_boundedness_key(
    state: State, interval: MsaBufferInterval
) -> tuple[float, ...]:
    """Most seconds saved first, then largest, longest, earliest read and defined."""
    assert state.costs is not None
    value = state.problem.values[interval.value]
    return (
        override_priority(state, value, interval.size),
        -state.costs.memory_boundedness(value, interval.size),
        -interval.size,
        interval.start - interval.end,
        latest_use(value),
        interval.start,
        interval.value,
    )


def latest_use(value: Value) -> int:
    """The last step that reads the value; 0 if none."""
    return max((use.step for use in value.uses), default=0)


def cross_program_key(
    state: State, candidate: CrossProgramCandidate
) -> tuple[float, ...]:
    """Largest first, then most bytes produced by readers, then earliest read."""
    problem = state.problem
    value = problem.values[candidate.value]
    priority = override_priority(state, value, value.size, cross_program=True)
    # XLA's name of this option says the opposite of what it does.
    if state.options.default_cross_program_prefetch_heuristic:
        interval = MsaBufferInterval(value.id, value.size, 0, problem.end, (), True)
        return (priority, *_key(state)(interval))
    return (
        priority,
        -value.size,
        -cumulative_use_size(problem, value),
        latest_use(value),
        value.id,
    )


def cumulative_use_size(problem: Problem, value: Value) -> int:
    """Elements that the readers of the value produce."""
    elements = problem.result_elements
    return sum(elements[use.step] for use in value.uses if use.step in elements)


def override_priority(
    state: State, value: Value, size: int, *, cross_program: bool = False
) -> int:
    """Where the overrides put the value; 0 if they do not mention it."""
    for number, override in enumerate(state.options.msa_sort_order_overrides):
        if cross_program and not override.apply_to_cross_program_prefetches:
            continue
        if _matches(state.problem, override, value, size):
            priority = override.priority(number)
            if priority is not None:
                return priority
    return 0


def _matches(
    problem: Problem, override: MsaSortOrderOverride, value: Value, size: int
) -> bool:
    matcher = override.hlo_position_matcher
    step, index = value.position
    if not matcher.matches_place(
        size, problem.names[step], problem.text_of(step), index
    ):
        return False
    uses = matcher.hlo_use_filter
    if uses is not None and not any(
        uses.matches(
            size,
            problem.names[use.step],
            problem.text_of(use.step),
            use.operand,
            use.index,
        )
        for use in value.uses
    ):
        return False
    chance = matcher.hlo_random_filter
    return chance is None or chance.selects(problem.fingerprint_of(step))
