"""Inference in the search: the sections that are skipped would change nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.heap import Buffer
from msa.heap.packing.instance import build_instance
from msa.heap.packing.search.branching import placeable
from msa.heap.packing.search.dive import _postponed
from msa.heap.packing.search.driver import Budget, build_core
from msa.heap.packing.search.inference import infer
from msa.heap.packing.search.state import PLACED, State

spans = st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(1, 5)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)


def consequences(core, state):
    """Lower bounds by the three rules, item by item until nothing changes.

    None if a section does not fit any more.
    """
    lower = state.lower.tolist()
    support = state.support.tolist()
    size, entries = core.size.tolist(), {}
    for item, section in zip(
        core.entry_item.tolist(), core.entry_section.tolist(), strict=True
    ):
        entries.setdefault(section, []).append(item)
    while True:
        before = list(lower)
        tops = dict.fromkeys(range(core.items), PLACED)
        for section, members in entries.items():
            left = [m for m in members if lower[m] < PLACED]
            room = int(state.room[section])
            if left and min(lower[m] for m in left) > room:
                return None
            first = [lower[m] + size[m] for m in left if lower[m] <= room]
            for member in left:
                least = min(first, default=PLACED)
                tops[member] = min(tops[member], least)
                if lower[member] > room:
                    lower[member] = max(lower[member], least)
        for item, top in tops.items():
            if support[item] < lower[item] < PLACED:
                lower[item] = max(lower[item], top)
        if lower == before:
            return lower


@settings(max_examples=120, deadline=None)
@given(st.lists(spans, min_size=2, max_size=12), st.integers(0, 4), st.data())
def test_28_3_inference_equals_the_rules_one_by_one(rows, slack, data):
    instance = build_instance([Buffer(n, *row) for n, row in enumerate(rows)])
    load = max(sum(z for s, e, z in rows if s <= t < e) for t, _, _ in rows)
    capacity = load + slack
    core = build_core(instance, capacity, Budget(10**9))
    state = State.enter(
        core, np.zeros(core.items, np.int64), np.zeros(core.items, np.int64), capacity
    )
    for _ in range(3 * core.items):
        expected = consequences(core, state)
        failed = infer(core, state).failed
        assert (failed >= 0) == (expected is None)
        if expected is None:
            return
        assert state.lower.tolist() == expected
        candidates = placeable(core, state).tolist()
        if not candidates:
            return
        item = data.draw(st.sampled_from(candidates))
        if data.draw(st.booleans()):
            state.place(core, item)
        else:
            state = _postponed(core, state, item)
        if not state.left:
            return
