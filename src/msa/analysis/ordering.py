"""What must run before what, and which values may interfere.

Source: `xla/hlo/analysis/hlo_ordering.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msa.analysis.async_chains import ASYNC_OPCODES
from msa.analysis.call_graph import CallGraph
from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.operand_sharing import OperandSharing
from msa.analysis.values import Use, Value
from msa.errors import ScheduleError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex


class Constraint(Enum):
    """How one instruction runs relative to another."""

    SAME = "same"
    BEFORE_START = "before start"
    BEFORE_END = "before end"
    EXCLUSIVE_BEFORE = "exclusive before"
    EXCLUSIVE_AFTER = "exclusive after"
    AFTER = "after"
    UNORDERED = "unordered"


_BEFORE = frozenset(
    {Constraint.BEFORE_START, Constraint.BEFORE_END, Constraint.EXCLUSIVE_BEFORE}
)


class HloOrdering:
    """An order of a module's instructions; see the two kinds below."""

    def __init__(self, module: Module, call_graph: CallGraph | None = None) -> None:
        self.module = module
        self.call_graph = call_graph or CallGraph.run(module)

    def executes_before_in_computation(self, a: Instruction, b: Instruction) -> bool:
        """Whether `a` runs before `b`, both of one computation."""
        raise NotImplementedError

    # -- instructions --------------------------------------------------------

    def constraint(self, a: Instruction, b: Instruction) -> Constraint:
        """How `a` runs relative to `b`; linear in the depth of nesting."""
        if a is b or _wraps(a, b) or _wraps(b, a):
            return Constraint.SAME
        chain_a, chain_b = self._to_common_computation(a, b)
        if chain_a is None or chain_b is None:
            return Constraint.UNORDERED
        here, there = chain_a[-1], chain_b[-1]
        if here is there:
            nested = self._within(here, chain_a, chain_b)
            if nested is not None:
                return nested
            return Constraint.UNORDERED
        if self.executes_before_in_computation(here, there):
            return Constraint.BEFORE_START
        if self.executes_before_in_computation(there, here):
            return Constraint.AFTER
        return Constraint.UNORDERED

    def executes_before(self, a: Instruction, b: Instruction) -> bool:
        """Whether `a` runs before `b` whenever both run."""
        return self.constraint(a, b) in _BEFORE

    def _to_common_computation(
        self, a: Instruction, b: Instruction
    ) -> tuple[list[Instruction] | None, list[Instruction] | None]:
        """Callers of both, up to instructions of one computation."""
        chain_a, chain_b = [a], [b]
        depth_a = self.call_graph.node(a.computation).depth
        depth_b = self.call_graph.node(b.computation).depth
        for _ in range(depth_a - depth_b):
            if not self._lift(chain_a):
                return None, None
        for _ in range(depth_b - depth_a):
            if not self._lift(chain_b):
                return None, None
        while chain_a[-1].computation is not chain_b[-1].computation:
            if not self._lift(chain_a) or not self._lift(chain_b):
                return None, None
        return chain_a, chain_b

    def _lift(self, chain: list[Instruction]) -> bool:
        caller = self.call_graph.parent_call(chain[-1].computation)
        if caller is None:
            return False
        chain.append(caller)
        return True

    def _within(
        self, caller: Instruction, a: list[Instruction], b: list[Instruction]
    ) -> Constraint | None:
        """Two instructions that a loop or conditional runs."""
        part_a = a[-2].computation if len(a) > 1 else None
        part_b = b[-2].computation if len(b) > 1 else None
        if caller.opcode == "while":
            body, condition = caller.called_computations
            if part_a is condition and part_b is body:
                return Constraint.BEFORE_END
            return None
        if caller.opcode == "conditional":
            if part_b is None:
                return Constraint.BEFORE_END
            if part_a is None:
                return Constraint.AFTER
            branches = caller.called_computations
            i, j = branches.index(part_a), branches.index(part_b)
            if i < j:
                return Constraint.EXCLUSIVE_BEFORE
            if i > j:
                return Constraint.EXCLUSIVE_AFTER
        return None

    # -- values --------------------------------------------------------------

    def is_defined_before(self, a: Value, b: Value) -> bool:
        """Whether value `a` is defined before value `b`."""
        where_a, where_b = a.instruction, b.instruction
        if self._is_entry_parameter(where_b):
            return False
        if self._is_entry_parameter(where_a):
            return True
        nested = self.call_graph.is_nested_in
        state_a, state_b = _is_parameter_phi(a), _is_parameter_phi(b)
        if state_a and not state_b and nested(where_b, where_a.computation):
            return True
        if state_b and nested(where_a, where_b.computation):
            return False
        if b.is_phi and where_b.opcode in ("while", "conditional"):
            parts = where_b.called_computations
            if any(nested(where_a, part) for part in parts):
                return True
        return self.executes_before(where_a, where_b)

    def uses_before_definition(
        self,
        uses: Iterable[Use],
        value: Value,
        dataflow: DataflowAnalysis,
        sharing: OperandSharing | None = None,
        *,
        use_first_in_same_instruction: bool = False,
    ) -> bool:
        """Whether all uses are over when a value is defined.

        A use at the defining instruction counts as over if the result may be written
        over the operand, or always with `use_first_in_same_instruction`.
        """
        return _UseOrder(
            self,
            value,
            dataflow,
            sharing or OperandSharing(dataflow),
            use_first_in_same_instruction,
        ).all_before(uses)

    def live_range_strictly_before(
        self,
        a: Value,
        b: Value,
        dataflow: DataflowAnalysis,
        sharing: OperandSharing | None = None,
        *,
        use_first_in_same_instruction: bool = False,
    ) -> bool:
        """Whether `a` is dead before `b` is defined."""
        if not self.is_defined_before(a, b) or a.live_out:
            return False
        where = b.instruction
        for position in a.positions:
            computation = position.instruction.computation
            if computation.root is position.instruction and (
                computation is where.computation
                or self.call_graph.is_nested_in(where, computation)
            ):
                return False
        judge = sharing or OperandSharing(dataflow)
        uses = [
            use
            for use in a.uses
            if not judge.does_not_use(use.operand, use.operand_index, use.instruction)
        ]
        return self.uses_before_definition(
            uses,
            b,
            dataflow,
            judge,
            use_first_in_same_instruction=use_first_in_same_instruction,
        )

    def may_interfere(
        self,
        a: Value,
        b: Value,
        dataflow: DataflowAnalysis,
        sharing: OperandSharing | None = None,
    ) -> bool:
        """Whether both values may be needed at the same time."""
        judge = sharing or OperandSharing(dataflow)
        return not (
            self.live_range_strictly_before(a, b, dataflow, judge)
            or self.live_range_strictly_before(b, a, dataflow, judge)
        )

    def _is_entry_parameter(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode == "parameter"
            and instruction.computation is self.module.entry
        )


def _is_parameter_phi(value: Value) -> bool:
    return value.is_phi and value.instruction.opcode == "parameter"


def _wraps(a: Instruction, b: Instruction) -> bool:
    """Whether an asynchronous operation runs just the other instruction."""
    return (
        a.opcode in ASYNC_OPCODES
        and bool(a.called_computations)
        and a.called_computations[0].root is b
    )


class _UseOrder:
    """Asks whether uses come before the definition of one value."""

    def __init__(
        self,
        ordering: HloOrdering,
        value: Value,
        dataflow: DataflowAnalysis,
        sharing: OperandSharing,
        use_first: bool,
    ) -> None:
        self._ordering = ordering
        self._nested = ordering.call_graph.is_nested_in
        self._value = value
        self._where = value.instruction
        self._dataflow = dataflow
        self._sharing = sharing
        self._use_first = use_first
        self._escaped = False

    def all_before(self, uses: Iterable[Use]) -> bool:
        return all(self._is_before(use) for use in uses)

    def _is_before(self, use: Use) -> bool:
        user, where = use.instruction, self._where
        how = self._ordering.constraint(user, where)
        if how is Constraint.SAME:
            if self._use_first or self._shares(use):
                return True
        elif how is Constraint.EXCLUSIVE_AFTER:
            if not self._escaped:
                return True
        elif how in _BEFORE or (
            how is Constraint.AFTER
            and (
                self._use_first
                and user.opcode == "collective-permute-done"
                and user.operands[0] is where
            )
        ):
            return True
        return self._is_within(use)

    def _is_within(self, use: Use) -> bool:
        """Uses by operations in which the value is defined, or the reverse."""
        user, where = use.instruction, self._where
        opcode = user.opcode
        if opcode == "while":
            if self._nested(where, user.while_body):
                return True
            if self._nested(where, user.while_condition):
                return where is user.while_condition.parameters[0]
        if where.opcode == "while" and any(
            self._nested(user, part) for part in where.called_computations
        ):
            return True
        if (opcode == "call" or opcode in ASYNC_OPCODES) and any(
            self._nested(where, callee) for callee in user.called_computations
        ):
            return True
        if opcode == "conditional":
            if any(self._nested(where, branch) for branch in user.called_computations):
                if self._forwards(use.operand) and self._escapes():
                    self._escaped = True
                else:
                    return True
            if where is user:
                return True
        return False

    def _forwards(self, operand: Instruction) -> bool:
        return not self._dataflow.defines(operand, ())

    def _escapes(self) -> bool:
        return any(
            use.instruction.computation.root is use.instruction
            for use in self._value.uses
        )

    def _shares(self, use: Use) -> bool:
        user, where = use.instruction, self._where
        operand: Instruction = use.operand
        index: ShapeIndex = use.operand_index
        if user.opcode in ASYNC_OPCODES and user is not where:
            parameters = where.computation.parameters
            number = use.operand_number
            if user.opcode != "async-start":
                if len(index) < 2:
                    return False
                number, index = index[1], index[2:]
            if number >= len(parameters):
                return False
            operand = parameters[number]
        if not operand.shape.has_index(index):
            return False
        return self._sharing.can_share(operand, index, where, self._value.index)


class SequentialOrdering(HloOrdering):
    """The order of the module's schedule; a root never runs before anything.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> p, n, a = module.entry.instructions
    >>> SequentialOrdering(module).executes_before(n, a)
    True
    """

    def __init__(self, module: Module, call_graph: CallGraph | None = None) -> None:
        super().__init__(module, call_graph)
        if module.schedule is None:
            raise ScheduleError(
                f"module {module.name!r} has no schedule",
                hint="msa.schedule(module) makes one",
            )
        self._place: list[int] = [-1] * module.id_limit
        for computation in module.schedule:
            for place, x in enumerate(module.schedule.sequence(computation)):
                self._place[x.id] = place

    def executes_before_in_computation(self, a: Instruction, b: Instruction) -> bool:
        """Whether `a` is scheduled before `b`; False if either is not scheduled."""
        place, after = self._place[a.id], self._place[b.id]
        if place < 0 or after < 0 or a.computation.root is a:
            return False
        return place < after


class DependencyOrdering(HloOrdering):
    """The order that operands and control edges demand.

    Reachability is kept as one bit set per instruction: the square of the size of a
    computation in bits, built when it is first asked about.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> p, n, a = module.entry.instructions
    >>> ordering = DependencyOrdering(module)
    >>> ordering.executes_before(p, a), ordering.executes_before(a, p)
    (True, False)
    """

    def __init__(self, module: Module, call_graph: CallGraph | None = None) -> None:
        super().__init__(module, call_graph)
        self._reached: dict[Computation, dict[Instruction, int]] = {}
        self._bit: dict[Instruction, int] = {}

    def executes_before_in_computation(self, a: Instruction, b: Instruction) -> bool:
        """Whether `b` depends on `a`."""
        computation = b.computation
        reached = self._reached.get(computation)
        if reached is None:
            reached = self._reached[computation] = self._reach(computation)
        return a is not b and bool(reached[b] >> self._bit[a] & 1)

    def _reach(self, computation: Computation) -> dict[Instruction, int]:
        reached: dict[Instruction, int] = {}
        for number, x in enumerate(computation.post_order()):
            self._bit[x] = number
            bits = 1 << number
            for before in (*x.operands, *x.control_predecessors):
                bits |= reached[before]
            reached[x] = bits
        return reached
