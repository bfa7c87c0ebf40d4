"""What a search has done, or would do, about something that is explained."""

from __future__ import annotations

from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.refine import search_hindrance


def search_note(problem: Problem, options: Options, did: str, does: str) -> str:
    """A sentence: what the search did, or why it did not run, or what it does.

    >>> from msa.assignment import Options
    >>> search_note(None, Options(strategy="search", effort=0), "left it", "tries more")
    'the search did not run: effort=0'
    """
    hindrance = search_hindrance(problem, options)
    if options.strategy == "search":
        if hindrance:
            return f"the search did not run: {hindrance}"
        return f"the search (effort {options.effort}) {did}"
    if hindrance:
        return f'strategy="search" {does}, but would not run here: {hindrance}'
    return f'strategy="search" {does}'
