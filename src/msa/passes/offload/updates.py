"""Host buffers that are filled piece by piece: updates in place, and their storage."""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex
from msa.passes.offload.vocabulary import (
    ALLOCATE_BUFFER,
    HOST,
    MOVE_TO_DEVICE,
    Callers,
    HostOffloadError,
    Place,
    is_call_of,
    next_places,
    set_space,
    space_of,
)
from msa.passes.offload.walk import Offload

_CARRIERS: Final = frozenset(
    {"bitcast", "call", "dynamic-update-slice", "opt-barrier", "tuple", "while"}
)
"""What hands a buffer on, so that all of its readers may mean one on the host."""


def place_update(offload: Offload, update: Instruction, annotated: bool) -> None:
    """Decide where an update in place happens, and give its buffer a host home.

    Args:
        offload: the run.
        update: a dynamic-update-slice.
        annotated: whether its update was to move to the host.

    Raises:
        HostOffloadError: the buffer begins as something that cannot be allocated on
            the host, or the condition of a loop computes with it.
    """
    target = space_of((update.operands[0], ()))
    piece = space_of((update.operands[1], ()))
    if piece == HOST:
        offload.compute_on_host(update)
        if target == HOST:
            set_space(update, (), HOST)
        return
    if target == HOST or annotated:
        for start in host_homes(offload, update):
            offload.walk_down(start)


def host_homes(offload: Offload, update: Instruction) -> list[Place]:
    """Where the storage of an update's target begins, made to be on the host."""
    starts: list[Place] = []
    work: list[tuple[Place, Instruction, int]] = [((update.operands[0], ()), update, 0)]
    seen: set[Place] = set()
    while work:
        place, reader, slot = work.pop()
        x, index = place
        if (x.opcode == "broadcast" and not index) or _is_shared(x, reader):
            # Other readers keep the broadcast, or a buffer on the device.
            buffer = x.computation.create(
                f"{x.name}.on_host",
                "custom-call",
                x.shape,
                (),
                {"custom_call_target": ALLOCATE_BUFFER},
            )
            reader.replace_operand(slot, buffer)
            starts.append((buffer, ()))
            continue
        if place in seen:
            continue
        seen.add(place)
        loops = [x]
        if x.opcode == "parameter":
            loops = offload.callers.of(x.computation)
        for loop in loops:
            if loop.opcode == "while":
                _check_condition(loop, index, offload.callers)
        if is_call_of(x, ALLOCATE_BUFFER):
            starts.append(place)
        elif x.opcode == "parameter" and x.computation.is_entry:
            if space_of(place) != HOST:
                raise HostOffloadError(
                    f"{x.name} is updated on the host but is an argument on the device",
                    where=update.name,
                    hint="give the argument S(5) in the entry's layout",
                )
            starts.append(place)
        else:
            found = list(sources(place, offload.callers))
            if not found:
                raise HostOffloadError(
                    f"the buffer that {update.name} updates begins as {x.name} "
                    f"({x.opcode}), which cannot be allocated on the host",
                    where=x.name,
                    hint="let it begin as a broadcast or an AllocateBuffer",
                )
            work.extend(found)
    return starts


def _check_condition(loop: Instruction, index: ShapeIndex, callers: Callers) -> None:
    """A loop's condition may hand a host buffer on, but not compute with it."""
    work: list[Place] = [(loop.while_condition.parameters[0], index)]
    seen = set(work)
    while work:
        place = work.pop()
        for user in place[0].users:
            if user.opcode not in _CARRIERS and not (
                user.opcode in ("get-tuple-element", "dynamic-slice", "slice")
                or is_call_of(user, MOVE_TO_DEVICE)
            ):
                raise HostOffloadError(
                    f"{user.name} computes with a host buffer in the condition of "
                    f"{loop.name}",
                    where=user.name,
                    hint="compute it in the loop's body, or put MoveToDevice there",
                )
        for following in next_places(place, callers):
            inside = following[0].computation is loop.while_condition
            if inside and following not in seen:
                seen.add(following)
                work.append(following)


def _is_shared(x: Instruction, reader: Instruction) -> bool:
    """Whether a device buffer is also read where a host value cannot go."""
    return (
        is_call_of(x, ALLOCATE_BUFFER)
        and space_of((x, ())) != HOST
        and any(u is not reader and u.opcode not in _CARRIERS for u in x.users)
    )


def sources(place: Place, callers: Callers) -> list[tuple[Place, Instruction, int]]:
    """One step up: where a node comes from, and the operand that brings it."""
    x, index = place
    opcode = x.opcode
    if opcode == "parameter":
        found: list[tuple[Place, Instruction, int]] = []
        for caller in callers.of(x.computation):
            slot = x.parameter_number
            if caller.opcode == "conditional":
                slot = 1 + caller.called_computations.index(x.computation)
            found.append(((caller.operands[slot], index), caller, slot))
            if caller.opcode == "while":
                root = caller.while_body.root
                found += _root_sources(root, index)
        return found
    if opcode == "while":
        return [
            ((x.operands[0], index), x, 0),
            *_root_sources(x.while_body.root, index),
        ]
    if opcode == "tuple" and index:
        return [((x.operands[index[0]], index[1:]), x, index[0])]
    if opcode == "get-tuple-element":
        return [((x.operands[0], (x.tuple_index, *index)), x, 0)]
    if opcode in ("dynamic-update-slice", "bitcast", "copy", "opt-barrier", "reshape"):
        return [((x.operands[0], index), x, 0)]
    if opcode == "call":
        return _root_sources(x.called_computations[0].root, index)
    return []


def _root_sources(
    root: Instruction, index: tuple[int, ...]
) -> list[tuple[Place, Instruction, int]]:
    if root.opcode == "tuple" and index:
        return [((root.operands[index[0]], index[1:]), root, index[0])]
    return [((root, index), root, 0)]
