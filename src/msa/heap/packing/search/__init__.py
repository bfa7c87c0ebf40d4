"""Exact packing by depth-first search over canonical packings, with restarts.

A packing is canonical if no buffer can fall: each rests on the floor or on another
one that shares time with it. Every packing can be made canonical without growing, so
only canonical ones are searched, from the bottom up. `core` holds the fixed data of
a part, `state` what changes, `inference` what follows from a decision, `branching`
the choice of the next decision, `dive` one search with a limit, `driver` the
restarts and the capacities that are tried. `joining` makes the problem of a dive
smaller.

References: MiniMalloc (Moffitt, ASPLOS 2023) for canonical packings and sections;
disjunctive scheduling for the not-first rule; weighted-degree branching.
"""
