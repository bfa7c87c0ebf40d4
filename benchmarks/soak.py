"""Random modules, planned by both strategies and proved by execution.

    python -m benchmarks.soak FIRST LAST [--size 16] [--vector 1024]

Each seed gives a module (its size varies around `--size`), a capacity from hardly
anything to everything, and for each strategy a copy timing and a machine seed. A line
is printed for every failure, with the smallest module found that fails the same way
(`--trials 0` leaves that out), and a summary at the end; the exit code is 1 if anything
failed.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass

import msa
from msa.runtime.proving.prove import prove_lowered
from msa.testing import RandomModuleOptions, random_module, shrink

STRATEGIES = ("greedy", "search")
TIMINGS = ("late", "eager", "random", None)
SEARCH_EFFORT = 3
"""Evaluations per capacity: enough for plans that greedy does not find, and quick."""


@dataclass(frozen=True)
class Trial:
    """One way to plan and prove a module."""

    target: msa.Target
    strategy: str
    timing: str | None
    seed: int

    def run(self, module: msa.Module) -> msa.Assignment:
        """Plan, verify and prove; raises whatever is wrong."""
        options = msa.Options(strategy=self.strategy, effort=SEARCH_EFFORT)  # type: ignore[arg-type]
        plan = msa.assign(module, self.target, options)
        plan.verify()
        prove_lowered(
            plan.original,
            plan.module,
            plan.target,
            chunks=plan.chunks,
            scratch=plan.scoped_chunks,
            seed=self.seed,
            timings=[self.timing],
            capacity=plan.problem.machine.capacity,
        )
        return plan

    def __str__(self) -> str:
        return f"{self.strategy} {self.timing or 'mixed'}"


@dataclass(frozen=True)
class Failure:
    """A module that could not be planned or proved, and how."""

    module: msa.Module
    trial: Trial
    error: Exception

    def smallest(self, trials: int) -> msa.Module:
        """The smallest module found that fails the same way."""
        return shrink(self.module, self._fails, trials=trials)

    def _fails(self, module: msa.Module) -> bool:
        try:
            self.trial.run(module)
        except Exception as error:
            return _kind(error) == _kind(self.error)
        return False


def _kind(error: Exception) -> tuple[type[Exception], str]:
    return type(error), getattr(error, "rule", "")


def check(
    seed: int,
    size: int,
    vector: int,
    counts: Counter[str],
    kinds: RandomModuleOptions | None = None,
) -> list[Failure]:
    """Plan and prove one module with both strategies; returns what went wrong."""
    chance = random.Random(seed)
    module = random_module(
        seed,
        size=chance.randrange(size // 2, size * 2),
        vector=chance.choice([vector // 16, vector // 4, vector]),
        options=kinds,
    )
    arrays = [
        leaf.byte_size()
        for instruction in module.entry.instructions
        for _, leaf in instruction.shape.leaves()
        if leaf.is_array
    ]
    largest = max(arrays)
    bytes_ = chance.choice([largest, 2 * largest, 4 * largest, 8 * largest, 1 << 24])
    target = msa.Target.preset("tpu_v5e").replace(
        alternate_memory_bytes=-(-bytes_ // 1024) * 1024
    )
    wrong: list[Failure] = []
    for strategy in STRATEGIES:
        timing = chance.choice(TIMINGS)
        trial = Trial(target, strategy, timing, chance.randrange(1 << 30))
        try:
            plan = trial.run(module)
        except Exception as error:
            wrong.append(Failure(module, trial, error))
            continue
        counts["plans"] += 1
        counts["copies"] += len(plan.copies)
        counts["plans with copies"] += bool(plan.copies)
        counts["plans using fast memory"] += plan.alternate_peak_bytes > 0
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, help="not included")
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--vector", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=300, help="to shrink a failure")
    options = parser.parse_args()
    start = time.process_time()
    counts: Counter[str] = Counter()
    failures = 0
    for seed in range(options.first, options.last):
        for failure in check(seed, options.size, options.vector, counts):
            failures += 1
            error = failure.error
            print(f"seed {seed} {failure.trial}: {type(error).__name__}: {error}")
            if options.trials:
                print(failure.smallest(options.trials).to_text(), flush=True)
    print(
        f"seeds {options.first}..{options.last - 1}, size {options.size}, vector "
        f"{options.vector}: {failures} failures; "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + f"; {time.process_time() - start:.0f} s of CPU",
        flush=True,
    )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
