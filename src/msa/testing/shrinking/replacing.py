"""Edits that put something simpler in the place of an instruction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msa.analysis.trip_counts import stated_trips
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.opcode import has_side_effect
from msa.testing.shrinking.draft import Draft, Key, changed, key_of
from msa.testing.shrinking.edit import Edit
from msa.testing.shrinking.loops import bound, steering

_LEAST = frozenset({"constant", "iota", "parameter"})


def plain_values(module: Module) -> Iterator[Edit]:
    """Arrays: a count (iota) or a constant instead, the last ones first."""
    for x in _replaceable(module):
        if x.shape.is_array and x.opcode not in _LEAST:
            yield partial(_put_plain, key=key_of(x))


def operands(module: Module) -> Iterator[Edit]:
    """An operand of the same shape instead."""
    for x in _replaceable(module):
        for number, operand in enumerate(x.operands):
            if operand.shape == x.shape:
                yield partial(_put_operand, key=key_of(x), number=number)


def elements(module: Module) -> Iterator[Edit]:
    """What was packed into a tuple instead of the element taken out of it."""
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode == "get-tuple-element" and x.operands[0].opcode == "tuple":
                yield partial(_put_packed, key=key_of(x))


def _put_packed(draft: Draft, key: Key) -> bool:
    x = draft.find(key)
    if x.operands[0].opcode != "tuple":
        return False
    x.replace_all_uses_with(x.operands[0].operands[x.tuple_index])
    return True


def earlier_values(module: Module) -> Iterator[Edit]:
    """The first value of the same shape in the computation instead."""
    first: dict[tuple[object, object], Key] = {}
    for computation in module.computations:
        for x in computation.instructions:
            first.setdefault((computation, x.shape), key_of(x))
    for x in _replaceable(module):
        key = first[x.computation, x.shape]
        if key != key_of(x):
            yield partial(_put_other, old=key_of(x), new=key)


def trip_counts(module: Module) -> Iterator[Edit]:
    """Fewer trips: none, one, half as many or one less; conditions that only count."""
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode != "while":
                continue
            trips = stated_trips(x)
            if bound(x) is not None and trips:
                for fewer in sorted({0, 1, trips // 2, trips - 1}):
                    yield partial(_set_trips, key=key_of(x), trips=fewer)
            test = x.while_condition.root
            for number, operand in enumerate(test.operands):
                if test.opcode == "and" and operand.opcode == "compare":
                    yield partial(_count_only, key=key_of(x), number=number)


def _replaceable(module: Module) -> list[Instruction]:
    steers = steering(module)
    return [
        x
        for computation in reversed(module.computations)
        for x in reversed(computation.instructions)
        if x not in steers and x.opcode != "parameter" and not has_side_effect(x)
    ]


def _put_plain(draft: Draft, key: Key) -> bool:
    x = draft.find(key)
    new = draft.plain(x, x.shape)
    if new is None:
        return False
    x.replace_all_uses_with(new)
    return True


def _put_operand(draft: Draft, key: Key, number: int) -> bool:
    x = draft.find(key)
    if x.operands[number].shape != x.shape:
        return False
    x.replace_all_uses_with(x.operands[number])
    return True


def _put_other(draft: Draft, old: Key, new: Key) -> bool:
    draft.find(old).replace_all_uses_with(draft.find(new))
    return True


def _set_trips(draft: Draft, key: Key, trips: int) -> bool:
    loop = draft.find(key)
    limit, stated = bound(loop), stated_trips(loop)
    if limit is None or stated is None:
        return False
    last = int(str(limit.attributes["literal"])) - stated + trips
    literal = Literal(limit.shape, str(last))
    new = draft.put_before(
        limit, "constant", limit.shape, (), changed(limit.attributes, literal=literal)
    )
    loop.while_condition.root.replace_operand(1, new)
    loop.backend_config = f'{{"known_trip_count":{{"n":"{trips}"}}}}'
    return True


def _count_only(draft: Draft, key: Key, number: int) -> bool:
    """Let the condition of a loop be one comparison with a bound."""
    loop = draft.find(key)
    test = loop.while_condition.root
    test.replace_all_uses_with(test.operands[number])
    return bound(loop) is not None
