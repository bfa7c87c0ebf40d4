"""Copy insertion: what storage sharing demands, checked and made true."""

from __future__ import annotations

from msa.analysis.copy_insertion.flatten_calls import flatten_call_graph
from msa.analysis.copy_insertion.prepare import (
    MissingCopy,
    insert_copies,
    missing_copies,
    prepare,
)

__all__ = [
    "MissingCopy",
    "flatten_call_graph",
    "insert_copies",
    "missing_copies",
    "prepare",
]
