"""Turning decisions into a module: copies, memory spaces, a new schedule."""

from msa.assignment.lowering.lower import Lowered, lower

__all__ = ["Lowered", "lower"]
