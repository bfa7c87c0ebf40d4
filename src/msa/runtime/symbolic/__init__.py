"""Execution in which symbols stand for arrays: for modules too large to compute."""
