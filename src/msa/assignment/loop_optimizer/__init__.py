"""Memory-bound loop optimizer: one decision for all iterations of an unrolled loop.

A long program often repeats itself: the layers of a network are the same operations on
other weights. If such a stretch is limited by default memory, its iterations should be
treated alike. The stages: `detect` finds repetitions, `values` says what the tensors of
one iteration are (temporaries, pinned, prefetched), `heap` models four iterations of
memory, `optimize` and `prefetches` decide, `timing` tells the steady-state time, and
`publish` hands the decisions to the greedy algorithm as preferences.

Reference: `xla/service/memory_space_assignment/memory_bound_loop_optimizer.cc`.
"""

from __future__ import annotations

from msa.assignment.loop_optimizer.publish import LoopDecision, optimize_loops

__all__ = ["LoopDecision", "optimize_loops"]
