"""Prefetches in slices: proposals, start times, and the search for room and time."""
