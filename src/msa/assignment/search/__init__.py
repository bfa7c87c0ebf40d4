"""Search for better plans than one greedy pass gives."""

from msa.assignment.search.search import run_search

__all__ = ["run_search"]
