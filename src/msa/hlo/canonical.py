"""Attributes as XLA's canonical text states them.

The reader keeps what a text says; this is the normal form for comparing texts.

Source: `xla/hlo/ir/hlo_instructions.cc`, `xla/hlo/ir/hlo_sharding.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.hlo.sharding import canonical_sharding
from msa.hlo.window import ConvolutionDimensionNumbers


def canonical_attributes(instruction: Instruction) -> Mapping[str, Any]:
    """The attributes of an instruction in normal form."""
    attributes = dict(instruction.attributes)
    labels = attributes.get("dim_labels")
    if labels is not None:
        attributes["dim_labels"] = ConvolutionDimensionNumbers(
            labels.lhs.rstrip("?"), labels.rhs.rstrip("?"), labels.output.rstrip("?")
        )
    if "sharding" in attributes:
        attributes["sharding"] = _sharding(instruction, attributes["sharding"])
    if "statistics" in attributes:
        attributes["statistics"] = tuple(
            (name, _six_digits(value)) if place else (name, value)
            for place, (name, value) in enumerate(attributes["statistics"])
        )
    return attributes


def _six_digits(value: str) -> str:
    """A statistic as C's `%g` writes it; the index before them stays whole."""
    return f"{float(value):g}"


def _sharding(instruction: Instruction, text: str) -> str:
    """One sharding for a tuple stands for one per leaf."""
    text = canonical_sharding(text)
    if instruction.shape.is_tuple and not text.startswith("{{") and text != "{}":
        count = max(1, sum(1 for _ in instruction.shape.leaves()))
        return "{" + ", ".join([text] * count) + "}"
    return text


def canonical_shape(instruction: Instruction) -> Shape:
    """The result shape; constants do not keep their packed element width."""
    shape = instruction.shape
    layout = shape.layout
    if instruction.opcode == "constant" and layout and layout.element_size_in_bits:
        return shape.with_layout(replace(layout, element_size_in_bits=0))
    return shape
