"""Rules of the buffer IR."""

from __future__ import annotations

from msa.dealloc.edges import Interfaces
from msa.dealloc.errors import BufferIRError
from msa.dealloc.ir import (
    I1,
    MAX_NESTING,
    STRUCTURED,
    Block,
    BufferModule,
    Function,
    Operation,
    Region,
    Value,
)
from msa.dealloc.signatures import problem_of

_SUCCESSORS = {"br": 1, "cond_br": 2}
_CONDITIONAL = frozenset({"cond_br", "if", "select", "condition"})


def verify_module(module: BufferModule) -> None:
    """Verify every function (raises BufferIRError).

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> from msa.dealloc import BufferModule
    >>> verify_module(BufferModule([function]))
    """
    for function in module.functions.values():
        verify_function(function)


def verify_function(function: Function, *, frees: bool = True) -> None:
    """Raise BufferIRError at the first broken rule; near-linear.

    Args:
        function: what is checked.
        frees: also look for uses after a dealloc in the same block; `check` finds
            them on all paths.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> verify_function(function)
    """
    _Verifier(function).run(frees)


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function

    def run(self, frees: bool) -> None:
        if not self.function.region.blocks:
            raise self._error("the function has no body")
        for region in self.function.regions():
            self._region(region)
        for operation in self.function.walk():
            self._operation(operation)
        self._dominance()
        if frees:
            self._straight_line_frees()

    def _error(self, message: str) -> BufferIRError:
        return BufferIRError(message, where=f"@{self.function.name}")

    def _region(self, region: Region) -> None:
        depth, around = 0, region.parent
        while around is not None:
            depth, around = depth + 1, around.block.region.parent
        if depth > MAX_NESTING:
            raise self._error(f"operations nest deeper than {MAX_NESTING}")
        end = _end_of(region)
        for block in region.blocks:
            if not block.operations or not block.terminator.is_terminator:
                raise self._error(f"block ^{block.name} has no terminator")
            if block.terminator.kind not in ("br", "cond_br", end):
                raise self._error(
                    f"block ^{block.name} ends with {block.terminator.kind!r}, not "
                    f"with {end!r}"
                )
            for operation in block.operations[:-1]:
                if operation.is_terminator:
                    raise self._error(
                        f"{operation.kind!r} stands inside block ^{block.name}"
                    )

    def _operation(self, operation: Operation) -> None:
        kind = operation.kind
        problem = problem_of(operation)
        if problem:
            raise self._error(problem)
        if len(operation.successors) != _SUCCESSORS.get(kind, 0):
            raise self._error(f"{kind!r} has {len(operation.successors)} successors")
        for successor in operation.successors:
            if successor.block.region is not operation.block.region:
                raise self._error(f"{kind!r} branches out of its region")
            self._match(successor.arguments, successor.block.arguments, kind)
        if kind in _CONDITIONAL and operation.operands[0].type != I1:
            raise self._error(f"{kind!r} needs a condition of type i1")
        if kind == "return":
            types = tuple(v.type for v in operation.operands)
            if types != self.function.result_types:
                given, wanted = (
                    f"({', '.join(map(str, one))})"
                    for one in (types, self.function.result_types)
                )
                raise self._error(f"returns {given}, not {wanted}")
        if kind in STRUCTURED:
            self._structured(operation)

    def _structured(self, operation: Operation) -> None:
        wanted = {"for": (1,), "while": (2,), "if": (1, 2), "parallel": (1,)}
        if len(operation.regions) not in wanted[operation.kind]:
            raise self._error(
                f"{operation.kind!r} has {len(operation.regions)} regions"
            )
        counted = operation.kind in ("for", "parallel")
        if operation.kind != "while":
            for region in operation.regions:
                arguments = region.entry.arguments
                if len(arguments) < counted or (
                    operation.kind != "for" and len(arguments) > counted
                ):
                    raise self._error(
                        f"a region of {operation.kind!r} has {len(arguments)} arguments"
                    )
                if counted and arguments[0].is_buffer:
                    raise self._error(f"{operation.kind!r} counts with scalars")
        for edge in Interfaces().edges(operation) or ():
            given = edge.carrier.operands[edge.first :]
            self._match(given, list(edge.targets), operation.kind)

    def _match(self, given: list[Value], wanted: list[Value], kind: str) -> None:
        if len(given) != len(wanted):
            raise self._error(f"{kind!r} passes {len(given)} values to {len(wanted)}")
        for value, target in zip(given, wanted, strict=True):
            if value.type != target.type:
                raise self._error(
                    f"{kind!r} passes %{value.name} of type {value.type} to "
                    f"%{target.name} of type {target.type}"
                )

    def _dominance(self) -> None:
        """Every use sees its definition, whatever path is taken."""
        visible: dict[Block, set[Value]] = {}
        for region in self.function.regions():
            outer: set[Value] = set()
            parent = region.parent
            if parent is not None:
                outer = set(visible[parent.block]) | _before(parent)
            self._region_dominance(region, outer, visible)

    def _region_dominance(
        self, region: Region, outer: set[Value], visible: dict[Block, set[Value]]
    ) -> None:
        """Definitions available at block entries: an intersection over paths."""
        everything = {
            v
            for block in region.blocks
            for v in (
                *block.arguments,
                *(r for o in block.operations for r in o.results),
            )
        }
        at = dict.fromkeys(region.blocks, everything | outer)
        at[region.entry] = outer | set(region.entry.arguments)
        predecessors = region.predecessors()
        changed = True
        while changed:
            changed = False
            for block in region.blocks[1:]:
                sources = [terminator.block for terminator, _ in predecessors[block]]
                if not sources:
                    continue
                here = set.intersection(*(at[s] | _defined(s) for s in sources))
                here |= set(block.arguments)
                if here != at[block]:
                    at[block] = here
                    changed = True
        for block in region.blocks:
            visible[block] = at[block]
            known = set(at[block])
            for operation in block.operations:
                for value in operation.used_values():
                    if value not in known:
                        raise self._error(
                            f"{operation.kind!r} uses %{value.name}, which is not "
                            f"defined on every path to ^{block.name}"
                        )
                known.update(operation.results)

    def _straight_line_frees(self) -> None:
        for region in self.function.regions():
            for block in region.blocks:
                freed: set[Value] = set()
                for operation in block.operations:
                    used = {v for o in _inside(operation) for v in o.used_values()}
                    bad = used & freed
                    if bad:
                        name = sorted(v.name for v in bad)[0]
                        raise self._error(
                            f"{operation.kind!r} uses %{name} after its dealloc"
                        )
                    if operation.kind == "dealloc":
                        freed.add(operation.operands[0])


def _end_of(region: Region) -> str:
    """Kind of the terminators that leave a region."""
    parent = region.parent
    if parent is None:
        return "return"
    first = parent.kind == "while" and region is parent.regions[0]
    return "condition" if first else "yield"


def _defined(block: Block) -> set[Value]:
    return {value for operation in block.operations for value in operation.results}


def _before(operation: Operation) -> set[Value]:
    found: set[Value] = set()
    for other in operation.block.operations:
        if other is operation:
            break
        found.update(other.results)
    return found


def _inside(operation: Operation) -> list[Operation]:
    found, work = [], [operation]
    while work:
        here = work.pop()
        found.append(here)
        for region in here.regions:
            for block in region.blocks:
                work.extend(block.operations)
    return found
