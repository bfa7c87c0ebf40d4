"""Running whole modules, on one or several simulated devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from msa.errors import ExecutionError, shown
from msa.hlo.arguments import expect
from msa.hlo.module import Module
from msa.hlo.shape import Shape
from msa.runtime.evaluator.channels import Channels, meets_channel
from msa.runtime.evaluator.collectives import Exchange, Request, Topology, exchange
from msa.runtime.evaluator.context import (
    Context,
    CustomCall,
    ElidedConstant,
    LoopTurns,
    Mover,
)
from msa.runtime.evaluator.freed_memory import keep_freed_memory
from msa.runtime.evaluator.interpreter import Interpreter, Run
from msa.runtime.evaluator.values import Value, coerce, map_leaves


def execute(
    module: Module,
    inputs: Sequence[Any],
    *,
    per_device: bool = False,
    custom_calls: Mapping[str, CustomCall] | None = None,
    elided: ElidedConstant | None = None,
    stand_in: CustomCall | None = None,
    exchange: Exchange = exchange,
    mover: Mover | None = None,
    turns: LoopTurns | None = None,
) -> Any:
    """Run a module on numpy arrays: the reference meaning of a module.

    Args:
        module: scheduled or not; it is not changed.
        inputs: one value per entry parameter: an array, or a tuple of values. With
            `per_device` one such sequence per device
            (`replica_count * num_partitions` of them).
        per_device: give every device inputs of its own and return a list with the
            output of each. Otherwise all devices get the same inputs and the output
            of device 0 is returned.
        custom_calls: handlers by target; each takes the instruction and returns a
            function of the operand arrays. They go before the built-in ones.
        elided: makes the contents of constants that text left out, from the
            instruction and the shape of the array; without it they are an error.
        stand_in: handler for custom calls that have no other.
        exchange: moves the data of a collective among the members of a group; plain
            numpy by default, `msa.runtime.collective.mapped.MappedExchange` goes
            through mapped memory.
        mover: moves the data of asynchronous copies between memories, such as
            `msa.runtime.host.offload.HostCopies`; plain values by default.
        turns: counts, and may limit, the turns that loops take.

    Returns:
        The root's value; tuples are tuples, tokens None. `bf16` and narrower floats
        are float32 arrays with values of that type; sub-byte integers take the 8-bit
        type of their sign; `pred` is bool.

    Raises:
        ExecutionError: wrong inputs, or the module cannot be run to its end.
        UnsupportedError: an opcode or a form of it that cannot be executed
            (`subject` names the opcode).

    Sums are taken in float32 for narrower floats and rounded once. Cost: one numpy
    call or a few per instruction; dots use BLAS.

    >>> import msa
    >>> text = "ENTRY e { x = s32[2] parameter(0) ROOT y = s32[2] add(x, x) }"
    >>> msa.execute(msa.parse(text), [[1, 2]]).tolist()
    [2, 4]
    """
    expect(
        module,
        Module,
        where="execute",
        what="a Module",
        hint="msa.parse(text)",
        error=ExecutionError,
    )
    topology = Topology(module.replica_count, module.num_partitions)
    runs = []
    for device, values in enumerate(arguments_of(module, inputs, per_device)):
        context = Context(
            device,
            topology.partitions,
            custom_calls or {},
            elided,
            stand_in,
            mover=mover,
            turns=turns,
        )
        runs.append(Interpreter(context).run(module.entry, values))
    results = drive(runs, topology, exchange)
    outputs = [finish(module.entry.root.shape, result) for result in results]
    return outputs if per_device else outputs[0]


def arguments_of(module: Module, inputs: Any, per_device: bool) -> list[list[Value]]:
    """Inputs as values of the entry's parameters, for each device.

    Raises:
        ExecutionError: they do not fit the parameters, or the number of devices.
    """
    count = module.replica_count * module.num_partitions
    if not per_device:
        return [_coerce_arguments(module, inputs)] * count
    _require_sequence(module, inputs, "inputs for each device")
    if len(inputs) != count:
        raise ExecutionError(
            f"{module.name} runs on {count} devices, inputs were given for {len(inputs)}",
            where=module.name,
        )
    return [_coerce_arguments(module, arguments) for arguments in inputs]


def _require_sequence(module: Module, inputs: Any, what: str) -> None:
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Sequence | np.ndarray):
        raise ExecutionError(
            f"takes a list of {what}, not {shown(inputs)}", where=module.name
        )


def _coerce_arguments(module: Module, inputs: Any) -> list[Value]:
    _require_sequence(module, inputs, "inputs, one per parameter")
    parameters = module.entry.parameters
    if len(inputs) != len(parameters):
        raise ExecutionError(
            f"{module.name} takes {len(parameters)} inputs, got {len(inputs)}",
            where=module.name,
        )
    return [
        coerce(p.shape, value, p.name)
        for p, value in zip(parameters, inputs, strict=True)
    ]


def finish(shape: Shape, value: Value) -> Value:
    """A result whose arrays own their memory."""

    def leaf(index: tuple[int, ...], _: Shape) -> Value:
        item = value
        for i in index:
            item = item[i]
        return None if item is None else np.array(item, order="C")

    return map_leaves(shape, leaf)


def drive(
    runs: Sequence[Run], topology: Topology, exchange: Exchange = exchange
) -> list[Value]:
    """Run devices in lock step until all are done.

    Each device runs up to a collective; when all members of a group have arrived at
    the same one, data is exchanged and they go on. Messages are left in channels and
    waited for there.

    Raises:
        ExecutionError: devices wait for each other at different places.
    """
    keep_freed_memory()
    results: list[Value] = [None] * len(runs)
    waiting: dict[int, Request] = {}
    channels = Channels(topology)
    ready: list[tuple[int, Value]] = [(device, None) for device in range(len(runs))]
    with np.errstate(all="ignore"):
        while ready or waiting:
            for device, message in ready:
                try:
                    waiting[device] = runs[device].send(message)
                except StopIteration as stop:
                    results[device] = stop.value
            ready = _exchange_ready(waiting, topology, exchange, channels)
            if waiting and not ready:
                _deadlock(waiting)
    return results


def _exchange_ready(
    waiting: dict[int, Request],
    topology: Topology,
    exchange: Exchange,
    channels: Channels,
) -> list[tuple[int, Value]]:
    ready: list[tuple[int, Value]] = []
    for device in sorted(waiting):
        request = waiting.get(device)
        if request is None:
            continue
        instruction = request.instruction
        if meets_channel(instruction):
            served = channels.serve(instruction, device, request.operands)
            if served is not None:
                del waiting[device]
                ready.append((device, served[0]))
            continue
        group = topology.group_of(instruction, device)
        if any(
            member not in waiting
            or waiting[member].instruction.name != instruction.name
            for member in group
        ):
            continue
        operands = [waiting.pop(member).operands for member in group]
        results = exchange(instruction, group, operands, topology)
        ready.extend(zip(group, results, strict=True))
    return ready


def _deadlock(waiting: Mapping[int, Request]) -> None:
    places = ", ".join(
        f"device {d} at {r.instruction.name}" for d, r in sorted(waiting.items())
    )
    raise ExecutionError(f"devices wait for each other: {places}")
