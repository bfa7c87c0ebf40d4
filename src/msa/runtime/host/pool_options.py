"""Options and statistics of pools."""

from __future__ import annotations

from dataclasses import dataclass

from msa.errors import OptionsError


@dataclass(frozen=True, slots=True)
class BFCOptions:
    """Options of a pool.

    Attributes:
        allow_growth: get regions of doubling size as needed; else one region of the
            whole limit at first use.
        fragmentation_fraction: of the limit; the largest surplus that is handed out
            with a chunk instead of being split off (0: 128 MiB).
        garbage_collection: give wholly free regions back before failing.
        allow_retry_on_failure: a failing request waits for frees, up to 10 s.
        enable_spatial_partitioning: requests take the lower or the upper end of one
            fixed range, so that each end's addresses depend on its own requests only.

    Raises:
        OptionsError: options exclude each other.

    >>> BFCOptions(allow_growth=False).garbage_collection
    False
    """

    allow_growth: bool = True
    fragmentation_fraction: float = 0.0
    garbage_collection: bool = False
    allow_retry_on_failure: bool = False
    enable_spatial_partitioning: bool = False

    def __post_init__(self) -> None:
        if self.enable_spatial_partitioning and self.allow_growth:
            raise OptionsError(
                "enable_spatial_partitioning needs allow_growth=False: both ends must "
                "belong to one fixed range"
            )
        if not 0 <= self.fragmentation_fraction <= 1:
            raise OptionsError(
                f"fragmentation_fraction is in [0, 1], not {self.fragmentation_fraction}"
            )


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Statistics of a pool, bytes unless counts.

    >>> PoolStats(2, 512, 512, 256, 4096, 1024, 1024, 256, 0).external_fragmentation
    0.5
    """

    num_allocs: int
    bytes_in_use: int
    peak_bytes_in_use: int
    largest_alloc_size: int
    bytes_limit: int
    pool_bytes: int
    peak_pool_bytes: int
    largest_free_block_bytes: int
    internal_waste: int

    @property
    def free_bytes(self) -> int:
        """Bytes of the pool that nobody holds."""
        return self.pool_bytes - self.bytes_in_use

    @property
    def external_fragmentation(self) -> float:
        """Share of the free bytes outside the largest free block, in [0, 1]."""
        free = self.free_bytes
        return (free - self.largest_free_block_bytes) / free if free else 0.0
