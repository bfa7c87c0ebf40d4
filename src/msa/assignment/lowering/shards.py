"""How every place of a value that is cut into shards is cut.

Places of one shape are cut alike. A bitcast to another shape is cut along the
dimension that `bitcast_split_fn` names for it, at the same shares of its extent.
"""

from __future__ import annotations

from collections.abc import Callable

from msa.analysis.values import Position
from msa.assignment.lowering.state import Place
from msa.assignment.splitting import extent_of, fits, with_split
from msa.errors import PlanError
from msa.hlo.layout import SplitConfig
from msa.hlo.shape import Shape


class Shards:
    """Cuts of the places of one buffer.

    Args:
        place: a place whose cut is known.
        split: that cut.
        bitcast_split_fn: the dimension of a bitcast's result that a cut dimension of
            its operand becomes.
    """

    __slots__ = ("_function", "_place", "_split")

    def __init__(
        self,
        place: Place,
        split: SplitConfig,
        bitcast_split_fn: Callable[[object, int], int] | None,
    ) -> None:
        self._place = place
        self._split = split
        self._function = bitcast_split_fn

    def cut(self, position: Position) -> Shape:
        """The shape at a position, cut into shards. Linear in the bitcasts before it.

        Raises:
            PlanError: the cut of a bitcast does not fit its shape.
        """
        views: list[Position] = []
        here = position
        while not _alike(here.shape, self._place.shape):
            views.append(here)
            here = _before(here)
        split = self._split
        for view in reversed(views):
            split = self._through(view, split)
        return with_split(position.shape, split)

    def _through(self, view: Position, split: SplitConfig) -> SplitConfig:
        """The cut of a bitcast's result, given its operand's."""
        bitcast = view.instruction
        if bitcast.opcode != "bitcast":
            return split
        assert self._function is not None  # options are checked for this
        dimension = self._function(bitcast, split.dimension)
        before = extent_of(bitcast.operands[0].shape, split.dimension)
        rank = len(bitcast.shape.dimensions)
        after = extent_of(bitcast.shape, dimension) if 0 <= dimension < rank else 0
        shares = [index * after for index in split.split_indices]
        made = SplitConfig(dimension, tuple(share // before for share in shares))
        if any(share % before for share in shares) or not fits(bitcast.shape, made):
            raise PlanError(
                f"dimension {dimension} of {bitcast.shape} cannot be cut where "
                f"{bitcast.operands[0].shape} is",
                where=bitcast.name,
                hint="let bitcast_split_fn name another dimension, or do not cut it",
            )
        return made


def _alike(a: Shape, b: Shape) -> bool:
    """Equality of dimensions and their order in memory."""
    order = (s.layout.minor_to_major if s.layout else None for s in (a, b))
    return a.dimensions == b.dimensions and len(set(order)) == 1


def _before(position: Position) -> Position:
    """The place whose storage a renaming names."""
    instruction, index = position
    if instruction.opcode == "get-tuple-element":
        return Position(instruction.operands[0], (instruction.tuple_index, *index))
    if instruction.opcode == "tuple" and index:
        return Position(instruction.operands[index[0]], index[1:])
    if instruction.opcode == "bitcast":
        return Position(instruction.operands[0], ())
    raise PlanError(
        f"{position} shares storage with what is cut into shards, but has another "
        f"shape ({position.shape})",
        where=instruction.name,
        hint="do not cut values that change their shape in place",
    )
