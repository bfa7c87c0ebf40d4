"""Edits of what goes in and out: results, arguments and loop state nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.testing.shrinking.draft import Draft, Key, key_of, shift, without
from msa.testing.shrinking.edit import Edit


def results(module: Module) -> Iterator[Edit]:
    """Fewer results of the program: one alone, or all but one; the last ones first."""
    root = module.entry.root
    if not root.shape.is_tuple:
        return
    numbers = range(len(root.shape.children))
    for number in numbers:
        yield partial(_keep_result, number=number)
    if root.opcode == "tuple":
        for number in reversed(numbers):
            yield partial(_drop_result, number=number)


def _keep_result(draft: Draft, number: int) -> bool:
    root = draft.module.entry.root
    if not root.shape.is_tuple or number >= len(root.shape.children):
        return False
    draft.forget_entry_layout()
    draft.module.entry.root = draft.last_element(root, number)
    draft.module.aliases = tuple(
        replace(alias, output_index=alias.output_index[1:])
        for alias in draft.module.aliases
        if alias.output_index[:1] == (number,)
    )
    return True


def _drop_result(draft: Draft, number: int) -> bool:
    root = draft.module.entry.root
    if root.opcode != "tuple" or len(root.operands) < 2:
        return False
    draft.forget_entry_layout()
    _shorten_root(draft, draft.module.entry, number)
    draft.drop_aliases_of_output(number)
    return True


def other_results(module: Module) -> Iterator[Edit]:
    """One value that the program computes on the way, instead of its results."""
    for x in module.entry.instructions:
        if x is not module.entry.root:
            yield partial(_give, key=key_of(x))


def _give(draft: Draft, key: Key) -> bool:
    x = draft.find(key)
    draft.forget_entry_layout()
    draft.module.aliases = ()
    draft.module.entry.root = x
    return True


def dead_code(module: Module) -> Iterator[Edit]:
    """Without instructions that nothing reads, and what only they read."""
    for computation in reversed(module.computations):
        for x in reversed(computation.instructions):
            if x.is_dead and x.opcode != "parameter":
                yield partial(_drop, key=key_of(x), alone=False)
                yield partial(_drop, key=key_of(x), alone=True)


def _drop(draft: Draft, key: Key, alone: bool) -> bool:
    x = draft.find(key)
    if x.users or x.is_root:
        return False
    if alone:
        for operand in x.operands:
            draft.keep(operand)
    draft.drop([x])
    return True


def unread(module: Module) -> Iterator[Edit]:
    """Parameters, arguments, results and loop state that nothing reads."""
    for computation in reversed(module.computations):
        for x in reversed(computation.instructions):
            if x.opcode in ("call", "conditional", "fusion", "while"):
                yield from _unread_of(x)
    for number, parameter in reversed(list(enumerate(module.entry.parameters))):
        if not parameter.users and parameter is not module.entry.root:
            yield partial(_drop_parameter, number=number)


def merged_parameters(module: Module) -> Iterator[Edit]:
    """One parameter of the program instead of two of the same shape."""
    first: dict[object, Key] = {}
    for parameter in module.entry.parameters:
        key = key_of(parameter)
        into = first.setdefault(parameter.shape, key)
        if into != key:
            yield partial(_merge, key=key, into=into)


def _merge(draft: Draft, key: Key, into: Key) -> bool:
    parameter = draft.find(key)
    parameter.replace_all_uses_with(draft.find(into))
    return _drop_parameter(draft, parameter.parameter_number)


def _unread_of(x: Instruction) -> Iterator[Edit]:
    key = key_of(x)
    if x.shape.is_tuple:
        for number in reversed(range(len(x.shape.children))):
            yield partial(_drop_element, key=key, number=number)
    if x.opcode in ("call", "fusion"):
        for number in reversed(range(len(x.operands))):
            yield partial(_drop_operand, key=key, number=number)
    if x.opcode == "conditional":
        for branch, called in enumerate(x.called_computations):
            shape = called.parameters[0].shape
            if shape.is_tuple:
                for number in reversed(range(len(shape.children))):
                    yield partial(_drop_argument, key=key, branch=branch, number=number)


def _drop_parameter(draft: Draft, number: int) -> bool:
    entry = draft.module.entry
    if number >= len(entry.parameters):
        return False
    parameter = entry.parameters[number]
    if parameter.users or parameter is entry.root:
        return False
    draft.forget_entry_layout()
    draft.drop_aliases_of_parameter(number)
    draft.renumber(entry, number)
    return True


def _drop_element(draft: Draft, key: Key, number: int) -> bool:
    """Element `number` of a result, and of a loop's state."""
    x = draft.find(key)
    wholes = [x]
    bodies: list[Instruction] = []
    roots = [called.root for called in x.called_computations]
    if x.opcode == "while":
        wholes += [called.parameters[0] for called in x.called_computations]
        roots = [x.while_body.root, x.operands[0]]
        bodies = x.while_body.parameters
    if (
        number >= len(x.shape.children)
        or len(x.shape.children) < 2
        or (x.is_root and not x.computation.is_entry)
        or "output_to_operand_aliasing" in x.attributes
        or not _is_only_caller(draft.module, x)
        or any(root.opcode != "tuple" for root in roots)
        or any(_reads(whole, number, hands_on=whole in bodies) for whole in wholes)
    ):
        return False
    if x.is_root:
        draft.forget_entry_layout()
        draft.drop_aliases_of_output(number)
    for called in x.called_computations[: 1 if x.opcode == "while" else None]:
        _shorten_root(draft, called, number)
    if x.opcode == "while":
        x.replace_operand(0, _shorter(draft, x, x.operands[0], number))
    for whole in wholes:
        whole.shape = without(whole.shape, number)
        for get in whole.users:
            if get.tuple_index == number:
                draft.drop([get])  # only handed on
            else:
                shift(get, number)
    return True


def _drop_operand(draft: Draft, key: Key, number: int) -> bool:
    """Argument `number` of a call or fusion."""
    x = draft.find(key)
    if number >= len(x.operands):
        return False
    called = x.called_computations[0]
    parameter = called.parameters[number]
    if (
        parameter.users
        or parameter.is_root
        or "output_to_operand_aliasing" in x.attributes
        or not _is_only_caller(draft.module, x)
    ):
        return False
    draft.renumber(called, number)
    x.set_operands((*x.operands[:number], *x.operands[number + 1 :]))
    return True


def _drop_argument(draft: Draft, key: Key, branch: int, number: int) -> bool:
    """Element `number` of what a branch is given."""
    x = draft.find(key)
    parameter = x.called_computations[branch].parameters[0]
    given = x.operands[1 + branch]
    if (
        given.opcode != "tuple"
        or parameter.is_root
        or number >= len(given.operands)
        or len(given.operands) < 2
        or _reads(parameter, number)
        or not _is_only_caller(draft.module, x)
    ):
        return False
    x.replace_operand(1 + branch, _shorter(draft, x, given, number))
    parameter.shape = without(parameter.shape, number)
    for get in parameter.users:
        shift(get, number)
    return True


def _reads(whole: Instruction, number: int, *, hands_on: bool = False) -> bool:
    """Whether anything may read an element of a tuple.

    With `hands_on`, giving it back as the same element of the result does not count.
    """
    for get in whole.users:
        if get.opcode != "get-tuple-element":
            return True
        if get.tuple_index == number:
            root = get.computation.root
            handed_on = (
                hands_on
                and get.users == (root,)
                and root.opcode == "tuple"
                and root.operand_indices(get) == (number,)
            )
            if not handed_on:
                return True
    return False


def _is_only_caller(module: Module, x: Instruction) -> bool:
    called = set(x.called_computations)
    return len(called) == len(x.called_computations) and not any(
        called.intersection(other.called_computations)
        for computation in module.computations
        for other in computation.instructions
        if other is not x
    )


def _shorten_root(draft: Draft, computation: Computation, number: int) -> None:
    old = computation.root
    computation.root = _shorter(draft, old, old, number)
    if not old.users:
        draft.drop([old])


def _shorter(
    draft: Draft, place: Instruction, whole: Instruction, number: int
) -> Instruction:
    """The same tuple without an element, made before `place`."""
    parts: Sequence[Instruction] = whole.operands
    parts = [*parts[:number], *parts[number + 1 :]]
    return draft.put_before(place, "tuple", without(whole.shape, number), parts)
