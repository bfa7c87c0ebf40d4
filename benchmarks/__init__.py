"""Benchmarks: plan quality, time of each stage, growth, packing.

`python -m benchmarks` prints the tables of the README; single benchmarks are modules
of their own (`python -m benchmarks.packing`).
"""
