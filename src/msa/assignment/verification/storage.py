"""Which buffers are in alternate memory, and where the plan says that they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msa.analysis.manager import AnalysisManager
from msa.analysis.residency import Residency, Span
from msa.analysis.values import HloBuffer, Value, index_text
from msa.assignment.verification.findings import Findings
from msa.assignment.verification.shards import check_shards
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex

_INDEX: Final = re.compile(r"[0-9,]*")


class PlacedBuffer(NamedTuple):
    """A buffer in alternate memory with its chunk, and when it is needed.

    `first`, `last`: its values that are needed first and last in each span.
    """

    name: str
    offset: int
    size: int
    spans: list[Span]
    values: list[Value]


class Storage:
    """Buffers of the planned module, and the plan's chunks for them.

    Attributes:
        analyses: of the planned module, made for this check.
        placed: buffers with chunks.
        scratch: `(instruction, offset, size)` of scoped memory.
    """

    __slots__ = (
        "_capacity",
        "_chunk_of",
        "_findings",
        "_space",
        "alignment",
        "analyses",
        "placed",
        "scratch",
    )

    def __init__(
        self, analyses: AnalysisManager, findings: Findings, space: int
    ) -> None:
        self.analyses = analyses
        self.placed: list[PlacedBuffer] = []
        self.scratch: list[tuple[Instruction, int, int]] = []
        self._findings = findings
        self._space = space
        self._chunk_of: dict[int, str] = {}

    # -- the table ---------------------------------------------------------------

    def place(
        self,
        chunks: Mapping[str, tuple[int, int]],
        scoped: Mapping[str, tuple[int, int]],
        capacity: int,
        alignment: int,
    ) -> None:
        """Read the plan's chunks and check each by itself."""
        add = self._findings.add
        instructions = self._instructions()
        residency = Residency(self.analyses.alias, self.analyses.schedule)
        for text, (offset, size) in chunks.items():
            where = f"chunk of {text}"
            found = self._resolve(text, instructions)
            part = found is not None and _is_slice_of_a_whole(found[0])
            # Slices lie side by side in a whole that is aligned.
            self._check_bounds(where, offset, size, capacity, 1 if part else alignment)
            if found is None:
                add("known place", "the planned module has no such place", where)
                continue
            buffers = self.analyses.alias.buffers_at(*found)
            if len(buffers) != 1:
                add("known place", f"{len(buffers)} buffers are there", where)
                continue
            self._place_buffer(text, offset, size, buffers[0], residency)
        for text, (offset, size) in scoped.items():
            where = f"scratch of {text}"
            self._check_bounds(where, offset, size, capacity, alignment)
            if text not in instructions:
                add("known place", "there is no such instruction", where)
                continue
            self.scratch.append((instructions[text], offset, size))

    def _instructions(self) -> dict[str, Instruction]:
        return {x.name: x for x in self.analyses.schedule.instructions}

    def _check_bounds(
        self, where: str, offset: int, size: int, capacity: int, alignment: int
    ) -> None:
        add = self._findings.add
        if offset < 0 or size <= 0:
            add("chunk", f"it is [{offset}, {offset + size})", where, offset=offset)
        if offset % alignment:
            add(
                "alignment",
                f"offset {offset} is not a multiple of {alignment}",
                where,
                offset=offset,
                alignment=alignment,
            )
        if offset + size > capacity:
            add(
                "capacity",
                f"it ends at {offset + size}, the memory at {capacity}",
                where,
                end=offset + size,
                capacity=capacity,
                over=offset + size - capacity,
            )

    @staticmethod
    def _resolve(
        text: str, instructions: Mapping[str, Instruction]
    ) -> tuple[Instruction, ShapeIndex] | None:
        name, brace, rest = text.rpartition("{")
        inside = rest.removesuffix("}")
        if (
            not brace
            or inside == rest
            or name not in instructions
            or not _INDEX.fullmatch(inside)
        ):
            return None
        instruction = instructions[name]
        if not inside:
            return instruction, ()
        index = tuple(int(part) for part in inside.split(",") if part)
        if not instruction.shape.has_index(index):
            return None
        return instruction, index

    def _place_buffer(
        self, text: str, offset: int, size: int, buffer: HloBuffer, residency: Residency
    ) -> None:
        add = self._findings.add
        where = f"chunk of {text}"
        if buffer.id in self._chunk_of:
            other = self._chunk_of[buffer.id]
            add("one chunk", f"its buffer has another one, of {other}", where)
            return
        self._chunk_of[buffer.id] = text
        values = list(buffer.values)
        needed = max((v.shape.shard_byte_size() for v in values), default=0)
        if size < needed:
            add(
                "chunk size",
                f"it has {size} bytes, the buffer needs {needed}",
                where,
                size=size,
                needed=needed,
            )
        spans = residency.of_buffer(values)
        self.placed.append(PlacedBuffer(text, offset, size, spans, values))

    # -- layouts -----------------------------------------------------------------

    def check_spaces(self, original: Module) -> None:
        """Every place of a buffer is where its chunk says; others did not move."""
        before = _spaces_of(original)
        scheduled: list[bool] = (self.analyses.schedule.time >= 0).tolist()
        for buffer in self.analyses.alias.buffers:
            chunk = self._chunk_of.get(buffer.id)
            if chunk is None and self._is_callers(buffer, before):
                continue
            for value in buffer.values:
                for position in value.positions:
                    runs = scheduled[position.instruction.id]
                    self._check_position(position, chunk, before, runs)
        check_shards(original, self.analyses, self._chunk_of, self._findings)
        self._check_interface(original)

    def _is_callers(
        self, buffer: HloBuffer, before: Mapping[tuple[str, str, ShapeIndex], int]
    ) -> bool:
        """Whether the caller keeps the buffer in alternate memory, at its own place."""
        entry = self.analyses.module.entry
        return any(
            before.get((entry.name, p.instruction.name, p.index)) == self._space
            and p.instruction.shape.subshape(p.index).memory_space == self._space
            for value in buffer.values
            for p in value.positions
            if p.instruction.computation is entry
            and (p.instruction.opcode == "parameter" or p.instruction is entry.root)
        )

    def _check_position(
        self,
        position: tuple[Instruction, ShapeIndex],
        chunk: str | None,
        before: Mapping[tuple[str, str, ShapeIndex], int],
        runs: bool,
    ) -> None:
        instruction, index = position
        shape = instruction.shape.subshape(index)
        if not shape.is_array:
            if chunk is not None:
                self._findings.add(
                    "arrays only", f"{chunk} has a place that is no array", chunk
                )
            return
        space = shape.memory_space
        if not runs or (space == self._space and chunk is not None):
            return
        where = instruction.name + index_text(index)
        if chunk is not None:
            self._findings.add(
                "one memory",
                f"it is in memory space {space}, its buffer {chunk} in {self._space}",
                where,
                space=space,
            )
        elif space == self._space:
            self._findings.add(
                "unplaced",
                "it is in alternate memory but its buffer has no chunk",
                where,
            )
        else:
            key = (instruction.computation.name, instruction.name, index)
            known = before.get(key)
            if known is not None and known not in (space, self._space):
                self._findings.add(
                    "one memory",
                    f"it moved from memory space {known} to {space}",
                    where,
                    space=space,
                )

    def _check_interface(self, original: Module) -> None:
        """What the caller hands in and gets back stays where the caller has it."""
        before, after = original.entry, self.analyses.module.entry
        fetched = fetched_inputs(after)
        pairs = [("result", before.root, after.root)]
        pairs += [
            (f"parameter {x.parameter_number}", x, y)
            for x, y in zip(before.parameters, after.parameters, strict=False)
        ]
        for what, x, y in pairs:
            if not x.shape.compatible(y.shape):
                continue  # reported with the meaning
            for (index, old), (_, new) in zip(
                x.shape.leaves(), y.shape.leaves(), strict=True
            ):
                if y in fetched and old.memory_space == self._space:
                    continue  # the program fetches it itself, at the caller's wish
                if old.is_array and old.memory_space != new.memory_space:
                    self._findings.add(
                        "interface",
                        f"the program's {what} moved from memory space "
                        f"{old.memory_space} to {new.memory_space}",
                        y.name + index_text(index),
                    )


def _is_slice_of_a_whole(x: Instruction) -> bool:
    # Nothing reads the slices of a whole that nothing reads.
    users = list(x.users)
    if x.opcode == "async-done" and not users:
        return True
    users += [
        reader for user in users if user.opcode == "bitcast" for reader in user.users
    ]
    return x.opcode == "async-done" and any(
        user.attributes.get("custom_call_target") == "ConcatBitcast" for user in users
    )


def fetched_inputs(entry: Computation) -> set[Instruction]:
    """Parameters (of which parts) are fetched before the program begins."""
    found = set()
    for start in entry.instructions:
        if start.attributes.get("cross_program_prefetch_index") is not None:
            source = start.operands[0]
            while source.opcode in ("bitcast", "get-tuple-element"):
                source = source.operands[0]
            found.add(source)
    return found


def _spaces_of(module: Module) -> dict[tuple[str, str, ShapeIndex], int]:
    """Memory space of every array node of a module that is not 0 … all others."""
    schedule = module.schedule
    computations: list[Computation] = [] if schedule is None else list(schedule)
    return {
        (computation.name, instruction.name, index): leaf.memory_space
        for computation in computations
        for instruction in computation.instructions
        for index, leaf in instruction.shape.leaves()
        if leaf.is_array
    }
