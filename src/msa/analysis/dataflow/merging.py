"""Joining the values that reach a node from several places.

In static single assignment form a merge of several is one new value, a phi;
otherwise it is the set of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msa.analysis.dataflow.state import EMPTY, FlowState, Ids, NodeSets
from msa.hlo.instruction import Instruction


def union(inputs: Sequence[NodeSets], count: int) -> NodeSets:
    """The set of all values that reach each node."""
    if len(inputs) == 1:
        return fit(inputs[0], count)
    merged: list[Ids] = []
    for place in range(count):
        reaching = [x[place] for x in inputs if place < len(x)]
        first = reaching[0] if reaching else EMPTY
        if all(ids == first for ids in reaching):
            merged.append(first)
        else:
            merged.append(tuple(sorted({v for ids in reaching for v in ids})))
    return tuple(merged)


def fit(sets: NodeSets, count: int) -> NodeSets:
    """As many nodes as the result has (they differ in malformed modules only)."""
    if len(sets) == count:
        return sets
    return (*sets[:count], *[EMPTY] * (count - len(sets)))


def merge(
    state: FlowState, instruction: Instruction, inputs: Sequence[NodeSets]
) -> bool:
    """Set an instruction's values to the merge of `inputs`; whether that changed.

    Repeated inputs count: a loop that returns its initial value merges it with
    itself, and pruning takes the merge away later.
    """
    old = state.sets[instruction.id]
    new = list(old)
    changed = False
    for place, current in enumerate(old):
        reaching = [v for x in inputs if place < len(x) for v in x[place]]
        if not reaching:
            continue
        if len(reaching) == 1:
            if current != (reaching[0],):
                new[place] = (reaching[0],)
                changed = True
        elif not _is_own_phi(state, instruction, place, current):
            phi = state.new_value(instruction, place, phi=True)
            state.phis.register(phi, reaching)
            new[place] = (phi,)
            changed = True
        elif not state.phis.has_inputs(current[0], reaching):
            state.phis.register(current[0], reaching)
            changed = True
    if changed:
        state.sets[instruction.id] = tuple(new)
    return changed


def _is_own_phi(
    state: FlowState, instruction: Instruction, place: int, current: Ids
) -> bool:
    if len(current) != 1:
        return False
    value = current[0]
    where, node = state.definitions[value]
    return state.is_phi[value] and where is instruction and node == place
