"""An explanation: text for people, rows for programs, a page for the browser."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from msa.assignment.finding import Finding
from msa.assignment.reason import Reason
from msa.files import write_text
from msa.units import format_seconds

SCHEMA: Final = "msa.explanation/1"

_WAYS: Final = {
    "stay": "to stay: ",
    "evict": "to stay and be copied out: ",
    "copy": "to be copied: ",
    "": "",
}


@dataclass(frozen=True, slots=True)
class Stay:
    """A value in one memory for a span of steps.

    Attributes:
        fast: whether it is in fast memory.
        start, end: inclusive steps.
        offset: in fast memory; -1 in slow memory.
        text: the same in words, with the way it came there.
        uses: `name:operand{index} (step n)` of what reads it there.
    """

    fast: bool
    start: int
    end: int
    offset: int
    text: str
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlowUse:
    """Uses by one instruction that read slow memory, and why.

    Attributes:
        uses: `name:operand{index}`.
        step: of the instruction.
        findings: what stands in the way, a finding for each way into fast memory; the
            first matters most.
    """

    uses: tuple[str, ...]
    step: int
    findings: tuple[Finding, ...]

    @property
    def reason(self) -> Reason:
        """That of the first finding."""
        return self.findings[0].reason

    @property
    def told(self) -> str:
        """The reasons in words; which way they are about, if there are several."""
        if len(self.findings) == 1:
            return self.findings[0].sentence
        return "; ".join(f"{_WAYS[f.way]}{f.sentence}" for f in self.findings)

    def lines(self) -> list[str]:
        """In words: a line, and indented ones below it."""
        what, verb = ", ".join(self.uses), "reads" if len(self.uses) == 1 else "read"
        saved = max(f.seconds for f in self.findings)
        worth = f" (fast memory would save {format_seconds(saved)})" if saved else ""
        lines = [f"{what} (step {self.step}) {verb} slow memory{worth}: {self.told}"]
        told = (line for finding in self.findings for line in finding.lines())
        return lines + [f"  {line}" for line in dict.fromkeys(told)]


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """One value: where it is, and why not elsewhere.

    Attributes:
        value: `name{index}`.
        bytes: its size.
        start, end: inclusive steps in which it is live.
        stays: where it is, by start; none if it is in slow memory all the time and
            nothing was decided.
        reason: why it is where it is: of the whole, or of the first use in `slow`.
        sentence: the same in words.
        slow: uses that read slow memory.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> (value,) = plan.explain("n").values
    >>> value.reason.value, [stay.fast for stay in value.stays], value.slow
    ('fast', [True], ())
    """

    value: str
    bytes: int
    start: int
    end: int
    stays: tuple[Stay, ...]
    reason: Reason
    sentence: str
    slow: tuple[SlowUse, ...]


class Explanation(str):
    """Text that explains values; the same as data and as a page.

    Attributes:
        question: `explain` or `why_not`.
        name: what was asked for.
        module, target: names of both.
        values: what is explained.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan.explain("c").values[0].reason
    <Reason.RESULT: 'result'>
    >>> sorted(plan.why_not("c").to_dict())
    ['module', 'name', 'question', 'schema', 'target', 'text', 'values']
    """

    question: Literal["explain", "why_not"]
    name: str
    module: str
    target: str
    values: tuple[ExplainedValue, ...]

    @classmethod
    def of(
        cls,
        text: str,
        question: Literal["explain", "why_not"],
        name: str,
        module: str,
        target: str,
        values: tuple[ExplainedValue, ...],
    ) -> Explanation:
        """Text with what it was made of."""
        made = cls(text)
        made.question, made.name = question, name
        made.module, made.target = module, target
        made.values = values
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "schema": SCHEMA,
            "question": self.question,
            "name": self.name,
            "module": self.module,
            "target": self.target,
            "values": [
                {
                    **asdict(value),
                    "slow": [
                        {**asdict(use), "reason": use.reason} for use in value.slow
                    ],
                }
                for value in self.values
            ],
            "text": str(self),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON; also written to `path` if given.

        Raises:
            FileFormatError: `path` cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        return write_text(text + "\n", path)

    def html(self, path: str | Path | None = None) -> str:
        """One self-contained page; also written to `path` if given.

        Raises:
            FileFormatError: `path` cannot be written.
        """
        from msa.report import explanation_html

        return explanation_html(self, path)
