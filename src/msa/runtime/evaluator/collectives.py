"""Collectives over simulated devices: who takes part, and what each receives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np

from msa.errors import ExecutionError
from msa.hlo.instruction import Instruction
from msa.hlo.replica_groups import ListGroups
from msa.runtime.evaluator.applied import applied
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.registry import unsupported

COLLECTIVES: Final = frozenset(
    [
        "all-reduce",
        "all-reduce-start",
        "all-gather",
        "all-gather-start",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-permute-start",
        "collective-broadcast",
        "ragged-all-to-all",
    ]
)
"""Opcodes at which a device waits for others."""

_PARTITIONED: Final = frozenset(
    {"all-to-all", "ragged-all-to-all", "collective-broadcast", "collective-permute"}
)

Operands = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A device has arrived at a collective with these operand values."""

    instruction: Instruction
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Replicas and the partitions of each; device = replica · partitions + partition."""

    replicas: int
    partitions: int

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.replicas * self.partitions

    def group_of(self, instruction: Instruction, device: int) -> tuple[int, ...]:
        """Devices that exchange data with `device`, in the order of the group.

        Without a channel groups number replicas; with one they number partitions,
        or replicas of all partitions, or (`use_global_device_ids`) devices.
        """
        a = instruction.attributes
        opcode = instruction.opcode.removesuffix("-start")
        channel = "channel_id" in a
        replica, partition = divmod(device, self.partitions)
        if opcode == "collective-permute":
            if channel:
                return tuple(
                    replica * self.partitions + p for p in range(self.partitions)
                )
            return tuple(r * self.partitions + partition for r in range(self.replicas))
        groups = a.get("replica_groups", ListGroups())
        if not channel:
            members = self._find(instruction, groups.expand(self.replicas), replica)
            return tuple(r * self.partitions + partition for r in members)
        if opcode in _PARTITIONED:
            members = self._find(instruction, groups.expand(self.partitions), partition)
            return tuple(replica * self.partitions + p for p in members)
        if a.get("use_global_device_ids", False):
            return self._find(instruction, groups.expand(self.devices), device)
        members = self._find(instruction, groups.expand(self.replicas), replica)
        return tuple(
            r * self.partitions + p for r in members for p in range(self.partitions)
        )

    def _find(
        self, instruction: Instruction, groups: Sequence[Sequence[int]], member: int
    ) -> tuple[int, ...]:
        for group in groups:
            if member in group:
                return tuple(group)
        raise ExecutionError(
            f"no group of {instruction.name} contains participant {member}",
            where=instruction.name,
        )


Exchange = Callable[
    [Instruction, Sequence[int], Sequence[Operands], Topology], list[Any]
]
"""Moves the data of one collective: results for each member, in group order."""


def exchange(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    """Results of one collective for each member of a group, in group order."""
    opcode = instruction.opcode.removesuffix("-start")
    results = _EXCHANGES[opcode](instruction, group, operands, topology)
    if instruction.opcode in ("all-gather-start", "collective-permute-start"):
        extra = max(0, len(instruction.shape.children) - 2)
        return [
            (_pack(given), result, *(np.uint32(0) for _ in range(extra)))
            for given, result in zip(operands, results, strict=True)
        ]
    return results


def _pack(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _columns(operands: Sequence[Operands]) -> list[list[Array]]:
    """Per operand number, the values of all members."""
    return [[np.asarray(x) for x in column] for column in zip(*operands, strict=True)]


def _folder(instruction: Instruction) -> Callable[[Sequence[Array]], Array]:
    function = applied(instruction.called_computations[0], Context())

    def fold(values: Sequence[Array]) -> Array:
        return np.asarray(reduce(lambda a, b: function(a, b)[0], values))

    return fold


def _all_reduce(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology
    fold = _folder(instruction)
    total = _pack([fold(column) for column in _columns(operands)])
    return [total] * len(group)


def _all_gather(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology
    axis = instruction.attributes["dimensions"][0]
    whole = _pack([np.concatenate(column, axis) for column in _columns(operands)])
    return [whole] * len(group)


def _reduce_scatter(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology
    axis = instruction.attributes["dimensions"][0]
    fold = _folder(instruction)
    parts = [np.split(fold(column), len(group), axis) for column in _columns(operands)]
    return [_pack([part[i] for part in parts]) for i in range(len(group))]


def _all_to_all(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology
    dimensions = instruction.attributes.get("dimensions", ())
    count = len(group)
    if dimensions:
        axis = dimensions[0]
        cut = [np.split(np.asarray(given[0]), count, axis) for given in operands]
        return [
            np.concatenate([cut[source][i] for source in range(count)], axis)
            for i in range(count)
        ]
    return [_pack([given[i] for given in operands]) for i in range(count)]


def _collective_permute(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    if instruction.attributes.get("slice_sizes"):
        raise unsupported(instruction, "the in-place form with slices")
    channel = "channel_id" in instruction.attributes
    numbers = [
        d % topology.partitions if channel else d // topology.partitions for d in group
    ]
    source_of = {t: s for s, t in instruction.attributes["source_target_pairs"]}
    place = {number: i for i, number in enumerate(numbers)}
    results = []
    for i, number in enumerate(numbers):
        source = source_of.get(number)
        if source is None or source not in place:
            results.append(_pack([np.zeros_like(x) for x in operands[i]]))
        else:
            results.append(_pack(operands[place[source]]))
    return results


def _collective_broadcast(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology
    if instruction.attributes.get("has_dynamic_root"):
        raise unsupported(instruction, "a dynamic root")
    return [_pack(operands[0])] * len(group)


def _ragged_all_to_all(
    instruction: Instruction,
    group: Sequence[int],
    operands: Sequence[Operands],
    topology: Topology,
) -> list[Any]:
    del topology, instruction
    outs = [np.array(given[1]) for given in operands]
    for given in operands:
        rows = np.asarray(given[0])
        starts, sizes, targets = (np.asarray(x).reshape(-1) for x in given[2:5])
        per = len(starts) // len(group)
        for j, (start, size, target) in enumerate(
            zip(starts.tolist(), sizes.tolist(), targets.tolist(), strict=True)
        ):
            outs[j // per][target : target + size] = rows[start : start + size]
    return list(outs)


_EXCHANGES: Final[dict[str, Callable[..., list[Any]]]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "collective-permute": _collective_permute,
    "collective-broadcast": _collective_broadcast,
    "ragged-all-to-all": _ragged_all_to_all,
}
