"""What rematerialization did."""

from __future__ import annotations

from dataclasses import dataclass

from msa.errors import CapacityError
from msa.hlo.module import Module
from msa.passes.rematerialization.floor import Floor


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that was done.

    Attributes:
        strategy: `recompute`, `move` (run once, but later), `compress` or `offload`.
        computation: where.
        block: names of the instructions.
        added: names of what was inserted for them.
        step: the instruction over the limit.
        cost: limit over saving; 0 for a move.
        saved_bytes: what left that step.
        usage_before, usage_after: bytes live at the step.
    """

    strategy: str
    computation: str
    block: tuple[str, ...]
    added: tuple[str, ...]
    step: str
    cost: int
    saved_bytes: int
    usage_before: int
    usage_after: int

    def __str__(self) -> str:
        return (
            f"{self.strategy} {', '.join(self.block)} at {self.step}: "
            f"{self.usage_before} -> {self.usage_after} bytes"
        )


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of a module, loops counted as often as they are known to run.

    Attributes:
        flops, transcendentals: operations.
        bytes_accessed: bytes read and written.
        host_bytes: bytes copied to the host and back.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes_accessed: float = 0.0
    host_bytes: int = 0

    def __sub__(self, other: Work) -> Work:
        return Work(
            self.flops - other.flops,
            self.transcendentals - other.transcendentals,
            self.bytes_accessed - other.bytes_accessed,
            self.host_bytes - other.host_bytes,
        )


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """The result of `rematerialize`.

    Attributes:
        module: the changed module (a copy of the given one when nothing changed).
        changed: whether anything was done.
        limit_bytes: what was asked for.
        before_bytes, after_bytes: most bytes live, results included, arguments not.
        floor: what no choice of actions can go below.
        actions: what was done, in order.
        before: work of the module as given.
        added: work that came on top.
        timeline_before, timeline_after: bytes live at each step of the entry,
            results included.
        warnings: as text.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.passes import rematerialize
    >>> result = rematerialize(module, "1MiB")
    >>> result.changed, result.after_bytes <= result.limit_bytes
    (False, True)
    """

    module: Module
    changed: bool
    limit_bytes: int
    before_bytes: int
    after_bytes: int
    floor: Floor
    actions: tuple[Action, ...]
    before: Work
    added: Work
    timeline_before: tuple[int, ...]
    timeline_after: tuple[int, ...]
    warnings: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the new peak is within the limit."""
        return self.after_bytes <= self.limit_bytes

    @property
    def infeasible(self) -> bool:
        """Whether the limit is below what any choice of actions needs."""
        return self.floor.bytes > self.limit_bytes

    def shortfall(self) -> str:
        """Why the result does not fit, in a sentence; empty when it does."""
        if self.fits:
            return ""
        floor = self.floor
        share = f"{100 * floor.bytes / max(1, self.before_bytes):.1f} % of the peak"
        if self.infeasible:
            return (
                f"infeasible: {floor.bytes} bytes ({share} before) are live at "
                f"{floor.instruction} whatever is done, {self.limit_bytes} are allowed:"
            )
        return (
            f"over the limit by {self.after_bytes - self.limit_bytes} bytes; the lowest "
            f"that is not ruled out is {floor.bytes} ({share} before), at "
            f"{floor.instruction}:"
        )

    def require(self) -> Module:
        """The module, if it fits.

        Raises:
            CapacityError: it does not; the largest values in the way are listed.
        """
        if self.fits:
            return self.module
        rows = [(b.name, b.bytes) for b in self.floor.blockers]
        why = (
            f"no choice of actions needs less than {self.floor.bytes}"
            if self.infeasible
            else f"a lower bound is {self.floor.bytes}"
        )
        raise CapacityError(
            f"{self.after_bytes} bytes are live at the peak, {self.limit_bytes} are "
            f"allowed; {why}",
            needed=self.after_bytes,
            capacity=self.limit_bytes,
            live=rows,
            where=self.floor.instruction,
            hint="raise the limit, or shorten the life of the values listed in live",
        )

    def summary(self) -> str:
        """A few lines for people."""
        added = self.added
        peak = (
            f"peak {self.before_bytes} -> {self.after_bytes} bytes, limit "
            f"{self.limit_bytes}, floor {self.floor.bytes} at {self.floor.instruction}"
        )
        work = (
            f"{len(self.actions)} actions; added {added.flops:g} flops, "
            f"{added.transcendentals:g} transcendentals, "
            f"{added.bytes_accessed:g} bytes accessed, "
            f"{added.host_bytes} bytes over the host link"
        )
        lines = [peak, work]
        if not self.fits:
            lines.append(self.shortfall())
            lines += [f"  {blocker}" for blocker in self.floor.blockers[:8]]
            rest = self.floor.blockers[8:]
            if rest:
                total = sum(blocker.bytes for blocker in rest)
                lines.append(f"  and {len(rest)} more: {total} bytes")
        return "\n".join([*lines, *self.warnings])
