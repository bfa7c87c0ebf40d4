"""The reader of HLO text.

`cursor` finds tokens, `shapes`, `values` and `groups` read values, `tail` reads the
attributes of an instruction, `instruction` and `async_sugar` one instruction in any
form, `lines` the common form fast, `computation`, `header` and `reader` the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.hlo.arguments import text_of

if TYPE_CHECKING:
    from msa.hlo.module import Module


def parse(
    text: str | bytes, *, verify: bool = True, allow_unknown: bool = False
) -> Module:
    """Read one module of HLO text.

    Args:
        text: a module, a snippet without header, or a single instruction; bytes are
            read as UTF-8. Names that differ only within their computations get
            numbers, as XLA's reader gives them (`x`, `x.1`).
        verify: check the rules of the IR after reading.
        allow_unknown: keep unknown opcodes and attributes as opaque ones.

    Raises:
        HloParseError: with line, column, what was expected and the nearest name.
        HloVerifyError: listing every rule that is broken, with the place of the first.
        HloError: `text` is no text.

    Linear in the size of the text.

    >>> module = parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
    >>> [x.opcode for x in module.entry.instructions]
    ['parameter', 'negate']
    """
    from msa.hlo.parser.reader import read_modules

    text = text_of(text, "parse")
    modules = read_modules(text, allow_unknown=allow_unknown, several=False)
    return _checked(modules, text, verify)[0]


def parse_modules(
    text: str | bytes, *, verify: bool = True, allow_unknown: bool = False
) -> list[Module]:
    """Read every module of a text that holds several, one after the other.

    >>> text = "HloModule a\\nENTRY e { ROOT p = f32[] parameter(0) }\\n"
    >>> [m.name for m in parse_modules(text + text.replace("Module a", "Module b"))]
    ['a', 'b']
    """
    from msa.hlo.parser.reader import read_modules

    text = text_of(text, "parse_modules")
    modules = read_modules(text, allow_unknown=allow_unknown, several=True)
    return _checked(modules, text, verify)


def _checked(modules: list[Module], text: str, verify: bool) -> list[Module]:
    """Verified modules, each with names that differ in the whole module.

    Names change last, so that complaints about the text use those of the text.
    """
    for module in modules:
        if verify:
            from msa.hlo.parser.located import verify_text

            verify_text(module, text)
        module.make_names_unique()
    return modules
