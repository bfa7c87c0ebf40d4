"""What printed HLO text shows and leaves out.

Source: `xla/hlo/ir/hlo_print_options.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msa.errors import HloError, shown
from msa.hlo.arguments import expect


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Switches of the printer; the defaults lose nothing.

    Attributes:
        operand_shapes: write each operand's shape before its name.
        result_shapes: write result shapes.
        layouts: write layouts in shapes.
        metadata, backend_config: write these attributes.
        percent: write `%` before names.
        program_shape: write signatures such as `(p: f32[]) -> f32[]`.
        control_dependencies: write control predecessors.
        index_annotations: write `/*index=5*/` before every fifth operand.
        large_constants: write constants of more than 10 elements in full.
        async_sugar: write `slice-start` for a start that wraps one slice.
        stack_frames: write the stack-frame tables.
        subcomputations: `names`, or `bodies` to write called computations in place.
        compact_tuple_elements: write `%x#1` for a get-tuple-element operand.
        canonical_names: write `tmp_0`, `tmp_1`, … instead of instruction names.
        indent: spaces before every line.

    >>> from msa.hlo import parse, print_instruction
    >>> root = parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }").entry.root
    >>> print_instruction(root, PrintOptions(percent=False, layouts=False))
    'n = f32[4] negate(p)'
    """

    operand_shapes: bool = False
    result_shapes: bool = True
    layouts: bool = True
    metadata: bool = True
    backend_config: bool = True
    percent: bool = True
    program_shape: bool = True
    control_dependencies: bool = True
    index_annotations: bool = True
    large_constants: bool = True
    async_sugar: bool = True
    stack_frames: bool = True
    subcomputations: str = "names"
    compact_tuple_elements: bool = False
    canonical_names: bool = False
    indent: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if name not in ("subcomputations", "indent"):
                expect(value, bool, where=f"PrintOptions.{name}", what="True or False")
        expect(self.indent, int, where="PrintOptions.indent", what="a number of spaces")
        if (
            self.subcomputations not in ("names", "bodies")
            or not 0 <= self.indent <= 1000
        ):
            raise HloError(
                "subcomputations is 'names' or 'bodies', indent 0 to 1000, not "
                f"{shown(self.subcomputations)} and {self.indent}",
                where="PrintOptions",
            )

    @staticmethod
    def short_parsable() -> PrintOptions:
        """The shortest text that reads back as the same program.

        Metadata and stack frames are left out.
        """
        return PrintOptions(
            metadata=False,
            percent=False,
            program_shape=False,
            index_annotations=False,
            stack_frames=False,
        )

    @staticmethod
    def canonical() -> PrintOptions:
        """Text that is equal for programs that differ in names only.

        Control dependencies, metadata, backend configs and large constants are left
        out, and called computations are written in place, as XLA's canonical print
        does; it is for comparing, not for reading back.
        """
        return PrintOptions(
            operand_shapes=True,
            metadata=False,
            backend_config=False,
            percent=False,
            program_shape=False,
            control_dependencies=False,
            index_annotations=False,
            large_constants=False,
            stack_frames=False,
            subcomputations="bodies",
            canonical_names=True,
        )


DEFAULT_OPTIONS: Final = PrintOptions()
CANONICAL_OPTIONS: Final = PrintOptions.canonical()
