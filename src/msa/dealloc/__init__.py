"""Buffers with explicit frees: an IR, placement of deallocations, reuse, checks."""

from __future__ import annotations

from msa.dealloc.check import CheckReport, check
from msa.dealloc.edges import Interfaces, RegionEdge
from msa.dealloc.interpreter import Finding, Interpreter, Misuse, explore
from msa.dealloc.ir import (
    Block,
    BufferModule,
    BufferType,
    Function,
    Operation,
    Region,
    ScalarType,
    Value,
)
from msa.dealloc.mutation import AliasMutation, find_alias_mutation
from msa.dealloc.parsing import parse, parse_function
from msa.dealloc.placement import (
    DeallocationOptions,
    DeallocationReport,
    place_deallocations,
    place_in_function,
)
from msa.dealloc.printing import print_function
from msa.dealloc.verifier import verify_function, verify_module

__all__ = [
    "AliasMutation",
    "Block",
    "BufferModule",
    "BufferType",
    "CheckReport",
    "DeallocationOptions",
    "DeallocationReport",
    "Finding",
    "Function",
    "Interfaces",
    "Interpreter",
    "Misuse",
    "Operation",
    "Region",
    "RegionEdge",
    "ScalarType",
    "Value",
    "check",
    "explore",
    "find_alias_mutation",
    "parse",
    "parse_function",
    "place_deallocations",
    "place_in_function",
    "print_function",
    "verify_function",
    "verify_module",
]
