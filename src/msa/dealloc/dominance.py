"""Dominators and post-dominators of blocks, across nested regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msa.dealloc.errors import UnsupportedControlFlow
from msa.dealloc.ir import Block, Function, Region, ancestors, lift_block


def check_no_loops(function: Function) -> None:
    """Refuse regions whose control flow graph has a cycle; linear.

    Raises:
        UnsupportedControlFlow: there is one.
    """
    for region in function.regions():
        state: dict[Block, bool] = {}
        for start in region.blocks[:1]:
            state[start] = False
            stack = [(start, iter(_successors(start)))]
            while stack:
                block, rest = stack[-1]
                following = next(rest, None)
                if following is None:
                    state[block] = True
                    stack.pop()
                elif following not in state:
                    state[following] = False
                    stack.append((following, iter(_successors(following))))
                elif not state[following]:
                    raise UnsupportedControlFlow(
                        "only structured control-flow loops are supported: the branch "
                        f"from ^{block.name} to ^{following.name} goes back",
                        where=f"@{function.name}",
                        hint="write the loop with for or while",
                    )


def _successors(block: Block) -> list[Block]:
    if not block.operations:
        return []
    return [s.block for s in block.terminator.successors]


class _Tree:
    """Immediate dominators of one acyclic graph; None is the virtual root."""

    __slots__ = ("depth", "parent")

    def __init__(
        self, order: Sequence[Block], incoming: dict[Block, list[Block | None]]
    ) -> None:
        self.parent: dict[Block, Block | None] = {}
        self.depth: dict[Block | None, int] = {None: 0}
        for block in order:
            best: Block | None = None
            sources = [s for s in incoming[block] if s is None or s in self.depth]
            for number, source in enumerate(sources):
                best = source if number == 0 else self.common(best, source)
            self.parent[block] = best
            self.depth[block] = self.depth[best] + 1

    def common(self, a: Block | None, b: Block | None) -> Block | None:
        while a is not b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            assert a is not None
            a = self.parent[a]
        return a


class Dominance:
    """Answers about blocks of a function without explicit loops.

    Blocks of different regions are compared after lifting to a common region.
    """

    __slots__ = ("_post", "_pre", "function")

    def __init__(self, function: Function) -> None:
        self.function = function
        self._pre: dict[Region, _Tree] = {}
        self._post: dict[Region, _Tree] = {}
        for region in function.regions():
            if region.blocks:
                self._analyse(region)

    def _analyse(self, region: Region) -> None:
        order = _topological(region)
        incoming: dict[Block, list[Block | None]] = {b: [] for b in region.blocks}
        outgoing: dict[Block, list[Block | None]] = {b: [] for b in region.blocks}
        for block in order:
            following = _successors(block)
            for successor in following:
                incoming[successor].append(block)
                outgoing[block].append(successor)
            if not following:
                outgoing[block].append(None)
        incoming[region.entry].insert(0, None)
        self._pre[region] = _Tree(order, incoming)
        self._post[region] = _Tree(list(reversed(order)), outgoing)

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether every way to `b` passes `a`; reflexive, False across regions."""
        lifted = lift_block(b, a.region)
        if lifted is None:
            return False
        tree = self._pre[a.region]
        here: Block | None = lifted
        while here is not None and here is not a:
            here = tree.parent.get(here)
        return here is a

    def common_post_dominator(self, blocks: Iterable[Block]) -> Block:
        """The nearest block that every path from each of them passes.

        Raises:
            UnsupportedControlFlow: paths end without meeting.
        """
        found: Block | None = None
        for block in blocks:
            found = block if found is None else self._common(found, block)
        assert found is not None
        return found

    def _common(self, a: Block, b: Block) -> Block:
        regions = set(ancestors(b.region))
        for region in ancestors(a.region):
            if region not in regions:
                continue
            first, second = lift_block(a, region), lift_block(b, region)
            assert first is not None
            assert second is not None
            met = self._post[region].common(first, second)
            if met is None:
                raise UnsupportedControlFlow(
                    f"paths from ^{first.name} and ^{second.name} never meet",
                    where=f"@{self.function.name}",
                )
            return met
        raise UnsupportedControlFlow("blocks of different functions")


def _topological(region: Region) -> list[Block]:
    """Reachable blocks, predecessors first."""
    order: list[Block] = []
    seen = {region.entry}
    stack = [(region.entry, iter(_successors(region.entry)))]
    while stack:
        block, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            order.append(block)
            stack.pop()
        elif following not in seen:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    order.reverse()
    return order
