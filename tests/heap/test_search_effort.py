"""The effort of the search follows the entries that it looks at, not the nodes alone."""

import types

import numpy as np
import pytest
from benchmarks.packing import MIXES

from msa.heap import Buffer
from msa.heap.packing.instance import build_instance
from msa.heap.packing.search import inference
from msa.heap.packing.search.dive import _ENTRIES_PER_UNIT, Dive
from msa.heap.packing.search.driver import Budget, build_core, search_capacity
from msa.heap.packing.search.state import State


@pytest.fixture
def looked_at(monkeypatch):
    """Per call of a segmented minimum in the inference, how long its input was."""
    lengths = []

    class Minimum:
        at = staticmethod(np.maximum.at)

        def __call__(self, *args, **options):
            return np.minimum(*args, **options)

        @staticmethod
        def reduceat(values, starts):
            lengths.append(len(values))
            return np.minimum.reduceat(values, starts)

    counting = types.SimpleNamespace(**vars(np))
    counting.minimum = Minimum()
    monkeypatch.setattr(inference, "np", counting)
    return lengths


def core_of(rows, capacity):
    instance = build_instance([Buffer(*row) for row in rows])
    return build_core(instance, capacity, Budget(10**9))


def load(rows):
    return max(sum(z for _, s, e, z in rows if s <= t < e) for _, t, _, _ in rows)


@pytest.mark.parametrize(("mix", "count"), [("layers", 300), ("training", 300)])
def test_the_effort_is_proportional_to_the_entries_looked_at(looked_at, mix, count):
    rows = MIXES[mix](count, 0)
    capacity = load(rows)
    core = core_of(rows, capacity)
    dive = Dive(core, capacity, limit=150, effort=10**6)
    dive.run()
    # A full pass takes three minima; the pass in which a section fails takes one.
    assert dive.touched <= sum(looked_at) <= 3 * dive.touched
    fixed = 1 + core.items // 4
    # Every inference costs one, and up to one less than its share by rounding.
    units = dive.touched / _ENTRIES_PER_UNIT
    assert fixed + units <= dive.spent <= fixed + units + 2 * dive.nodes + 2


def test_every_pass_counts():
    # Four of size 2 at once, the last three from 1 upward: these lie on the first, at
    # 2 or above. The first pass raises them, the second finds nothing more to raise;
    # each looks at four items in one section.
    core = core_of([(n, 0, 2, 2) for n in range(4)], 8)
    lower = np.array([0, 1, 1, 1])
    state = State.enter(core, lower, np.zeros(4, dtype=np.int64), 8)
    assert inference.infer(core, state) == (-1, 8)
    assert state.lower.tolist() == [0, 2, 2, 2]


def test_what_a_search_looks_at_is_bounded_by_its_effort(looked_at):
    # Layers repeat a few sizes: near the end of a search, a node takes dozens of passes.
    rows = MIXES["layers"](500, 0)
    capacity = load(rows)
    core, budget = core_of(rows, capacity), Budget(4000)
    search_capacity(core, capacity, budget, np.random.default_rng(0))
    # The last node may go over, by what its passes take: a tenth is far more.
    assert -400 < budget.left <= 0
    assert sum(looked_at) <= 3 * (4000 - budget.left) * _ENTRIES_PER_UNIT
