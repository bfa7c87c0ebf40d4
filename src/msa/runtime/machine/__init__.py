"""The simulated machine: memories, copy engine, sanitizer."""
