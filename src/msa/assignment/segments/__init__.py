"""Segments: how one use of a value is served."""
