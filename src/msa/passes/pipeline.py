"""Passes in a row, written as text: `"dce,cse,schedule{algorithm=list}"`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msa.analysis.manager import AnalysisManager
from msa.errors import HloVerifyError, InternalError, MsaError, OptionsError, shown
from msa.hlo import verify
from msa.hlo.module import Module
from msa.passes.arguments import module_of
from msa.passes.base import Pass
from msa.passes.registry import make_pass

Progress = Callable[[str, int, int], None]

_ITEM: Final = re.compile(
    r"\s*(?P<name>[\w-]+)\s*(?:\{(?P<options>[^{}]*)\})?\s*(?P<end>,|$)"
)


_FORM: Final = 'a form such as "dce,cse,schedule{algorithm=list}"'


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What a pass did: whether it changed anything, and how long it took, seconds."""

    name: str
    changed: bool
    seconds: float
    instructions_before: int
    instructions_after: int


@dataclass(slots=True)
class Pipeline:
    """Passes that run one after another on a clone of the module.

    Parameters:
        passes: text such as `"a,b{x=1,y=true}"`, or passes.
        verify_each: verify the module before the first and after every pass.
        steps: the passes, read.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[4] parameter(0)
    ...   unused = f32[4] negate(x)
    ...   ROOT y = f32[4] add(x, x)
    ... }''')
    >>> pipeline = Pipeline("dce")
    >>> pipeline.run(module).instruction_count, module.instruction_count
    (2, 3)
    """

    passes: Sequence[Pass] | str
    verify_each: bool = True
    records: list[PassRecord] = field(default_factory=list)
    steps: tuple[Pass, ...] = field(init=False)

    def __post_init__(self) -> None:
        given = self.passes
        if isinstance(given, str):
            self.steps = parse_pipeline(given)
            return
        self.steps = tuple(given) if isinstance(given, Iterable) else ()
        wrong = [
            one
            for one in self.steps
            if isinstance(one, type) or not isinstance(one, Pass)
        ]
        if wrong or not isinstance(given, Iterable):
            raise OptionsError(
                f"a pipeline is text or passes, not {shown(wrong or given)}",
                hint=_FORM,
            )

    def run(self, module: Module, *, progress: Progress | None = None) -> Module:
        """The changed module; `module` itself stays as it is.

        Raises:
            HloVerifyError: the input breaks a rule of the IR.
            InternalError: a pass broke one (the pass and the rule are named).
        """
        module = module_of(module, "Pipeline.run")
        self.records.clear()
        result = module.clone()
        if self.verify_each:
            verify(result)
        analyses = AnalysisManager(result)
        for number, one in enumerate(self.steps):
            if progress is not None:
                progress(one.name, number, len(self.steps))
            before, start = result.instruction_count, time.perf_counter()
            changed = one.apply(result, analyses)
            seconds = time.perf_counter() - start
            self.records.append(
                PassRecord(one.name, changed, seconds, before, result.instruction_count)
            )
            if changed:
                analyses.invalidate()
            self._verify(result, one.name)
        return result

    def _verify(self, module: Module, name: str) -> None:
        if not self.verify_each:
            return
        try:
            verify(module)
        except HloVerifyError as error:
            raise InternalError(
                f"the pass {name!r} broke the module: {error.violations[0]}",
                hint="please report it with the module",
            ) from error


def parse_pipeline(text: str) -> tuple[Pass, ...]:
    """Passes from text; an empty text is an empty pipeline.

    Raises:
        OptionsError: the text cannot be read, or names an unknown pass or option.

    >>> parse_pipeline("schedule{algorithm=dfs}")
    (ScheduleModule(algorithm='dfs'),)
    """
    passes: list[Pass] = []
    place = 0
    while text[place:].strip():
        match = _ITEM.match(text, place)
        if match is None or match.end() == place:
            raise OptionsError(
                f"cannot read the pipeline at {text[place : place + 20]!r}",
                where=f"column {place + 1}",
                hint=_FORM,
            )
        try:
            made = make_pass(match["name"], _options(match["options"] or ""))
        except MsaError as error:
            column = match.start("name") + 1
            raise OptionsError(
                error.message,
                where=f"column {column}",
                hint=error.hint or _FORM,
            ) from error
        passes.append(made)
        place = match.end()
        if match["end"] == "," and not text[place:].strip():
            raise OptionsError(
                "the pipeline ends with a comma", where=f"column {place}", hint=_FORM
            )
    return tuple(passes)


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in text.split(",") if text.strip() else ():
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not key:
            raise OptionsError(f"an option has no name in {{{text}}}")
        if key in options:
            raise OptionsError(f"the option {key!r} is given twice")
        options[key] = _value(value.strip()) if equals else True
    return options


def _value(text: str) -> Any:
    """An option's value: true, false, a number, or text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
