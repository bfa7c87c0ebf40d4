"""The error tree: every failure that a user can cause is an `MsaError`.

Each error says what went wrong, where, and what to try. The numbers behind the
sentence are attributes, so that tools do not have to parse messages. All errors
are picklable: they cross process pools unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class MsaError(Exception):
    """Root of all errors that this library raises on purpose.

    Attributes:
        message: what went wrong, without place or advice.
        where: the place in the user's terms (`"line 3:7"`, `"step 12, dot.4"`).
        hint: what to try, or an empty string.

    >>> str(MsaError("does not fit", where="step 3", hint="raise the capacity"))
    'step 3: does not fit (try: raise the capacity)'
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message = message
        self.where = where
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        if not self.hint:
            return text
        # A question is not something to try.
        asks = self.hint.endswith("?")
        return f"{text}; {self.hint}" if asks else f"{text} (try: {self.hint})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(
    kind: type[MsaError], args: tuple[Any, ...], state: dict[str, Any]
) -> MsaError:
    error = kind.__new__(kind)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


def shown(value: Any) -> str:
    """The value as a short piece of text, whatever it is.

    >>> shown(4.5), shown("x" * 100)[:5], "cannot be shown" in shown(10**5000)
    ('4.5', "'xxxx", True)
    """
    try:
        text = repr(value)
    except Exception as failure:  # a number too long to print, or a broken class
        return f"{type(value).__name__} that cannot be shown ({failure})"
    return text if len(text) <= 60 else f"{text[:57]}..."


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The hint for an unknown name: the nearest known one, or how to find others.

    Args:
        name: what was given.
        known: what there is.
        otherwise: the hint if nothing is near.

    >>> did_you_mean("tpu_v5", ["tpu_v5e", "h100"])
    "did you mean 'tpu_v5e'?"
    >>> did_you_mean("H100", ["tpu_v5e", "h100"])
    "did you mean 'h100'?"
    >>> did_you_mean("zzz", ["tpu_v5e", "h100"], "list them")
    'list them'
    """
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1, 0.4)
    if not close:
        folded = {one.casefold(): one for one in names}
        near = difflib.get_close_matches(name.casefold(), folded, 1, 0.4)
        close = [folded[one] for one in near]
    return f"did you mean {close[0]!r}?" if close else otherwise


class UnitError(MsaError):
    """A quantity such as `"16MiB"` could not be read.

    >>> from msa.units import parse_bytes
    >>> parse_bytes("16 apples")
    Traceback (most recent call last):
    ...
    msa.errors.UnitError: cannot read '16 apples' as a size in bytes (try: a form such as '16MiB')
    """


class TargetError(MsaError):
    """A machine description is unknown, incomplete or contradictory.

    >>> import msa
    >>> msa.Target.preset("tpu_v5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    msa.errors.TargetError: unknown target 'tpu_v5'; known: ...
    """


class OptionsError(MsaError):
    """Options are out of range or exclude each other; the message names both.

    >>> import msa
    >>> try:
    ...     msa.Options(strategy="magic")
    ... except OptionsError as error:
    ...     "strategy" in str(error)
    True
    """


class FileFormatError(MsaError):
    """A file is not in the format that it claims to be in.

    >>> import msa
    >>> msa.load("/nowhere/module.hlo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    msa.errors.FileFormatError: /nowhere/module.hlo: there is no folder /nowhere; ...
    """


class HloError(MsaError):
    """Anything wrong with a module.

    >>> issubclass(HloParseError, HloError), issubclass(ScheduleError, HloError)
    (True, True)
    """


_WINDOW = 160
"""Longest piece of a source line that an error shows."""


def _caret(source_line: str, column: int, window_start: int) -> str:
    """The source line with a caret under the column, below a message."""
    if not source_line:
        return ""
    return f"\n{source_line}\n{' ' * max(0, column - 1 - window_start)}^"


def _window(source_line: str, column: int) -> tuple[str, int]:
    """A long line cut around the column, and where the piece starts."""
    if len(source_line) <= _WINDOW:
        return source_line, 0
    start = max(0, column - _WINDOW // 2)
    return source_line[start:][:_WINDOW], start


class HloParseError(HloError):
    """HLO text could not be read.

    Attributes:
        line, column: place of the offending text, from 1.
        source_line: the line of text (cut to a window around the column when long).
        expected: what the reader wanted there, or an empty string.
        nearest: the known name closest to the unknown one, or an empty string.

    >>> import msa
    >>> try:
    ...     msa.parse("ENTRY e { ROOT p = f32[4] paramater(0) }")
    ... except HloParseError as error:
    ...     error.line, error.column, error.nearest
    (1, 27, 'parameter')
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        expected: str = "",
        nearest: str = "",
        hint: str = "",
    ) -> None:
        self.line = line
        self.column = column
        self.source_line, self.window_start = _window(source_line, column)
        self.expected = expected
        self.nearest = nearest
        if nearest and not hint:
            hint = f"did you mean {nearest!r}?"
        where = f"{line}:{column}" if line else ""
        super().__init__(message, where=where, hint=hint)

    def __str__(self) -> str:
        return super().__str__() + _caret(
            self.source_line, self.column, self.window_start
        )


class ShapeInferenceError(HloError):
    """Operands, attributes and result of an operation do not fit together.

    Attributes:
        opcode: the operation.
    """

    def __init__(self, message: str, *, opcode: str = "", hint: str = "") -> None:
        self.opcode = opcode
        super().__init__(message, where=opcode, hint=hint)


class HloVerifyError(HloError):
    """A module breaks rules of the IR; `violations` lists every one as text.

    Attributes:
        line, column, source_line: place of the first violation that has one, from 1,
            when the module was just read from text; 0 and empty otherwise.

    >>> HloVerifyError(["entry: no root"]).violations
    ['entry: no root']
    """

    def __init__(
        self,
        violations: list[str],
        *,
        hint: str = "",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
    ) -> None:
        self.violations = list(violations)
        self.line = line
        self.column = column
        self.source_line, self.window_start = _window(source_line, column)
        count = len(self.violations)
        shown = "\n  ".join(self.violations[:20])
        more = f"\n  … and {count - 20} more" if count > 20 else ""
        noun = "violation" if count == 1 else "violations"
        super().__init__(f"{count} {noun}:\n  {shown}{more}", hint=hint)

    def __str__(self) -> str:
        return super().__str__() + _caret(
            self.source_line, self.column, self.window_start
        )


class ScheduleError(HloError):
    """A schedule is missing, incomplete or not topological.

    >>> import msa
    >>> module = msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }")
    >>> msa.simulate(module, msa.Target.preset("tpu_v5e"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    msa.errors.ScheduleError: ... (try: msa.schedule(module) makes one)
    """


class UnsupportedError(MsaError):
    """Something legal that is not supported; `subject` names it (an opcode …).

    >>> UnsupportedError("needs matplotlib", subject="matplotlib").subject
    'matplotlib'
    """

    def __init__(
        self, message: str, *, subject: str = "", where: str = "", hint: str = ""
    ) -> None:
        self.subject = subject
        super().__init__(message, where=where, hint=hint)


class CapacityError(MsaError):
    """Buffers that must be live together do not fit.

    Attributes:
        step: the crowded step (schedule step or packing time).
        needed, capacity, over: bytes; `over == needed - capacity`.
        live: rows `(name, bytes)` of the live set, largest first.

    >>> import msa
    >>> try:
    ...     msa.pack([("a", 0, 2, 6), ("b", 1, 3, 5)], capacity=10)
    ... except CapacityError as error:
    ...     error.step, error.needed, error.over, error.live
    (1, 11, 1, [('a', 6), ('b', 5)])
    """

    def __init__(
        self,
        message: str,
        *,
        step: int = -1,
        needed: int = 0,
        capacity: int = 0,
        live: list[tuple[str, int]] | None = None,
        where: str = "",
        hint: str = "",
    ) -> None:
        self.step = step
        self.needed = needed
        self.capacity = capacity
        self.over = needed - capacity
        self.live = list(live or [])
        super().__init__(message, where=where, hint=hint)


class PackingError(MsaError):
    """Buffers to pack are malformed or contradict each other (pins that overlap)."""


class UnknownBufferError(PackingError, KeyError):
    """A plan is asked for a buffer that it does not hold.

    >>> issubclass(UnknownBufferError, KeyError)
    True
    """


class PlanError(MsaError):
    """A plan breaks a rule: overlap, missing copy, read from the wrong place.

    Attributes:
        rule: short name of the rule that is broken first, or an empty string.
        numbers: the figures behind the message (steps, offsets, bytes …), by name.
        violations: every broken rule as text, the first one included.
        rows: the same in parts: rule, what is wrong, where, figures by name.

    >>> str(PlanError("overlaps b{}", where="step 3, a{}"))
    'step 3, a{}: overlaps b{}'
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        numbers: dict[str, int] | None = None,
        violations: list[str] | None = None,
        rows: Sequence[tuple[str, str, str, dict[str, int]]] = (),
        where: str = "",
        hint: str = "",
    ) -> None:
        self.rule = rule
        self.numbers = dict(numbers or {})
        self.violations = list(violations or [message])
        self.rows = list(rows) or [
            (rule, x, where, self.numbers) for x in self.violations
        ]
        super().__init__(message, where=where, hint=hint)


class ExecutionError(MsaError):
    """A module or a piece of work could not be executed, or two executions differ.

    >>> issubclass(SanitizerError, ExecutionError)
    True
    """


class SanitizerError(ExecutionError):
    """The simulated machine saw an illegal access (use after free, in flight …).

    Attributes:
        kind: what rule was broken:

            * `use after free`: read after the end of the value's planned life;
            * `use after overwrite`: read when something else lies there;
            * `uninitialised read`: read before anything was written;
            * `read of in-flight destination`, `write to in-flight source` or
              `destination`: access while a copy is under way;
            * `unfinished copy`: nobody waited for a copy;
            * `overlap`, `in-place hazard`, `misplaced slice`: a result on top of what
              its own instruction reads, or slices that are not side by side;
            * `read-only`: write to an input or a constant;
            * `out of bounds`, `no address`, `split storage`: a place that cannot be,
              seen before anything runs.
        step: instructions executed before this one; of a place that cannot be, the
            instruction's place in the schedule of its computation.
        instruction: name of the instruction that made the access.
        space: memory space of the address.
        address, size: the bytes accessed.
        parties: names of the two values (or memories, or instructions) involved, the
            accessed one first.

    >>> str(SanitizerError("b reads a", kind="use after free", step=3, instruction="b"))
    'step 3, b: use after free: b reads a'
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        step: int = -1,
        instruction: str = "",
        space: int = 0,
        address: int = 0,
        size: int = 0,
        parties: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        self.kind = kind
        self.step = step
        self.instruction = instruction
        self.space = space
        self.address = address
        self.size = size
        self.parties = parties
        where = f"step {step}, {instruction}" if instruction else ""
        super().__init__(
            f"{kind}: {message}" if kind else message, where=where, hint=hint
        )


class RuntimeMemoryError(MsaError):
    """Device, host or collective memory was misused.

    >>> issubclass(RuntimeMemoryError, MsaError)
    True
    """


class InternalError(MsaError):
    """An invariant of this library is broken: please report it.

    >>> str(InternalError("the ledger is out of step", hint="please report it"))
    'the ledger is out of step (try: please report it)'
    """
