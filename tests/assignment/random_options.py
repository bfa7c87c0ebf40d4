"""Options at random, for plans of random programs."""

from __future__ import annotations

import random
from typing import Any

import msa
from msa.assignment.options import (
    CostAnalysisPicker,
    InstructionCountPicker,
    SlicedPrefetchOptions,
)
from msa.assignment.problem import TRIVIAL_OPCODES
from msa.assignment.splitting import extent_of
from msa.hlo.layout import SplitConfig

#: Option → (how often it is set, values).
_SOMETIMES: dict[str, tuple[float, tuple[Any, ...]]] = {
    "faithful": (0.4, (True,)),
    "max_repacks": (0.3, (1, 5, 20)),
    "max_retries": (0.3, (2, 3)),
    "max_outstanding_prefetches": (0.3, (0, 1, 2, 5)),
    "max_outstanding_evictions": (0.3, (0, 1, 2)),
    "while_use_extra_outstanding_prefetch_limit": (0.3, (1, 3)),
    "enforce_prefetch_fifo_order": (0.2, (True,)),
    "max_cross_program_prefetches": (0.3, (0, -1, 3)),
    "enable_cross_program_prefetch_freeing": (0.3, (False,)),
    "cross_program_prefetch_permissive_mode": (0.3, (True,)),
    "enable_while_redundant_eviction_elimination": (0.3, (False,)),
    "inefficient_use_to_copy_ratio": (0.3, (0.5, 1.0, 2.0)),
    "always_spill_to_default_memory": (0.15, (True,)),
    "post_module_scoped_alternate_memory_size_in_bytes": (0.2, (512,)),
}


def random_options(
    seed: int, module: msa.Module, *, scratch: bool = False
) -> msa.Options:
    """Options that fit each other, the same for the same seed.

    With `scratch` some instructions ask for scratch in any case.
    """
    rng = random.Random(seed)
    fields: dict[str, Any] = {
        name: rng.choice(values)
        for name, (share, values) in _SOMETIMES.items()
        if rng.random() < share
    }
    _pick(rng, fields)
    _forbid(rng, fields)
    if rng.random() < 0.4:
        fields["enable_sync_copy_replacement"] = rng.random() < 0.7
        fields["enable_sync_slice_replacement"] = rng.random() < 0.7
        fields["is_async_slice_implemented_fn"] = lambda instruction: True
    if rng.random() < 0.3:
        fields["sliced_prefetch_options"] = SlicedPrefetchOptions(
            max_slices=rng.choice((2, 3, 4)),
            min_bytes=rng.choice((8, 1024)),
            preferred_slice_size=rng.choice((0, 0, 1024)),
        )
    if rng.random() < 0.2:
        fields["enable_window_prefetch"] = True
        fields["op_span_size_fn"] = lambda user, placed, operand: 512
        fields["window_prefetch_min_span_size"] = 16
        fields["window_prefetch_mode"] = rng.choice(
            ("WindowExposure", "WindowPrefetch")
        )
    inputs = [p.name for p in module.entry.parameters if p.shape.is_array]
    if inputs and rng.random() < 0.2:
        chosen = rng.sample(inputs, min(len(inputs), 3))
        fields["block_prefetched_positions"] = tuple((name, ()) for name in chosen)
        fields["reserved_bytes_for_block_prefetches"] = rng.choice((256, 1024))
        fields["max_outstanding_block_prefetches"] = rng.choice((1, 3, 10))
    else:
        _reserve(random.Random(seed + 1), fields, always=scratch)
    _split(module, random.Random(seed + 2), fields)
    return msa.Options(**fields)


def halved(place: Any, tree: Any) -> SplitConfig | None:
    """Two shards of every array whose most major dimension is even."""
    if not place.shape.dimensions:
        return None
    extent = extent_of(place.shape, 0)
    return None if extent % 2 else SplitConfig(0, (extent // 2,))


def _split(module: msa.Module, rng: random.Random, fields: dict[str, Any]) -> None:
    """Values in shards, in programs without bitcasts (whose cuts nobody knows)."""
    excluded = "sliced_prefetch_options", "enable_window_prefetch"
    opcodes = {i.opcode for c in module.computations for i in c.instructions}
    if (
        rng.random() < 0.2
        and "bitcast" not in opcodes
        and not any(name in fields for name in excluded)
    ):
        fields["determine_split_dimension_fn"] = halved
        fields["init_split_tree_fn"] = lambda x, tree: tree.setdefault(x, {})
        fields["shape_size_fn"] = lambda shape: shape.shard_byte_size()
        fields["bitcast_split_fn"] = lambda x, dimension: dimension


def _pick(rng: random.Random, fields: dict[str, Any]) -> None:
    if rng.random() < 0.5:
        low = rng.choice((0, 1, 2, 4))
        high = low + rng.choice((1, 3, 10, 50, 1000))
        fields["prefetch_interval_picker"] = InstructionCountPicker(low, high)
        fields["buffer_interval_comparator"] = "spatial"
        fields["cost_analysis"] = rng.random() < 0.5
    else:
        fields["prefetch_interval_picker"] = CostAnalysisPicker(
            *rng.choice(((0.8, 1.5, 10.0), (0.0, 0.0, 1e9), (0.1, 0.5, 100.0)))
        )
        fields["buffer_interval_comparator"] = rng.choice(
            ("memory_boundedness", "spatial")
        )


def _forbid(rng: random.Random, fields: dict[str, Any]) -> None:
    """Some uses and places may not be in alternate memory."""
    if rng.random() < 0.25:
        share = rng.choice((3, 5, 7))
        fields["is_use_allowed_in_alternate_mem_fn"] = lambda use: bool(
            sum(use.instruction.name.encode()) % share
        )
    if rng.random() < 0.2:
        part = rng.choice((3, 5))
        fields["is_position_allowed_in_alternate_mem_fn"] = lambda place: bool(
            sum(place.instruction.name.encode()) % part
        )


def _reserve(rng: random.Random, fields: dict[str, Any], *, always: bool) -> None:
    """Scratch for some instructions, loops and asynchronous computations included.

    Faithful plans do not put up with scratch of what only renames.
    """
    without = TRIVIAL_OPCODES if fields.get("faithful") else frozenset()
    if rng.random() < 0.25 or always:
        share, size = rng.choice((2, 3, 5)), rng.choice((64, 192, 512))
        fields["reserved_scoped_memory_fn"] = lambda x, operands, results: (
            0 if x.opcode in without or sum(x.name.encode()) % share else size
        )
        fields["reduce_scoped_memory_limit"] = rng.random() < 0.3
        if rng.random() < 0.3:
            fields["expanded_scoped_alternate_memory_mode"] = "ENABLED"
