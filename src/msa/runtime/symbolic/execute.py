"""Running modules on symbols: the reference, and the machine."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.collectives import Operands, Topology
from msa.runtime.evaluator.context import Context, LoopTurns
from msa.runtime.evaluator.execute import drive
from msa.runtime.evaluator.interpreter import Run
from msa.runtime.evaluator.values import Value, map_leaves
from msa.runtime.machine.machine import place_arguments
from msa.runtime.machine.placement import Placement
from msa.runtime.machine.spaces import Spaces
from msa.runtime.proving.inputs import random_array, seed_of
from msa.runtime.symbolic.device import SymbolicDevice
from msa.runtime.symbolic.digests import OperationDigests, digest
from msa.runtime.symbolic.interpreter import SymbolicInterpreter
from msa.runtime.symbolic.symbols import SMALL, Symbol, SymbolCodec, SymbolTable

_LARGEST_UNIT: Final = 4096
_LIMIT: Final = 1 << 50


def symbolic_inputs(module: Module, seed: int) -> list[Value]:
    """Random small arrays, and symbols for large ones, per entry parameter."""

    def value(number: int, shape: Shape) -> Value:
        def leaf(index: ShapeIndex, node: Shape) -> Value:
            if not node.is_array:
                return None
            drawn = seed_of(seed, "input", number, index)
            if node.element_count > SMALL:
                return Symbol(drawn)
            return random_array(node.as_array, drawn)

        return map_leaves(shape, leaf)

    return [value(i, p.shape) for i, p in enumerate(module.entry.parameters)]


def execute_symbolic(
    module: Module, inputs: Sequence[Value], turns: LoopTurns | None = None
) -> Value:
    """The reference run: output of device 0; `turns` as for `msa.execute`."""
    topology = Topology(module.replica_count, module.num_partitions)
    table = SymbolTable()
    digests = OperationDigests()
    runs: list[Run] = []
    for number in range(topology.devices):
        context = Context(number, topology.partitions, turns=turns)
        interpreter = SymbolicInterpreter(context, table, digests)
        runs.append(interpreter.run(module.entry, list(inputs)))
    return drive(runs, topology, _Exchange(table, digests))[0]


def run_symbolic(
    module: Module,
    inputs: Sequence[Value],
    placement: Placement,
    *,
    alternate_bytes: int,
    seed: int,
    timing: str | None,
    scratch: Mapping[str, tuple[int, int]],
    turns: LoopTurns | None = None,
) -> Value:
    """A run on the machine: output of device 0; arguments as for `Machine.run`.

    Raises:
        SanitizerError: an illegal access.
    """
    topology = Topology(module.replica_count, module.num_partitions)
    table = SymbolTable()
    unit = unit_of(placement, scratch)
    devices = []
    runs = []
    for number in range(topology.devices):
        chance = random.Random(seed * 1000003 + number)
        spaces = Spaces(
            placement,
            alternate_bytes=alternate_bytes,
            default_limit=_LIMIT,
            codec=SymbolCodec(table, unit),
            chance=chance,
            timing=timing,
        )
        context = Context(number, topology.partitions, turns=turns)
        device = SymbolicDevice(
            context, spaces, table, chance=chance, timing=timing, scratch=scratch
        )
        devices.append(device)
        runs.append(device.run(module.entry, place_arguments(device, module, inputs)))
    results = drive(runs, topology, _Exchange(table, OperationDigests()))
    for device in devices:
        device.spaces.finish()
    return devices[0].contents(results[0])


def unit_of(placement: Placement, scratch: Mapping[str, tuple[int, int]]) -> int:
    """The largest power of two that divides all planned offsets, within reason."""
    offsets = [offset for offset, _ in (*placement.planned.values(), *scratch.values())]
    divisor = math.gcd(*offsets)
    return min(_LARGEST_UNIT, divisor & -divisor) if divisor else _LARGEST_UNIT


class _Exchange:
    """What members of a group receive: a symbol of what all of them sent."""

    __slots__ = ("_digests", "_table")

    def __init__(self, table: SymbolTable, digests: OperationDigests) -> None:
        self._table = table
        self._digests = digests

    def __call__(
        self,
        instruction: Instruction,
        group: Sequence[int],
        operands: Sequence[Operands],
        topology: Topology,
    ) -> list[Any]:
        del topology
        sent = [
            self._table.token_of(operand.shape, value)
            for given in operands
            for operand, value in zip(instruction.operands, given, strict=True)
        ]
        base = digest(self._digests.of(instruction), *sent)
        results = []
        for place in range(len(group)):

            def leaf(index: ShapeIndex, shape: Shape, place: int = place) -> Value:
                if not shape.is_array:
                    return None
                return Symbol(digest(base, place, *index))

            results.append(map_leaves(instruction.shape, leaf))
        return results
