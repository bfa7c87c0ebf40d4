"""Rematerialization: less memory for more work, along a fixed schedule.

Source: `xla/hlo/transforms/simplifiers/hlo_rematerialization.cc`.
"""

from __future__ import annotations

from msa.passes.rematerialization.floor import Blocker, Floor
from msa.passes.rematerialization.options import HostMemory, RematerializationOptions
from msa.passes.rematerialization.rematerialize import Rematerialize, rematerialize
from msa.passes.rematerialization.result import Action, Rematerialization, Work

__all__ = [
    "Action",
    "Blocker",
    "Floor",
    "HostMemory",
    "Rematerialization",
    "RematerializationOptions",
    "Rematerialize",
    "Work",
    "rematerialize",
]
