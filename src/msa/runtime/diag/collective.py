"""Why a collective look-up found nothing, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from msa.runtime.collective.acquire import AcquireTrace
from msa.runtime.collective.allocations import (
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
)
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.requests import CollectiveMemoryRequests, Kind
from msa.runtime.status import RendezvousTimeout

What = int | AllocationSlice | DeviceAddress


@dataclass(frozen=True, slots=True)
class LookupDiagnosis:
    """Why something was not found.

    Attributes:
        step: `address`, `request`, `clique`, `offset`, `expired`, or `found`.
        message: one sentence with the figures.
        index, offset, size, bound: of the allocation, where known (else -1).
    """

    step: str
    message: str
    index: int = -1
    offset: int = -1
    size: int = -1
    bound: int = -1

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return self.message


def explain_lookup(
    buffers: BufferAllocations,
    requests: CollectiveMemoryRequests,
    kind: Kind,
    clique: CliqueKey,
    what: What,
    *,
    expired: bool = False,
) -> LookupDiagnosis:
    """Which step of a look-up fails.

    Args:
        buffers: of this rank; `requests`: what it asked for.
        kind: of memory; `clique`: that was looked in; `what`: that was looked for.
        expired: whether the clique was destroyed meanwhile.

    >>> buffers = BufferAllocations([DeviceAddress(4096, 64)])
    >>> requests = CollectiveMemoryRequests(buffers)
    >>> key = CliqueKey.local(0, 1)
    >>> print(explain_lookup(buffers, requests, Kind.PEER, key, DeviceAddress(4160, 8)))
    not inside any allocation; nearest: index 0, distance 1
    """
    index: int | None
    offset = 0
    if isinstance(what, DeviceAddress):
        index = buffers.find_index(what)
        if index is None:
            return LookupDiagnosis("address", _nearest(buffers, what))
        offset, size = what.opaque - buffers.address(index).opaque, what.size
    elif isinstance(what, AllocationSlice):
        index, offset, size = what.index, what.offset, what.size
    else:
        index, size = what, -1
    if not 0 <= index < len(buffers):
        return LookupDiagnosis(
            "address", f"allocation {index} of {len(buffers)} does not exist"
        )
    bound = buffers.address(index).size
    size = bound if size < 0 else size
    here = LookupDiagnosis("found", "found", index, offset, size, bound)
    if expired:
        return _as(here, "expired", f"the clique {clique} was destroyed meanwhile")
    asked = {r.clique: r.allocations for r in requests.ordered(kind)}
    if clique not in asked or index not in asked[clique]:
        return _unrequested(here, kind, clique, asked)
    if offset < 0 or offset + size > bound:
        base = buffers.address(index).opaque
        return _as(
            here,
            "offset",
            f"bytes [{offset}, {offset + size}) of allocation {index} at {base:#x} "
            f"leave its {bound} bytes",
        )
    return here


def _as(found: LookupDiagnosis, step: str, message: str) -> LookupDiagnosis:
    return LookupDiagnosis(
        step, message, found.index, found.offset, found.size, found.bound
    )


def _unrequested(
    found: LookupDiagnosis,
    kind: Kind,
    clique: CliqueKey,
    asked: Mapping[CliqueKey, Sequence[int]],
) -> LookupDiagnosis:
    others = [key for key, indices in asked.items() if found.index in indices]
    if others:
        differs = _difference(clique, others[0])
        return _as(
            found,
            "clique",
            f"allocation {found.index} was requested for {others[0]}, not {clique}: "
            f"{differs}",
        )
    mine = sorted(asked.get(clique, ()))
    return _as(
        found,
        "request",
        f"allocation {found.index} was not requested as {kind.value} memory of "
        f"{clique}; requested: {mine}",
    )


def _difference(a: CliqueKey, b: CliqueKey) -> str:
    """The first field in which two keys differ."""
    for name in a.__dataclass_fields__:
        mine, theirs = getattr(a, name), getattr(b, name)
        if mine != theirs:
            return f"{name} is {mine}, not {theirs}"
    return "equal keys"


def _nearest(buffers: BufferAllocations, what: DeviceAddress) -> str:
    rows = []
    for index in range(len(buffers)):
        base = buffers.address(index)
        if base.is_null:
            continue
        before = what.opaque < base.opaque
        distance = base.opaque - what.opaque if before else what.opaque - base.end + 1
        rows.append((distance, index))
    rows.sort()
    if not rows:
        return "not inside any allocation; there are none"
    near = "; then ".join(f"index {i}, distance {d}" for d, i in rows[:2])
    return f"not inside any allocation; nearest: {near}"


def explain_refusal(clique: CliqueKey, process_of: Mapping[int, int]) -> str:
    """Why multicast or peer memory is refused to a clique of several processes.

    >>> print(explain_refusal(CliqueKey.local(0, 1), {0: 0, 1: 7}).split("(")[1].split(")")[0])
    process 0: devices [0]; process 7: devices [1]
    """
    rows: dict[int, list[int]] = {}
    for device in clique.devices:
        rows.setdefault(process_of[device], []).append(device)
    shown = "; ".join(f"process {p}: devices {d}" for p, d in sorted(rows.items()))
    return f"{clique} spans {len(rows)} processes ({shown}); use symmetric memory"


# -- time-outs -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """A rank that waits: in which meeting, with whom, and for whom."""

    rank: str
    meeting: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimeoutDiagnosis:
    """Who waits for whom.

    Attributes:
        waiting: rows by rank.
        last_stages: last recorded stage of each missing rank.
        cycle: ranks that wait for each other, in order; empty if there is none.
    """

    waiting: tuple[Waiting, ...]
    last_stages: dict[str, str]
    cycle: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_text(self) -> str:
        """For a terminal; a cycle is shown with the meeting that each rank is in."""
        lines = [
            f"{w.rank} waits in {w.meeting} for {', '.join(w.missing)}"
            for w in self.waiting
        ]
        lines += [f"{rank} was last at {s}" for rank, s in self.last_stages.items()]
        if self.cycle:
            meetings = {w.rank: w.meeting for w in self.waiting}
            chain = " → ".join((*self.cycle, self.cycle[0]))
            lines.append(f"ordering deadlock: {chain}")
            lines += [f"  {rank} came to {meetings[rank]} first" for rank in self.cycle]
        return "\n".join(lines)


def explain_timeouts(
    timeouts: Mapping[str, RendezvousTimeout],
    traces: Mapping[str, AcquireTrace] | None = None,
) -> TimeoutDiagnosis:
    """Join the time-outs of several ranks.

    Args:
        timeouts: by the name of the rank that got them.
        traces: what ranks did, where it was recorded.

    >>> def late(rank, other):
    ...     return RendezvousTimeout("meeting of " + rank, arrived=1, expected=2,
    ...         arrived_names=(rank,), missing_names=(other,), everyone_arrived=False)
    >>> explain_timeouts({"a": late("a", "b"), "b": late("b", "a")}).cycle
    ('a', 'b')
    """
    waiting = tuple(
        Waiting(rank, error.name, error.missing_names)
        for rank, error in sorted(timeouts.items())
    )
    missing = sorted({name for w in waiting for name in w.missing})
    stages = {}
    for name in missing:
        trace = (traces or {}).get(name)
        if trace is not None:
            kind, key, _ = trace.events[-1] if trace.events else ("nothing", "", ())
            stages[name] = f"{kind} of {key}" if key else kind
    return TimeoutDiagnosis(waiting, stages, _cycle(waiting))


def _cycle(waiting: Sequence[Waiting]) -> tuple[str, ...]:
    """Ranks of which each waits for the next, found from the first."""
    edges = {w.rank: [m for m in w.missing if m != w.rank] for w in waiting}
    for start in edges:
        path = [start]
        choices = [iter(edges[start])]
        seen = {start}
        while path:
            following = next(choices[-1], None)
            if following is None:
                path.pop()
                choices.pop()
            elif following == start:
                return tuple(path)
            elif following in edges and following not in seen:
                seen.add(following)
                path.append(following)
                choices.append(iter(edges[following]))
    return ()
