"""Acting wherever the limit is passed, in one walk over each computation."""

from __future__ import annotations

from msa.hlo.computation import Computation
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.walk import Descent, Session, Walk, follow


class Always:
    """The walk over a module, callees when their caller reaches them."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, computation: Computation, limit: int) -> bool:
        """Bring a computation and what it calls below a limit, where possible."""
        return follow(self._run, (computation, limit))

    def _run(self, computation: Computation, limit: int) -> Descent:
        session = self._session
        session.done.add(computation)
        if session.peaks[computation] <= limit:
            return False
        walk = Walk(session, computation)
        changed = False
        item = walk.tracker.items.first
        while item is not None:
            walk.tracker.begin(item)
            if item.defined or session.callee_peak(item.instruction):
                self._reduce(walk, item, limit)
                for callee in walk.callees_over(item, limit):
                    left = max(0, limit - walk.tracker.usage)
                    changed |= yield callee, left
            walk.tracker.end()
            item = item.next
        walk.finish()
        session.warn_if_late()
        return changed or walk.changed

    def _reduce(self, walk: Walk, item: Item, limit: int) -> None:
        """Act until the step is within the limit or nothing helps."""
        options = self._session.options
        least = most = 1
        single_effort = block_effort = 0
        while walk.usage(item) > limit:
            before = walk.selection.effort
            choice = walk.selection.best(least, most, limit)
            spent = walk.selection.effort - before
            if most == 1:
                single_effort += spent
            else:
                block_effort += spent
            if choice is not None:
                walk.act(choice, item)
                least = most = 1
                continue
            least, most = most + 1, 2 * most
            if most > options.block_size_limit:
                return
            if block_effort > options.block_effort_factor * single_effort:
                return
