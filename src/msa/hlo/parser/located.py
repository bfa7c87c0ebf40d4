"""Verifying a module next to its text: the first broken rule is shown in place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msa.errors import HloVerifyError
from msa.hlo.verifier import verify

if TYPE_CHECKING:
    from msa.hlo.module import Module

_PLACE: Final = re.compile(r"line (\d+): (\S+)")
_LAYOUT: Final = re.compile(r"layout of ([a-z0-9]+\[)")


def verify_text(module: Module, text: str) -> None:
    """Check a module that was read from a text.

    Raises:
        HloVerifyError: the module breaks rules; the error has line and column of the
            first instruction that does, and of the layout if that is wrong.

    >>> import msa
    >>> try:
    ...     msa.parse("ENTRY e { ROOT p = f32[4]{0:T(0)} parameter(0) }")
    ... except HloVerifyError as error:
    ...     error.line, error.column
    (1, 26)
    """
    try:
        verify(module)
    except HloVerifyError as error:
        raise _located(error, text) from None


def _located(error: HloVerifyError, text: str) -> HloVerifyError:
    for violation in error.violations:
        match = _PLACE.match(violation)
        if match is None:
            continue
        source = text.split("\n")[int(match[1]) - 1]
        name = re.search(rf"(?<![\w.\-]){re.escape(match[2])}(?![\w.\-])", source)
        column = name.start() if name else 0
        layout = _LAYOUT.search(violation)
        if layout is not None:
            brace = source.find("{", max(source.find(layout[1], column), 0))
            column = max(column, brace)
        return HloVerifyError(
            error.violations,
            hint=error.hint,
            line=int(match[1]),
            column=column + 1,
            source_line=source,
        )
    return error
