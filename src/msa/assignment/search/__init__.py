"""Search for better plans than one greedy pass gives."""

from msa.assignment.search.once import bring_in_once
from msa.assignment.search.search import run_search

__all__ = ["bring_in_once", "run_search"]
