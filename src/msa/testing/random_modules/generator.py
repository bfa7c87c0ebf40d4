"""Random modules, from a seed."""

from __future__ import annotations

from dataclasses import replace

from msa.hlo.arguments import expect
from msa.hlo.instruction import Instruction
from msa.hlo.module import Alias, Module
from msa.hlo.primitive import S32
from msa.hlo.schedule import Schedule
from msa.hlo.shape import Shape, ShapeIndex
from msa.testing.random_modules.nesting import Nest, reach
from msa.testing.random_modules.options import RandomModuleOptions, whole
from msa.testing.random_modules.regions import fill, finish_in_loop, settle
from msa.testing.random_modules.scope import Scope, Workshop
from msa.testing.random_modules.steps import element, random_shape
from msa.testing.random_modules.values import Lineage, Storage


def random_module(
    seed: int,
    size: int = 40,
    *,
    options: RandomModuleOptions | None = None,
    vector: int | None = None,
    max_depth: int | None = None,
) -> Module:
    """A well-formed, scheduled module, made up from a seed.

    It has nested loops with trip counts, conditionals, calls, tuples, in-place
    updates, fusions, asynchronous operations, donated parameters, constants, dead
    code and values with many uses. It keeps what copy insertion guarantees: two
    values that must share a buffer are never live together (but for results that are
    given twice, see the option `sharing`).

    Args:
        seed: the same seed gives the same module on every platform.
        size: instructions, roughly.
        options: weights and sizes.
        vector, max_depth: shorthands for those fields of `options`.

    Arithmetic is mostly on integers, which wrap and never become NaN, so that a
    wrong byte shows in the result.

    Raises:
        HloError: an argument is of the wrong kind, or the size is negative.

    >>> module = random_module(7, size=20)
    >>> module.is_scheduled, module == random_module(7, size=20)
    (True, True)
    """
    here = "random_module"
    expect(seed, int, where=here, what="a whole number as seed")
    whole(size, "size", 0, here)
    options = RandomModuleOptions() if options is None else options
    expect(options, RandomModuleOptions, where=here, what="RandomModuleOptions")
    if vector is not None:
        options = replace(options, vector=vector)
    if max_depth is not None:
        options = replace(options, max_depth=max_depth)
    shop = Workshop(f"random_{seed}", seed, options)
    scope = Scope(shop, "entry", 0, size)
    donated = _parameters(scope)
    fill(scope)
    wanted: list[tuple[Shape, Lineage | None]] = list(donated.values())
    for _ in range(shop.random.randrange(1, options.outputs + 1)):
        found = scope.pick_array()
        wanted.append((random_shape(scope) if found is None else found.shape, None))
    results = settle(scope, wanted)
    root, places = _end(scope, results, len(donated))
    entry = shop.finish(scope, root, scheduled=True)
    module = shop.module
    module.entry = entry
    module.aliases = tuple(
        Alias(places[output], number, (), must_alias=False)
        for output, number in enumerate(donated)
    )
    module.schedule = Schedule(shop.scheduled)
    return module


def _end(
    scope: Scope, results: list[Instruction], donated: int
) -> tuple[Instruction, list[ShapeIndex]]:
    """The root, and where each result lies in it.

    Results that take over no parameter's storage may be given several times.
    """
    usual = not scope.is_unusual()
    if not usual and scope.random.random() < 0.5:
        loop, places = finish_in_loop(scope, results)
        if len(results) == 1 and scope.random.random() < 0.5:
            return reach(scope, loop, places[0]), [()]
        return loop, places
    if not usual and len(results) == 1:
        return results[0], [()]
    given = list(results)
    if len(results) > donated and scope.is_shared():
        for _ in range(scope.random.randrange(1, 3)):
            again = results[scope.random.randrange(donated, len(results))]
            if scope.random.random() < 0.3:
                flat = (again.shape.element_count,)
                view = Shape.array(again.shape.element_type, flat)
                again = scope.emit("bitcast", view, [again])
            given.append(again)
    nest = Nest.choose(scope, len(given))
    whole = nest.pack(scope, given)
    if not usual:
        whole = scope.emit("opt-barrier", whole.shape, [whole])
    return whole, nest.paths()


def _parameters(scope: Scope) -> dict[int, tuple[Shape, Lineage]]:
    """Entry parameters; those whose storage an output takes over, by number."""
    random = scope.random
    shapes = [Shape.array(S32)]
    shapes += [
        random_shape(scope)
        for _ in range(random.randrange(1, scope.shop.options.parameters + 1))
    ]
    if scope.is_unusual():
        shapes.append(Shape.tuple_of(random_shape(scope), random_shape(scope)))
    donated: dict[int, tuple[Shape, Lineage]] = {}
    made: list[Instruction] = [scope.parameter(s, i) for i, s in enumerate(shapes)]
    for number, instruction in enumerate(made):
        if instruction.shape.is_tuple:
            for index in range(len(instruction.shape.children)):
                held = Storage(Lineage(-1, carried=True), frozen=True)
                scope.record(element(scope, instruction, index), held)
            continue
        lineage = Lineage(-1, carried=True)
        give = number > 0 and random.random() < 0.3
        scope.record(instruction, Storage(lineage, frozen=not give))
        if give:
            donated[number] = (instruction.shape, lineage)
    return donated
