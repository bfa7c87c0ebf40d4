"""Random changes to a planned module and its places."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import MappingProxyType

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Alias, Module
from msa.hlo.primitive import F32, S32
from msa.hlo.schedule import Schedule
from msa.hlo.shape import Shape

Places = dict[str, tuple[int, int]]


class Victim:
    """A planned module about to be spoiled.

    Attributes:
        module: a clone; faults change it in place.
        places, scratch: copies of the plan's.
        chance: decides everything.
    """

    def __init__(
        self, module: Module, places: Places, scratch: Places, seed: int
    ) -> None:
        self.module = module.clone()
        self.places = dict(places)
        self.scratch = dict(scratch)
        self.chance = random.Random(seed)

    def computation(self) -> Computation:
        return self.chance.choice(self.module.computations)

    def any(self, opcode: str = "") -> Instruction:
        """Some instruction, of the opcode if there is one."""
        every = [x for c in self.module.computations for x in c.instructions]
        fitting = [x for x in every if x.opcode == opcode or not opcode]
        return self.chance.choice(fitting or every)

    def reader(self) -> Instruction:
        """Some instruction with operands."""
        every = [x for c in self.module.computations for x in c.instructions]
        return self.chance.choice([x for x in every if x.operands])

    def scheduled(self) -> Computation:
        """Some scheduled computation."""
        return self.chance.choice([*self.schedule] or [self.module.entry])

    @property
    def schedule(self) -> Schedule:
        assert self.module.schedule is not None
        return self.module.schedule

    def order(self, home: Computation) -> list[Instruction]:
        return list(self.schedule.sequence(home)) if home in self.schedule else []

    def key(self) -> str:
        return self.chance.choice([*self.places] or ["nothing{}"])

    def other(self, like: Instruction) -> Instruction:
        """Another instruction of the computation, mostly of the same shape."""
        others = [x for x in like.computation.instructions if x is not like]
        same = [x for x in others if x.shape == like.shape]
        pool = same if same and self.chance.random() < 0.8 else others
        return self.chance.choice(pool or [like])


def swap_operands(v: Victim) -> None:
    x = v.reader()
    operands = list(x.operands)
    v.chance.shuffle(operands)
    x.set_operands(tuple(operands))


def retarget_operand(v: Victim) -> None:
    x = v.reader()
    number = v.chance.randrange(len(x.operands))
    x.replace_operand(number, v.other(x.operands[number]))


def retarget_copy(v: Victim) -> None:
    x = v.any(v.chance.choice(["copy-start", "copy-done", "async-done", "copy"]))
    if x.operands:
        x.replace_operand(0, v.other(x.operands[0]))


def drop_operand(v: Victim) -> None:
    x = v.reader()
    x.set_operands(x.operands[:-1])


def repeat_operand(v: Victim) -> None:
    x = v.reader()
    x.append_operand(x.operands[0])


def drop_instruction(v: Victim) -> None:
    """Its users take an operand instead, or something else."""
    x = v.reader()
    x.replace_all_uses_with(v.chance.choice([*x.operands, v.other(x)]))
    home = x.computation
    if home.root is x or x.users:
        return
    home.remove([x])
    if home in v.schedule and v.chance.random() < 0.9:
        v.schedule.set_sequence(home, [y for y in v.order(home) if y is not x])


def move_instruction(v: Victim) -> None:
    """To anywhere its operands and users allow, now and then beyond."""
    home = v.scheduled()
    order = v.order(home)
    if not order:
        return
    x = order.pop(v.chance.randrange(len(order)))
    low = max([order.index(y) + 1 for y in x.operands if y in order], default=0)
    high = min([order.index(y) for y in x.users if y in order], default=len(order))
    if v.chance.random() < 0.1 or low > high:
        low, high = 0, len(order)
    order.insert(v.chance.randint(low, high), x)
    v.schedule.set_sequence(home, order)


def schedule_twice(v: Victim) -> None:
    home = v.scheduled()
    order = v.order(home)
    if not order:
        return
    order.insert(v.chance.randrange(len(order)), v.chance.choice(order))
    v.schedule.set_sequence(home, order)


def unschedule(v: Victim) -> None:
    v.schedule.remove(v.scheduled())


def other_space(v: Victim) -> None:
    """One array of one instruction moves to another memory."""
    x = v.any()
    leaves = [index for index, leaf in x.shape.leaves() if leaf.is_array]
    if leaves:
        index = v.chance.choice(leaves)
        old = x.shape.subshape(index)
        space = v.chance.choice([0, 1, 1, 5]) if old.memory_space else 1
        x.shape = x.shape.with_subshape(index, old.with_memory_space(space))


def other_shape(v: Victim) -> None:
    x = v.any()
    x.shape = v.chance.choice(
        [
            Shape.array(S32),
            Shape.array(S32, (3,)),
            Shape.array(F32, (2, 5)),
            Shape.tuple_of(),
            Shape.tuple_of(x.shape, x.shape),
            Shape.token(),
            v.any().shape,
        ]
    )


def other_element(v: Victim) -> None:
    x = v.any("get-tuple-element")
    index = v.chance.choice([0, 1, 2, 3, 17, -1])
    x.attributes = MappingProxyType({**x.attributes, "index": index})


def other_opcode(v: Victim) -> None:
    x = v.any()
    x.opcode = v.chance.choice(
        ["negate", "tuple", "copy-done", "bitcast", "while", "add", v.any().opcode]
    )


def lose_attributes(v: Victim) -> None:
    x = v.any(
        v.chance.choice(["dynamic-slice", "reduce", "dot", "slice", "pad", "fusion"])
    )
    kept = list(x.attributes.items())[1:]
    x.attributes = MappingProxyType(dict(kept))


def other_callee(v: Victim) -> None:
    x = v.any(
        v.chance.choice(["while", "conditional", "call", "fusion", "async-start"])
    )
    callees = [v.computation() for _ in x.called_computations]
    if v.chance.random() < 0.2:
        callees = callees[:-1]
    x.called_computations = tuple(callees)


def other_root(v: Victim) -> None:
    home = v.computation()
    home.root = v.other(home.root)


def other_alias(v: Victim) -> None:
    output, number = v.chance.randrange(6), v.chance.randrange(6)
    added = Alias((output,), number, (), must_alias=False)
    v.module.aliases = v.chance.choice([(), (added,), (*v.module.aliases, added)])


def other_offset(v: Victim) -> None:
    key = v.key()
    offset, size = v.places.get(key, (0, 64))
    step = v.chance.choice(
        [-offset - 4, -size, -size // 2, 4, size // 2, size, 1 << 30]
    )
    v.places[key] = (offset + step, size)


def other_size(v: Victim) -> None:
    key = v.key()
    offset, size = v.places.get(key, (0, 64))
    v.places[key] = (offset, v.chance.choice([0, -4, size - 4, size // 2, 1 << 40]))


def drop_place(v: Victim) -> None:
    v.places.pop(v.key(), None)


def swap_places(v: Victim) -> None:
    one, other = v.key(), v.key()
    if one in v.places and other in v.places:
        v.places[one], v.places[other] = v.places[other], v.places[one]


def share_place(v: Victim) -> None:
    one, other = v.key(), v.key()
    if one in v.places:
        v.places[other] = v.places[one]


def place_anything(v: Victim) -> None:
    """A place for a tuple, a scalar, a token, a fused or an unknown instruction."""
    x = v.any(v.chance.choice(["", "tuple", "constant", "while", "copy-start"]))
    index = v.chance.choice(["", "0", "1", "0,0", "9", "0,9", ",", "x"])
    key = v.chance.choice([f"{x.name}{{{index}}}", x.name, f"{x.name}{{", "", "{}"])
    v.places[key] = v.places.get(v.key(), (0, 64))


def other_scratch(v: Victim) -> None:
    name = v.chance.choice([v.any().name, v.any("while").name, "nobody"])
    v.scratch[name] = v.chance.choice([(0, 64), (0, 1 << 30), (-64, 128), (64, 0)])


FAULTS: list[Callable[[Victim], None]] = [
    swap_operands,
    retarget_operand,
    retarget_copy,
    drop_operand,
    repeat_operand,
    drop_instruction,
    move_instruction,
    schedule_twice,
    unschedule,
    other_space,
    other_shape,
    other_element,
    other_opcode,
    lose_attributes,
    other_callee,
    other_root,
    other_alias,
    other_offset,
    other_size,
    drop_place,
    swap_places,
    share_place,
    place_anything,
    other_scratch,
]
