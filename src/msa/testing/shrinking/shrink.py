"""A failing module made small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from msa.analysis import AnalysisManager
from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.errors import HloError
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.hlo.verifier import find_violations
from msa.testing.random_modules.options import whole
from msa.testing.shrinking.draft import Draft
from msa.testing.shrinking.edit import Edit, Kind, weight
from msa.testing.shrinking.inlining import inlined
from msa.testing.shrinking.interfaces import (
    dead_code,
    merged_parameters,
    other_results,
    results,
    unread,
)
from msa.testing.shrinking.replacing import (
    earlier_values,
    elements,
    operands,
    plain_values,
    trip_counts,
)

_KINDS: Final[tuple[Kind, ...]] = (
    dead_code,
    results,
    plain_values,
    operands,
    elements,
    trip_counts,
    inlined,
    unread,
    earlier_values,
    merged_parameters,
    other_results,
)


def shrink(
    module: Module, fails: Callable[[Module], bool], *, trials: int = 3000
) -> Module:
    """A smaller module that still fails; the same one for the same arguments.

    Values are replaced by operands, by other values of their shape or by constants,
    loops run less often, calls, branches, loops, fusions and asynchronous operations
    are put where they are called, and results, parameters and elements of tuples that
    nothing reads go, until nothing of that can be done any more. Many edits are tried
    at once first, then fewer.

    Args:
        module: not changed.
        fails: whether a module shows the failure; it must not change the module, and
            what it raises ends the search. Let it tell the failure that is looked
            for from others.
        trials: how often `fails` may be asked.

    Whatever is tried is well formed: the verifier accepts it, and a scheduled module
    in which no two values need the same storage at once stays one. What a loop's
    condition depends on is replaced by nothing else, so that loops end.

    Raises:
        HloError: the module does not fail, or an argument is of the wrong kind.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[4] parameter(0)
    ...   b = f32[4] tanh(a)
    ...   c = f32[4] negate(b)
    ...   d = f32[4] add(b, c)
    ...   ROOT t = (f32[4], f32[4]) tuple(c, d)
    ... }''')
    >>> small = shrink(module, lambda m: any(x.opcode == "negate" for x in m.entry.instructions))
    >>> [x.opcode for x in small.entry.instructions]
    ['iota', 'negate']
    """
    expect(module, Module, where="shrink", what="a Module", hint="msa.parse(text)")
    whole(trials, "trials", 0, "shrink")
    if not callable(fails):
        raise HloError("takes a function that judges modules", where="shrink")
    search = _Search(module, fails, trials)
    search.run()
    return search.best


class _Search:
    """The smallest module so far, and what it takes to replace it."""

    __slots__ = (
        "_conflicts_count",
        "_fails",
        "_left",
        "_numbers",
        "_rules_count",
        "best",
    )

    def __init__(
        self, module: Module, fails: Callable[[Module], bool], trials: int
    ) -> None:
        self.best = module
        self._fails = fails
        self._left = trials
        self._numbers = count(1)
        self._rules_count = not find_violations(module)
        self._conflicts_count = self._rules_count and not _conflicts(module)

    def run(self) -> None:
        if not self._fails(self.best.clone()):
            raise HloError(
                "the module does not fail",
                where="shrink",
                hint="judge the same module twice and see whether the judge agrees",
            )
        while any([self._run(kind) for kind in _KINDS]):  # noqa: C419  # every kind
            pass

    def _run(self, kind: Kind) -> bool:
        """Try all edits of a kind, many at once, then fewer."""
        edits = list(kind(self.best))
        size = len(edits)
        found = False
        while size and self._left:
            start = 0
            while start < len(edits):
                if self._try(edits[start : start + size]):
                    found = True
                    del edits[start : start + size]
                else:
                    start += size
            size //= 2
        return found

    def _try(self, edits: Sequence[Edit]) -> bool:
        if not self._left:
            return False
        draft = Draft(self.best, self._numbers)
        try:
            if not sum([_apply(edit, draft) for edit in edits]):
                return False
            draft.sweep()
        except HloError:  # an edit took away what another one needs
            return False
        module = draft.module
        if weight(module) >= weight(self.best) or not self._is_sound(module):
            return False
        self._left -= 1
        if not self._fails(module):
            return False
        self.best = module
        return True

    def _is_sound(self, module: Module) -> bool:
        if self._rules_count and find_violations(module):
            return False
        return not (self._conflicts_count and _conflicts(module))


def _apply(edit: Edit, draft: Draft) -> bool:
    try:
        return edit(draft)
    except KeyError:  # what it would change is gone
        return False


def _conflicts(module: Module) -> bool:
    """Whether two values of a scheduled module need the same storage at once."""
    if not module.is_scheduled:
        return False
    analyses = AnalysisManager(module)
    found = find_conflicts(analyses.dataflow, analyses.schedule, analyses.in_place)
    return bool(found)
