"""Making modules ready for planning: flat calls, a schedule, and copies.

Source: `xla/service/copy_insertion.cc` (what has to hold), order by schedule is
this library's: copies are only put where the order of execution demands them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msa.analysis.call_graph import CallGraph
from msa.analysis.copy_insertion.conflicts import Conflict, find_conflicts
from msa.analysis.copy_insertion.constraints import ROOT
from msa.analysis.copy_insertion.flatten_calls import flatten_call_graph
from msa.analysis.copy_insertion.fused_updates import split_fused_target
from msa.analysis.copy_insertion.rewrite import put_copies
from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.in_place import InPlacePairs
from msa.analysis.schedulers import find_schedule
from msa.analysis.values import index_text
from msa.errors import InternalError, ScheduleError

if TYPE_CHECKING:
    from msa.hlo.module import Module

_ROUNDS: Final = 12


@dataclass(frozen=True, slots=True)
class MissingCopy:
    """A place where storage would have to be shared and cannot be.

    Attributes:
        instruction: the reader, or the root of a computation.
        operand: operand number, -1 for the result of a computation.
        index: which part of it.
        bytes: what a copy would take.
        reason: why the storage cannot be handed on.
    """

    instruction: str
    operand: int
    index: tuple[int, ...]
    bytes: int
    reason: str

    def __str__(self) -> str:
        place = "result of" if self.operand == ROOT else f"operand {self.operand} of"
        return f"{place} {self.instruction} {index_text(self.index)}: {self.reason}"


def missing_copies(module: Module) -> list[MissingCopy]:
    """Where a scheduled module breaks what planning takes for granted.

    Values that must share storage (along loops, branches, updates in place and
    program aliases) are never needed at the same time; results are no arguments, no
    constants, and each is its own. An empty list means that the module is ready.
    Computations with several callers are looked at as if each had its own.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> missing_copies(module)
    []
    """
    if not CallGraph.run(module).is_flattened:
        module = module.clone()
        flatten_call_graph(module)
    return [
        MissingCopy(
            c.slot.instruction.name,
            c.slot.operand,
            c.slot.part,
            c.value.byte_size(),
            c.reason,
        )
        for c in _conflicts(module)
    ]


def insert_copies(module: Module) -> Module:
    """A copy of a scheduled module with `copy` instructions where they are missing.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   x = f32[8] parameter(0)
    ...   ROOT t = (f32[8], f32[8]) tuple(x, x)
    ... }''')
    >>> ready = insert_copies(module)
    >>> [x.opcode for x in ready.schedule.sequence(ready.entry)]
    ['parameter', 'copy', 'copy', 'tuple']
    """
    if module.schedule is None:
        raise ScheduleError(
            f"module {module.name!r} has no schedule",
            hint="msa.schedule(module) makes one",
        )
    copy = module.clone()
    flatten_call_graph(copy)
    _insert(copy)
    return copy


def prepare(module: Module, algorithm: str = "best") -> Module:
    """A copy of any module that is ready for planning.

    Computations that several places call are cloned, an unscheduled module gets a
    schedule, and copies are put where storage cannot be shared. A module that is
    ready comes back as it is.

    Args:
        module: it is not changed.
        algorithm: see `msa.schedule`; for modules without a schedule.

    >>> import msa
    >>> module = msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
    >>> prepare(module).is_scheduled, module.is_scheduled
    (True, False)
    """
    copy = module.clone()
    flatten_call_graph(copy)
    if copy.schedule is None:
        copy.schedule, _ = find_schedule(copy, algorithm)
    _insert(copy)
    return copy


def _conflicts(module: Module) -> list[Conflict]:
    dataflow = DataflowAnalysis.run(module)
    return find_conflicts(dataflow, FlattenedSchedule.run(module), InPlacePairs())


def _insert(module: Module) -> None:
    """Put copies until nothing conflicts; a swap of storage takes two rounds."""
    for _ in range(_ROUNDS):
        conflicts = _conflicts(module)
        if not conflicts:
            return
        slots = []
        for conflict in conflicts:
            slot = conflict.slot
            if slot.operand != ROOT and slot.instruction.opcode == "fusion":
                split_fused_target(slot.instruction, slot.operand)
            slots.append(slot)
        put_copies(module, slots)
    raise InternalError(
        f"copies of {module.name!r} do not settle after {_ROUNDS} rounds: "
        f"{_conflicts(module)[0].reason}"
    )
