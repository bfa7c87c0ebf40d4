"""Merges of values, and which of them are not needed.

A loop that passes an element through unchanged first gets a merge of the initial
value with itself; merges that only ever merge one value are replaced by it.

Source: `xla/service/hlo_phi_graph.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable


class PhiGraph:
    """Inputs of merged values, by value id, in order of registration."""

    __slots__ = ("_inputs", "_order", "_replacement")

    def __init__(self) -> None:
        self._inputs: dict[int, list[int]] = {}
        # Merges in order of first mention, be it as an input: it decides which are
        # examined first.
        self._order: dict[int, None] = {}
        self._replacement: dict[int, int] = {}

    def register(self, phi: int, inputs: list[int]) -> None:
        """Set the inputs of a merge."""
        self._inputs[phi] = inputs
        self._order[phi] = None
        for value in inputs:
            self._order[value] = None

    def has_inputs(self, phi: int, inputs: Iterable[int]) -> bool:
        """Whether the merge has this set of inputs already."""
        return set(self._inputs[phi]) == set(inputs)

    def resolve(self, value: int) -> int:
        """What a value was replaced by, or the value itself."""
        chain = []
        while value in self._replacement:
            chain.append(value)
            value = self._replacement[value]
        for link in chain:
            self._replacement[link] = value
        return value

    def prune(self) -> None:
        """Replace merges that merge one value only.

        Each round is linear in merges and inputs; rounds go on while they change
        something, in practice as many as loops are nested.
        """
        phis = [v for v in self._order if v in self._inputs]
        changed = True
        while changed:
            changed = False
            examined: set[int] = set()
            for phi in phis:
                if phi in self._replacement:
                    continue
                inputs = self._current_inputs(phi)
                if inputs and all(x == inputs[0] for x in inputs):
                    self._replacement[phi] = inputs[0]
                    changed = True
                elif inputs and phi not in examined:
                    changed |= self._replace_closure(phi, examined)

    def _current_inputs(self, phi: int) -> list[int]:
        """Inputs after replacements, without the merge itself."""
        inputs = [self.resolve(x) for x in self._inputs[phi]]
        inputs = [x for x in inputs if x != phi]
        self._inputs[phi] = inputs
        return inputs

    def _replace_closure(self, phi: int, examined: set[int]) -> bool:
        """Replace everything a merge depends on if that is one value and merges.

        Merges met on the way are not examined again in this round.
        """
        closure: dict[int, None] = {}
        source: int | None = None
        queue = [phi]
        for value in queue:
            if value in closure:
                continue
            closure[value] = None
            examined.add(value)
            if value in self._inputs:
                queue.extend(self._current_inputs(value))
            elif source is None:
                source = value
            else:
                return False
        if source is None:
            return False
        for value in closure:
            if value != source:
                self._replacement[value] = source
        return True
