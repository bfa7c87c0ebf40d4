"""The opcode table: what each operation is and what it calls.

More opcodes are more rows. Source: `xla/hlo/ir/hlo_opcode.h`.
"""

from __future__ import annotations

from typing import Final

CONTROL_FLOW_OPCODES: Final = frozenset(
    {"call", "while", "conditional", "async-start", "async-update", "async-done"}
)
"""Opcodes whose called computations run as part of the schedule."""
