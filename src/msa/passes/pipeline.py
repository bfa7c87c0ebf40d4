"""Passes in a row, written as text: `"dce,cse,schedule{algorithm=list}"`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msa.analysis.manager import AnalysisManager
from msa.errors import HloVerifyError, InternalError, OptionsError
from msa.hlo import verify
from msa.hlo.module import Module
from msa.passes.base import Pass
from msa.passes.registry import make_pass

Progress = Callable[[str, int, int], None]

_ITEM: Final = re.compile(
    r"\s*(?P<name>[\w-]+)\s*(?:\{(?P<options>[^{}]*)\})?\s*(?P<end>,|$)"
)


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
        self.steps = parse_pipeline(given) if isinstance(given, str) else tuple(given)

    def run(self, module: Module, *, progress: Progress | None = None) -> Module:
        """The changed module; `module` itself stays as it is.

        Raises:
            HloVerifyError: the input breaks a rule of the IR.
            InternalError: a pass broke one (the pass and the rule are named).
        """
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
                hint='a form such as "dce,cse,schedule{algorithm=list}"',
            )
        passes.append(make_pass(match["name"], _options(match["options"] or "")))
        place = match.end()
        if match["end"] == "," and not text[place:].strip():
            raise OptionsError("the pipeline ends with a comma")
    return tuple(passes)


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        options[key.strip()] = _value(value.strip()) if equals else True
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
