"""Printing modules, computations and instructions as HLO text.

Source: `xla/hlo/ir/hlo_instruction.cc`, `xla/hlo/ir/hlo_module.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msa.hlo.arguments import expect
from msa.hlo.async_wrapping import can_vanish, wrapped_root
from msa.hlo.attribute_text import (
    braces,
    common_attribute,
    config_text,
    extra_attributes,
    pairs,
    quote,
    shape_text,
)
from msa.hlo.canonical import canonical_attributes, canonical_shape
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import ComputationLayout, Module
from msa.hlo.naming import KEYWORDS
from msa.hlo.orders import printed_computations, printed_order
from msa.hlo.print_options import CANONICAL_OPTIONS, DEFAULT_OPTIONS, PrintOptions

# Marks lines that no nesting indents: the end of a list of bodies.
_FLUSH_LEFT = "\0"
_ASYNC = {"async-start": "start", "async-update": "update", "async-done": "done"}
_AFTER_CONTROL = ("statistics", "result_accuracy", "origin")
_CALL_LABELS = {
    "while": ("condition", "body"),
    "select-and-scatter": ("select", "scatter"),
    "fusion": ("calls",),
    "async-start": ("calls",),
}


def print_module(
    module: Module,
    *,
    canonical: bool = False,
    options: PrintOptions | None = None,
) -> str:
    """HLO text of a module.

    Args:
        module: what to print.
        canonical: print names, bodies and order as XLA's canonical form does.
        options: other switches; by default nothing is left out.

    Linear in the size of the module, except with bodies in place, which repeats a
    computation at each of its callers.

    >>> from msa.hlo import parse
    >>> module = parse("ENTRY e { ROOT p = f32[4] parameter(0) }")
    >>> parse(print_module(module)) == module
    True
    """
    expect(module, Module, where="print_module", what="a Module")
    if options is None:
        options = CANONICAL_OPTIONS if canonical else DEFAULT_OPTIONS
    printer = _Printer(options)
    parts = [print_header(module, options), "\n\n"]
    if module.stack_frames and options.stack_frames:
        parts += [module.stack_frames, "\n\n\n"]
    hidden = printer.hidden_computations(module)
    order = (
        module.printing_order()
        if options.canonical_names
        else printed_computations(module)
    )
    for computation in order:
        if computation in hidden:
            continue
        parts += [printer.computation(computation, scheduled=True), "\n\n"]
    return "".join(parts)


def print_computation(
    computation: Computation, options: PrintOptions = DEFAULT_OPTIONS
) -> str:
    """HLO text of one computation.

    >>> from msa.hlo import parse
    >>> print(print_computation(parse("ENTRY e { ROOT p = f32[4] parameter(0) }").entry))
    ENTRY %e (p: f32[4]) -> f32[4] {
      ROOT %p = f32[4]{0} parameter(0)
    }
    """
    expect(computation, Computation, where="print_computation", what="a Computation")
    return _Printer(options).computation(computation, scheduled=True)


def print_instruction(
    instruction: Instruction, options: PrintOptions = DEFAULT_OPTIONS
) -> str:
    """HLO text of one instruction, without `ROOT` and indentation.

    >>> from msa.hlo import parse
    >>> print_instruction(parse("ENTRY e { ROOT p = f32[4] parameter(0) }").entry.root)
    '%p = f32[4]{0} parameter(0)'
    """
    expect(instruction, Instruction, where="print_instruction", what="an Instruction")
    return _Printer(options).instruction(instruction, {})


def print_header(module: Module, options: PrintOptions = DEFAULT_OPTIONS) -> str:
    """The `HloModule` line."""
    parts = [f"HloModule {module.name}"]
    if module.is_scheduled:
        parts.append("is_scheduled=true")
    if module.aliases:
        rows = ", ".join(
            f"{braces(a.output_index)}: ({a.parameter_number}, "
            f"{braces(a.parameter_index)}, "
            f"{'must' if a.must_alias else 'may'}-alias)"
            for a in module.aliases
        )
        parts.append(f"input_output_alias={{ {rows} }}")
    if module.buffer_donors:
        rows = ", ".join(f"({n}, {braces(i)})" for n, i in module.buffer_donors)
        parts.append(f"buffer_donor={{ {rows} }}")
    attributes = module.attributes
    if attributes.get("alias_passthrough_params"):
        parts.append("alias_passthrough_params=true")
    layout = module.entry_layout
    if layout is None and options.canonical_names:
        layout = ComputationLayout(
            tuple(p.shape for p in module.entry.parameters),
            canonical_shape(module.entry.root),
        )
    if layout is not None:
        parameters = ", ".join(
            f"/*index={i}*/{p}" if i and i % 5 == 0 else str(p)
            for i, p in enumerate(layout.parameters)
        )
        parts.append(f"entry_computation_layout={{({parameters})->{layout.result}}}")
    for side in ("parameters", "output"):
        name = f"allow_spmd_sharding_propagation_to_{side}"
        if name in attributes:
            flags = ",".join("true" if x else "false" for x in attributes[name])
            parts.append(f"{name}={{{flags}}}")
    if module.replica_count != 1:
        parts.append(f"replica_count={module.replica_count}")
    if module.num_partitions != 1:
        parts.append(f"num_partitions={module.num_partitions}")
    if "frontend_attributes" in attributes:
        text = pairs(attributes["frontend_attributes"])
        parts.append(f"frontend_attributes={text}")
    raw = ("origin_recovery_table", "debug_attributes")
    parts += [f"{name}={attributes[name]}" for name in raw if name in attributes]
    return ", ".join(parts)


class _Printer:
    """One print job: options and the texts that repeat."""

    def __init__(self, options: PrintOptions) -> None:
        expect(options, PrintOptions, where="options", what="PrintOptions")
        self.options = options
        self.sigil = "%" if options.percent else ""
        # Attribute text by identity: mappings are shared and outlive the job.
        self._extras: dict[tuple[str, int], tuple[str, str]] = {}
        self._bodies: dict[Computation, str] = {}

    def hidden_computations(self, module: Module) -> set[Computation]:
        """Wrapped computations that sugar makes unnecessary to print."""
        if not self.options.async_sugar:
            return set()
        hidden: set[Computation] = set()
        for computation in module.computations:
            for instruction in computation.instructions:
                if instruction.opcode == "async-start" and self._sweet(instruction):
                    hidden.add(instruction.called_computations[0])
        return hidden

    def _sweet(self, start: Instruction) -> bool:
        if not self.options.async_sugar:
            return False
        if self.options.canonical_names:
            return wrapped_root(start) is not None
        return can_vanish(start)

    # -- computations --------------------------------------------------------

    def computation(self, computation: Computation, *, scheduled: bool) -> str:
        """Text of a computation with its header, without a final line break."""
        pad = " " * self.options.indent
        head = "ENTRY " if computation.is_entry else ""
        head += self.sigil + computation.name
        if self.options.program_shape:
            parameters = ", ".join(
                f"{p.name}: {p.shape.to_text(with_layout=False)}"
                for p in computation.parameters
            )
            result = computation.root.shape.to_text(with_layout=False)
            head += f" ({parameters}) -> {result}"
        if self.options.subcomputations == "bodies":
            self._prepare_bodies(computation)
        lines = self._lines(computation, scheduled=scheduled)
        deeper = pad + "  "
        if self.options.subcomputations == "bodies":
            indented = [
                _indented(line, deeper).removeprefix(_FLUSH_LEFT) for line in lines
            ]
        else:
            indented = [deeper + line for line in lines]
        return "\n".join([pad + head + " {", *indented, pad + _closing(computation)])

    def _lines(self, computation: Computation, *, scheduled: bool) -> list[str]:
        order = printed_order(
            computation, scheduled=scheduled, canonical=self.options.canonical_names
        )
        names: dict[Instruction, str] = {}
        if self.options.canonical_names:
            names = {x: f"tmp_{i}" for i, x in enumerate(order)}
        root = computation.root
        skipped = self._compacted(order)
        lines: list[str] = []
        bodies = self.options.subcomputations == "bodies"
        for instruction in order:
            if instruction in skipped:
                continue
            text = self.instruction(instruction, names)
            if instruction is root:
                text = "ROOT " + text
            if bodies:
                lines.extend(text.split("\n"))
            else:  # a line break is part of a string: what follows is not indented
                lines.append(text)
        return lines

    def _compacted(self, order: Sequence[Instruction]) -> set[Instruction]:
        """Get-tuple-elements that are written as part of their users' operands."""
        if not self.options.compact_tuple_elements:
            return set()
        return {
            x
            for x in order
            if x.opcode == "get-tuple-element"
            and not x.is_root
            and x.users
            and x.metadata_text is None
            and len(x.attributes) == 1
            and not x.control_predecessors
            and not x.control_successors
        }

    def _prepare_bodies(self, computation: Computation) -> None:
        """Texts of everything that is called, callees first, without recursion."""
        stack = [(computation, False)]
        while stack:
            current, ready = stack.pop()
            if current in self._bodies:
                continue
            if ready:
                lines = self._lines(current, scheduled=False)
                self._bodies[current] = "\n".join(
                    ["{", *(_indented(line, "  ") for line in lines), _closing(current)]
                )
                continue
            stack.append((current, True))
            stack.extend(
                (callee, False)
                for x in current.instructions
                for callee in x.called_computations
                if callee not in self._bodies
            )

    # -- instructions --------------------------------------------------------

    def instruction(
        self, instruction: Instruction, names: Mapping[Instruction, str]
    ) -> str:
        """`name = shape opcode(operands), attributes`."""
        options = self.options
        opcode = instruction.opcode
        source = instruction  # whose attributes and callees are written
        written = opcode
        if opcode in _ASYNC and options.async_sugar:
            start = _chain_start(instruction)
            if start is not None and self._sweet(start):
                root = wrapped_root(start)
                assert root is not None  # _sweet says so
                written = f"{root.opcode}-{_ASYNC[opcode]}"
                source = root
        name = names.get(instruction) or instruction.name
        parts = [f"{self._named(name)} = "]
        if options.result_shapes:
            parts.append(f"{self._shape(instruction)} ")
        parts.append(f"{written}({self._operands(instruction, names)})")
        parts += [", " + text for text in self._attributes(instruction, source, names)]
        return "".join(parts)

    def _shape(self, instruction: Instruction) -> str:
        shape = instruction.shape
        if self.options.canonical_names:
            shape = canonical_shape(instruction)
        return shape_text(shape, layouts=self.options.layouts)

    def _operands(
        self, instruction: Instruction, names: Mapping[Instruction, str]
    ) -> str:
        if instruction.opcode == "parameter":
            return str(instruction.attributes["parameter_number"])
        if instruction.opcode == "constant":
            return self._literal(instruction.attributes["literal"])
        options = self.options
        texts = []
        for i, operand in enumerate(instruction.operands):
            text = self._reference(operand, names)
            if options.operand_shapes:
                text = f"{self._shape(operand)} {text}"
            if i and i % 5 == 0 and options.index_annotations:
                text = f"/*index={i}*/{text}"
            texts.append(text)
        return ", ".join(texts)

    def _reference(self, operand: Instruction, names: Mapping[Instruction, str]) -> str:
        path = ""
        if self.options.compact_tuple_elements:
            while operand in self._compacted([operand]):
                path = f"#{operand.tuple_index}{path}"
                operand = operand.operands[0]
        return self._named(names.get(operand) or operand.name) + path

    def _named(self, name: str) -> str:
        if not self.sigil and name in KEYWORDS:
            return "%" + name
        return self.sigil + name

    def _literal(self, literal: Literal) -> str:
        if self.options.canonical_names:
            if literal.shape.is_tuple or literal.shape.element_count > 10:
                return "{...}"
            return literal.canonical
        if self.options.large_constants or literal.shape.element_count <= 10:
            return literal.text
        return "{...}"

    def _attributes(
        self,
        instruction: Instruction,
        source: Instruction,
        names: Mapping[Instruction, str],
    ) -> list[str]:
        options = self.options
        opcode = instruction.opcode
        found: list[str] = []
        late = ""
        if opcode not in ("async-update", "async-done"):
            extras, late = self._cached(source)
            if source is not instruction:
                own, late = self._cached(instruction)
                if own:
                    found.append(own)
            if extras:
                found.append(extras)
            found += self._called(instruction, source)
            if "is_composite" in source.attributes and source.opcode == "call":
                found.append("is_composite=true")
        elif instruction.attributes:
            _, late = self._cached(instruction)
        if late:
            found.append(late)
        if options.control_dependencies and instruction.control_predecessors:
            before = ", ".join(
                self._named(names.get(p) or p.name)
                for p in instruction.control_predecessors
            )
            found.append(f"control-predecessors={{{before}}}")
        for name in _AFTER_CONTROL:
            text = common_attribute(instruction.attributes, name)
            if text:
                found.append(text)
        if options.metadata and instruction.metadata_text is not None:
            found.append(f"metadata={{{instruction.metadata_text}}}")
        if options.backend_config and instruction.backend_config is not None:
            found.append(f"backend_config={config_text(instruction.backend_config)}")
        return found

    def _cached(self, source: Instruction) -> tuple[str, str]:
        """Own attributes, and sharding with what follows it, as text."""
        attributes = source.attributes
        if not attributes:
            return "", ""
        key = (source.opcode, id(attributes))
        found = self._extras.get(key)
        if found is None:
            shown: Mapping[str, Any] = attributes
            if self.options.canonical_names:
                shown = attributes = canonical_attributes(source)
            if source.opcode == "compare" and is_default_comparison(source):
                shown = {k: v for k, v in attributes.items() if k != "type"}
            elif source.opcode == "call":
                shown = {k: v for k, v in attributes.items() if k != "is_composite"}
            late = [
                common_attribute(attributes, name)
                for name in ("parameter_replication", "sharding", "frontend_attributes")
            ]
            found = (
                ", ".join(extra_attributes(source.opcode, shown)),
                ", ".join(filter(None, late)),
            )
            if source.opcode != "compare":
                self._extras[key] = found
        return found

    def _called(self, instruction: Instruction, source: Instruction) -> list[str]:
        """Called computations, by name or body."""
        bodies = self.options.subcomputations == "bodies"
        found = self._labelled(source)
        if source is not instruction and bodies:
            found.append(f"calls=\n{self._bodies[instruction.called_computations[0]]}")
        return found

    def _labelled(self, source: Instruction) -> list[str]:
        bodies = self.options.subcomputations == "bodies"
        called = source.called_computations
        if not called:
            return []

        def text(computation: Computation) -> str:
            if bodies:
                return f"\n{self._bodies[computation]}"
            return self.sigil + computation.name

        opcode = source.opcode
        if opcode == "while":
            return [f"condition={text(called[1])}", f"body={text(called[0])}"]

        def listed() -> str:
            if bodies:
                return "{" + ",".join(map(text, called)) + f"\n{_FLUSH_LEFT}}}"
            return "{" + ", ".join(map(text, called)) + "}"

        if opcode == "conditional":
            if source.operands and source.operands[0].shape.element_type.name == "pred":
                return [
                    f"true_computation={text(called[0])}",
                    f"false_computation={text(called[1])}",
                ]
            return [f"branch_computations={listed()}"]
        if opcode == "custom-call":
            return [f"called_computations={listed()}"]
        labels = _CALL_LABELS.get(opcode, ("to_apply",))
        if bodies and opcode in ("reduce-scatter", "scan"):
            labels = ("calls",)
        return [f"{n}={text(c)}" for n, c in zip(labels, called, strict=False)]


def _indented(line: str, pad: str) -> str:
    return line if line.startswith(_FLUSH_LEFT) else pad + line


def _closing(computation: Computation) -> str:
    if computation.execution_thread == "main":
        return "}"
    return f"}}, execution_thread={quote(computation.execution_thread)}"


def _chain_start(instruction: Instruction) -> Instruction | None:
    """The async-start at the head of a chain; linear in the chain's length."""
    seen = 0
    while instruction.opcode in ("async-update", "async-done"):
        if not instruction.operands or seen > len(instruction.computation.instructions):
            return None
        instruction = instruction.operands[0]
        seen += 1
    return instruction if instruction.opcode == "async-start" else None


def is_default_comparison(compare: Instruction) -> bool:
    """Whether a comparison's stated type is the one its operands imply."""
    stated = compare.attributes.get("type")
    if stated is None or not compare.operands:
        return True
    kind = compare.operands[0].shape.as_array.element_type
    if kind.is_floating or kind.is_complex:
        return bool(stated == "FLOAT")
    return bool(stated == ("SIGNED" if kind.family == "signed" else "UNSIGNED"))
