"""Tuned configurations: keys, caches, stores, and the tuner."""

from __future__ import annotations

from msa.runtime.autotune.cache import AutotuneCache, CacheMode, CacheStats
from msa.runtime.autotune.key import CURRENT_VERSION, AutotuneKey
from msa.runtime.autotune.placement import PlacementTuning, tune_placement
from msa.runtime.autotune.tiered import (
    Environment,
    MemoryStore,
    Store,
    StoreMode,
    TargetKey,
    TieredCache,
    TunedValue,
)
from msa.runtime.autotune.tuner import (
    Candidate,
    Trial,
    Tuning,
    autotune,
    gemv_candidates,
)

__all__ = [
    "CURRENT_VERSION",
    "AutotuneCache",
    "AutotuneKey",
    "CacheMode",
    "CacheStats",
    "Candidate",
    "Environment",
    "MemoryStore",
    "PlacementTuning",
    "Store",
    "StoreMode",
    "TargetKey",
    "TieredCache",
    "Trial",
    "TunedValue",
    "Tuning",
    "autotune",
    "gemv_candidates",
    "tune_placement",
]
