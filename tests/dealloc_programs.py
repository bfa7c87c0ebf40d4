"""Seeded random programs of the buffer IR."""

from __future__ import annotations

import random

from msa.dealloc import Block, BufferType, Function, Operation, Value
from msa.dealloc.ir import I1, INDEX, Successor

BUFFER = BufferType((2,), "f32")


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.function = Function("f")
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def op(
        self, block: Block, kind: str, operands=(), types=(), **options
    ) -> Operation:  # type: ignore[no-untyped-def]
        names = [self.name() for _ in types]
        return block.append(Operation(kind, operands, types, names=names, **options))

    def alloc(self, block: Block, *, fill: bool = True) -> Value:
        value = self.op(block, "alloc", (), [BUFFER]).results[0]
        if fill:
            self.use(block, [], [value])
        return value

    def use(self, block: Block, reads: list[Value], writes: list[Value]) -> None:
        operands = [*reads, *writes]
        self.op(
            block,
            "use",
            operands,
            reads=range(len(reads)),
            writes=range(len(reads), len(operands)),
            attributes={"tag": f"t{self.rng.randrange(5)}"},
        )

    # -- pieces ---------------------------------------------------------------------

    def piece(self, block: Block, scope: list[Value], depth: int) -> Block:
        """Append something; the block in which to go on."""
        rng = self.rng
        choice = rng.random()
        if choice < 0.3:
            reads = rng.sample(scope, min(len(scope), rng.randrange(1, 3)))
            writes = [rng.choice(scope)] if rng.random() < 0.3 else []
            self.use(block, reads, writes)
        elif choice < 0.5:
            scope.append(self.alloc(block))
        elif choice < 0.58:
            source = rng.choice(scope)
            scope.append(self.op(block, "view", [source], [BUFFER]).results[0])
        elif choice < 0.64:
            pair = [rng.choice(scope), rng.choice(scope)]
            condition = self.function.arguments[-1]
            made = self.op(block, "select", [condition, *pair], [BUFFER])
            scope.append(made.results[0])
        elif choice < 0.7:
            made = self.op(
                block,
                "call",
                [rng.choice(scope)],
                [BUFFER],
                attributes={"callee": "g"},
            )
            scope.append(made.results[0])
        elif depth > 0:
            return self.control(block, scope, depth)
        return block

    def control(self, block: Block, scope: list[Value], depth: int) -> Block:
        choice = self.rng.random()
        if choice < 0.3:
            self.if_(block, scope, depth)
        elif choice < 0.5:
            self.for_(block, scope, depth)
        elif choice < 0.65:
            self.while_(block, scope, depth)
        else:
            return self.diamond(block, scope, depth)
        return block

    def fill(self, block: Block, scope: list[Value], depth: int) -> Block:
        for _ in range(self.rng.randrange(0, 4)):
            block = self.piece(block, scope, depth - 1)
        return block

    def picks(self, scope: list[Value], count: int) -> list[Value]:
        return [self.rng.choice(scope) for _ in range(count)]

    def if_(self, block: Block, scope: list[Value], depth: int) -> None:
        count = self.rng.randrange(0, 3)
        op = self.op(block, "if", [self.function.arguments[-1]], [BUFFER] * count)
        for _ in range(2):
            inner = op.add_region().add_block("entry")
            names = list(scope)
            end = self.fill(inner, names, depth)
            self.op(end, "yield", self.picks(names, count))
        scope.extend(op.results)

    def for_(self, block: Block, scope: list[Value], depth: int) -> None:
        count = self.rng.randrange(0, 3)
        bounds = [
            self.op(block, "constant", (), [INDEX], attributes={"value": 0}).results[0]
            for _ in range(3)
        ]
        inits = self.picks(scope, count)
        op = self.op(block, "for", [*bounds, *inits], [BUFFER] * count)
        inner = op.add_region().add_block("entry")
        inner.add_argument(self.name(), INDEX)
        carried = [inner.add_argument(self.name(), BUFFER) for _ in range(count)]
        names = [*scope, *carried]
        end = self.fill(inner, names, depth)
        self.op(end, "yield", self.picks(names, count))
        scope.extend(op.results)

    def while_(self, block: Block, scope: list[Value], depth: int) -> None:
        count = self.rng.randrange(1, 3)
        op = self.op(block, "while", self.picks(scope, count), [BUFFER] * count)
        before = op.add_region().add_block("entry")
        names = [
            *scope,
            *(before.add_argument(self.name(), BUFFER) for _ in range(count)),
        ]
        end = self.fill(before, names, depth)
        flag = self.op(end, "constant", (), [I1], attributes={"value": 1}).results[0]
        self.op(end, "condition", [flag, *self.picks(names, count)])
        after = op.add_region().add_block("entry")
        names = [
            *scope,
            *(after.add_argument(self.name(), BUFFER) for _ in range(count)),
        ]
        end = self.fill(after, names, depth)
        self.op(end, "yield", self.picks(names, count))
        scope.extend(op.results)

    def diamond(self, block: Block, scope: list[Value], depth: int) -> Block:
        """Two ways to a join; one of them may be a critical edge."""
        rng, region = self.rng, block.region
        count = rng.randrange(0, 3)
        arms = []
        direct = rng.randrange(-1, 2)
        for place in range(2):
            if place != direct:
                arms.append((place, region.add_block(f"b{self.count}_{place}")))
                self.count += 1
        filled = []
        for place, arm in arms:
            names = list(scope)
            filled.append((place, arm, self.fill(arm, names, depth), names))
        join = region.add_block(f"j{self.count}")
        self.count += 1
        merged = [join.add_argument(self.name(), BUFFER) for _ in range(count)]
        branch = self.op(block, "cond_br", [self.function.arguments[-1]])
        targets: list[Successor] = [Successor(join, self.picks(scope, count))] * 2
        for place, arm, end, names in filled:
            targets[place] = Successor(arm, [])
            onward = self.op(end, "br")
            onward.successors = [Successor(join, self.picks(names, count))]
        branch.successors = targets
        scope.extend(merged)
        return join


def random_program(seed: int, size: int = 8) -> Function:
    """A verified program with 1–2 buffer arguments and 0–2 returned buffers."""
    maker = _Maker(seed)
    rng = maker.rng
    function = maker.function
    entry = function.region.add_block("entry")
    scope = [entry.add_argument(f"a{i}", BUFFER) for i in range(rng.randrange(1, 3))]
    entry.add_argument("c", I1)
    scope.append(maker.alloc(entry))
    block = entry
    for _ in range(rng.randrange(2, size)):
        block = maker.piece(block, scope, 3)
    returned = maker.picks(scope, rng.randrange(0, 3))
    function.result_types = (BUFFER,) * len(returned)
    maker.op(block, "return", returned)
    return function


def random_scripts(seed: int, count: int = 10, length: int = 40) -> list[list[int]]:
    """Decision scripts: branch outcomes and trip counts from 0 to 2."""
    rng = random.Random(seed * 7919 + 1)
    return [[rng.randrange(0, 3) for _ in range(length)] for _ in range(count)]
