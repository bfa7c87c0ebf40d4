"""How the values of a captured plan come into fast memory, comparable between plans.

Steps of two planned modules are not comparable: each has copies of its own. A stay is
therefore anchored at instructions that both modules have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msa.report.capture import PlanCapture

#: What a stay is compared by: name of the aspect → where it is.
Aspects = Mapping[str, str]

_SHOWN: Final = 2
"""Aspects that one cell shows; how many more differ is said."""


@dataclass(slots=True)
class Stays:
    """All stays of one value in fast memory, and what they save together.

    Attributes:
        bytes: size of the value.
        ways: how often each way into fast memory is taken.
        stays: the aspects of each stay, in order of time.
        seconds: what fast memory saves for the value.
    """

    bytes: int
    ways: dict[str, int] = field(default_factory=dict)
    stays: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The ways with their counts."""
        return ", ".join(
            f"{n}× {kind}" if n > 1 else kind for kind, n in self.ways.items()
        )


def stays_of(capture: PlanCapture, anchors: frozenset[str]) -> dict[str, Stays]:
    """`name{index}` → the stays of a plan. Linear.

    Args:
        capture: of the plan.
        anchors: instructions that may be named: those that both plans have.
    """
    before, after = _anchored(capture["steps"]["names"], anchors)
    found: dict[str, Stays] = {}
    counted: set[str] = set()
    rows = sorted(capture["buffers"], key=lambda row: (row["start"], row["offset"]))
    for row in rows:
        mine = found.setdefault(row["value"], Stays(row["size"]))
        mine.ways[row["kind"]] = mine.ways.get(row["kind"], 0) + 1
        if row["name"] not in counted:
            counted.add(row["name"])
            mine.seconds += row["seconds"]
        aspects = {"at": str(row["offset"])}
        if row["copy_in"] >= 0:
            copy = capture["copies"][row["copy_in"]]
            aspects["copy starts after"] = before[copy["start_step"]]
            aspects["copy finished before"] = after[copy["done_step"]]
        else:
            aspects["from"] = after[row["start"]]
        aspects["until"] = before[max(row["start"], row["end"] - 1)]
        mine.stays.append(aspects)
    for copy in capture["copies"]:
        if copy["kind"] == "eviction" and copy["value"] in found:
            mine = found[copy["value"]]
            mine.ways["eviction"] = mine.ways.get("eviction", 0) + 1
            mine.stays.append(
                {
                    "eviction starts after": before[copy["start_step"]],
                    "eviction finished before": after[copy["done_step"]],
                }
            )
    return found


def anchors_of(before: PlanCapture, after: PlanCapture) -> frozenset[str]:
    """Instructions of both planned modules, without the copies that the plans made."""
    made = {
        name
        for capture in (before, after)
        for copy in capture["copies"]
        for name in (copy["start"], copy["done"])
    }
    names = set(before["steps"]["names"]) & set(after["steps"]["names"])
    return frozenset(names - made)


def _anchored(
    names: Sequence[str], anchors: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Per step: the last anchor at or before it, and the first at or after it."""
    before: list[str] = []
    last = "the start"
    for name in names:
        last = name if name in anchors else last
        before.append(last)
    after: list[str] = []
    last = "the end"
    for name in reversed(names):
        last = name if name in anchors else last
        after.append(last)
    after.reverse()
    return before, after


def tell_apart(left: Stays, right: Stays) -> tuple[str, str]:
    """Words for two stays that come by the same ways: what differs, on either side.

    Empty if nothing does.
    """
    for number, (one, two) in enumerate(zip(left.stays, right.stays, strict=True)):
        differing = [key for key in one if one[key] != two.get(key, "")]
        if differing:
            name = f", stay {number + 1}" if len(left.stays) > 1 else ""
            rest = len(differing) - _SHOWN
            more = f" (and {rest} more)" if rest > 0 else ""
            return (
                _tell(left.text + name, one, differing) + more,
                _tell(right.text + name, two, differing) + more,
            )
    return "", ""


def _tell(text: str, aspects: Aspects, differing: Sequence[str]) -> str:
    parts = [f"{key} {aspects.get(key, '-')}" for key in differing[:_SHOWN]]
    return f"{text}: {', '.join(parts)}"
