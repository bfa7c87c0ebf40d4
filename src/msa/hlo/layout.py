"""Layouts: how an array's elements lie in memory, and in which memory space.

Source: `xla/layout.h`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from msa.errors import HloError
from msa.hlo.arguments import expect

if TYPE_CHECKING:
    from msa.hlo.primitive import PrimitiveType
    from msa.hlo.shape import Shape

MAX_RANK: Final = 1 << 16

COMBINE_DIMENSION: Final = -(2**63)
"""Tile entry written `*`: combine with the next more minor dimension."""


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """Shard boundaries of one physical dimension (`dimension` 0 is most major)."""

    dimension: int
    split_indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Physical layout of an array shape.

    Attributes:
        minor_to_major: permutation of dimensions, fastest varying first.
        tiles: tile sizes, each a tuple; `COMBINE_DIMENSION` stands for `*`.
        tail_padding_alignment: the padded element count is rounded up to this.
        index_type, pointer_type: legacy sparse fields, kept for round trips.
        element_size_in_bits: packed element width; 0 means the natural width.
        memory_space: 0 is default memory; by convention 1 alternate, 5 host.
        split_configs: shard boundaries of physical dimensions.
        physical_shape: legacy sparse field, kept for round trips.
        dynamic_metadata_prefix_bytes: not part of equality.

    >>> str(Layout((1, 0), tiles=((8, 128),), memory_space=1))
    '{1,0:T(8,128)S(1)}'
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    tail_padding_alignment: int = 1
    index_type: PrimitiveType | None = None
    pointer_type: PrimitiveType | None = None
    element_size_in_bits: int = 0
    memory_space: int = 0
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: Shape | None = None
    dynamic_metadata_prefix_bytes: int = field(default=0, compare=False)

    @staticmethod
    def row_major(rank: int) -> Layout:
        """The default layout of an array of `rank` dimensions."""
        expect(rank, int, where="Layout.row_major", what="a number of dimensions")
        if not 0 <= rank <= MAX_RANK:
            raise HloError(
                f"takes 0 to {MAX_RANK} dimensions, not {rank}",
                where="Layout.row_major",
            )
        if rank < len(_ROW_MAJOR):
            return _ROW_MAJOR[rank]
        return Layout(tuple(range(rank - 1, -1, -1)))

    def with_memory_space(self, memory_space: int) -> Layout:
        """The same layout in another memory space."""
        expect(memory_space, int, where="with_memory_space", what="a number")
        if memory_space == self.memory_space:
            return self
        return replace(self, memory_space=memory_space)

    def equal_ignoring_memory_space(
        self, other: Layout, *, shards: bool = False
    ) -> bool:
        """Equality that ignores in which memory space the elements lie.

        With `shards` it ignores how they are cut into shards, too.
        """
        return self is other or (
            self.minor_to_major == other.minor_to_major
            and self.tiles == other.tiles
            and self.element_size_in_bits == other.element_size_in_bits
            and self.tail_padding_alignment == other.tail_padding_alignment
            and self.index_type == other.index_type
            and self.pointer_type == other.pointer_type
            and (shards or self.split_configs == other.split_configs)
            and self.physical_shape == other.physical_shape
        )

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        tags = self._tags()
        return f"{{{order}:{tags}}}" if tags else f"{{{order}}}"

    def _tags(self) -> str:
        parts = []
        if self.tiles:
            tiles = "".join(
                "("
                + ",".join("*" if d == COMBINE_DIMENSION else str(d) for d in tile)
                + ")"
                for tile in self.tiles
            )
            parts.append(f"T{tiles}")
        if self.tail_padding_alignment != 1:
            parts.append(f"L({self.tail_padding_alignment})")
        if self.index_type is not None:
            parts.append(f"#({self.index_type.name})")
        if self.pointer_type is not None:
            parts.append(f"*({self.pointer_type.name})")
        if self.element_size_in_bits:
            parts.append(f"E({self.element_size_in_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.split_configs:
            configs = "".join(
                f"({c.dimension}:{','.join(map(str, c.split_indices))})"
                for c in self.split_configs
            )
            parts.append(f"SC{configs}")
        if self.physical_shape is not None:
            parts.append(f"P({self.physical_shape})")
        if self.dynamic_metadata_prefix_bytes:
            parts.append(f"M({self.dynamic_metadata_prefix_bytes})")
        return "".join(parts)


_ROW_MAJOR: Final = tuple(Layout(tuple(range(r - 1, -1, -1))) for r in range(16))
