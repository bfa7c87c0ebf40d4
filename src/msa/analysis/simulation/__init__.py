"""Simulation: the modelled time of a module with its memory spaces and copies."""

from msa.analysis.simulation.result import SimulatedStep, Simulation
from msa.analysis.simulation.simulate import simulate

__all__ = ["SimulatedStep", "Simulation", "simulate"]
