"""Order of the reuse rules.

Source of the idea: `xla/mlir_hlo/deallocation/transforms/buffer_reuse.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.dealloc.ir import BufferModule, Function
from msa.dealloc.parsing import parse_function
from msa.dealloc.printing import print_function
from msa.dealloc.reuse.copies import eliminate_copies
from msa.dealloc.reuse.hoisting import hoist
from msa.dealloc.reuse.loops import double_buffer, simplify_loop_frees
from msa.dealloc.reuse.pairs import drop_dead, promote_to_stack, reuse_pairs
from msa.dealloc.verifier import verify_function

MAX_ROUNDS: Final = 1000


def reuse_buffers(module: BufferModule) -> BufferModule:
    """A module whose functions reuse buffers; the input is not changed."""
    return BufferModule([reuse_in_function(f) for f in module.functions.values()])


def reuse_in_function(function: Function) -> Function:
    """Reuse in a copy of one function with structured control flow.

    Regions with more than one block are left alone.
    """
    verify_function(function)
    copy = parse_function(print_function(function))
    eliminate_copies(copy)
    for _ in range(MAX_ROUNDS):
        changed = drop_dead(copy)
        changed |= reuse_pairs(copy, aggressive=False)
        changed |= hoist(copy) or double_buffer(copy) or simplify_loop_frees(copy)
        if not changed:
            break
    reuse_pairs(copy, aggressive=True)
    promote_to_stack(copy)
    drop_dead(copy)
    verify_function(copy)
    return copy
