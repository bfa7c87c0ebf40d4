"""Memory reports: what takes a program's memory, when, and why."""

from __future__ import annotations

from msa.analysis.memory_report.build import analyze
from msa.analysis.memory_report.model import (
    Breakdown,
    BufferKind,
    Donation,
    DonationStatus,
    Hint,
    HintKind,
    LiveRow,
    MemoryReport,
)

__all__ = [
    "Breakdown",
    "BufferKind",
    "Donation",
    "DonationStatus",
    "Hint",
    "HintKind",
    "LiveRow",
    "MemoryReport",
    "analyze",
]
