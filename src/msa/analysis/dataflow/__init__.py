"""Dataflow analysis: which values are at which node of which instruction."""

from __future__ import annotations

from msa.analysis.dataflow.analysis import DataflowAnalysis

__all__ = ["DataflowAnalysis"]
