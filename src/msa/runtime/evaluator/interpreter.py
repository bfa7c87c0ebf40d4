"""Control flow with an explicit stack, over values of any representation.

The interpreter is a generator: it pauses at collectives and is resumed with their
result, so that devices run in lock step without threads. Depth of calls and nesting
costs no Python recursion.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np

from msa.errors import ExecutionError, MsaError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.runtime.evaluator import (  # noqa: F401  # they register their kernels
    channels,
    contraction,
    convolution,
    custom_calls,
    elementwise,
    indexing,
    linear_algebra,
    random_bits,
    reduction,
    sorting,
    structural,
    windows,
)
from msa.runtime.evaluator.code import Action, Code, Step
from msa.runtime.evaluator.collectives import Request
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.registry import Kernel, build
from msa.runtime.evaluator.values import Value

Run = Generator[Request, Value, Value]

_STARTS: Final = frozenset({Action.ASYNC_START, Action.ASYNC_UPDATE})

UNBOUND: Final = object()
"""Operand or result of an asynchronous operation that is not there yet."""


class Frame:
    """An activation of a computation."""

    __slots__ = ("carried", "code", "in_condition", "pending", "registers", "step")

    def __init__(self, code: Code, arguments: Sequence[Value]) -> None:
        self.code = code
        self.step = 0
        self.registers: list[Value] = [None] * code.size
        for register, value in zip(code.parameters, arguments, strict=True):
            self.registers[register] = value
        for register in code.unused:
            self.registers[register] = None
        self.pending: Step | None = None
        self.carried: Value = None
        self.in_condition = False


class Interpreter:
    """Runs computations; subclasses decide what values are.

    This class computes on numpy arrays: it is the reference meaning of a module.
    """

    inline_fusions = True
    """Whether fusions are entered like calls (or handed to `compute` whole)."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._codes: dict[Computation, Code] = {}
        self._kernels: dict[Instruction, Kernel] = {}

    # -- what subclasses replace ---------------------------------------------

    def compute(self, step: Step, operands: Sequence[Value]) -> Value:
        """The value of an instruction that calls nothing."""
        return self.kernel(step.instruction)(*operands)

    def scalar(self, value: Value) -> Any:
        """The number in a scalar (a predicate or a branch index)."""
        return np.asarray(value)[()]

    def contents(self, value: Value) -> Value:
        """The arrays of a value, for others to read."""
        return value

    def received(self, step: Step, operands: Sequence[Value], result: Value) -> Value:
        """The value of a collective, from the arrays that it brought."""
        del step, operands
        return result

    def starts_late(self, step: Step) -> bool:
        """Whether an asynchronous operation runs at its done, not at its start."""
        del step
        return False

    def entered(self, frame: Frame, caller: Step | None) -> None:
        """Called when a computation is entered (`caller` is None for the first)."""

    def reached(self, step: Step) -> None:
        """Called at the moment that a step with callees has in the schedule.

        That is when a call, loop or branch has come back, when an asynchronous
        operation is started, and when it is done.
        """

    def left(self, frame: Frame, result: Value) -> Value:
        """Called when a computation is left; may replace its result."""
        del frame
        return result

    # -- the machine of control flow -------------------------------------------

    def code(self, computation: Computation) -> Code:
        """Compiled form, made once."""
        code = self._codes.get(computation)
        if code is None:
            code = Code(computation, inline_fusions=self.inline_fusions)
            self._codes[computation] = code
        return code

    def kernel(self, instruction: Instruction) -> Kernel:
        """The kernel of an instruction, built once."""
        kernel = self._kernels.get(instruction)
        if kernel is None:
            kernel = build(instruction, self.context)
            self._kernels[instruction] = kernel
        return kernel

    def run(self, start: Computation | Code, arguments: Sequence[Value]) -> Run:
        """Run a computation; yields at collectives, returns its result."""
        stack: list[Frame] = []
        code = start if isinstance(start, Code) else self.code(start)
        self._enter(stack, code, arguments, None)
        while True:
            frame = stack[-1]
            if frame.step == len(frame.code.steps):
                stack.pop()
                code = frame.code
                if code.packed:
                    result = tuple(frame.registers[i] for i in code.roots)
                else:
                    result = frame.registers[code.roots[0]]
                result = self.left(frame, result)
                if not stack:
                    return result
                self._returned(stack, result)
                continue
            step = frame.code.steps[frame.step]
            frame.step += 1
            registers = frame.registers
            operands = [registers[i] for i in step.operands]
            if step.action is Action.COMPUTE:
                registers[step.slot] = self._guarded(step, operands)
            elif step.action is Action.COLLECTIVE:
                waits = step.instruction.opcode == "recv-done"
                given = () if waits else tuple(self.contents(x) for x in operands)
                result = yield Request(step.instruction, given)
                registers[step.slot] = self.received(step, operands, result)
            else:
                self._transfer(stack, step, operands)
            for register in step.dead:
                if register != step.slot or frame.pending is None:
                    registers[register] = None

    def _guarded(self, step: Step, operands: Sequence[Value]) -> Value:
        try:
            return self.compute(step, operands)
        except MsaError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            instruction = step.instruction
            raise ExecutionError(
                f"{instruction.opcode} failed: {error}", where=instruction.name
            ) from error

    def _enter(
        self,
        stack: list[Frame],
        start: Computation | Code,
        arguments: Sequence[Value],
        caller: Step | None,
    ) -> None:
        code = start if isinstance(start, Code) else self.code(start)
        if len(arguments) != len(code.parameters):
            name = code.computation.name
            raise ExecutionError(
                f"{name} takes {len(code.parameters)} arguments, got {len(arguments)}",
                where=name,
            )
        frame = Frame(code, arguments)
        stack.append(frame)
        self.entered(frame, caller)

    def _transfer(
        self, stack: list[Frame], step: Step, operands: Sequence[Value]
    ) -> None:
        """Start a step that runs other computations."""
        frame = stack[-1]
        callees = step.instruction.called_computations
        action = step.action
        if action is Action.CALL:
            frame.pending = step
            self._enter(stack, callees[0], operands, step)
        elif action is Action.WHILE:
            frame.pending = step
            frame.carried = operands[0]
            frame.in_condition = True
            self._enter(stack, callees[1], operands, step)
        elif action is Action.CONDITIONAL:
            frame.pending = step
            branch = self._branch(operands[0], len(callees))
            self._enter(stack, callees[branch], [operands[1 + branch]], step)
        else:
            self._asynchronous(stack, step, operands)

    def _branch(self, selector: Value, count: int) -> int:
        """True takes branch 0; an index out of range takes the last branch."""
        chosen = self.scalar(selector)
        if isinstance(chosen, np.bool_ | bool):
            return 0 if chosen else 1
        index = int(chosen)
        return index if 0 <= index < count else count - 1

    def _returned(self, stack: list[Frame], result: Value) -> None:
        """Go on in the caller with the result of what it called."""
        frame = stack[-1]
        step = frame.pending
        assert step is not None
        if step.action is Action.WHILE:
            body, condition = step.instruction.called_computations
            if frame.in_condition:
                if self.scalar(result):
                    if self.context.turns is not None:
                        self.context.turns.take(step.instruction.name)
                    frame.in_condition = False
                    carried, frame.carried = frame.carried, None
                    self._enter(stack, body, [carried], step)
                    return
                result, frame.carried = frame.carried, None
            else:
                frame.carried = result
                frame.in_condition = True
                self._enter(stack, condition, [result], step)
                return
        elif step.action in _STARTS:
            operands, _, *contexts = frame.carried
            result, frame.carried = (operands, result, *contexts), None
        frame.pending = None
        if step.slot not in step.dead:
            frame.registers[step.slot] = result
        if step.action not in _STARTS:
            self.reached(step)

    # -- asynchronous operations -------------------------------------------------

    def _asynchronous(
        self, stack: list[Frame], step: Step, operands: Sequence[Value]
    ) -> None:
        frame = stack[-1]
        callee = step.instruction.called_computations[0]
        if step.action is Action.ASYNC_DONE:
            bound, result, *_ = operands[0]
            if result is not UNBOUND:
                frame.registers[step.slot] = result
                self.reached(step)
                return
            frame.pending = step
            self._enter(stack, callee, bound, step)
            return
        self.reached(step)
        if step.action is Action.ASYNC_START:
            chain = self._bind_start(step.instruction, operands)
        else:
            chain = _bind_update(operands[0], operands[1:])
        bound, result, *_ = chain
        complete = all(x is not UNBOUND for x in bound)
        if not complete or result is not UNBOUND or self.starts_late(step):
            frame.registers[step.slot] = chain
            return
        frame.pending = step
        frame.carried = chain
        self._enter(stack, callee, bound, step)

    def _bind_start(
        self, instruction: Instruction, operands: Sequence[Value]
    ) -> tuple[Value, ...]:
        """`(operands, result, contexts…)` with `UNBOUND` where nothing is known yet."""
        slots = instruction.shape.children[0].children
        contexts = len(instruction.shape.children) - 2
        if len(slots) == len(operands):
            bound = list(operands)
        else:
            rest = iter(operands)
            bound = [
                UNBOUND if s.is_tuple and not s.children else next(rest, UNBOUND)
                for s in slots
            ]
        return (tuple(bound), UNBOUND, *(None for _ in range(contexts)))


def _bind_update(chain: tuple[Value, ...], extra: Sequence[Value]) -> tuple[Value, ...]:
    bound, result, *contexts = chain
    rest = iter(extra)
    filled = tuple(next(rest, UNBOUND) if x is UNBOUND else x for x in bound)
    return (filled, result, *contexts)


def run_computation(
    computation: Computation, arguments: Sequence[Value], context: Context
) -> Value:
    """Run a computation that holds no collectives, on arrays."""
    run = Interpreter(context).run(computation, arguments)
    try:
        request = next(run)
    except StopIteration as stop:
        return stop.value
    raise ExecutionError(
        f"{request.instruction.opcode} inside an embedded computation",
        where=request.instruction.name,
    )
