"""Buffer reuse: fewer allocations after deallocations are placed."""

from msa.dealloc.reuse.driver import reuse_buffers, reuse_in_function

__all__ = ["reuse_buffers", "reuse_in_function"]
