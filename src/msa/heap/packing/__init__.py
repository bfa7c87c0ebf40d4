"""Static packing: give buffers with lifetimes, get offsets.

The stages, in the order in which data passes through them: `buffer` (rows in),
`instance` (arrays, groups merged), `sections` (maximal live sets), `bounds`,
`placement`, `skyline` and `orders` (fast heuristics), `reassembly` (perfect
packings), `search` (exact), `order_search` (where that is too dear), `solve` and
`portfolio` (which runs what), `plan` (the answer and its checker).
"""
