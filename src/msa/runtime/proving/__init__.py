"""Proof by execution: original against lowered, bit for bit."""
