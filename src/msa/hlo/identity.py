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
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from msa.hlo.arguments import expect
from msa.hlo.attribute_text import attribute_text
from msa.hlo.canonical import canonical_attributes, canonical_shape
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.printer import is_default_comparison

_IGNORED: Final = frozenset({"parameter_number", "literal", "origin", "metadata"})
_LONG: Final = 80
"""Constants with a longer text are stated by their digest."""

_BYTES: Final = 16

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
        return _header(subject) + "\n" + writer.text(subject.entry)
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

    __slots__ = ("_digests",)

    def __init__(self) -> None:
        self._digests: dict[Computation, str] = {}

    def text(self, computation: Computation) -> str:
        """Canonical text of a computation, callees first and without recursion."""
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
        called = ",".join(self._called(instruction))
        return head, _attributes(instruction) + (f" calls {called}" if called else "")

    def _called(self, instruction: Instruction) -> Iterable[str]:
        for callee in instruction.called_computations:
            if callee not in self._digests:
                self._digests[callee] = _digest(self.text(callee)).hex()
            yield "#" + self._digests[callee]

    def _own_text(self, computation: Computation) -> str:
        labels = {x: self.label(x) for x in computation.instructions}
        numbers = _numbering(computation, labels)
        lines = []
        for instruction, number in numbers.items():
            head, tail = labels[instruction]
            read = ", ".join(str(numbers[x]) for x in instruction.operands)
            text = f"{head}({read}){tail}" if read else head + tail
            if instruction.control_predecessors:
                before = sorted(numbers[x] for x in instruction.control_predecessors)
                text += f" after {before}"
            root = "root " if instruction is computation.root else ""
            lines.append(f"{root}{number} {text}")
        if computation.execution_thread != "main":
            lines.append(f"thread {computation.execution_thread}")
        return "\n".join(lines)


def _attributes(instruction: Instruction) -> str:
    shown: Mapping[str, Any] = canonical_attributes(instruction)
    if instruction.opcode == "compare" and is_default_comparison(instruction):
        shown = {name: value for name, value in shown.items() if name != "type"}
    parts = [
        attribute_text(instruction.opcode, name, shown[name])
        for name in sorted(shown)
        if name not in _IGNORED
    ]
    if instruction.backend_config is not None:
        parts.append(f"config={_sorted_config(instruction.backend_config)}")
    return "".join(" " + part for part in parts)


def _sorted_config(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def _numbering(
    computation: Computation, labels: Mapping[Instruction, _Label]
) -> dict[Instruction, int]:
    """Numbers that depend on the graph only: the root's operands first.

    What the root does not reach starts at instructions that nothing reads, in order
    of what they are and of what surrounds them.
    """
    colors = _colors(computation, labels)
    starts = [
        x
        for x in computation.instructions
        if not x.users and not x.control_successors and x is not computation.root
    ]
    starts.sort(key=lambda x: colors[x])
    numbers: dict[Instruction, int] = {}
    for start in (computation.root, *starts):
        stack = [(start, False)]
        while stack:
            current, ready = stack.pop()
            if current in numbers:
                continue
            if ready:
                numbers[current] = len(numbers)
                continue
            stack.append((current, True))
            before = sorted(current.control_predecessors, key=lambda x: colors[x])
            stack.extend(
                (x, False)
                for x in (*reversed(current.operands), *reversed(before))
                if x not in numbers
            )
    return numbers


def _colors(
    computation: Computation, labels: Mapping[Instruction, _Label]
) -> dict[Instruction, bytes]:
    """What each instruction is made from and, refined once, what is made of it."""
    order = computation.post_order()
    up: dict[Instruction, bytes] = {}
    for x in order:
        before = sorted(up[p] for p in x.control_predecessors)
        parts = (
            "\0".join(labels[x]).encode(),
            *(up[o] for o in x.operands),
            b"|",
            *before,
        )
        up[x] = _digest(b"\0".join(parts))
    down: dict[Instruction, bytes] = {}
    for x in reversed(order):
        around = sorted(
            down[user] + bytes(str(user.operand_indices(x)), "ascii")
            for user in x.users
        )
        after = sorted(down[s] for s in x.control_successors)
        root = b"root" if x is computation.root else b""
        down[x] = _digest(b"\0".join((up[x], root, *around, b"|", *after)))
    return {
        x: _digest(down[x] + b"".join(sorted(down[o] for o in x.operands)))
        for x in order
    }


def _digest(data: str | bytes) -> bytes:
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    return blake2b(raw, digest_size=_BYTES).digest()
