"""A meeting of threads: all come, one computes, all get the result, or a timeout.

Source: `xla/service/rendezvous.h`.
"""

from __future__ import annotations

import faulthandler
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from msa.errors import shown
from msa.runtime.arguments import callable_of, seconds, whole
from msa.runtime.status import InvalidArgument, RendezvousError, RendezvousTimeout

T = TypeVar("T")
R = TypeVar("R")
_LOG = logging.getLogger("msa.runtime")
_POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class StuckRecord:
    """A waiter waited longer than its warning time.

    `everyone_arrived` tells the two cases apart; `resolved` marks the record of a
    false alarm, written when the rendezvous completed after all.

    >>> StuckRecord("sum", 0, 0.5, 2, 1, everyone_arrived=False).resolved
    False
    """

    name: str
    participant: int
    waited_seconds: float
    expected: int
    arrived: int
    everyone_arrived: bool
    resolved: bool = False


class _State:
    """One round. Everything is guarded by `condition`."""

    __slots__ = (
        "condition", "done", "error", "expected", "inside", "mismatch", "names",
        "poison", "result", "values",
    )  # fmt: skip

    def __init__(self, expected: int) -> None:
        self.condition = threading.Condition()
        self.expected = expected
        self.values: list[Any] = []
        self.names: list[str] = []
        self.inside = 0
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.poison: RendezvousTimeout | None = None
        self.mismatch = False


class Rendezvous:
    """A table of meetings; threads meet under equal (domain, key).

    Rules:
        * The last arriver is the leader: it runs the function on all values in order
          of arrival. Everyone gets the same result object, or the same exception.
        * The key is free for the next round as soon as the result is published, even
          before waiters wake.
        * A waiter that passes its deadline poisons the round: every waiter, and
          whoever arrives before they have left, gets `RendezvousTimeout`.

    >>> Rendezvous().join("sum", "key", 1, sum, 42)
    42
    """

    __slots__ = ("_clock", "_lock", "_running", "_table", "records")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._table: dict[tuple[str, Hashable], _State] = {}
        self._running: dict[tuple[str, Hashable], _State] = {}
        self.records: list[StuckRecord] = []

    def join(
        self,
        name: str,
        key: Hashable,
        num_threads: int,
        function: Callable[[list[T]], R],
        value: T = None,  # type: ignore[assignment]
        *,
        domain: str = "",
        participant: str = "",
        participants: Sequence[str] = (),
        warn_timeout: float | None = None,
        terminate_timeout: float | None = None,
    ) -> R:
        """Meet `num_threads - 1` other threads and return the common result.

        Parameters:
            name: for messages.
            key, domain: who meets whom; different domains never meet.
            function: called once with all values in order of arrival.
            participant: this thread's name; `participants`: the names of all, so
                that a timeout can tell who is missing.
            warn_timeout: seconds until a stuck record, None for never.
            terminate_timeout: further seconds until the timeout, None for never.

        Raises:
            RendezvousError: more arrivals than expected, or unequal `num_threads`.
            RendezvousTimeout: not complete in time.
            InvalidArgument: no count of threads, no timeouts, a key without hash.
        """
        num_threads = whole(
            num_threads, "Rendezvous.join", "the number of threads", least=1
        )
        callable_of(function, "Rendezvous.join", "the function")
        try:
            hash(key)
        except TypeError:
            raise InvalidArgument(
                f"takes a key that can be hashed, not {shown(key)}",
                where="Rendezvous.join",
            ) from None
        warn_timeout = seconds(warn_timeout, "Rendezvous.join", "warn_timeout")
        terminate_timeout = seconds(
            terminate_timeout, "Rendezvous.join", "terminate_timeout"
        )
        if num_threads == 1:
            return function([value])
        place = (domain, key)
        name_here = participant or threading.current_thread().name
        state, number = self._arrive(place, num_threads, value, name_here, name)
        if number == num_threads - 1 and not state.mismatch:
            return self._lead(place, state, function)
        result: R = self._wait(
            place,
            state,
            number,
            name,
            tuple(participants),
            warn_timeout,
            terminate_timeout,
        )
        return result

    def barrier(
        self, name: str, key: Hashable, num_threads: int, **options: Any
    ) -> None:
        """Wait until all are here (options as in `join`)."""
        self.join(name, key, num_threads, lambda _: None, **options)

    # -- the three roles -------------------------------------------------------

    def _arrive(
        self,
        place: tuple[str, Hashable],
        expected: int,
        value: Any,
        who: str,
        name: str,
    ) -> tuple[_State, int]:
        with self._lock:
            led = self._running.get(place)
            if led is not None:
                if led.poison is not None:
                    raise led.poison
                raise RendezvousError(
                    f"{who} arrived at {name!r}, where all {expected} are already met"
                )
            state = self._table.get(place)
            if state is None:
                state = self._table[place] = _State(expected)
            with state.condition:
                if state.poison is not None:
                    raise state.poison
                number = len(state.values)
                state.values.append(value)
                state.names.append(who)
                state.inside += 1
                if state.expected != expected or state.mismatch:
                    state.mismatch = True
                    state.error = RendezvousError(
                        f"participants of {name!r} expect different numbers of "
                        f"threads: {state.expected} and {expected}"
                    )
                    state.done = True
                    self._table.pop(place, None)
                    state.condition.notify_all()
                elif number == expected - 1:
                    del self._table[place]
                    self._running[place] = state
            return state, number

    def _lead(
        self,
        place: tuple[str, Hashable],
        state: _State,
        function: Callable[[list[Any]], R],
    ) -> R:
        error: BaseException | None = None
        result: Any = None
        try:
            result = function(state.values)
        except BaseException as caught:
            error = caught
        with self._lock:
            self._running.pop(place, None)
        with state.condition:
            state.result, state.error, state.done = result, error, True
            state.inside -= 1
            state.condition.notify_all()
            if state.poison is not None:
                raise state.poison
        if error is not None:
            raise error
        done: R = result
        return done

    def _wait(
        self,
        place: tuple[str, Hashable],
        state: _State,
        number: int,
        name: str,
        participants: tuple[str, ...],
        warn_timeout: float | None,
        terminate_timeout: float | None,
    ) -> Any:
        begin = self._clock()
        with state.condition:
            if not self._until_done(state, warn_timeout):
                self._record(state, name, number, begin, resolved=False)
                if self._until_done(state, terminate_timeout):
                    self._record(state, name, number, begin, resolved=True)
                else:
                    state.poison = self._timeout(state, name, participants)
                    state.condition.notify_all()
            poison = state.poison
            state.inside -= 1
            last = state.inside == 0
        if poison is not None:
            if last:
                with self._lock:
                    if self._table.get(place) is state:
                        del self._table[place]
            raise poison
        if state.error is not None:
            raise state.error
        return state.result

    def _until_done(self, state: _State, seconds: float | None) -> bool:
        """Wait for the result (or poison); False when the time is over."""
        deadline = None if seconds is None else self._clock() + seconds
        while not state.done and state.poison is None:
            if deadline is None:
                state.condition.wait()
                continue
            left = deadline - self._clock()
            if left <= 0:
                return False
            real = self._clock is time.monotonic
            state.condition.wait(left if real else min(left, _POLL_SECONDS))
        return True

    def _record(
        self, state: _State, name: str, number: int, begin: float, *, resolved: bool
    ) -> None:
        arrived = len(state.values)
        record = StuckRecord(
            name,
            number,
            self._clock() - begin,
            state.expected,
            arrived,
            arrived >= state.expected,
            resolved,
        )
        self.records.append(record)
        _LOG.warning("rendezvous %s: %s", "unstuck" if resolved else "stuck", record)

    def _timeout(
        self, state: _State, name: str, participants: tuple[str, ...]
    ) -> RendezvousTimeout:
        arrived = tuple(state.names)
        return RendezvousTimeout(
            name,
            arrived=len(arrived),
            expected=state.expected,
            arrived_names=arrived,
            missing_names=tuple(p for p in participants if p not in arrived),
            everyone_arrived=len(arrived) >= state.expected,
            stacks=_all_stacks(),
        )


def _all_stacks() -> str:
    """Where every thread is, most recent call first.

    Written by the interpreter itself: walking another thread's frames from Python
    while that thread runs is not safe. Empty when there is nowhere to write to: the
    timeout matters more.
    """
    try:
        with tempfile.TemporaryFile("w+", errors="replace") as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            text = file.read()
    except OSError:
        return ""
    for thread in threading.enumerate():
        if thread.ident is not None:
            text = text.replace(f"0x{thread.ident:016x}", thread.name)
    return text


class RendezvousFlag:
    """Lets a rendezvous happen at least once; later calls pass it by.

    The last of the participants that are inside at one time to leave marks it
    completed.

    >>> RendezvousFlag().completed
    False
    """

    __slots__ = ("_completed", "_inside", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._completed = False

    @property
    def completed(self) -> bool:
        """Whether later calls return at once."""
        with self._lock:
            return self._completed

    def try_join(self) -> bool:
        """Enter unless completed."""
        with self._lock:
            if self._completed:
                return False
            self._inside += 1
            return True

    def leave(self) -> None:
        """Leave; the last one out completes the flag."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._completed = True

    def join(self, table: Rendezvous, *arguments: Any, **options: Any) -> Any:
        """`table.join(…)` unless completed, in which case None."""
        if not self.try_join():
            return None
        try:
            return table.join(*arguments, **options)
        finally:
            self.leave()
