"""Bit-for-bit comparison of results."""

from __future__ import annotations

import numpy as np

from msa.assignment.verification.storage import fetched_inputs
from msa.errors import ExecutionError
from msa.hlo.module import Module
from msa.hlo.shape import Shape
from msa.runtime.evaluator.values import Value, leaves_of


def require_equal(shape: Shape, expected: Value, got: Value, where: str) -> None:
    """Check that two results of one shape have the same bits.

    Raises:
        ExecutionError: they differ; the first differing element is named.
    """
    for (index, leaf, a), (_, _, b) in zip(
        leaves_of(shape, expected), leaves_of(shape, got), strict=True
    ):
        if a is None and b is None:
            continue
        a, b = np.asarray(a, order="C"), np.asarray(b, order="C")
        if a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes():
            continue
        output = "{" + ",".join(map(str, index)) + "}"
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ExecutionError(
                f"output {output} is {b.dtype}{list(b.shape)}, expected "
                f"{a.dtype}{list(a.shape)}",
                where=where,
            )
        flat_a, flat_b = a.reshape(-1), b.reshape(-1)
        width = a.dtype.itemsize
        rows_a = flat_a.view(np.uint8).reshape(-1, width)
        rows_b = flat_b.view(np.uint8).reshape(-1, width)
        wrong = np.nonzero((rows_a != rows_b).any(axis=1))[0]
        place = [int(i) for i in np.unravel_index(int(wrong[0]), a.shape)]
        raise ExecutionError(
            f"output {output} ({leaf}) differs in {len(wrong)} of {a.size} elements; "
            f"the first at {place}: {flat_b[wrong[0]]}, expected {flat_a[wrong[0]]}",
            where=where,
        )


def require_equal_symbols(
    shape: Shape, expected: Value, got: Value, where: str
) -> None:
    """Check that two results, arrays or symbols, came about in the same way.

    Raises:
        ExecutionError: an output differs.
    """
    for (index, leaf, a), (_, _, b) in zip(
        leaves_of(shape, expected), leaves_of(shape, got), strict=True
    ):
        known = isinstance(a, np.ndarray | np.generic)
        if known and isinstance(b, np.ndarray | np.generic):
            require_equal(leaf, a, b, where)
        elif known or a != b:
            output = "{" + ",".join(map(str, index)) + "}"
            raise ExecutionError(
                f"output {output} ({leaf}) is not computed from the same values",
                where=where,
            )


def require_same_interface(original: Module, lowered: Module) -> None:
    """Check that callers can use the lowered module in place of the original.

    An input that the caller wants in alternate memory is taken from default memory if
    the lowered module fetches it there itself before it begins.

    Raises:
        ExecutionError: parameters or results have other shapes or memory spaces.
    """
    pairs = [(original.entry.root, lowered.entry.root)]
    if len(original.entry.parameters) != len(lowered.entry.parameters):
        raise ExecutionError(
            f"{lowered.name} takes {len(lowered.entry.parameters)} inputs instead of "
            f"{len(original.entry.parameters)}",
            where=lowered.name,
        )
    pairs += zip(original.entry.parameters, lowered.entry.parameters, strict=True)
    fetched = fetched_inputs(lowered.entry)
    for before, after in pairs:
        same = before.shape == after.shape or (
            after in fetched and before.shape.equal_ignoring_memory_space(after.shape)
        )
        if not same:
            raise ExecutionError(
                f"{after.name} is {after.shape} at the module's interface, "
                f"it was {before.shape}",
                where=lowered.name,
            )
