"""Pickers: when a copy may start, and how long a value may stay in fast memory."""

from __future__ import annotations

from msa.assignment.pickers.interface import PrefetchIntervalPicker

__all__ = ["PrefetchIntervalPicker"]
