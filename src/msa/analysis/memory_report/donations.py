"""Arguments that are given away, or could be, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.memory_report.model import Donation, DonationStatus
from msa.analysis.values import index_text

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.analysis.values import Value
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Alias
    from msa.hlo.shape import Shape, ShapeIndex


def find_donations(assignment: BufferAssignment) -> tuple[Donation, ...]:
    """Each donated argument, and each other argument that fits a free output.

    Near linear in the leaves of arguments and results.
    """
    found = _Finder(assignment).run()
    return tuple(sorted(found, key=lambda d: (-d.bytes, d.parameter, d.index)))


class _Finder:
    """Matches leaves of arguments with leaves of the result."""

    def __init__(self, assignment: BufferAssignment) -> None:
        self._assignment = assignment
        self._live = assignment.live
        self._flow = assignment.alias.dataflow
        module = assignment.module
        self._parameters = module.entry.parameters
        self._root = module.entry.root
        self._aliases = module.tied_inputs
        self._read_only = module.read_only_inputs(donors=True)
        taken = {a.output_index for a in module.aliases}
        # Outputs without an argument's storage, by shape, first output first.
        self._free: dict[Shape, list[ShapeIndex]] = {}
        for index, shape in self._root.shape.leaves():
            if index not in taken and shape.is_array:
                self._free.setdefault(shape, []).append(index)

    def run(self) -> list[Donation]:
        found = []
        plain: list[tuple[Instruction, ShapeIndex, Shape]] = []
        for parameter in self._parameters:
            for index, shape in parameter.shape.leaves():
                key = (parameter.parameter_number, index)
                if key in self._aliases:
                    found.append(self._aliased(parameter, index, self._aliases[key]))
                elif (parameter, index) not in self._read_only:
                    found.append(self._donor(parameter, index, shape))
                elif shape.is_array:
                    plain.append((parameter, index, shape))
        for parameter, index, shape in plain:
            row = self._possible(parameter, index, shape)
            if row is not None:
                found.append(row)
        return found

    def _row(
        self,
        parameter: Instruction,
        index: ShapeIndex,
        output: ShapeIndex | None,
        status: DonationStatus,
        reason: str,
    ) -> Donation:
        shape = parameter.shape.subshape(index)
        return Donation(
            argument=f"{parameter.name}{index_text(index)}",
            parameter=parameter.parameter_number,
            index=index,
            bytes=shape.padded_byte_size(),
            donated=status is not DonationStatus.POSSIBLE,
            used=status is DonationStatus.IN_PLACE,
            output=output,
            status=status,
            reason=reason,
            op_name=parameter.metadata.op_name,
        )

    def _value(self, x: Instruction, index: ShapeIndex) -> Value | None:
        values = self._flow.values_at(x, index)
        return values[0] if values else None

    def _aliased(
        self, parameter: Instruction, index: ShapeIndex, alias: Alias
    ) -> Donation:
        output = alias.output_index
        out = self._value(self._root, output)
        argument = self._value(parameter, index)
        name = f"output {index_text(output)}"
        if out is argument:
            reason = f"{name} is the argument itself"
            return self._row(parameter, index, output, DonationStatus.IN_PLACE, reason)
        if out is not None and out.instruction.opcode == "copy":
            source = self._value(out.instruction.operands[0], ())
            reader = self._last_reader(argument)
            made = source.instruction.name if source else "the result"
            reason = (
                f"{made} is copied into {name}: the argument is still read by "
                f"{reader} when it is made"
                if reader and source is not argument
                else f"{made} is copied into {name}"
            )
            return self._row(parameter, index, output, DonationStatus.COPIED, reason)
        reason = f"{name} is written into the argument's storage"
        return self._row(parameter, index, output, DonationStatus.IN_PLACE, reason)

    def _donor(
        self, parameter: Instruction, index: ShapeIndex, shape: Shape
    ) -> Donation:
        outputs = self._free.get(shape, [])
        if outputs:
            output = outputs.pop(0)
            reason = (
                f"it may be reused by any output, but is not tied to one; output "
                f"{index_text(output)} has its shape"
            )
            return self._row(parameter, index, output, DonationStatus.UNUSED, reason)
        size = shape.padded_byte_size()
        same = [
            i
            for i, leaf in self._root.shape.leaves()
            if leaf.is_array and leaf.padded_byte_size() == size
        ]
        if same:
            reason = (
                f"the outputs of {size:,} bytes have storage of other arguments "
                "or another shape"
            )
        else:
            reason = f"no output takes {size:,} bytes"
        return self._row(parameter, index, None, DonationStatus.UNUSED, reason)

    def _possible(
        self, parameter: Instruction, index: ShapeIndex, shape: Shape
    ) -> Donation | None:
        outputs = self._free.get(shape)
        argument = self._value(parameter, index)
        if not outputs or argument is None or argument.live_out:
            return None
        last = self._last_read(argument)
        for output in outputs:
            made = self._value(self._root, output)
            bound = self._live.range_of(made) if made is not None else None
            if bound is not None and last < bound.start:
                outputs.remove(output)
                reason = (
                    f"not donated; output {index_text(output)} has its shape and is "
                    "made after its last use"
                )
                return self._row(
                    parameter, index, output, DonationStatus.POSSIBLE, reason
                )
        return None

    def _last_read(self, value: Value) -> int:
        times = (self._live.schedule.time_of(use.instruction) for use in value.uses)
        return max(times, default=-1)

    def _last_reader(self, value: Value | None) -> str:
        if value is None or not value.uses:
            return ""
        time_of = self._live.schedule.time_of
        return max(value.uses, key=lambda u: time_of(u.instruction)).instruction.name
