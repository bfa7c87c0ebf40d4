"""Placement of deallocations: exactly one for every allocation on every path.

Where a buffer that only some paths allocate meets others at a merge, every edge gets
an owned clone, so that the merged value can be freed; then each owned value is freed
after the last use of its aliases in the nearest common post-dominator.

Source of the idea: `xla/mlir_hlo/deallocation/transforms/buffer_deallocation.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from msa.dealloc.dominance import Dominance, check_no_loops
from msa.dealloc.edges import Interfaces, region_number
from msa.dealloc.errors import (
    AliasMutationError,
    AllocationInterfaceError,
    BufferIRError,
    EscapingDeallocation,
    UnsupportedControlFlow,
)
from msa.dealloc.flow import UnknownOps, ValueFlow
from msa.dealloc.ir import (
    HEAP,
    Block,
    BufferModule,
    Function,
    Operation,
    Successor,
    Value,
    lift,
)
from msa.dealloc.mutation import AliasMutation, find_alias_mutation
from msa.dealloc.ownership import own_returns
from msa.dealloc.parsing import parse_function
from msa.dealloc.printing import print_function
from msa.dealloc.verifier import verify_function
from msa.errors import OptionsError, shown
from msa.hlo.arguments import expect

_WORDS: Final = {
    "unknown_ops": get_args(UnknownOps),
    "on_alias_mutation": ("error", "warn", "ignore"),
}


@dataclass(frozen=True, slots=True)
class DeallocationOptions:
    """Options of the pass.

    Attributes:
        unknown_ops: whether results of unknown operations alias their operands.
        on_alias_mutation: what to do about writes through a merged alias.
        interfaces: of custom operations.
        split_edges, insert_before_terminator, own_returns, last_use_in_block,
            rerun_safe: rules that keep programs free of leaks, double frees and reads
            after free; each can be switched off to study the plain algorithm.

    >>> DeallocationOptions(on_alias_mutation="error").split_edges
    True
    """

    unknown_ops: UnknownOps = "alias"
    on_alias_mutation: Literal["error", "warn", "ignore"] = "warn"
    interfaces: Interfaces = field(default_factory=Interfaces)
    split_edges: bool = True
    insert_before_terminator: bool = True
    own_returns: bool = True
    last_use_in_block: bool = True
    rerun_safe: bool = True

    def __post_init__(self) -> None:
        for name, known in _WORDS.items():
            if getattr(self, name) not in known:
                raise OptionsError(
                    f"{name} is one of {', '.join(known)}, not "
                    f"{shown(getattr(self, name))}"
                )

    @staticmethod
    def strict_source() -> DeallocationOptions:
        """The plain algorithm, without the rules of its own."""
        return DeallocationOptions(
            split_edges=False,
            insert_before_terminator=False,
            own_returns=False,
            last_use_in_block=False,
            rerun_safe=False,
        )


@dataclass(slots=True)
class DeallocationReport:
    """What the pass did to a function; values by name.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> _, report = place_in_function(function)
    >>> report.function, report.allocations
    ('f', ['a'])
    """

    function: str
    allocations: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    clones: list[str] = field(default_factory=list)
    return_clones: list[str] = field(default_factory=list)
    inserted: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    escaping: list[str] = field(default_factory=list)
    split_edges: int = 0
    alias_mutations: list[AliasMutation] = field(default_factory=list)


def place_deallocations(
    module: BufferModule, options: DeallocationOptions | None = None
) -> tuple[BufferModule, list[DeallocationReport]]:
    """A module in which every function frees what it allocates.

    The input is not changed. A function that cannot be handled stays as it is, and
    its error is raised after all others were handled.

    Raises:
        UnsupportedControlFlow: loops of branches, or paths that never meet.
        AllocationInterfaceError, EscapingDeallocation, BufferIRError: as named.
        AliasMutationError: asked for, and a merged alias is written.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> from msa.dealloc import BufferModule, check
    >>> freed, [report] = place_deallocations(BufferModule([function]))
    >>> check(freed.functions["f"]).clean
    True
    """
    where = "place_deallocations"
    module = expect(module, BufferModule, where=where, what="a BufferModule")
    options = _options(options, where)
    done, reports = BufferModule(), []
    first: BufferIRError | None = None
    for function in module.functions.values():
        try:
            new, report = place_in_function(function, options)
        except BufferIRError as error:
            first = first or error
            done.add(_copy(function))
            continue
        done.add(new)
        reports.append(report)
    if first is not None:
        raise first
    return done, reports


def place_in_function(
    function: Function, options: DeallocationOptions | None = None
) -> tuple[Function, DeallocationReport]:
    """The pass on a copy of one function (errors as in `place_deallocations`).

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> freed, report = place_in_function(function)
    >>> [op.kind for op in freed.walk()]
    ['alloc', 'use', 'dealloc', 'return']
    """
    where = "place_in_function"
    function = expect(function, Function, where=where, what="a Function")
    options = _options(options, where)
    verify_function(function)
    copy = _copy(function)
    report = DeallocationReport(function.name)
    _Placer(copy, options, report).run()
    verify_function(copy)
    return copy, report


def _options(options: DeallocationOptions | None, where: str) -> DeallocationOptions:
    if options is None:
        return DeallocationOptions()
    return expect(options, DeallocationOptions, where=where, what="DeallocationOptions")


def _copy(function: Function) -> Function:
    return parse_function(print_function(function))


class _Placer:
    def __init__(
        self,
        function: Function,
        options: DeallocationOptions,
        report: DeallocationReport,
    ) -> None:
        self.function = function
        self.options = options
        self.interfaces = options.interfaces
        self.report = report
        self.made: set[Value] = set()
        self.moved_into_marked: set[Value] = set()

    def run(self) -> None:
        """Check, find allocations, mark, clone, place."""
        check_no_loops(self.function)
        self._check_regions()
        if self.options.own_returns:
            clones = own_returns(
                self.function, self.interfaces, self.options.unknown_ops
            )
            self.report.return_clones = [c.results[0].name for c in clones]
        allocations = self._allocations()
        flow = self._flow()
        marked = self._mark(flow, allocations)
        self._judge_mutations(marked)
        flow.remove(marked)
        for value in marked:
            self._own(value)
        entries = {
            value: free
            for value, free in allocations.items()
            if value not in self.moved_into_marked
        }
        frees = self._frees()
        for value in marked:
            existing = frees.get(value, []) if self.options.rerun_safe else []
            entries[value] = existing[0] if len(existing) == 1 else None
        self.report.allocations = [v.name for v in allocations]
        self.report.marked = [v.name for v in marked]
        self._place(entries, self._flow(), marked)

    def _flow(self) -> ValueFlow:
        return ValueFlow.run(self.function, self.interfaces, self.options.unknown_ops)

    # -- checks and allocations -----------------------------------------------------

    def _check_regions(self) -> None:
        for operation in self.function.walk():
            several = len(operation.regions) >= 2
            one = len(operation.regions) == 1 and bool(operation.results)
            if (several or one) and self.interfaces.edges(operation) is None:
                raise UnsupportedControlFlow(
                    f"operation {operation.kind!r}: operations with regions must "
                    "implement the region-branch interface",
                    where=f"@{self.function.name}",
                )

    def _frees(self) -> dict[Value, list[Operation]]:
        found: dict[Value, list[Operation]] = {}
        for operation in self.function.walk():
            if operation.kind == "dealloc":
                found.setdefault(operation.operands[0], []).append(operation)
        return found

    def _allocations(self) -> dict[Value, Operation | None]:
        """Allocated values with their existing deallocation."""
        frees = self._frees()
        found: dict[Value, Operation | None] = {}
        custom = self.interfaces.dealloc.keys() | self.interfaces.clone.keys()
        for operation in self.function.walk():
            declared = bool(operation.attributes.get("allocates"))
            if not (operation.kind in HEAP or operation.kind in custom or declared):
                continue
            aliases = operation.attributes.get("aliases", {})
            owned = [
                v for v in operation.results if v.is_buffer and v.index not in aliases
            ]
            if operation.kind != "call" and len(owned) != 1:
                continue
            for value in owned:
                existing = frees.get(value, [])
                if len(existing) > 1:
                    continue  # managed by hand
                if not existing and not self._can_free(operation):
                    raise AllocationInterfaceError(
                        f"{operation.kind!r} (%{value.name}) is neither freed "
                        "explicitly nor supports the allocation interface",
                        where=f"@{self.function.name}",
                    )
                found[value] = existing[0] if existing else None
        return found

    def _can_free(self, operation: Operation) -> bool:
        return operation.kind in HEAP or operation.kind in self.interfaces.dealloc

    # -- phase A: values that need a buffer of their own ------------------------------

    def _mark(self, flow: ValueFlow, allocations: Iterable[Value]) -> list[Value]:
        dominance = Dominance(self.function)
        marked: dict[Value, None] = {}
        work = [(value, value.block) for value in allocations]
        seen = set(work)
        while work:
            source, block = work.pop()
            for target in flow.targets(source):
                if target in marked:
                    continue
                place = target.block
                merges = place is block and target.is_argument
                if merges or not dominance.dominates(block, place):
                    marked[target] = None
                    entry = (target, place)
                else:
                    entry = (target, block)
                if entry not in seen:
                    seen.add(entry)
                    work.append(entry)
        return list(marked)

    def _judge_mutations(self, marked: list[Value]) -> None:
        if self.options.on_alias_mutation == "ignore" or not marked:
            return
        found = find_alias_mutation(self.function, marked, self._flow())
        self.report.alias_mutations = found
        if found and self.options.on_alias_mutation == "error":
            raise AliasMutationError(str(found[0]), where=f"@{self.function.name}")

    # -- phase B: owned copies on every edge -------------------------------------------

    def _own(self, value: Value) -> None:
        if value.is_argument:
            block = value.block
            self._own_branches(value, block)
            parent = block.region.parent
            if block is block.region.entry and parent is not None:
                number = region_number(block)
                edges = self.interfaces.edges(parent) or []
                into = [e for e in edges if e.target == number and value in e.targets]
                for edge in [e for e in into if e.source is not None] + [
                    e for e in into if e.source is None
                ]:
                    place, operand = edge.operand(value)
                    self._clone_operand(edge.carrier, place, operand)
            return
        operation = value.owner
        assert isinstance(operation, Operation)
        if not operation.regions:
            return
        for edge in self.interfaces.edges(operation) or []:
            if edge.target is None and edge.source is not None:
                place, operand = edge.operand(value)
                self._clone_operand(edge.carrier, place, operand)

    def _own_branches(self, value: Value, block: Block) -> None:
        for terminator, number in block.region.predecessors()[block]:
            successor = terminator.successors[number]
            passed = successor.arguments[value.index]
            if self._is_owned_copy(passed):
                continue
            if self.options.split_edges and len(terminator.successors) > 1:
                terminator, successor = self._split(terminator, number)
            clone = self._clone(passed)
            terminator.block.insert_before(terminator, clone)
            successor.arguments[value.index] = clone.results[0]

    def _split(self, terminator: Operation, number: int) -> tuple[Operation, Successor]:
        """A new block on a critical edge, holding a plain branch."""
        successor = terminator.successors[number]
        region = terminator.block.region
        names = {b.name for b in region.blocks}
        count = 0
        while f"edge{count}" in names:
            count += 1
        middle = region.add_block(f"edge{count}")
        region.blocks.remove(middle)
        region.blocks.insert(region.blocks.index(successor.block), middle)
        branch = Operation("br")
        onward = Successor(successor.block, list(successor.arguments))
        branch.successors = [onward]
        middle.append(branch)
        terminator.successors[number] = Successor(middle, [])
        self.report.split_edges += 1
        return branch, onward

    def _clone_operand(self, carrier: Operation, place: int, operand: Value) -> None:
        if self._is_owned_copy(operand):
            return
        clone = self._clone(operand)
        carrier.block.insert_before(carrier, clone)
        carrier.operands[place] = clone.results[0]

    def _is_owned_copy(self, value: Value) -> bool:
        """Whether an operand already is a clone made for this edge."""
        if value in self.made:
            return True
        owner = value.owner
        if not (
            self.options.rerun_safe
            and isinstance(owner, Operation)
            and owner.kind == "clone"
        ):
            return False
        uses = [
            1
            for operation in self.function.walk()
            for used in operation.used_values()
            if used is value
        ]
        if len(uses) != 1:
            return False
        self.moved_into_marked.add(value)
        return True

    def _clone(self, value: Value) -> Operation:
        builder = None
        owner = value.owner
        if isinstance(owner, Operation):
            builder = self.interfaces.clone.get(owner.kind)
            if builder is None and owner.kind in self.interfaces.dealloc:
                raise AllocationInterfaceError(
                    f"the interface of {owner.kind!r} (%{value.name}) cannot clone",
                    where=f"@{self.function.name}",
                )
        clone = (
            Operation("clone", [value], [value.type])
            if builder is None
            else builder(value)
        )
        clone.results[0].name = self.function.fresh_name("own")
        self.made.add(clone.results[0])
        self.report.clones.append(f"{value.name} -> {clone.results[0].name}")
        return clone

    # -- phase C: deallocations ----------------------------------------------------------

    def _place(
        self,
        entries: dict[Value, Operation | None],
        flow: ValueFlow,
        marked: list[Value],
    ) -> None:
        flow.remove(marked)
        dominance = Dominance(self.function)
        uses = self.function.uses()
        for value, existing in entries.items():
            aliases = flow.resolve(value)
            users = {
                alias: [u for u in uses.get(alias, ()) if u is not existing]
                for alias in aliases
            }
            blocks = [value.block, *(a.block for a in aliases)]
            blocks += [u.block for found in users.values() for u in found]
            block = dominance.common_post_dominator(blocks)
            end = self._end(block, value, aliases, users, existing)
            self._free(value, existing, block, end, aliases)

    def _end(
        self,
        block: Block,
        value: Value,
        aliases: list[Value],
        users: dict[Value, list[Operation]],
        existing: Operation | None,
    ) -> Operation:
        """The last operation of the block that needs the buffer."""
        place = {op: i for i, op in enumerate(block.operations)}
        last = next(i for i, op in enumerate(block.operations) if op.kind != "dealloc")
        for alias in aliases:
            start = self._definition(alias, block, place)
            if start is None:
                if not self.options.last_use_in_block:
                    continue
                start = last if alias.block is block else 0
            last = max(last, start)
            for user in users[alias]:
                inside = lift(user, block.region)
                at = place.get(inside) if inside is not None else None
                if at is not None and at >= start:
                    last = max(last, at)
        return block.operations[last]

    def _definition(
        self, alias: Value, block: Block, place: dict[Operation, int]
    ) -> int | None:
        """Place in the block of what defines an alias; None outside the block."""
        owner = alias.owner
        if isinstance(owner, Block):
            if owner is block:
                return 0
            parent = owner.region.parent
            owner = parent if parent is not None else None  # type: ignore[assignment]
        if not isinstance(owner, Operation):
            return None
        inside = lift(owner, block.region)
        return None if inside is None else place.get(inside)

    def _free(
        self,
        value: Value,
        existing: Operation | None,
        block: Block,
        end: Operation,
        aliases: list[Value],
    ) -> None:
        names = self.report
        if end.is_terminator:
            used = set(end.used_values())
            escapes = not used.isdisjoint(aliases)
            if escapes or not self.options.insert_before_terminator:
                if existing is not None and escapes:
                    raise EscapingDeallocation(
                        f"%{value.name} is freed and escapes through {end.kind!r}",
                        where=f"@{self.function.name}",
                        hint="remove the dealloc: the receiver owns the buffer",
                    )
                names.escaping.append(value.name)
                return
            free = existing or self._dealloc(value)
            if existing is not None:
                if existing.block is block and _only_frees_between(existing, end):
                    return
                existing.remove()
            block.insert_before(end, free)
        else:
            free = existing or self._dealloc(value)
            if existing is not None:
                if existing.block is block and _follows(end, existing):
                    return
                existing.remove()
            block.insert_after(end, free)
        (names.inserted if existing is None else names.moved).append(value.name)

    def _dealloc(self, value: Value) -> Operation:
        owner = value.owner
        if isinstance(owner, Operation):
            builder = self.interfaces.dealloc.get(owner.kind)
            if builder is not None:
                return builder(value)
        return Operation("dealloc", [value])


def _follows(end: Operation, free: Operation) -> bool:
    """Whether only deallocations stand between an operation and a later free."""
    operations = free.block.operations
    first, last = operations.index(end), operations.index(free)
    return first < last and all(
        op.kind == "dealloc" for op in operations[first + 1 : last]
    )


def _only_frees_between(free: Operation, end: Operation) -> bool:
    operations = free.block.operations
    first, last = operations.index(free), operations.index(end)
    return first < last and all(
        op.kind == "dealloc" for op in operations[first + 1 : last]
    )
