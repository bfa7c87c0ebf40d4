"""Binding values to memories: colours, domains, and why."""

from __future__ import annotations

from msa.passes.binding.annotations import placement_of
from msa.passes.binding.attributes import parse_memory_spaces
from msa.passes.binding.coloring import (
    GpuColoring,
    Wish,
    annotation_wishes,
    assign_colors,
    can_use_allocation,
    compose,
    layout_wishes,
)
from msa.passes.binding.domains import Access, Kind, MemoryDomain, Platform
from msa.passes.binding.errors import BindingError
from msa.passes.binding.kernels import KernelBudget
from msa.passes.binding.legality import legality
from msa.passes.binding.policy import (
    Binding,
    BindingOptions,
    Bound,
    bind_memory_spaces,
    check_binding,
)
from msa.passes.binding.symmetric import SymmetricFilter

__all__ = [
    "Access",
    "Binding",
    "BindingError",
    "BindingOptions",
    "Bound",
    "GpuColoring",
    "KernelBudget",
    "Kind",
    "MemoryDomain",
    "Platform",
    "SymmetricFilter",
    "Wish",
    "annotation_wishes",
    "assign_colors",
    "bind_memory_spaces",
    "can_use_allocation",
    "check_binding",
    "compose",
    "layout_wishes",
    "legality",
    "parse_memory_spaces",
    "placement_of",
]
