"""The neighbourhood of an instruction as a graph in the DOT language (Graphviz)."""

from __future__ import annotations

from typing import Final

from msa.errors import OptionsError, did_you_mean
from msa.hlo import Module
from msa.hlo.instruction import Instruction
from msa.report.tables import shorten

_FAST: Final = "#bfe3d0"
_SLOW: Final = "#eceff4"
_MAX_NODES: Final = 200


def neighbourhood(module: Module, name: str, radius: int = 2) -> str:
    """Instructions up to `radius` edges away from one, as DOT text.

    Results in fast memory are green; dashed nodes are copies; the instruction itself
    has a thick border. At most 200 nodes, nearest first. Linear in what is shown.

    Raises:
        OptionsError: no instruction has this name; the nearest is suggested.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   a = f32[4] parameter(0)
    ...   ROOT b = f32[4] negate(a)
    ... }''')
    >>> print(neighbourhood(module, "b").splitlines()[-2])
      "a" -> "b";
    """
    found: dict[Instruction, int] = {_named(module, name): 0}
    frontier = list(found)
    for distance in range(1, radius + 1):
        reached: list[Instruction] = []
        for instruction in frontier:
            for near in (*instruction.operands, *instruction.users):
                if near not in found and len(found) < _MAX_NODES:
                    found[near] = distance
                    reached.append(near)
        frontier = reached
    lines = ["digraph neighbourhood {", "  node [shape=box, style=filled];"]
    lines += [_node(x, distance == 0) for x, distance in found.items()]
    for instruction in found:
        edges = dict.fromkeys(o for o in instruction.operands if o in found)
        lines += [f"  {_quote(o.name)} -> {_quote(instruction.name)};" for o in edges]
    return "\n".join([*lines, "}"]) + "\n"


def _named(module: Module, name: str) -> Instruction:
    wanted = name.lstrip("%")
    known: list[str] = []
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.name == wanted:
                return instruction
            known.append(instruction.name)
    raise OptionsError(
        f"no instruction is named {wanted!r}",
        hint=did_you_mean(wanted, known, "print(module.to_text()) shows all names"),
    )


def _node(instruction: Instruction, is_centre: bool) -> str:
    shape = instruction.shape
    fast = any(leaf.memory_space == 1 for _, leaf in shape.leaves())
    moves = instruction.opcode.startswith(("copy-", "async-"))
    label = f"{instruction.name}\n{instruction.opcode}\n{shorten(str(shape), 40)}"
    style = ', style="filled,dashed"' if moves else ""
    width = ", penwidth=3" if is_centre else ""
    colour = _FAST if fast else _SLOW
    return (
        f"  {_quote(instruction.name)} [label={_quote(label)}, "
        f'fillcolor="{colour}"{style}{width}];'
    )


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
