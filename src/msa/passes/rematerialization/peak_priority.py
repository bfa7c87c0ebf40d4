"""Acting at the highest peak first, again and again."""

from __future__ import annotations

from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.recompute import is_unread, names_of
from msa.passes.rematerialization.tracker import peak_of
from msa.passes.rematerialization.walk import Descent, Session, Walk, follow

_LEAST_COST_LIMIT: Final = 1 << 30
_LEAST_PROGRESS: Final = 0.01


class PeakPriority:
    """Rounds: walk to the peak, act there, measure again.

    A round is linear in the computation, and a round is made for every change of the
    peak; clones are never rematerialized again, so there is an end.
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, computation: Computation, limit: int) -> bool:
        """Bring a computation and what it calls below a limit, where possible."""
        return follow(self._run, (computation, limit))

    def _run(self, computation: Computation, limit: int) -> Descent:
        session = self._session
        session.done.add(computation)
        changed = False
        while session.peaks[computation] > limit:
            peak, step = peak_of(computation, session.options, session.peaks)
            session.peaks[computation] = peak
            if peak <= limit:
                break
            walk = Walk(session, computation)
            item = _walk_to(walk, step, session)
            self._reduce(walk, item, peak, limit)
            inside = False
            for callee in walk.callees_over(item, limit):
                inside |= yield callee, max(0, limit - walk.tracker.usage)
            walk.tracker.end()
            if not (inside or walk.changed):
                break
            changed = True
            self._drop_unread(walk)
            walk.finish()
            self._check_progress(peak, session.peaks[computation], limit)
        return changed

    def _reduce(self, walk: Walk, item: Item, peak: int, limit: int) -> None:
        options = self._session.options
        cost_limit = max(_LEAST_COST_LIMIT, limit)
        most = 1
        while walk.usage(item) >= peak:
            choice = walk.selection.best(1, most, cost_limit)
            if choice is not None:
                walk.act(choice, item)
                most = 1
                continue
            most *= 2
            if most > options.block_size_limit:
                return

    def _drop_unread(self, walk: Walk) -> None:
        """Remove originals that nothing reads any more, and their names."""
        doomed: set[Instruction] = set()
        for original in walk.recomputed:
            if original not in doomed and is_unread(original):
                doomed.update(names_of(original))
        if doomed:
            walk.computation.remove(doomed)

    def _check_progress(self, before: int, after: int, limit: int) -> None:
        session = self._session
        session.warn_if_late()
        if after > limit and before - after < _LEAST_PROGRESS * before:
            session.warn_once("rematerialization makes too little progress")


def _walk_to(walk: Walk, step: int, session: Session) -> Item:
    """Run the items before a step and begin that one."""
    item = walk.tracker.items.first
    assert item is not None
    for _ in range(step):
        walk.tracker.begin(item)
        walk.tracker.end()
        assert item.next is not None
        item = item.next
    for other in walk.tracker.items:
        x = other.instruction
        other.barred = x in session.cloner.made or x in session.moved
    walk.tracker.begin(item)
    return item
