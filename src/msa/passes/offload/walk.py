"""Following a host value down to where it is used."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.passes.offload.vocabulary import (
    COMPUTE_TYPE,
    DEVICE,
    HOST,
    MOVE_TO_DEVICE,
    MOVE_TO_HOST,
    Callers,
    HostOffloadError,
    Place,
    in_space,
    is_call_of,
    next_places,
    on_host_thread,
    set_space,
)

_MOVES: Final = frozenset(
    {"async-done", "async-start", "bitcast", "call", "conditional"}
    | {"get-tuple-element", "opt-barrier", "tuple", "while"}
)


@dataclass(slots=True)
class Offload:
    """The state of one run over a module.

    Attributes:
        module: edited in place.
        result: shape of the entry's result with the wanted memory spaces.
        automatic: run on the host what host values flow into, with a warning,
            instead of refusing.
        on_host: nodes that lie on the host.
        copies_allowed: let copies within the host's memory run there even so.
        host_copies: copies to the host, by what they copy.
        device_copies: copies back, by what they copy.
        copies: all copies that were inserted.
        updates: updates in place of host buffers, in order.
        computed_on_host: instructions that became host compute.
        warnings: as text.
    """

    module: Module
    result: Shape
    automatic: bool
    callers: Callers
    copies_allowed: bool = False
    on_host: set[Place] = field(default_factory=set)
    host_copies: dict[Instruction, Instruction] = field(default_factory=dict)
    device_copies: dict[Instruction, Instruction] = field(default_factory=dict)
    copies: set[Instruction] = field(default_factory=set)
    updates: dict[Instruction, None] = field(default_factory=dict)
    computed_on_host: list[Instruction] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def walk_down(self, start: Place) -> None:
        """Mark everything that holds the value at `start` as lying on the host.

        Linear in the nodes reached and their users.

        Raises:
            HostOffloadError: the value is returned where the entry's layout wants it
                on the device, or is computed with while that is not allowed.
        """
        work = deque([start])
        while work:
            place = work.popleft()
            if place in self.on_host:
                continue
            self.on_host.add(place)
            x, index = place
            set_space(x, index, HOST)
            self._check_result(x, index)
            for user in x.users:
                for k in user.operand_indices(x):
                    work.extend(self._use(place, user, k))
            work.extend(next_places(place, self.callers))

    def _check_result(self, x: Instruction, index: ShapeIndex) -> None:
        if not (x.is_root and x.computation.is_entry):
            return
        wanted = self.result.subshape(index)
        for leaf, shape in wanted.leaves():
            if shape.is_array and shape.memory_space != HOST:
                at = "{" + ",".join(map(str, (*index, *leaf))) + "}"
                raise HostOffloadError(
                    f"output {at} lies on the host, but the entry's layout wants it "
                    "on the device (output location mismatch)",
                    where=x.name,
                    hint="annotate it with MoveToDevice, or give the output S(5)",
                )

    def _use(self, place: Place, user: Instruction, k: int) -> list[Place]:
        """What a reader means; nodes to go on with besides plain moves."""
        if user.opcode in _MOVES or (user.opcode == "send" and k == 0):
            return []
        x = place[0]
        if is_call_of(user, MOVE_TO_DEVICE):
            user.replace_operand(k, self.copy_to_device(x))
            return []
        if is_call_of(user, MOVE_TO_HOST):
            if user.is_dead:
                return []
            user.replace_all_uses_with(x)  # it is there already
            self.on_host.discard(place)
            return [place]  # and has new readers
        if user.opcode == "dynamic-update-slice" and k < 2:
            self.updates[user] = None
            return [(user, ())] if k == 0 else []
        if k == 0 and moves_while_slicing(user):
            if all_paths_return(user, self.callers):
                if user.opcode == "slice":
                    make_dynamic(user)
                return []
        elif user.opcode == "copy" and not user.shape.equal_ignoring_memory_space(
            x.shape
        ):
            return [(user, ())]  # it changes the layout on the way
        if user in self.copies or on_host_thread(user):
            return []
        self.compute_on_host(user)
        return []

    def compute_on_host(self, user: Instruction) -> None:
        """Let an instruction run on the host, or refuse."""
        if user.opcode == "custom-call" or user.opcode == "parameter":
            _check_forwarding(user)
            return
        if not (self.automatic or (self.copies_allowed and user.opcode == "copy")):
            what = "copies" if user.opcode == "copy" else "computes with"
            raise HostOffloadError(
                f"{user.name} {what} a value on the host",
                where=user.name,
                hint="put MoveToDevice in front of it, or allow host "
                f"{'copies' if user.opcode == 'copy' else 'compute'}",
            )
        self.warnings.append(f"{user.name} ({user.opcode}) runs on the host")
        self.computed_on_host.append(user)
        attributes: dict[str, Any] = dict(user.attributes)
        given = dict(attributes.get("frontend_attributes") or {})
        given[COMPUTE_TYPE] = "host"
        attributes["frontend_attributes"] = tuple(sorted(given.items()))
        user.attributes = attributes

    # -- edits ---------------------------------------------------------------

    def copy_to_host(self, x: Instruction) -> Instruction:
        """The one copy of a value to the host."""
        return self._copy(x, HOST, "to_host", self.host_copies)

    def copy_to_device(self, x: Instruction) -> Instruction:
        """The one copy of a value back to the device."""
        return self._copy(x, DEVICE, "to_device", self.device_copies)

    def _copy(
        self,
        x: Instruction,
        space: int,
        suffix: str,
        made: dict[Instruction, Instruction],
    ) -> Instruction:
        found = made.get(x)
        if found is None:
            shape = in_space(x.shape, space)
            found = x.computation.create(f"{x.name}.{suffix}", "copy", shape, [x])
            made[x] = found
            self.copies.add(found)
        return found


def _check_forwarding(call: Instruction) -> None:
    """A custom call hands on a host value through one operand."""
    rows = call.attributes.get("output_to_operand_aliasing", ())
    given = [call.operands[number] for _, number, _ in rows]
    if len(given) != len(set(given)):
        raise HostOffloadError(
            f"{call.name} updates one host value through two operands",
            where=call.name,
            hint="give it a copy for one of them",
        )


def moves_while_slicing(user: Instruction) -> bool:
    """Whether an instruction is a slice that a transfer can make."""
    if user.opcode == "slice":
        return all(step == 1 for _, _, step in user.attributes["slice"])
    return user.opcode == "dynamic-slice"


def make_dynamic(user: Instruction) -> Instruction:
    """A plain slice as a dynamic one: the form that moves while it slices."""
    computation = user.computation
    scalar = Shape.array("s32", ())
    starts = [
        computation.create(
            f"{user.name}.start",
            "constant",
            scalar,
            (),
            {"literal": Literal(scalar, str(start))},
        )
        for start, _, _ in user.attributes["slice"]
    ]
    made = computation.create(
        f"{user.name}.dynamic",
        "dynamic-slice",
        user.shape,
        (user.operands[0], *starts),
        {"dynamic_slice_sizes": tuple(user.shape.dimensions)},
    )
    user.replace_all_uses_with(made)
    computation.remove([user])
    return made


def all_paths_return(slice_: Instruction, callers: Callers) -> bool:
    """Whether everything read from a slice goes back to the device first."""
    work: list[Place] = [(slice_, ())]
    seen = set(work)
    found = False
    while work:
        place = work.pop()
        x, index = place
        if x.is_root and x.computation.is_entry:
            return False
        for user in x.users:
            if is_call_of(user, MOVE_TO_DEVICE):
                found = True
                continue
            if user.opcode not in _MOVES and not _keeps_elements(user, x):
                return False
        after = list(next_places(place, callers))
        after += [(u, index) for u in x.users if _keeps_elements(u, x)]
        for following in after:
            if following not in seen:
                seen.add(following)
                work.append(following)
    return found


def _keeps_elements(user: Instruction, x: Instruction) -> bool:
    """Whether a result is what it reads in another form: no sum of several elements."""
    if user.opcode in ("copy", "reshape"):
        return True
    return (
        user.opcode == "reduce"
        and user.operand_indices(x) == (0,)
        and len(user.operands) == 2
        and all(x.shape.dimensions[d] == 1 for d in user.attributes["dimensions"])
    )
