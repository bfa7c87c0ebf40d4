"""When two values may live in the same bytes.

Source: `xla/service/buffer_assignment.cc` (LiveRangeInterferes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.shape_nodes import shape_nodes

if TYPE_CHECKING:
    from msa.analysis.live_ranges import LiveRanges
    from msa.analysis.operand_sharing import OperandSharing
    from msa.analysis.values import Value


class Interference:
    """Answers from live ranges, with results that take over an operand's storage."""

    __slots__ = ("_alias", "_live", "dataflow", "sharing")

    def __init__(self, live: LiveRanges, sharing: OperandSharing) -> None:
        self._live = live
        self._alias = live.alias
        self.dataflow = live.alias.dataflow
        self.sharing = sharing

    def aliased(self, a: Value, b: Value) -> bool:
        """Whether the values must share their storage."""
        return self._alias.buffer_of(a) is self._alias.buffer_of(b)

    def between(self, a: Value, b: Value) -> bool:
        """Whether the values need different bytes at some time.

        Ranges are inclusive: one that ends where the other starts interferes,
        unless the later value is computed in place of the earlier one.
        """
        first, second = self._live.range_of(a), self._live.range_of(b)
        if first is None or second is None:
            return False
        if first.start > second.end or second.start > first.end:
            return False
        if first.end == second.start and self.takes_over(a, b):
            return False
        return not (second.end == first.start and self.takes_over(b, a))

    def takes_over(self, old: Value, new: Value) -> bool:
        """Whether `new` is computed from `old` and may be written over it."""
        user, index = new.position
        if user.opcode == "copy":
            return False
        for operand in dict.fromkeys(user.operands):
            for at in shape_nodes(operand.shape).indices:
                if old in self.dataflow.values_at(
                    operand, at
                ) and self.sharing.can_share(operand, at, user, index):
                    return True
        return False
