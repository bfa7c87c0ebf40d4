"""Modules of the outcome rows, and an oracle of peaks that shares nothing."""

from __future__ import annotations

import msa
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

KIB = 1024
HEAD = "HloModule m, is_scheduled=true\n"

SINGLE_BODY = """
  param = f32[1]{0} parameter(0)
  reshape = f32[] reshape(param)
  bcast = f32[1024]{0} broadcast(reshape), dimensions={}
  negate = f32[1024]{0} negate(bcast)
  concat_1 = f32[2048]{0} concatenate(negate, negate), dimensions={0}
  slice_1 = f32[1]{0} slice(concat_1), slice={[0:1]}
  concat_2 = f32[1025]{0} concatenate(bcast, slice_1), dimensions={0}
  ROOT slice_2 = f32[1]{0} slice(concat_2), slice={[0:1]}
"""
SINGLE = f"{HEAD}ENTRY single {{{SINGLE_BODY}}}"

CONDITION = """
condition {
  state = f32[1]{0} parameter(0)
  ROOT always = pred[] constant(true)
}
"""


def renamed(text: str, suffix: str) -> str:
    """Instructions of one computation under names of their own."""
    names = [line.split(" = ")[0].split()[-1] for line in text.splitlines() if line]
    for name in sorted(names, key=len, reverse=True):
        for mark in (" ", ",", ")"):
            text = text.replace(f"{name}{mark}", f"{name}{suffix}{mark}")
    return text


def loop_around(body: str) -> str:
    """A computation's text that keeps a broadcast across a loop running `body`."""
    return f"""
  param = f32[1]{{0}} parameter(0)
  reshape = f32[] reshape(param)
  bcast = f32[1024]{{0}} broadcast(reshape), dimensions={{}}
  slice_1 = f32[1]{{0}} slice(bcast), slice={{[0:1]}}
  while = f32[1]{{0}} while(slice_1), condition=condition_{body}, body={body}
  concat = f32[1025]{{0}} concatenate(bcast, while), dimensions={{0}}
  ROOT slice_2 = f32[1]{{0}} slice(concat), slice={{[0:1]}}
"""


def condition(body: str) -> str:
    return CONDITION.replace("condition", f"condition_{body}")


def names(module: msa.Module, computation: str | None = None) -> list[str]:
    """Names of a computation in the order of the schedule."""
    found = module.computation(computation) if computation else module.entry
    assert module.schedule is not None
    return [x.name for x in module.schedule.sequence(found)]


def find(module: msa.Module, name: str) -> Instruction:
    """An instruction of the entry."""
    return next(x for x in module.entry.instructions if x.name == name)


def count(module: msa.Module, opcode: str) -> int:
    """Instructions of one opcode in the entry."""
    return sum(x.opcode == opcode for x in module.entry.instructions)


# -- the oracle ----------------------------------------------------------------

Held = dict[tuple[int, ...], frozenset[tuple[Instruction, tuple[int, ...]]]]


def _held(x: Instruction, of: dict[Instruction, Held]) -> Held:
    """Which created nodes are found at each node of a result."""
    own: Held = {index: frozenset({(x, index)}) for index, _ in x.shape.nodes()}
    first = of[x.operands[0]] if x.operands else {}
    if x.opcode in ("bitcast", "while", "opt-barrier"):
        return dict(first)
    if x.opcode == "get-tuple-element":
        k = x.tuple_index
        return {i[1:]: v for i, v in first.items() if i[:1] == (k,)}
    if x.opcode == "tuple":
        for k, operand in enumerate(x.operands):
            own.update({(k, *i): v for i, v in of[operand].items()})
    elif x.opcode == "copy" and x.shape.is_tuple:
        own.update({i: v for i, v in first.items() if i})
    elif x.opcode == "copy-start":
        own.update({(1, *i): v for i, v in first.items()})
    elif x.opcode == "copy-done":
        return {i[1:]: v for i, v in first.items() if i[:1] == (0,)}
    return own


def oracle_peak(
    computation: Computation,
    host: int = -1,
    peaks: dict[Computation, int] | None = None,
) -> int:
    """Peak of one computation by the definition: a quadratic sum at every step."""
    module = computation.module
    assert module.schedule is not None
    order = module.schedule.sequence(computation)
    known = {} if peaks is None else peaks
    of: dict[Instruction, Held] = {}
    life: dict[tuple[Instruction, tuple[int, ...]], int] = {}
    for step, x in enumerate(order):
        for operand in x.operands:
            for index, nodes in of[operand].items():
                if not index or x.opcode != "get-tuple-element":
                    life.update(dict.fromkeys(nodes, step))
        of[x] = _held(x, of)
        for nodes in of[x].values():
            for node in nodes:
                life.setdefault(node, step)
    results = frozenset().union(*of[computation.root].values())
    best = 0
    for step, x in enumerate(order):
        total = 0
        for (creator, index), last in life.items():
            shape = creator.shape.subshape(index)
            free = creator.opcode == "parameter" or (creator, index) in results
            free |= shape.is_array and shape.memory_space == host
            if order.index(creator) <= step <= last and not free:
                total += shape.byte_size()
        inner = [
            oracle_peak(c, host, known) if c not in known else known[c]
            for c in x.called_computations
            if x.opcode in ("while", "call", "conditional")
        ]
        best = max(best, total + max(inner, default=0))
    known[computation] = best
    return best


def oracle_total(module: msa.Module, host: int = -1) -> int:
    """Peak of a module, results included."""
    output = sum(shape.byte_size() for _, shape in module.entry.root.shape.nodes())
    return oracle_peak(module.entry, host) + output
