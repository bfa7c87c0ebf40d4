"""Making the allocations of a proposal permanent."""

from __future__ import annotations

from msa.assignment.allocation import Allocation
from msa.assignment.joint import JointProposal
from msa.assignment.state import State


def finalize(state: State, proposal: JointProposal) -> None:
    """Move all allocations of the proposal to the result and keep the ledgers."""
    if state.conversions:
        state.conversions.succeed()
    finished: set[Allocation] = set()
    for item in proposal.allocation_values:
        for allocation in item.sequence:
            if allocation in finished:
                continue  # what a value reads at an earlier place
            finished.add(allocation)
            if allocation.is_alternate:
                allocation.split = item.split
            state.finish(allocation)
    if state.repacking is not None:
        state.repacking.add(
            a for item in proposal.allocation_values for a in item.sequence
        )
    state.transaction.commit()


def uncommit(state: State, proposal: JointProposal) -> None:
    """Take everything back that was done for the proposal since the last commit."""
    for item in proposal.allocation_values:
        item.sequence.clear()
    state.transaction.rollback()
    state.conversions.noted.clear()


def mark_finalized(state: State, proposal: JointProposal) -> None:
    """Nothing more is decided about the proposal's values."""
    for value in proposal.values:
        state.finalized[value] = 1
