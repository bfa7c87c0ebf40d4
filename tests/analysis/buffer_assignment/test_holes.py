"""Temporaries in storage that waits: nothing overlaps, and the peak goes down."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.analysis.buffer_assignment.holes import Host, Tenant, fill_holes, load_of
from msa.analysis.buffer_assignment.sharing import merge_pieces

STEPS = 12


@st.composite
def pieces(draw, limit=3):
    cuts = draw(st.lists(st.integers(0, STEPS), min_size=2, max_size=2 * limit))
    cuts = sorted(set(cuts))
    found = list(zip(cuts[::2], cuts[1::2], strict=False))
    return tuple(found) or ((0, 1),)


tenants = st.lists(st.builds(Tenant, st.integers(1, 9), pieces()), max_size=9)
hosts = st.lists(st.builds(Host, st.integers(1, 16), pieces()), max_size=4)


@settings(deadline=None)
@given(tenants, hosts, st.sampled_from([1, 4]))
def test_placements_are_disjoint_in_bytes_or_time(tenants, hosts, alignment):
    filling = fill_holes(tenants, hosts, steps=STEPS, alignment=alignment)
    taken = {}
    for number, host in enumerate(hosts):
        taken[number] = np.zeros((host.size, STEPS), dtype=bool)
        for start, end in host.busy:
            taken[number][:, start:end] = True
    for number, (host, offset) in filling.placed.items():
        tenant = tenants[number]
        assert offset % alignment == 0
        assert offset + tenant.size <= hosts[host].size
        for start, end in tenant.pieces:
            area = taken[host][offset : offset + tenant.size, start:end]
            assert not area.any()
            area[:] = True
    rest = [t for i, t in enumerate(tenants) if i not in filling.placed]
    assert filling.load.tolist() == load_of(rest, STEPS).tolist()
    assert filling.lower_bound <= load_of(tenants, STEPS).max(initial=0)


def test_the_peak_is_relieved_first():
    # Only one of the two fits; the one that is alive at the peak is moved.
    tenants = [Tenant(8, ((0, 2),)), Tenant(8, ((4, 6),)), Tenant(5, ((4, 6),))]
    filling = fill_holes(tenants, [Host(8, ((6, 9),))], steps=9)
    assert filling.placed[1] == (0, 0)
    assert filling.lower_bound == 5


def test_the_tightest_window_is_taken():
    filling = fill_holes(
        [Tenant(8, ((0, 2),))], [Host(64, ()), Host(8, ()), Host(4, ())], steps=4
    )
    assert filling.placed == {0: (1, 0)}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=8))
def test_merged_pieces_cover_the_same_steps(rows):
    spans = [(start, start + length) for start, length in rows]
    merged = merge_pieces(spans)
    steps = {t for start, end in spans for t in range(start, end)}
    assert {t for start, end in merged for t in range(start, end)} == steps
    assert all(a[1] < b[0] for a, b in pairwise(merged))
