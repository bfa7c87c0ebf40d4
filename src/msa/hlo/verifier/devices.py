"""Checks that collectives name devices which the module has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msa.errors import MsaError
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.verifier.report import Report


def check_devices(
    report: Report, module: Module, collectives: Iterable[Instruction]
) -> None:
    """Compare device numbers with the module's replicas and partitions.

    A module that states neither count may run on any number of devices. Each
    distinct set of groups is expanded once.
    """
    count = module.replica_count * module.num_partitions
    if count <= 1:
        return
    known: dict[int, int] = {}
    for instruction in collectives:
        attributes = instruction.attributes
        for value in (
            attributes.get("replica_groups"),
            attributes.get("source_target_pairs"),
        ):
            if value is None:
                continue
            largest = known.get(id(value))  # shared by the reader, kept by the module
            if largest is None:
                largest = known[id(value)] = _largest(value)
            if largest >= count:
                report.instruction(
                    instruction, f"names device {largest} of a module for {count}"
                )


def _largest(value: Any) -> int:
    """The largest device number; -1 when there is none or the value is malformed."""
    try:
        rows = value if isinstance(value, tuple) else value.expand(0)
        return max((int(d) for row in rows for d in row), default=-1)
    except (MsaError, AttributeError, TypeError, ValueError):
        return -1  # reported with the instruction
