"""Small modules for the acceptance rows, and questions to their plans."""

from __future__ import annotations

from typing import Any

import msa
from msa.assignment.options import InstructionCountPicker

#: 128 bytes of alternate memory, aligned to 8; the tests' own speeds.
SMALL = msa.Target(
    name="small",
    alternate_memory_bytes=128,
    alignment_bytes=8,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=1000.0,
    flops_per_second=1000.0,
    transcendentals_per_second=10.0,
)


def count_options(low: int = 2, high: int = 10, **changes: Any) -> msa.Options:
    """Prefetch by instruction counts, largest buffers first, no costs.

    Faithful: the rows describe the algorithm, not what is made better afterwards.
    """
    fields: dict[str, Any] = {
        "faithful": True,
        "prefetch_interval_picker": InstructionCountPicker(low, high),
        "buffer_interval_comparator": "spatial",
        "cost_analysis": False,
        "enable_cross_program_prefetch": False,
    }
    return msa.Options(**{**fields, **changes})


class Planned:
    """A plan with questions about where its module reads and defines things."""

    def __init__(self, module: msa.Module, plan: Any) -> None:
        self.before = module
        self.plan = plan
        self.module = plan.module
        self.by_name = {
            i.name: i for c in self.module.computations for i in c.instructions
        }

    def space(self, name: str, index: tuple[int, ...] = ()) -> int:
        """Memory space of a node of an instruction's result."""
        return self.by_name[name].shape.subshape(index).memory_space

    def operand(self, name: str, number: int) -> Any:
        """The operand, with renamings looked through."""
        found = self.by_name[name].operands[number]
        while found.opcode == "bitcast":
            found = found.operands[0]
        return found

    def operand_space(self, name: str, number: int) -> int:
        return self.by_name[name].operands[number].shape.memory_space

    def is_copy_of(self, instruction: Any, source: str, space: int) -> bool:
        """Whether it is the end of a copy of `source` into the memory space."""
        if instruction.opcode != "copy-done" or instruction.shape.memory_space != space:
            return False
        found = instruction.operands[0].operands[0]
        while found.opcode == "bitcast":
            found = found.operands[0]
        return found.name == source

    def prefetched(self, name: str, number: int, source: str) -> bool:
        """Whether the operand is a copy of `source` in alternate memory."""
        return self.is_copy_of(self.operand(name, number), source, 1)

    def evicted_and_back(self, name: str, number: int, source: str) -> bool:
        """Whether the operand was evicted from `source` and fetched again."""
        done = self.operand(name, number)
        if done.opcode != "copy-done" or done.shape.memory_space != 1:
            return False
        return self.is_copy_of(done.operands[0].operands[0], source, 0)

    def order(self, computation: str | None = None) -> list[str]:
        """Names in schedule order."""
        if computation is None:
            home = self.module.entry
        else:
            home = self.module.computation(computation)
        return [i.name for i in self.module.schedule.sequence(home)]

    def copies(self) -> list[str]:
        return [n for n, i in self.by_name.items() if i.opcode == "copy-start"]


def plan(
    text: str,
    options: msa.Options | None = None,
    target: msa.Target = SMALL,
    **target_changes: Any,
) -> Planned:
    """Plan a module, verify the plan, and check what holds for every plan."""
    module = msa.parse(text)
    made = msa.assign(
        module, target.replace(**target_changes), options or count_options()
    )
    made.verify()
    found = Planned(module, made)
    for instruction in found.by_name.values():
        if instruction.opcode == "copy-start":
            source = instruction.operands[0].shape.memory_space
            assert source != instruction.shape.subshape((0,)).memory_space
    for parameter in found.module.entry.parameters:
        assert all(s.memory_space != 1 for _, s in parameter.shape.leaves())
    assert len(set(made.chunks)) == len(made.chunks)
    return found


def module(body: str, computations: str = "", header: str = "") -> str:
    """A scheduled module from the lines of its entry."""
    return f"""
HloModule m, is_scheduled=true{header}
{computations}
ENTRY main {{
{body}
}}
"""


def chain(name: str, count: int, start: str, shape: str = "f32[2,3]{1,0}") -> str:
    """Lines of `count` negates, the first of `start`."""
    lines = []
    for number in range(count):
        lines.append(f"  {name}{number} = {shape} negate({start})")
        start = f"{name}{number}"
    return "\n".join(lines)
