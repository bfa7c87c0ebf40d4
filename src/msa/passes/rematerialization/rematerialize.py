"""The public call, and the pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from msa.analysis.manager import AnalysisManager
from msa.errors import OptionsError
from msa.hlo.module import Module
from msa.passes.arguments import module_of
from msa.passes.copies import replace_contents
from msa.passes.rematerialization import driver
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.result import Rematerialization


def rematerialize(
    module: Module, memory_limit_bytes: int | str, **settings: Any
) -> Rematerialization:
    """Bring the bytes live along a schedule below a limit by doing work again.

    Values are computed again, kept in a compact layout, or parked on the host; the
    order of the given instructions stays. Bytes are those of logical buffers:
    results count from the start, arguments do not, and nothing is updated in place.
    Common-subexpression elimination afterwards would undo the work.

    Args:
        module: scheduled; not changed.
        memory_limit_bytes: bytes, or text such as `"16MiB"`.
        settings: fields of `RematerializationOptions`.

    Returns:
        the new module with what was done, what it costs, and whether it fits;
        `require` raises when it does not.

    Raises:
        ScheduleError: the module has no schedule.
        OptionsError: a setting is unknown or out of range.
        UnitError: the limit cannot be read.

    A walk is linear in the program, plus, at each step over the limit, an evaluation
    of each value that is live there.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e {
    ...   x = f32[] parameter(0)
    ...   wide = f32[1024] broadcast(x), dimensions={}
    ...   half = f32[1024] negate(wide)
    ...   both = f32[2048] concatenate(half, half), dimensions={0}
    ...   part = f32[1] slice(both), slice={[0:1]}
    ...   ROOT all = f32[1025] concatenate(wide, part), dimensions={0}
    ... }''')
    >>> result = rematerialize(module, "17KB")
    >>> result.before_bytes, result.after_bytes, result.fits
    (20484, 16388, True)
    >>> [action.block for action in result.actions], result.added.bytes_accessed
    ([('wide',)], 4100.0)
    """
    module = module_of(module, "rematerialize")
    try:
        options = RematerializationOptions(memory_limit_bytes, **settings)  # type: ignore[arg-type]
    except TypeError as error:
        raise OptionsError(f"settings of rematerialization: {error}") from None
    return driver.run(module, options)


@dataclass(frozen=True, slots=True)
class Rematerialize:
    """Rematerialization by recomputing, to `memory_limit`.

    Attributes:
        memory_limit: bytes, or text such as `16MiB`; by default what a TPU v5e has.
        algorithm, block_size_limit, stop_at_floor: see `RematerializationOptions`.
        required: raise when the result does not fit.
    """

    memory_limit: int | str = "16GiB"
    algorithm: str = "always"
    block_size_limit: int = 8
    required: bool = False
    stop_at_floor: bool = False
    name: ClassVar[str] = "rematerialize"

    def __post_init__(self) -> None:
        RematerializationOptions(
            self.memory_limit,  # type: ignore[arg-type]
            algorithm=self.algorithm,
            block_size_limit=self.block_size_limit,
            stop_at_floor=self.stop_at_floor,
        )

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        result = rematerialize(
            module,
            self.memory_limit,
            algorithm=self.algorithm,
            block_size_limit=self.block_size_limit,
            stop_at_floor=self.stop_at_floor,
        )
        if self.required:
            result.require()
        if result.changed:
            replace_contents(module, result.module)
        return result.changed
