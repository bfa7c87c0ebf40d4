"""Asynchronous operations: `call-start(…)` and its like stand for wrapped computations.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from msa.hlo.opcode import OPCODES
from msa.hlo.parser.state import ReaderState, Scope, Task
from msa.hlo.shape import Shape

_NATIVE = frozenset(
    {"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv", "async"}
)


def split_sugar(opcode: str) -> tuple[str, str] | None:
    """`slice-start` as (`slice`, `start`); None when it is not sugar."""
    base, dash, phase = opcode.rpartition("-")
    if not dash or phase not in ("start", "update", "done"):
        return None
    if base not in OPCODES or base in _NATIVE:
        return None
    return base, phase


def read_async(
    state: ReaderState,
    scope: Scope,
    name: str,
    at: int,
    shape: Shape | None,
    opcode: str,
    opcode_at: int,
) -> Task:
    """Read an async instruction from its operands on."""
    raise NotImplementedError
    yield
