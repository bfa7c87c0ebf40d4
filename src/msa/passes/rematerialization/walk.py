"""Acting on one computation: the choices of a step, carried out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.rematerialization.cloning import Cloner
from msa.passes.rematerialization.compress import compress
from msa.passes.rematerialization.costs import ComputeTimes
from msa.passes.rematerialization.items import Item
from msa.passes.rematerialization.offload import offload
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.recompute import move, recompute
from msa.passes.rematerialization.result import Action
from msa.passes.rematerialization.selection import Choice, Selection
from msa.passes.rematerialization.storage import carried_by
from msa.passes.rematerialization.tracker import MemoryTracker, called_peak, peak_of

Descent = Generator[tuple[Computation, int], bool, bool]
"""Work on a computation: it asks for callees to be brought below limits, is told
whether they changed, and returns whether anything changed."""


def follow(
    start: Callable[[Computation, int], Descent], entry: tuple[Computation, int]
) -> bool:
    """Run descents to the end, without a stack frame for every level of calls."""
    stack = [start(*entry)]
    answer: bool | None = None
    while True:
        try:
            asked = stack[-1].send(answer)  # type: ignore[arg-type]  # None starts it
        except StopIteration as stop:
            stack.pop()
            answer = bool(stop.value)
            if not stack:
                return answer
        else:
            stack.append(start(*asked))
            answer = None


@dataclass(slots=True)
class Session:
    """What one run over a module shares.

    Attributes:
        module: edited in place.
        options: what may be done.
        peaks: most bytes live, per scheduled computation.
        cloner: makes new instructions.
        times: seconds to hide copies behind.
        is_late: whether too much time has been spent.
        bodies: of loops.
        done: computations that were walked.
        moved: instructions that run later than before.
        actions, warnings: so far.
    """

    module: Module
    options: RematerializationOptions
    peaks: dict[Computation, int]
    cloner: Cloner
    times: ComputeTimes
    is_late: Callable[[], bool]
    bodies: frozenset[Computation]
    done: set[Computation] = field(default_factory=set)
    moved: set[Instruction] = field(default_factory=set)
    actions: list[Action] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def warn_once(self, text: str) -> None:
        """Add a warning unless it was given before."""
        if text not in self.warnings:
            self.warnings.append(text)

    def warn_if_late(self) -> None:
        """Say once that more than `max_seconds` was spent."""
        if self.is_late():
            self.warn_once(
                f"rematerialization takes too long: over {self.options.max_seconds:g} s"
            )

    def callee_peak(self, instruction: Instruction) -> int:
        """Most bytes live in what an instruction runs."""
        return called_peak(instruction, self.peaks)


class Walk:
    """A walk along one computation, with actions at steps over a limit.

    Attributes:
        changed: whether an action was carried out.
        recomputed: originals of clones, in order.
    """

    __slots__ = (
        "changed",
        "computation",
        "recomputed",
        "selection",
        "session",
        "tracker",
    )

    def __init__(self, session: Session, computation: Computation) -> None:
        self.session = session
        self.computation = computation
        carried = carried_by(computation, computation in session.bodies)
        self.tracker = MemoryTracker(computation, session.options, carried)
        self.selection = Selection(
            self.tracker, session.options, session.peaks[computation], session.times
        )
        self.changed = False
        self.recomputed: list[Instruction] = []

    def usage(self, item: Item) -> int:
        """Bytes live at the current item, its callees included."""
        return self.tracker.usage + self.session.callee_peak(item.instruction)

    def act(self, choice: Choice, item: Item) -> None:
        """Carry out a choice at the current item."""
        session, tracker = self.session, self.tracker
        before = tracker.usage
        names = tuple(x.instruction.name for x in choice.block)
        single = choice.block[0]
        if choice.strategy == "recompute":
            made = recompute(tracker, choice.block, session.cloner, session.options)
            added = [x.instruction for x in made]
            self.recomputed += [x.instruction for x in choice.block]
        elif choice.strategy == "move":
            move(tracker, single)
            session.moved.add(single.instruction)
            added = []
        elif choice.strategy == "compress":
            added = compress(tracker, single, session.cloner, session.options)
        else:
            added = offload(
                tracker,
                single,
                session.cloner,
                session.options,
                session.times,
                session.warnings,
            )
        self.changed = True
        session.actions.append(
            Action(
                choice.strategy,
                self.computation.name,
                names,
                tuple(x.name for x in added),
                item.instruction.name,
                choice.cost,
                choice.saved,
                before,
                tracker.usage,
            )
        )

    def callees_over(self, item: Item, limit: int) -> Iterator[Computation]:
        """Callees of the current item not walked yet, while it is over the limit."""
        session = self.session
        if not session.callee_peak(item.instruction):
            return
        for callee in item.instruction.called_computations:
            waiting = callee in session.peaks and callee not in session.done
            if waiting and self.usage(item) > limit:
                yield callee

    def finish(self) -> None:
        """Write the new sequence into the module and measure it again."""
        session = self.session
        if self.changed:
            schedule = session.module.schedule
            assert schedule is not None
            held = set(self.computation.instructions)
            sequence = [x for x in self.tracker.items.sequence() if x in held]
            schedule.set_sequence(self.computation, sequence)
            self.computation.instructions[:] = sequence
        peak, _ = peak_of(self.computation, session.options, session.peaks)
        session.peaks[self.computation] = peak
