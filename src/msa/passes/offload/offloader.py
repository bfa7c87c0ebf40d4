"""From annotations to memory spaces and copies.

Source: `xla/hlo/transforms/host_offloader.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.analysis.schedulers import update_schedule
from msa.hlo.instruction import Instruction
from msa.hlo.module import ComputationLayout, Module
from msa.hlo.shape import Shape
from msa.passes.arguments import module_of
from msa.passes.common_subexpressions import EliminateCommonSubexpressions
from msa.passes.offload.round_trips import keep_results_on_host
from msa.passes.offload.updates import place_update
from msa.passes.offload.vocabulary import (
    ALLOCATE_BUFFER,
    DEVICE,
    HOST,
    MOVE_TO_DEVICE,
    MOVE_TO_HOST,
    Callers,
    HostOffloadError,
    is_call_of,
    set_space,
)
from msa.passes.offload.walk import Offload


@dataclass(frozen=True, slots=True)
class HostOffloading:
    """The result of `offload_to_host`.

    Attributes:
        module: without annotations.
        changed: whether anything was done.
        host_compute: names of instructions that run on the host.
        warnings: as text.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> result = offload_to_host(module)
    >>> result.changed, result.warnings
    (False, ())
    """

    module: Module
    changed: bool
    host_compute: tuple[str, ...]
    warnings: tuple[str, ...]


def offload_to_host(
    module: Module,
    *,
    automatic_host_compute: bool = True,
    host_copies: bool = False,
) -> HostOffloading:
    """Follow `MoveToHost` and `MoveToDevice` annotations: put values on the host.

    Values between the two lie in memory space 5, with copies at both ends; slices of
    host values and updates in place of host buffers are transfers themselves. Entry
    arguments with space 5 in the entry's layout are followed too.

    Args:
        module: not changed.
        automatic_host_compute: let what is computed with a host value run on the
            host, with a warning, instead of refusing.
        host_copies: let copies within the host's memory run there even so.

    Raises:
        HostOffloadError: an annotation cannot be followed.

    Linear in the program, but for updates in place: each is traced to where its
    buffer begins.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[8]{0} parameter(0)
    ...   out = f32[8]{0} custom-call(x), custom_call_target="MoveToHost"
    ...   ROOT back = f32[8]{0} custom-call(out), custom_call_target="MoveToDevice"
    ... }''')
    >>> root = offload_to_host(module).module.entry.root
    >>> str(root.shape), root.opcode, str(root.operands[0].shape)
    ('f32[8]{0}', 'copy', 'f32[8]{0:S(5)}')
    """
    module = module_of(module, "offload_to_host")
    result = module.clone()
    offload = _run(result, automatic_host_compute, host_copies)
    return HostOffloading(
        result,
        result != module,
        tuple(x.name for x in offload.computed_on_host),
        tuple(offload.warnings),
    )


@dataclass(frozen=True, slots=True)
class OffloadToHost:
    """Host offloading from annotations.

    Attributes:
        automatic_host_compute, host_copies: see `offload_to_host`.
    """

    automatic_host_compute: bool = True
    host_copies: bool = False
    name: ClassVar[str] = "host-offload"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        before = module.clone()
        _run(module, self.automatic_host_compute, self.host_copies)
        return module != before


def _run(module: Module, automatic: bool, host_copies: bool) -> Offload:
    layout = module.effective_entry_layout()
    offload = Offload(
        module, layout.result, automatic, Callers(module), copies_allowed=host_copies
    )
    if _is_done(module, layout):
        return offload
    for computation in module.computations:
        for x in computation.instructions:
            for index, leaf in x.shape.leaves():
                if leaf.is_array and leaf.memory_space == HOST:
                    set_space(x, index, DEVICE)
    keep_results_on_host(offload)
    for parameter, shape in zip(
        module.entry.parameters, layout.parameters, strict=True
    ):
        for index, leaf in shape.leaves():
            if leaf.is_array and leaf.memory_space == HOST:
                offload.walk_down((parameter, index))
    annotated: set[Instruction] = set()
    for annotation in _annotations(module):
        if annotation.user_count or annotation.is_root:
            _process(offload, annotation, annotated)
    for update in _all_updates(module, offload, annotated):
        place_update(offload, update, update in annotated)
    _check_result(offload)
    _bypass(module, MOVE_TO_DEVICE)
    _bypass(module, MOVE_TO_HOST)
    _copy_loop_state(offload)
    _drop_unread(module)
    analyses = AnalysisManager(module)
    if module.schedule is not None:
        module.schedule = update_schedule(module)
    EliminateCommonSubexpressions().apply(module, analyses)
    return offload


def _is_done(module: Module, layout: ComputationLayout) -> bool:
    """Whether there is nothing to follow, or it has been followed."""
    somewhere = False
    for computation in module.computations:
        for x in computation.instructions:
            if is_call_of(x, MOVE_TO_HOST) or is_call_of(x, MOVE_TO_DEVICE):
                return False
            somewhere |= _touches_host(x.shape)
    asked = any(_touches_host(s) for s in (*layout.parameters, layout.result))
    return somewhere or not asked


def _touches_host(shape: Shape) -> bool:
    return any(s.is_array and s.memory_space == HOST for _, s in shape.leaves())


def _annotations(module: Module) -> list[Instruction]:
    """Annotations in order of execution: callees are visited at their call."""
    found: list[Instruction] = []
    seen = {module.entry}
    stack = [iter(module.entry.post_order())]
    while stack:
        x = next(stack[-1], None)
        if x is None:
            stack.pop()
            continue
        if is_call_of(x, MOVE_TO_HOST):
            found.append(x)
        for callee in x.called_computations:
            if callee not in seen:
                seen.add(callee)
                stack.append(iter(callee.post_order()))
    return found


def _process(
    offload: Offload, annotation: Instruction, annotated: set[Instruction]
) -> None:
    """One annotation: copy to the host, unless an update in place does it."""
    source = annotation.operands[0]
    if is_call_of(source, ALLOCATE_BUFFER) and source.user_count == 1:
        annotation.replace_all_uses_with(source)
        offload.walk_down((source, ()))
        return
    if (source, ()) in offload.on_host:
        annotation.replace_all_uses_with(source)  # it is there already
        return
    starts = [(u, k) for u in annotation.users for k in u.operand_indices(annotation)]
    if not starts and not annotation.is_root:
        return
    for user, k in starts:
        update = _leads_to_update(user, k)
        if update is not None:
            annotated.add(update)
            user.replace_operand(k, source)
        elif user.opcode == "dynamic-update-slice" and k == 0:
            _allocate_target(annotation, source, user)
            annotated.add(user)
        else:
            user.replace_operand(k, offload.copy_to_host(source))
    if annotation.is_root:
        annotation.computation.root = offload.copy_to_host(source)
    copied = offload.host_copies.get(source)
    if copied is not None:
        offload.on_host.discard((copied, ()))  # it may have new readers
        offload.walk_down((copied, ()))


def _leads_to_update(user: Instruction, k: int) -> Instruction | None:
    """The update in place that takes the value as its piece, through plain views."""
    while user.opcode in ("bitcast", "copy", "reshape") and user.user_count == 1:
        (following,) = user.users
        k = following.operand_indices(user)[0]
        user = following
    return user if user.opcode == "dynamic-update-slice" and k == 1 else None


def _allocate_target(
    annotation: Instruction, source: Instruction, update: Instruction
) -> None:
    if source.opcode != "broadcast" or source.user_count != 1:
        raise HostOffloadError(
            f"{annotation.name} sends the target of {update.name} to the host",
            where=annotation.name,
            hint="annotate the update, or let the target be a broadcast of its own",
        )
    update.replace_operand(0, source)


def _all_updates(
    module: Module, offload: Offload, annotated: set[Instruction]
) -> list[Instruction]:
    wanted = annotated | set(offload.updates)
    return [
        x
        for computation in module.computations
        for x in computation.instructions
        if x in wanted
    ]


def _check_result(offload: Offload) -> None:
    """The entry's result lies where its layout says."""
    root = offload.module.entry.root
    for index, leaf in offload.result.leaves():
        if not leaf.is_array or leaf.memory_space != HOST:
            continue
        if root.shape.subshape(index).memory_space != HOST:
            raise HostOffloadError(
                "an output lies on the device, but the entry's layout wants it on the "
                "host (output location mismatch)",
                where=root.name,
                hint="annotate it with MoveToHost",
            )


def _bypass(module: Module, target: str) -> None:
    for computation in module.computations:
        doomed = [x for x in computation.instructions if is_call_of(x, target)]
        for x in doomed:
            x.replace_all_uses_with(x.operands[0])
        if doomed:
            computation.remove(doomed)


def _copy_loop_state(offload: Offload) -> None:
    """An update that is still its loop's state needs storage of its own."""
    for update in offload.updates:
        piece = update.operands[1]
        source = piece
        while source.opcode in ("get-tuple-element", "bitcast"):
            source = source.operands[0]
        entry = update.computation.is_entry
        if (
            source.opcode == "parameter"
            and not entry
            and (update, ()) in offload.on_host
        ):
            copy = update.computation.create(
                f"{piece.name}.copy", "copy", piece.shape, [piece]
            )
            update.replace_operand(1, copy)


def _drop_unread(module: Module) -> None:
    """Remove broadcasts and buffers that nothing reads any more."""
    for computation in module.computations:
        doomed = [
            x
            for x in computation.instructions
            if x.is_dead
            and (x.opcode in ("broadcast", "copy") or is_call_of(x, ALLOCATE_BUFFER))
        ]
        if doomed:
            computation.remove(doomed)
