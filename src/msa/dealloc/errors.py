"""Failures of the buffer IR and its passes."""

from __future__ import annotations

from msa.errors import MsaError


class BufferIRError(MsaError):
    """A function breaks the rules of the IR, or its text cannot be read."""


class UnsupportedControlFlow(BufferIRError):
    """Control flow that the placement of deallocations does not support."""


class AllocationInterfaceError(BufferIRError):
    """An allocation is neither freed explicitly nor knows how to be freed."""


class EscapingDeallocation(BufferIRError):
    """A value is freed by hand and escapes through a terminator as well."""


class AliasMutationError(BufferIRError):
    """A buffer is written through one name after it was merged under another."""
