"""What one plan does differently from another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from msa.files import write_text
from msa.report.capture import PlanCapture
from msa.report.stays import Stays, anchors_of, stays_of, tell_apart
from msa.report.tables import format_table
from msa.units import format_bytes, format_seconds

SCHEMA: Final = "msa.diff/1"

COLUMNS: Final = ("value", "bytes", "first", "second", "saves more", "why slow")
"""Heads of the table of changes."""

_FIGURES: Final = (
    "module",
    "target",
    "strategy",
    "alternate_memory_bytes",
    "alternate_peak_bytes",
    "estimate",
)
"""What the JSON of a difference says of each plan."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value that the plans treat differently.

    Attributes:
        value: `name{index}`.
        bytes: its size.
        before, after: where it lives: the ways into fast memory with their counts,
            or `slow`; where these are the same, also what differs (addresses, or
            between which instructions it is copied and kept). Never equal.
        before_seconds, after_seconds: what fast memory saves for it in each plan.
        before_reason, after_reason: why it is in slow memory all the time, an
            `msa.Reason`; empty where it is not, or where nobody knows.
    """

    value: str
    bytes: int
    before: str
    after: str
    before_seconds: float
    after_seconds: float
    before_reason: str = ""
    after_reason: str = ""

    @property
    def seconds(self) -> float:
        """Seconds that the second plan saves more (negative: less)."""
        return self.after_seconds - self.before_seconds

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """One row of a table under `COLUMNS`."""
        return (
            self.value,
            format_bytes(self.bytes),
            self.before,
            self.after,
            f"{'+' if self.seconds > 0 else ''}{signed(self.seconds)}",
            (self.before_reason or self.after_reason).replace("_", " "),
        )


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """The difference of two plans; true if there is one, prints as text.

    Attributes:
        before, after: captures of the two plans.
        figures: rows (name, before, after) of the figures that differ.
        changes: values treated differently, largest change of seconds first.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> bool(plan.diff(plan))
    False
    """

    before: PlanCapture
    after: PlanCapture
    figures: tuple[tuple[str, str, str], ...]
    changes: tuple[ValueChange, ...]

    def __bool__(self) -> bool:
        return bool(self.figures or self.changes)

    def to_text(self, rows: int = 30) -> str:
        """Figures, then the `rows` largest changes."""
        if not self:
            return "The plans are the same."
        parts = []
        if self.figures:
            parts.append(
                format_table(("", "first", "second"), self.figures, right={1, 2})
            )
        if self.changes:
            body = [change.cells() for change in self.changes[:rows]]
            parts.append(format_table(COLUMNS, body, right={1, 4}))
        if len(self.changes) > rows:
            parts.append(f"… and {len(self.changes) - rows} more values")
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the figures of both plans, then all changes."""
        plans = {
            side: {key: plan[key] for key in _FIGURES}
            for side, plan in (("before", self.before), ("after", self.after))
        }
        return {
            "schema": SCHEMA,
            "same": not self,
            **plans,
            "figures": [list(row) for row in self.figures],
            "changes": [{**asdict(c), "seconds": c.seconds} for c in self.changes],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON; also written to `path` if given.

        Raises:
            FileFormatError: `path` cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        return write_text(text + "\n", path)

    def html(self, path: str | Path | None = None) -> str:
        """One self-contained page with both maps; written to `path` if given."""
        from msa.report.diff_page import diff_page

        return write_text(diff_page(self), path)

    def __str__(self) -> str:
        return self.to_text()


def signed(seconds: float) -> str:
    """A duration that may be negative."""
    return f"−{format_seconds(-seconds)}" if seconds < 0 else format_seconds(seconds)


def compare(before: PlanCapture, after: PlanCapture) -> PlanDiff:
    """The difference of two captured plans. Linear in their buffers.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> from msa.report import capture_plan
    >>> compare(capture_plan(plan), capture_plan(plan)).changes
    ()
    """
    anchors = anchors_of(before, after)
    first, second = stays_of(before, anchors), stays_of(after, anchors)
    reasons = [
        {row["value"]: row.get("code", "") for row in plan["losses"]}
        for plan in (before, after)
    ]
    changes = []
    for value in {**first, **second}:
        left, right = first.get(value), second.get(value)
        texts = _differ(left, right)
        known = left or right
        if texts is None or known is None:
            continue
        changes.append(
            ValueChange(
                value,
                known.bytes,
                *texts,
                left.seconds if left else 0.0,
                right.seconds if right else 0.0,
                "" if left else reasons[0].get(value, ""),
                "" if right else reasons[1].get(value, ""),
            )
        )
    changes.sort(key=lambda c: (-abs(c.seconds), c.value))
    return PlanDiff(before, after, _figures(before, after), tuple(changes))


def _differ(left: Stays | None, right: Stays | None) -> tuple[str, str] | None:
    """What either plan does with a value, or None if both do the same.

    A value that lies and moves as before is not listed, even if it now saves more or
    less because other operands of its readers have moved.
    """
    one, two = left.text if left else "slow", right.text if right else "slow"
    if one != two:
        return one, two
    if left is None or right is None:
        return None
    texts = tell_apart(left, right)
    return texts if texts[0] != texts[1] else None


def _figures(
    before: PlanCapture, after: PlanCapture
) -> tuple[tuple[str, str, str], ...]:
    rows: list[tuple[str, str, str]] = []

    def add(name: str, left: str, right: str) -> None:
        if left != right:
            rows.append((name, left, right))

    add("module", before["module"], after["module"])
    add("target", str(before["target"]["name"]), str(after["target"]["name"]))
    add("strategy", before["strategy"], after["strategy"])
    for name, key in (
        ("fast memory", "alternate_memory_bytes"),
        ("fast memory used", "alternate_peak_bytes"),
    ):
        add(name, format_bytes(before[key]), format_bytes(after[key]))  # type: ignore[literal-required]
    for name, key in (
        ("all in slow memory", "before_seconds"),
        ("with the plan", "after_seconds"),
        ("waiting for copies", "copy_stall_seconds"),
        ("lower bound", "lower_bound_seconds"),
    ):
        left, right = before["estimate"][key], after["estimate"][key]
        add(name, format_seconds(left), format_seconds(right))
    add("copies", str(len(before["copies"])), str(len(after["copies"])))
    return tuple(rows)
