"""What a program is, whatever its parts are called: canonical text and fingerprints.

Names, ids, metadata, the schedule and the order in which independent instructions are
written do not matter. Shapes with layouts, opcodes, attributes, backend configs,
constants, control edges, called computations and the sharing of results all do.

Source of the idea: `xla/service/gpu/autotuning/autotune_cache_key.cc` (canonical text
as the key of tuned operations). That text leaves large constants and nested
computations out; here they count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from msa.hlo.arguments import expect
from msa.hlo.attribute_text import attribute_text
from msa.hlo.canonical import canonical_attributes, canonical_shape
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.printer import is_default_comparison

_IGNORED: Final = frozenset({"parameter_number", "origin", "metadata"})
_EXACT: Final = frozenset({"statistics"})
_LONG: Final = 80
"""Constants with a longer text are stated by their digest."""

_BYTES: Final = 16

_ROUNDS: Final = 8
"""Enough for what programs contain; more would tell apart stranger graphs only."""

_Label = tuple[str, str]


def fingerprint(subject: Module | Computation | Instruction) -> str:
    """128 bits, as 32 hexadecimal digits, that state what a program does.

    Equal for programs that differ in names, metadata, schedule or the order of
    independent instructions only. Near linear in the size of the program.

    >>> import msa
    >>> a = msa.parse("ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }")
    >>> b = msa.parse("ENTRY f { p = f32[8] parameter(0) ROOT q = f32[8] negate(p) }")
    >>> c = msa.parse("ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] abs(x) }")
    >>> fingerprint(a) == fingerprint(b), fingerprint(a) == fingerprint(c)
    (True, False)
    """
    return _digest(canonical_text(subject)).hex()


def canonical_text(subject: Module | Computation | Instruction) -> str:
    """Text that is equal for equal programs, whatever things are called.

    One line per instruction, numbered operands first. Computations that are called
    appear as digests of their own text, except those of a fusion that is given as an
    instruction: they are written out. For comparing, not for reading back.

    >>> import msa
    >>> m = msa.parse("ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }")
    >>> print(canonical_text(m.entry))
    0 f32[8]{0} parameter 0
    root 1 f32[8]{0} negate(0)
    >>> canonical_text(m.entry.root)
    'f32[8]{0} negate(f32[8]{0})'
    """
    kinds = (Module, Computation, Instruction)
    what = "a Module, a Computation or an Instruction"
    expect(subject, kinds, where="canonical_text", what=what)
    writer = _Writer()
    if isinstance(subject, Module):
        parts = [_header(subject), writer.text(subject.entry)]
        rest = [c for c in subject.computations if not writer.has_read(c)]
        called = {
            x for c in rest for i in c.instructions for x in i.called_computations
        }
        apart = sorted(writer.digest(c) for c in rest if c not in called)
        return "\n".join([*parts, *(f"apart #{digest}" for digest in apart)])
    if isinstance(subject, Computation):
        return writer.text(subject)
    operands = ", ".join(str(canonical_shape(x)) for x in subject.operands)
    if subject.opcode != "fusion":
        head, tail = writer.label(subject)
        return f"{head}({operands}){tail}" if subject.operands else head + tail
    kind = _attributes(subject)
    return f"fusion({operands}){kind} {{\n{writer.text(subject.fused_computation)}\n}}"


def _header(module: Module) -> str:
    layout = module.effective_entry_layout()
    parts = [
        f"layout={[str(x) for x in layout.parameters]}->{layout.result}",
        f"aliases={sorted(map(repr, module.aliases))}",
        f"donors={sorted(map(repr, module.buffer_donors))}",
        f"replicas={module.replica_count}",
        f"partitions={module.num_partitions}",
    ]
    skipped = ("origin_recovery_table", "debug_attributes")
    parts += [
        f"{name}={module.attributes[name]!r}"
        for name in sorted(module.attributes)
        if name not in skipped
    ]
    return "module " + ", ".join(parts)


class _Writer:
    """Texts of computations, each made once."""

    __slots__ = ("_digests", "_whole")

    def __init__(self) -> None:
        self._digests: dict[Computation, str] = {}
        self._whole: set[Computation] = set()

    def text(self, computation: Computation) -> str:
        """Canonical text of a computation, callees first and without recursion."""
        self._whole.add(computation)
        stack = [computation]
        while stack:
            current = stack[-1]
            waiting = [
                callee
                for x in current.instructions
                for callee in x.called_computations
                if callee not in self._digests
            ]
            if current is not computation and current in self._digests:
                stack.pop()
            elif waiting:
                stack.extend(dict.fromkeys(waiting))
            elif current is computation:
                break
            else:
                text = self._own_text(current)
                self._digests[current] = _digest(text).hex()
                stack.pop()
        return self._own_text(computation)

    def digest(self, computation: Computation) -> str:
        """Digest of a computation's text."""
        if computation not in self._digests:
            self._digests[computation] = _digest(self.text(computation)).hex()
        return self._digests[computation]

    def has_read(self, computation: Computation) -> bool:
        """Whether the computation is part of a text made so far."""
        return computation in self._digests or computation in self._whole

    def label(self, instruction: Instruction) -> _Label:
        """What an instruction is: what is written before and after its operands."""
        opcode = instruction.opcode
        head = f"{canonical_shape(instruction)} {opcode}"
        if opcode == "parameter":
            head += f" {instruction.parameter_number}"
        elif opcode == "constant":
            text = instruction.attributes["literal"].canonical
            if len(text) > _LONG:
                text = "#" + _digest(text).hex()
            head += f" {text}"
        called = ",".join("#" + self.digest(c) for c in instruction.called_computations)
        return head, _attributes(instruction) + (f" calls {called}" if called else "")

    def _own_text(self, computation: Computation) -> str:
        labels = {x: self.label(x) for x in computation.instructions}
        names = _names(computation, labels)
        lines: list[str] = []
        apart: list[str] = []
        for x, name in names.items():
            head, tail = labels[x]
            read = ", ".join(names[o] for o in x.operands)
            text = f"{head}({read}){tail}" if read else head + tail
            if x.control_predecessors:
                before = sorted(names[p] for p in x.control_predecessors)
                text += f" after [{', '.join(before)}]"
            root = "root " if x is computation.root else ""
            (apart if name.startswith("#") else lines).append(f"{root}{name} {text}")
        lines += sorted(apart)
        if computation.execution_thread != "main":
            lines.append(f"thread {computation.execution_thread}")
        return "\n".join(lines)


def _attributes(instruction: Instruction) -> str:
    shown: Mapping[str, Any] = canonical_attributes(instruction)
    if instruction.opcode == "compare" and is_default_comparison(instruction):
        shown = {name: value for name, value in shown.items() if name != "type"}
    # The normal form rounds statistics, as XLA's text does; here all digits count.
    shown = {**shown, **{n: instruction.attributes[n] for n in _EXACT & shown.keys()}}
    hidden = _IGNORED | {"literal"} if instruction.opcode == "constant" else _IGNORED
    parts = [
        attribute_text(instruction.opcode, name, shown[name])
        for name in sorted(shown)
        if name not in hidden
    ]
    if instruction.backend_config is not None:
        parts.append(f"config={_sorted_config(instruction.backend_config)}")
    return "".join(" " + part for part in parts)


def _sorted_config(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def _names(
    computation: Computation, labels: Mapping[Instruction, _Label]
) -> dict[Instruction, str]:
    """Names that depend on the graph only.

    What the root is made from is numbered, operands first: operands have an order, so
    there is no choice. Everything else is called by what it is and what surrounds it,
    which is the same whatever order it is written in; equals have equal names.
    """
    names: dict[Instruction, str] = {}
    stack = [(computation.root, False)]
    while stack:
        current, ready = stack.pop()
        if current in names:
            continue
        if ready:
            names[current] = str(len(names))
            continue
        stack.append((current, True))
        stack.extend((o, False) for o in reversed(current.operands) if o not in names)
    rest = [x for x in computation.post_order() if x not in names]
    if rest:
        names |= {x: "#" + color.hex() for x, color in _colors(rest, labels, names)}
    return names


def _colors(
    rest: Sequence[Instruction],
    labels: Mapping[Instruction, _Label],
    names: Mapping[Instruction, str],
) -> Iterable[tuple[Instruction, bytes]]:
    """What each instruction is, refined by its neighbours until no more are told apart.

    Linear for each of at most `_ROUNDS` rounds.
    """
    known = {x: name.encode() for x, name in names.items()}
    colors = {x: _digest("\0".join(labels[x])) for x in rest}
    count = 0
    for _ in range(_ROUNDS):
        up = dict(known)
        for x in rest:
            before = sorted(up[p] for p in x.control_predecessors)
            read = [up[o] for o in x.operands]
            up[x] = _digest(b"\0".join((colors[x], *read, b"|", *before)))
        down = dict(known)
        for x in reversed(rest):
            around = sorted(
                down[user] + str(user.operand_indices(x)).encode() for user in x.users
            )
            after = sorted(down[s] for s in x.control_successors)
            down[x] = _digest(b"\0".join((up[x], *around, b"|", *after)))
        colors = {x: down[x] for x in rest}
        if len(set(colors.values())) == count:
            break
        count = len(set(colors.values()))
    return colors.items()


def _digest(data: str | bytes) -> bytes:
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    return blake2b(raw, digest_size=_BYTES).digest()
