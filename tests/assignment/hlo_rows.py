"""Small modules for the acceptance rows, and questions to their plans."""

from __future__ import annotations

from typing import Any

import msa
from msa.assignment.options import CostAnalysisPicker, InstructionCountPicker

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


F = "f32[2,3]{1,0}"


def p(*names: str, shape: str = F) -> str:
    return "\n".join(
        f"  {name} = {shape} parameter({number})" for number, name in enumerate(names)
    )


CHAIN = module(f"{p('p0', 'p1')}\n{chain('n', 7, 'p0')}\n  ROOT add = {F} add(n6, p1)")


def cost_options(**changes) -> msa.Options:
    fields = {
        "prefetch_interval_picker": CostAnalysisPicker(0.8, 1.5, 10.0),
        "enable_cross_program_prefetch": False,
        "faithful": True,
    }
    return msa.Options(**{**fields, **changes})


def negates_and_tanhs() -> str:
    big = "f32[4,3]{1,0}"
    lines = [p("p0", "p1", shape=big)]
    lines.append(f"  tanh0 = {big} tanh(p0)\n  neg0 = {big} negate(p1)")
    for i in range(1, 4):
        lines.append(f"  tanh{i} = {big} tanh(tanh{i - 1})")
        lines.append(f"  neg{i} = {big} negate(neg{i - 1})")
    lines.append(f"  neg4 = {big} negate(neg3)\n  tanh4 = {big} tanh(tanh3)")
    lines.append(
        f"  neg5 = {big} negate(neg4)\n  tuple = ({big}, {big}) tuple(tanh4, neg5)"
    )
    lines[-1] = lines[-1].replace("tuple =", "ROOT t =")
    return module("\n".join(lines))


def loop(
    state: str,
    body: str,
    entry: str,
    counter: int = 1,
) -> str:
    """A loop over `state`, whose element `counter` counts."""
    return module(
        entry,
        f"""
cond {{
  cp = {state} parameter(0)
  limit = f32[] constant(5)
  i = f32[] get-tuple-element(cp), index={counter}
  ROOT less = pred[] compare(i, limit), direction=LT
}}
body {{
  bp = {state} parameter(0)
{body}
}}
""",
    )


PAIR = "(f32[2,3]{1,0}, f32[])"


def simple_loop(body: str, after: str = "") -> str:
    return loop(
        PAIR,
        f"  bi = f32[] get-tuple-element(bp), index=1\n  one = f32[] constant(1)\n"
        f"  next = f32[] add(bi, one)\n"
        f"  bx = {F} get-tuple-element(bp), index=0\n{body}\n"
        f"  ROOT bt = {PAIR} tuple(by, next)",
        f"{p('p0')}\n  zero = f32[] constant(0)\n  copy = {F} copy(p0)\n"
        f"  init = {PAIR} tuple(copy, zero)\n"
        f"  while = {PAIR} while(init), condition=cond, body=body\n"
        + (
            after
            or f"  wx = {F} get-tuple-element(while), index=0\n"
            f"  ROOT m = {F} negate(wx)"
        ),
    )


TRIPLE = "(f32[3]{0}, f32[3]{0}, f32[], f32[3]{0})"


def invariant_loop(length: int, changed: bool = False, high: int = 10) -> str:
    """Element 1 is read early in a body of `length` operations."""
    v = "f32[3]{0}"
    kept = "bc" if not changed else "bn"
    return loop(
        TRIPLE,
        f"  bi = f32[] get-tuple-element(bp), index=2\n  one = f32[] constant(1)\n"
        f"  next = f32[] add(bi, one)\n"
        f"  ba = {v} get-tuple-element(bp), index=0\n"
        f"  bc = {v} get-tuple-element(bp), index=1\n  tanh = {v} tanh(bc)\n"
        f"{chain('b', length, 'ba', v)}\n  bs = {v} add(b{length - 1}, tanh)\n"
        + (f"  bn = {v} negate(bc)\n" if changed else "")
        + f"  bz = {v} get-tuple-element(bp), index=3\n"
        f"  ROOT bt = {TRIPLE} tuple(bs, {kept}, next, bz)",
        f"  p0 = {v} parameter(0)\n  p1 = {v} parameter(1)\n"
        f"  zero = f32[] constant(0)\n"
        f"  copy0 = {v} copy(p0)\n  copy3 = {v} copy(p0)\n{chain('e', 7, 'p0', v)}\n"
        f"  init = {TRIPLE} tuple(copy0, {'copy3' if changed else 'p1'}, zero, e6)\n"
        f"  while = {TRIPLE} while(init), condition=cond, body=body\n"
        f"  w0 = {v} get-tuple-element(while), index=0\n"
        f"  w1 = {v} get-tuple-element(while), index=1\n"
        f"  ROOT s = {v} add(w0, w1)",
        counter=2,
    )


V = "f32[3]{0}"


def conditional(true: str, before: str, after: str) -> str:
    """Both branches take a tuple of two vectors."""
    pair = f"({V}, {V})"
    return module(
        f"  p0 = {V} parameter(0)\n  q = pred[] parameter(1)\n{before}\n"
        f"  t = {pair} tuple(copy0, copy1)\n"
        f"  cond = {V} conditional(q, t, t), true_computation=yes, "
        f"false_computation=no\n{after}",
        f"""
yes {{
  yp = {pair} parameter(0)
  y0 = {V} get-tuple-element(yp), index=0
  y1 = {V} get-tuple-element(yp), index=1
{true}
}}
no {{
  np = {pair} parameter(0)
  n0 = {V} get-tuple-element(np), index=0
  n1 = {V} get-tuple-element(np), index=1
  ROOT nr = {V} add(n0, n1)
}}
""",
    )


COPIES = f"  copy0 = {V} copy(p0)\n  copy1 = {V} copy(p0)"
