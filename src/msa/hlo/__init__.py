"""The IR: shapes, layouts, instructions, modules, schedules; text in and out.

Everything public of this room is importable from here and loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.hlo.builder import Builder as Builder
    from msa.hlo.computation import Computation as Computation
    from msa.hlo.files import load as load
    from msa.hlo.identity import canonical_text as canonical_text
    from msa.hlo.identity import fingerprint as fingerprint
    from msa.hlo.instruction import Instruction as Instruction
    from msa.hlo.layout import Layout as Layout
    from msa.hlo.literal import Literal as Literal
    from msa.hlo.metadata import Metadata as Metadata
    from msa.hlo.metadata import source_location as source_location
    from msa.hlo.module import Alias as Alias
    from msa.hlo.module import ComputationLayout as ComputationLayout
    from msa.hlo.module import Module as Module
    from msa.hlo.parser import parse as parse
    from msa.hlo.parser import parse_modules as parse_modules
    from msa.hlo.parser.shapes import parse_shape as parse_shape
    from msa.hlo.primitive import PrimitiveType as PrimitiveType
    from msa.hlo.print_options import PrintOptions as PrintOptions
    from msa.hlo.printer import print_computation as print_computation
    from msa.hlo.printer import print_instruction as print_instruction
    from msa.hlo.printer import print_module as print_module
    from msa.hlo.schedule import Schedule as Schedule
    from msa.hlo.shape import Shape as Shape
    from msa.hlo.verifier import verify as verify

_HOMES = {
    "Alias": "module",
    "Builder": "builder",
    "Computation": "computation",
    "ComputationLayout": "module",
    "Instruction": "instruction",
    "Layout": "layout",
    "Literal": "literal",
    "Metadata": "metadata",
    "Module": "module",
    "PrimitiveType": "primitive",
    "PrintOptions": "print_options",
    "Schedule": "schedule",
    "Shape": "shape",
    "canonical_text": "identity",
    "fingerprint": "identity",
    "load": "files",
    "parse": "parser",
    "parse_modules": "parser",
    "parse_shape": "parser.shapes",
    "print_computation": "printer",
    "print_instruction": "printer",
    "print_module": "printer",
    "source_location": "metadata",
    "verify": "verifier",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.hlo' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.hlo.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
