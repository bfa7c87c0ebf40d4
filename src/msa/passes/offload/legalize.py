"""No change of layout between annotations: transfers cannot transpose.

Source: `xla/hlo/transforms/host_offload_legalize.cc`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.analysis.schedulers import update_schedule
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.offload.layouts import changes_layout
from msa.passes.offload.moving import (
    SLICES,
    VIEWS,
    annotation_of,
    plan_move,
    swap_with_annotation,
)
from msa.passes.offload.updates import sources
from msa.passes.offload.vocabulary import (
    ALLOCATE_BUFFER,
    HOST,
    MOVE_TO_DEVICE,
    MOVE_TO_HOST,
    Callers,
    Place,
    is_call_of,
    next_places,
)


@dataclass(frozen=True, slots=True)
class LegalizeHostOffload:
    """Move changes of layout out of what is offloaded to the host.

    A copy to another layout between `MoveToHost` and `MoveToDevice` (or below an
    entry argument on the host) moves down behind the return to the device. Where the
    value also stays on the host, it moves up in front of `MoveToHost` if it can. What
    has another form is left as it is. To be run before `host-offload`.

    Linear in the program for each annotation.

    >>> import msa
    >>> from msa.passes import Pipeline
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[8,4]{1,0} parameter(0)
    ...   out = f32[8,4]{1,0} custom-call(x), custom_call_target="MoveToHost"
    ...   turned = f32[8,4]{0,1} copy(out)
    ...   ROOT back = f32[8,4]{0,1} custom-call(turned),
    ...     custom_call_target="MoveToDevice"
    ... }''')
    >>> root = Pipeline("host-offload-legalize").run(module).entry.root
    >>> root.opcode, str(root.shape), str(root.operands[0].shape)
    ('copy', 'f32[8,4]{0,1}', 'f32[8,4]{1,0}')
    """

    name: ClassVar[str] = "host-offload-legalize"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`.

        Raises:
            HostOffloadError: a bitcast stands in a copy's way.
        """
        del analyses
        before = module.clone()
        callers = Callers(module)
        for start in _starts(module):
            if start.is_dead:
                continue
            for copy in reversed(_copies_below(start, callers)):
                move = plan_move(copy, callers)
                if move is not None:
                    move.apply()
                else:
                    swap_with_annotation(copy)
        changed = module != before
        if changed and module.schedule is not None:
            module.schedule = update_schedule(module)
        return changed


def _starts(module: Module) -> list[Instruction]:
    layout = module.effective_entry_layout()
    found = [
        parameter
        for parameter, shape in zip(
            module.entry.parameters, layout.parameters, strict=True
        )
        if shape.is_array and shape.memory_space == HOST
    ]
    for computation in module.computations:
        found += [x for x in computation.post_order() if is_call_of(x, MOVE_TO_HOST)]
    return found


def _copies_below(start: Instruction, callers: Callers) -> list[Instruction]:
    """Copies to other layouts that a start's value meets; none if it is unclear."""
    bases: list[Place] | None = [(start, ())]
    update = start
    while update.user_count == 1 and not update.is_root:
        (update,) = update.users
        if update.opcode not in (*VIEWS, "copy"):
            break
    if update.opcode == "dynamic-update-slice" and annotation_of(update) is start:
        bases = _bases(update, callers)
    copies: dict[Instruction, None] = {}
    seen: set[Place] = set()
    work = deque(bases or ())
    while work:
        place = work.popleft()
        if place in seen:
            continue
        seen.add(place)
        following = _follow(place, copies, callers)
        if following is None:
            return []
        work.extend(following)
    return list(copies)


def _bases(update: Instruction, callers: Callers) -> list[Place] | None:
    """Where the buffer of an update begins; None for anything unusual."""
    found: list[Place] = []
    work: list[Place] = [(update, ())]
    seen: set[Place] = set()
    while work:
        place = work.pop()
        if place in seen:
            continue
        seen.add(place)
        x, _ = place
        if (
            _is_base(x)
            or is_call_of(x, ALLOCATE_BUFFER)
            or is_call_of(x, MOVE_TO_HOST)
            or (x.opcode == "parameter" and x.computation.is_entry)
        ):
            found.append(place)
            continue
        if x.opcode == "dynamic-update-slice" and annotation_of(x) is None:
            return None
        above = [p for p, _, _ in sources(place, callers)]
        if not above or x.opcode == "call":
            return None
        work.extend(above)
    return found


def _is_base(x: Instruction) -> bool:
    return (
        x.opcode == "broadcast"
        and x.operands[0].opcode == "constant"
        and x.operands[0].shape.is_scalar
    )


def _follow(
    place: Place, copies: dict[Instruction, None], callers: Callers
) -> list[Place] | None:
    """One step down; None where the value's way is not understood."""
    x, index = place
    found: list[Place] = []
    elements: set[int] = set()
    for user in x.users:
        opcode = user.opcode
        if opcode == "get-tuple-element":
            if index and user.tuple_index == index[0]:
                if index[0] in elements:
                    return None  # several readers of one element
                elements.add(index[0])
        elif opcode in ("tuple", "while", "opt-barrier", "bitcast"):
            if len(user.operand_indices(x)) > 1:
                return None
        elif opcode == "async-start":
            continue
        elif is_call_of(user, MOVE_TO_DEVICE):
            _keep_loop_state_on_host(user)
        elif opcode in SLICES:
            if not _returns(user):
                return None
        elif opcode in ("copy", "reshape"):
            if changes_layout(user):
                copies[user] = None
            found.append((user, ()))
        elif opcode == "dynamic-update-slice" and user.operand_indices(x) == (0,):
            found.append((user, ()))
        elif opcode == "dynamic-update-slice" or is_call_of(user, MOVE_TO_HOST):
            continue
        else:
            return None
    runners = callers.of(x.computation) if x.is_root else []
    if any(runner.opcode != "while" for runner in runners):
        return None
    return [*found, *next_places(place, callers)]


def _returns(slice_: Instruction) -> bool:
    """Whether a slice reaches `MoveToDevice` through views that are read once."""
    x = slice_
    while x.user_count == 1:
        (x,) = x.users
        if is_call_of(x, MOVE_TO_DEVICE):
            return True
        if x.opcode not in (*VIEWS, "copy", "slice"):
            return False
    return False


def _keep_loop_state_on_host(back: Instruction) -> None:
    """Let a loop return state it only carries from where it is, on the host."""
    root, element = back.computation.root, back.operands[0]
    if (
        root.opcode == "tuple"
        and element.opcode == "get-tuple-element"
        and element.operands[0].opcode == "parameter"
        and not root.computation.is_entry
        and root.operand_indices(back) == (element.tuple_index,)
    ):
        root.replace_operand(element.tuple_index, element)
