"""Settings of a run of the whole flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msa.assignment import Options
from msa.errors import OptionsError, shown
from msa.passes.arguments import one_of
from msa.passes.binding import BindingOptions


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What the stages do.

    Attributes:
        assignment: of the placement in fast memory.
        binding: of values to memories.
        memory_limit_bytes: of default memory: rematerialize to fit; text such as
            `"16GiB"` is read. None for no limit.
        rematerialization: more settings for that stage (see
            `msa.passes.RematerializationOptions`).
        automatic_host_compute: see `msa.passes.offload_to_host`.
        temporary_space: where temporaries of default memory are counted apart (2 on
            GPUs); None for not at all.
        space_limit: bytes that a memory space may hold, by its number; what is not
            positive leaves the platform's own capacity in force.
        processes: process of each device, for memory that several devices share;
            one process by default.
        prove: execute the module as it came and as it leaves, and compare.
        fail_fast: raise at the first violation instead of listing all.
        seed: of the inputs of the proof.
    """

    assignment: Options = field(default_factory=Options)
    binding: BindingOptions = field(default_factory=BindingOptions)
    memory_limit_bytes: int | str | None = None
    rematerialization: dict[str, Any] = field(default_factory=dict)
    automatic_host_compute: bool = True
    temporary_space: int | None = None
    space_limit: Callable[[int], int] | None = None
    processes: tuple[int, ...] = ()
    prove: bool = True
    fail_fast: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.assignment, Options, "PipelineOptions.assignment")
        one_of(self.binding, BindingOptions, "PipelineOptions.binding")
        settings = self.rematerialization
        if not isinstance(settings, dict) or not all(
            isinstance(n, str) for n in settings
        ):
            raise OptionsError(
                f"rematerialization is a dict of settings, not {shown(settings)}"
            )
        if self.space_limit is not None and not callable(self.space_limit):
            raise OptionsError(
                f"space_limit is a function of a memory space, not "
                f"{shown(self.space_limit)}",
                hint="space_limit={5: 1 << 30}.get, with 0 for the others",
            )
        space = self.temporary_space
        if space is not None and not isinstance(space, int):
            raise OptionsError(f"temporary_space is a number, not {shown(space)}")
        if not isinstance(self.processes, tuple) or not all(
            isinstance(p, int) for p in self.processes
        ):
            raise OptionsError(
                f"processes is a tuple of numbers, one per device, not "
                f"{shown(self.processes)}"
            )
