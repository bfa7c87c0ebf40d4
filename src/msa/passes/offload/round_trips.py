"""Results of host computations that are wanted on the host stay there.

Source: `xla/hlo/transforms/host_offloader.cc` (redundant copies around host calls).
"""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex
from msa.passes.offload.vocabulary import (
    HOST,
    MOVE_TO_HOST,
    HostOffloadError,
    Place,
    is_call_of,
    next_places,
    on_host_thread,
    set_space,
)
from msa.passes.offload.walk import Offload

_WALKED: Final = frozenset(
    {"bitcast", "call", "conditional", "get-tuple-element", "opt-barrier"}
    | {"tuple", "while"}
)


def keep_results_on_host(offload: Offload) -> None:
    """Drop the way over the device between a host call and a result on the host.

    Linear in the nodes below the results of host calls.

    Raises:
        HostOffloadError: a host call wraps more than one operation.
    """
    for computation in offload.module.computations:
        for start in list(computation.instructions):
            if start.opcode != "async-start" or not on_host_thread(start):
                continue
            root = _wrapped_root(start)
            dones = [u for u in start.users if u.opcode == "async-done"]
            if len(dones) != 1:
                continue
            for index, leaf in dones[0].shape.leaves():
                if leaf.is_array and _only_to_host_results(offload, (dones[0], index)):
                    offload.walk_down((dones[0], index))
                    set_space(start, (1, *index), HOST)
                    _mark_up(root, index)


def _wrapped_root(start: Instruction) -> Instruction:
    (wrapped,) = start.called_computations
    for x in wrapped.instructions:
        if x.opcode != "parameter" and not x.is_root:
            raise HostOffloadError(
                f"{start.name} wraps {x.name} besides its root",
                where=x.name,
                hint="let it wrap parameters and one operation, such as a call",
            )
    return wrapped.root


def _only_to_host_results(offload: Offload, start: Place) -> bool:
    """Whether a value is only handed on, to results that lie on the host."""
    work, seen, reached = [start], {start}, False
    while work:
        place = work.pop()
        x, index = place
        if x.is_root and x.computation.is_entry:
            if any(
                s.is_array and s.memory_space != HOST
                for _, s in offload.result.subshape(index).leaves()
            ):
                return False
            reached = True
        following = list(next_places(place, offload.callers))
        for user in x.users:
            if is_call_of(user, MOVE_TO_HOST):
                following.append((user, index))
            elif user.opcode not in _WALKED:
                return False
        for found in following:
            if found not in seen:
                seen.add(found)
                work.append(found)
    return reached


def _mark_up(root: Instruction, index: ShapeIndex) -> None:
    """The result of what is wrapped lies on the host, inside its call too."""
    while True:
        set_space(root, index, HOST)
        if root.opcode == "tuple" and index:
            root, index = root.operands[index[0]], index[1:]
        elif root.opcode == "call":
            root = root.called_computations[0].root
        else:
            return
