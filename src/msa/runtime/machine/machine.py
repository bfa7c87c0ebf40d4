"""The simulated machine: modules executed on byte-addressed memories."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from msa.errors import ExecutionError
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.collectives import Topology
from msa.runtime.evaluator.context import (
    Context,
    CustomCall,
    ElidedConstant,
    LoopTurns,
)
from msa.runtime.evaluator.execute import arguments_of, drive
from msa.runtime.evaluator.interpreter import Run
from msa.runtime.evaluator.values import Value, map_leaves
from msa.runtime.machine.device import Device
from msa.runtime.machine.in_place import in_place_pairs
from msa.runtime.machine.memory import ALTERNATE, ByteCodec
from msa.runtime.machine.placement import Chunks, Placement
from msa.runtime.machine.spaces import Spaces
from msa.runtime.machine.storage_sets import PairsOf, position_text
from msa.runtime.machine.transfers import TIMINGS

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.target import Target

DEFAULT_LIMIT: Final = 8 << 30
"""Bytes of simulated default memory unless stated otherwise."""


class Machine:
    """A machine with a default and an alternate memory, and a copy engine.

    Args:
        target: its alternate memory's size is taken from here.
        seed: decides copy timings and everything else left open.
        timing: `eager`, `late` or `random` for all copies; None draws one of the
            three for each copy.
        default_limit: bytes of default memory that may be simulated.
        in_place: the rule which results share storage with which operands; tests
            replace it to force bad plans.
        alternate_space: number of the memory space that the plan manages.

    Every array lives at an address: in the alternate memory where the plan says,
    elsewhere where the buffer assignment says (where there is none, see
    `msa.runtime.machine.assigned`, the machine finds room), one buffer for all
    positions that must share storage. In-place operations overwrite their operand. A copy lands in
    pieces between its start and its done, and reads its source when it lands.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { x = s32[2] parameter(0)
    ...   ROOT y = s32[2] add(x, x) }''')
    >>> machine = Machine(msa.Target.preset("tpu_v5e"), seed=1)
    >>> machine.run(module, [[1, 2]]).tolist()
    [2, 4]
    """

    def __init__(
        self,
        target: Target,
        *,
        seed: int = 0,
        timing: str | None = None,
        default_limit: int = DEFAULT_LIMIT,
        in_place: PairsOf = in_place_pairs,
        alternate_space: int = ALTERNATE,
    ) -> None:
        if timing is not None and timing not in TIMINGS:
            raise ExecutionError(
                f"unknown timing {timing!r}", hint=f"one of {', '.join(TIMINGS)}"
            )
        expect(
            seed,
            int,
            where="Machine",
            what="a whole number as seed",
            error=ExecutionError,
        )
        self.target = target
        self.seed = seed
        self.timing = timing
        self.default_limit = default_limit
        self.in_place = in_place
        self.alternate_space = alternate_space

    def run(
        self,
        module: Module,
        inputs: Sequence[Any],
        *,
        chunks: Chunks | None = None,
        scratch: Mapping[str, tuple[int, int]] | None = None,
        buffers: BufferAssignment | None = None,
        per_device: bool = False,
        custom_calls: Mapping[str, CustomCall] | None = None,
        elided: ElidedConstant | None = None,
        stand_in: CustomCall | None = None,
        turns: LoopTurns | None = None,
    ) -> Any:
        """Execute a scheduled module; the arguments are those of `msa.execute`.

        Args:
            module: a scheduled module, lowered or not.
            inputs: one value per entry parameter (per device with `per_device`).
            chunks: `name{index}` of defining positions -> (offset, size) in the
                alternate memory, as `Assignment.chunks`; without it the machine
                finds those addresses itself.
            scratch: instruction name -> (offset, size) that it may write to while
                it runs.
            buffers: addresses in the other memories; without it, those of
                `BufferAssignment.run` on the module.
            per_device: as in `msa.execute`.
            custom_calls: as in `msa.execute`.
            elided: as in `msa.execute`.
            stand_in: as in `msa.execute`.
            turns: as in `msa.execute`.

        Raises:
            SanitizerError: an illegal access, with step, instruction, addresses and
                the two values involved.
            ExecutionError: the module is not scheduled, or cannot be run.
            UnsupportedError: an opcode that cannot be executed.
        """
        expect(
            module,
            Module,
            where="Machine.run",
            what="a scheduled Module",
            hint="msa.parse(text)",
            error=ExecutionError,
        )
        if not module.is_scheduled:
            raise ExecutionError(
                f"{module.name} has no schedule", hint="msa.schedule(module) makes one"
            )
        placement = Placement(
            module,
            chunks,
            self.target.alternate_memory_bytes,
            self.in_place,
            self.alternate_space,
        )
        placement.assign(buffers)
        topology = Topology(module.replica_count, module.num_partitions)
        given = arguments_of(module, inputs, per_device)
        devices: list[Device] = []
        runs: list[Run] = []
        for number, arguments in enumerate(given):
            context = Context(
                number,
                topology.partitions,
                custom_calls or {},
                elided,
                stand_in,
                turns=turns,
            )
            chance = random.Random(self.seed * 1000003 + number)
            spaces = Spaces(
                placement,
                alternate_bytes=self.target.alternate_memory_bytes,
                default_limit=self.default_limit // topology.devices,
                codec=ByteCodec(),
                chance=chance,
                timing=self.timing,
            )
            device = Device(
                context,
                spaces,
                chance=chance,
                timing=self.timing,
                scratch=scratch or {},
            )
            devices.append(device)
            values = place_arguments(device, module, arguments)
            runs.append(device.run(module.entry, values))
            del values
        results = drive(runs, topology)
        for device in devices:
            device.spaces.finish()
        with np.errstate(all="ignore"):
            outputs = [
                device.contents(result)
                for device, result in zip(devices, results, strict=True)
            ]
        return outputs if per_device else outputs[0]


def place_arguments(
    device: Device, module: Module, arguments: Sequence[Value]
) -> list[Value]:
    """Inputs written to memory; those that no output may take over are read-only."""
    read_only = module.read_only_inputs()
    values = []
    for parameter, argument in zip(module.entry.parameters, arguments, strict=True):
        roots = dict(device.placement.leaf_sets(parameter))

        def leaf(
            index: ShapeIndex,
            shape: Shape,
            parameter: Any = parameter,
            argument: Any = argument,
            roots: dict[ShapeIndex, int] = roots,
        ) -> Value:
            if not shape.is_array:
                return None
            item = argument
            for i in index:
                item = item[i]
            name = position_text(parameter, index)
            reference = device.spaces.store(roots[index], shape, name, item, name)
            if (parameter, index) in read_only:
                device.spaces.protect(reference.life.block, "parameter")
            return reference

        values.append(map_leaves(parameter.shape, leaf))
    return values
