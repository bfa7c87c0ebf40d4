"""Control flow: loops with trip counts, conditionals and calls."""

from __future__ import annotations

from collections.abc import Sequence

from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.primitive import PRED, S32
from msa.hlo.shape import Shape, ShapeIndex
from msa.testing.random_modules.forms import FORMS
from msa.testing.random_modules.nesting import Nest, reach
from msa.testing.random_modules.packing import Form
from msa.testing.random_modules.scope import Scope
from msa.testing.random_modules.steps import STEPS, element, random_shape
from msa.testing.random_modules.values import Lineage, Storage, Variable


def fill(scope: Scope) -> None:
    """Random steps until the budget is spent; then wait for what was started."""
    options = scope.shop.options
    table = {**STEPS, "while": loop, "conditional": conditional, "call": call, **FORMS}
    if scope.depth >= options.max_depth:
        for name in ("while", "conditional", "call"):
            del table[name]
    names = [n for n in table if options.weights.get(n, 0) > 0]
    weights = [options.weights[n] for n in names]
    if names:
        while scope.budget > 0:
            scope.budget -= 1  # a step that finds no operand also counts
            table[scope.random.choices(names, weights)[0]](scope)
    while scope.started:
        STEPS["async_done"](scope)


def settle(
    scope: Scope, wanted: Sequence[tuple[Shape, Lineage | None]]
) -> list[Instruction]:
    """Results for the end of a computation, each in storage of its own.

    `wanted` states the shape of each result and the carried lineage whose place it
    takes, if any. A value is handed over directly when the old contents of that
    place are not read after the value came into being; otherwise a copy is placed
    after everything else, as copy insertion would.
    """
    taken: set[Lineage] = set()
    chosen: list[Variable] = []
    for shape, lineage in wanted:
        found = scope.pick(
            lambda v, shape=shape: (
                v.shape == shape  # type: ignore[misc]
                and v.storage.lineage not in taken
            )
        )
        if found is None:
            found = scope.fresh(shape)
        own = found.storage.lineage is lineage
        if not own and (found.storage.frozen or found.storage.lineage.carried):
            found = scope.copy(found)
        taken.add(found.storage.lineage)
        chosen.append(found)
    results = []
    for (_, lineage), variable in zip(wanted, chosen, strict=True):
        mine = variable.storage.lineage
        late = lineage is not None and lineage.last_use >= mine.born
        if mine is not lineage and late:
            results.append(scope.copy(variable).instruction)
        else:
            results.append(variable.instruction)
    return results


# -- loops ---------------------------------------------------------------------------


def loop(scope: Scope) -> None:
    """A counted loop that carries some values it changes and some it only reads."""
    random = scope.random
    changed = _take(scope, random.randrange(1, 3), owned=True)
    kept = _take(scope, random.randrange(0, 3), owned=False)
    kept = [v for v in kept if all(v.storage is not c.storage for c in changed)]
    if kept and scope.is_shared():
        kept.append(kept[0])
    start = scope.constant(0)
    zero = scope.define(scope.emit("copy", start.shape, [start]))
    elements = [zero, *changed, *kept]
    if any(v.storage.consumed for v in elements):
        return
    reads = [scope.read(v) for v in elements]
    nest = Nest.choose(scope, len(elements))
    init = nest.pack(scope, reads)
    for variable in elements:
        lineage = variable.storage.lineage
        lineage.last_use = max(lineage.last_use, scope.place - 1)
    shapes = [v.shape for v in elements]
    trips = random.randrange(scope.shop.options.max_trips + 1)
    body = _body(scope, shapes, len(changed), nest)
    condition = _condition(scope, shapes, trips, nest)
    config = f'{{"known_trip_count":{{"n":"{trips}"}}}}'
    storages = [scope.consume(v) for v in (zero, *changed)]
    storages += [v.storage for v in kept]
    for variable in kept:
        scope.read(variable)
    called = [body, condition]
    made = scope.emit("while", init.shape, [init], NO_ATTRIBUTES, called, config)
    for path, storage in zip(nest.paths(), storages, strict=True):
        if random.random() < 0.85:
            scope.record(reach(scope, made, path), storage)


def _take(scope: Scope, count: int, *, owned: bool) -> list[Variable]:
    """Distinct values; with `owned` ones that may be overwritten, or copies."""
    chosen: list[Variable] = []
    for _ in range(count):
        variable = scope.pick_array()
        if variable is None:
            variable = scope.fresh(random_shape(scope))
        if owned:
            variable = scope.owned(variable)
        if all(variable.storage.lineage is not c.storage.lineage for c in chosen):
            chosen.append(variable)
    return chosen


def _body(
    scope: Scope, shapes: Sequence[Shape], changed: int, nest: Nest
) -> Computation:
    random = scope.random
    budget = max(3, random.randrange(3, max(4, scope.budget // 2 + 4)))
    inner = Scope(scope.shop, "body", scope.depth + 1, budget)
    parameter = inner.parameter(nest.shape(shapes), 0)
    wanted: list[tuple[Shape, Lineage | None]] = []
    kept: list[Instruction] = []
    counter: Variable | None = None
    for number, path in enumerate(nest.paths()):
        lineage = Lineage(-1, carried=True)
        storage = Storage(lineage, frozen=number == 0 or number > changed)
        variable = inner.record(reach(inner, parameter, path), storage)
        if number == 0:
            counter = variable
        elif number <= changed:
            wanted.append((shapes[number], lineage))
        else:
            kept.append(variable.instruction)
    fill(inner)
    results = settle(inner, wanted)
    assert counter is not None
    one = inner.constant(1)
    step = inner.emit("add", counter.shape, [inner.read(counter), one])
    root = nest.pack(inner, [step, *results, *kept])
    scope.budget -= inner.place
    return scope.shop.finish(inner, root, scheduled=True)


def _condition(
    scope: Scope, shapes: Sequence[Shape], trips: int, nest: Nest
) -> Computation:
    """Count up to `trips`; sometimes also look at another element."""
    inner = Scope(scope.shop, "condition", scope.depth + 1, 0)
    parameter = inner.parameter(nest.shape(shapes), 0)
    paths = nest.paths()
    counter = reach(inner, parameter, paths[0])
    limit = inner.constant(trips)
    pred = Shape.array(PRED)
    root = inner.emit("compare", pred, [counter, limit], {"direction": "LT"})
    if scope.random.random() < 0.4:
        other = reach(inner, parameter, paths[-1])
        same = Shape.array(PRED, other.shape.dimensions)
        agrees = inner.emit("compare", same, [other, other], {"direction": "LE"})
        if other.shape.dimensions:
            true = inner.emit("constant", pred, (), {"literal": _true_literal(pred)})
            callee = _all_of(inner)
            axes = tuple(range(len(other.shape.dimensions)))
            agrees = inner.emit(
                "reduce", pred, [agrees, true], {"dimensions": axes}, [callee]
            )
        root = inner.emit("and", pred, [root, agrees])
    return scope.shop.finish(inner, root, scheduled=True)


def _true_literal(shape: Shape) -> object:
    from msa.hlo.literal import Literal

    return Literal(shape, "true")


def _all_of(scope: Scope) -> Computation:
    inner = Scope(scope.shop, "all", 0, 0)
    pred = Shape.array(PRED)
    root = inner.emit("and", pred, [inner.parameter(pred, 0), inner.parameter(pred, 1)])
    return scope.shop.finish(inner, root, scheduled=False)


# -- branches and calls ----------------------------------------------------------------


def conditional(scope: Scope) -> None:
    """Two to four branches on a computed predicate or index."""
    random = scope.random
    pred = random.random() < 0.5
    count = 2 if pred else random.randrange(2, 5)
    owned = scope.is_unusual()
    shared = _take(scope, random.randrange(1, 4), owned=owned)
    form = Form.choose(scope, len(shared))
    operands: list[Instruction] = []
    whole: Instruction | None = None
    for _ in range(count):
        if whole is None or random.random() < 0.3:
            whole = form.pack(scope, [scope.read(v) for v in shared])
        operands.append(whole)
    results = [random_shape(scope) for _ in range(random.randrange(1, 3))]
    bare = len(results) == 1 and scope.is_unusual()
    repeats = _repeats(scope, results, bare=bare)
    selector = _selector(scope, pred=pred, count=count)
    share = max(3, scope.budget // 4)
    branches = [
        _branch(
            scope,
            "branch",
            shared,
            results,
            share,
            form,
            owned=owned,
            bare=bare,
            repeats=repeats,
        )
        for _ in range(count)
    ]
    _hand_over(scope, shared, owned=owned)
    shape = branches[0].root.shape
    made = scope.emit(
        "conditional", shape, [selector, *operands], NO_ATTRIBUTES, branches
    )
    _define_results(scope, made, repeats)


def _hand_over(scope: Scope, arguments: Sequence[Variable], *, owned: bool) -> None:
    """The next instruction reads the arguments, or may overwrite them."""
    for variable in arguments:
        if owned:
            scope.consume(variable)
        else:
            scope.read(variable)


def _repeats(scope: Scope, results: Sequence[Shape], *, bare: bool) -> tuple[int, ...]:
    """Numbers of results that are given once more, behind all of them."""
    if bare or not scope.is_shared():
        return ()
    count = scope.random.randrange(1, 3)
    return tuple(scope.random.randrange(len(results)) for _ in range(count))


def _define_results(
    scope: Scope,
    made: Instruction,
    repeats: Sequence[int],
    passed: Sequence[Variable] = (),
) -> None:
    """Name the results of what was just emitted.

    They have storage of their own, but for the last ones: `repeats`, which are
    results given once more, and `passed`, which are arguments.
    """
    born = scope.place - 1
    if made.shape.is_array:
        scope.define(made)
        return
    count = len(made.shape.children) - len(repeats) - len(passed)
    own = [scope.define(element(scope, made, n), born) for n in range(count)]
    others = [*(own[number].storage for number in repeats)]
    others += [variable.storage for variable in passed]
    for number, storage in enumerate(others, count):
        scope.record(element(scope, made, number), storage)


def _selector(scope: Scope, *, pred: bool, count: int) -> Instruction:
    scalar = scope.pick(lambda v: v.shape.is_scalar and v.shape.element_type is S32)
    if scalar is None:
        scalar = scope.fresh(Shape.array(S32))
    if pred:
        limit = scope.constant(scope.random.randrange(-2, 6))
        return scope.emit(
            "compare",
            Shape.array(PRED),
            [scope.read(scalar), limit],
            {"direction": scope.random.choice(("LT", "GE"))},
        )
    limit = scope.constant(count)
    rest = scope.emit("remainder", Shape.array(S32), [scope.read(scalar), limit])
    return scope.emit("abs", rest.shape, [rest])


def _branch(
    scope: Scope,
    name: str,
    arguments: Sequence[Variable],
    results: Sequence[Shape],
    budget: int,
    form: Form | None,
    *,
    owned: bool,
    bare: bool,
    repeats: Sequence[int],
    passed: Sequence[int] = (),
) -> Computation:
    """A computation that makes fresh results.

    It only reads its parameters, or may overwrite them when it owns them. Without a
    form each argument is a parameter. Behind the results come those of them that
    are repeated, and the parameters that are passed through.
    """
    inner = Scope(
        scope.shop, name, scope.depth + 1, scope.random.randrange(2, budget + 1)
    )
    if form is None:
        given = [inner.parameter(v.shape, i) for i, v in enumerate(arguments)]
    else:
        given = form.unpack(inner, [v.shape for v in arguments])
    for instruction in given:
        storage = Storage(Lineage(-1, carried=True), frozen=not owned)
        inner.record(instruction, storage)
    fill(inner)
    made = settle(inner, [(shape, None) for shape in results])
    root = made[0]
    if not bare:
        parts = [*made, *(made[n] for n in repeats), *(given[n] for n in passed)]
        root = inner.emit("tuple", Shape.tuple_of(*(x.shape for x in parts)), parts)
    scope.budget -= inner.place
    return scope.shop.finish(inner, root, scheduled=True)


def call(scope: Scope) -> None:
    """A call of a computation of its own."""
    owned = scope.is_unusual()
    arguments = _take(scope, scope.random.randrange(1, 4), owned=owned)
    results = [random_shape(scope) for _ in range(scope.random.randrange(1, 3))]
    bare = len(results) == 1 and scope.is_unusual()
    repeats = _repeats(scope, results, bare=bare)
    passed: tuple[int, ...] = ()
    if not owned and not bare and scope.is_shared():
        passed = (scope.random.randrange(len(arguments)),)
    share = max(3, scope.budget // 3)
    callee = _branch(
        scope,
        "called",
        arguments,
        results,
        share,
        None,
        owned=owned,
        bare=bare,
        repeats=repeats,
        passed=passed,
    )
    reads = [scope.read(v) for v in arguments]
    _hand_over(scope, arguments, owned=owned)
    shape = callee.root.shape
    made = scope.emit("call", shape, reads, NO_ATTRIBUTES, [callee])
    _define_results(scope, made, repeats, [arguments[n] for n in passed])


# -- ends ----------------------------------------------------------------------------


def finish_in_loop(
    scope: Scope, results: Sequence[Instruction]
) -> tuple[Instruction, list[ShapeIndex]]:
    """A last loop over the results of a program, and where they lie in its state.

    Its counter comes before them.
    """
    start = scope.emit("copy", Shape.array(S32), [scope.constant(0)])
    elements = [start, *results]
    shapes = [x.shape for x in elements]
    nest = Nest.choose(scope, len(elements))
    init = nest.pack(scope, elements)
    trips = scope.random.randrange(scope.shop.options.max_trips + 1)
    body = _body(scope, shapes, len(results), nest)
    condition = _condition(scope, shapes, trips, nest)
    config = f'{{"known_trip_count":{{"n":"{trips}"}}}}'
    called = [body, condition]
    made = scope.emit("while", init.shape, [init], NO_ATTRIBUTES, called, config)
    return made, nest.paths()[1:]
