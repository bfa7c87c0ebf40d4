"""What room in alternate memory is worth.

Room that one buffer takes could serve others. Its price is that of the marginal
buffer: the least worthwhile one that would still fit if buffers could be cut to fill
the memory over the whole time (the dual of the fractional knapsack).
"""

from __future__ import annotations

from msa.assignment.costs import CostModel
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.ledgers.idle import IdleBandwidth
from msa.assignment.problem import CrossProgramCandidate
from msa.assignment.state import State


def is_placeable(state: State, interval: MsaBufferInterval) -> bool:
    """Whether the value and those that share its storage may be in fast memory."""
    values = state.problem.values
    return values[interval.value].placeable and all(
        values[member].placeable for member in interval.colocations
    )


class Worth:
    """Whether fetching an input ahead pays for its stall and for its room.

    Attributes:
        price: seconds saved per byte and second of the marginal buffer.
        share: how much of all that wants to be in alternate memory fits there.
    """

    __slots__ = ("_costs", "_idle", "_state", "_total", "price", "share")

    def __init__(self, state: State, costs: CostModel) -> None:
        self._state = state
        self._costs = costs
        self._total = state.picker.elapsed(0, state.problem.end)
        rows = self._rows()
        room = state.capacity * self._total
        wanted = sum(load for _, load in rows)
        self.share = min(1.0, room / wanted) if wanted else 1.0
        self.price = 0.0
        for price, load in rows:
            room -= load
            if room <= 0:
                self.price = price
                break
        self._idle = IdleBandwidth(costs, self.share)

    def _rows(self) -> list[tuple[float, float]]:
        """(seconds saved per load, load) of buffers, best first; load: byte-seconds."""
        state, costs = self._state, self._costs
        values = state.problem.values
        rows = []
        for interval in state.intervals:
            if (
                interval is None
                or not interval.need_allocation
                or interval.size > state.available
                or not is_placeable(state, interval)
            ):
                continue
            value = values[interval.value]
            last = max(values[m].live[1] for m in (value.id, *interval.colocations))
            saved = costs.benefit(value, interval.size)
            load = interval.size * state.picker.elapsed(value.live[0], last)
            if saved > 0 and load > 0:
                rows.append((saved / load, load))
        rows.sort(reverse=True)
        return rows

    def pays(self, candidate: CrossProgramCandidate) -> bool:
        """Whether the input saves more than its fetch and its room cost."""
        costs = self._costs
        value = self._state.problem.values[candidate.value]
        read = dict(zip(value.uses, value.use_bytes, strict=False))
        gain = sum(
            costs.saved_by_reading(use.step, read.get(use, 0.0))
            * costs.multipliers[costs.while_levels[use.step]]
            for use in candidate.uses
        )
        first = min(use.step for use in candidate.uses)
        stall = costs.copy_seconds(value.size) - self._idle.between(-1, first)
        rent = self.price * value.size * self._total
        return gain > max(stall, 0.0) + rent
