"""What an operation must look like by its kind: operands, results, attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from msa.dealloc.ir import VIEWS, BufferType, Operation, Value
from msa.errors import shown


@dataclass(frozen=True, slots=True)
class _Signature:
    """Counts of a kind; None for any.

    Attributes:
        least, most: number of operands.
        results: number of results.
        buffers: numbers of the operands that are buffers.
        makes: kind of the results: `buffer`, `scalar` or empty for either.
    """

    least: int = 0
    most: int | None = None
    results: int | None = None
    buffers: tuple[int, ...] = ()
    makes: str = ""


_SIGNATURES: Final = {
    "alloc": _Signature(results=1, makes="buffer"),
    "alloca": _Signature(results=1, makes="buffer"),
    "dealloc": _Signature(1, 1, 0, (0,)),
    "clone": _Signature(1, 1, 1, (0,), "buffer"),
    "copy": _Signature(2, 2, 0, (0, 1)),
    "view": _Signature(1, None, 1, (0,), "buffer"),
    "cast": _Signature(1, 1, 1, (0,), "buffer"),
    "subview": _Signature(1, None, 1, (0,), "buffer"),
    "select": _Signature(3, 3, 1),
    "load": _Signature(1, None, 1, (0,), "scalar"),
    "store": _Signature(2, None, 0, (-1,)),
    "constant": _Signature(0, 0, 1, (), "scalar"),
    "br": _Signature(0, 0, 0),
    "cond_br": _Signature(1, 1, 0),
    "for": _Signature(3),
    "parallel": _Signature(3, 3, 0),
    "if": _Signature(1, 1),
    "condition": _Signature(1, None, 0),
    "yield": _Signature(results=0),
    "return": _Signature(results=0),
}


def problem_of(operation: Operation) -> str:
    """What breaks the signature of the operation's kind; empty when nothing does.

    Kinds that are not known may look like anything.

    >>> from msa.dealloc.ir import Operation
    >>> problem_of(Operation("dealloc"))
    "'dealloc' has 0 operands"
    """
    kind = operation.kind
    signature = _SIGNATURES.get(kind, _Signature())
    operands, results = operation.operands, operation.results
    count = len(operands)
    if count < signature.least or (
        signature.most is not None and count > signature.most
    ):
        return f"{kind!r} has {count} operands"
    if signature.results is not None and len(results) != signature.results:
        return f"{kind!r} has {len(results)} results"
    if not all(operands[n].is_buffer for n in signature.buffers):
        return f"{kind!r} needs a buffer"
    if signature.makes and any(
        r.is_buffer != (signature.makes == "buffer") for r in results
    ):
        return f"{kind!r} makes a {signature.makes}"
    return _particular(operation)


def _particular(operation: Operation) -> str:
    """Rules of single kinds."""
    kind, operands, results = operation.kind, operation.operands, operation.results
    if kind in ("alloc", "alloca"):
        return _allocation(operation)
    if kind in VIEWS and is_part(results[0], operands[0]):
        return f"{kind!r} is larger than its source"
    if kind == "copy" and (is_part(*operands) or is_part(*reversed(operands))):
        return f"'copy' from {operands[0].type} to {operands[1].type}"
    if kind == "clone" and results[0].type != operands[0].type:
        return f"'clone' of {operands[0].type} makes {results[0].type}"
    if kind == "select" and {v.type for v in operands[1:]} != {results[0].type}:
        return f"'select' chooses among other types than {results[0].type}"
    if kind in ("for", "parallel") and any(v.is_buffer for v in operands[:3]):
        return f"{kind!r} counts with scalars"
    if kind == "constant" and "value" not in operation.attributes:
        return "'constant' needs a value"
    if kind == "call":
        return _aliases(operation, operation.attributes.get("aliases", {}))
    places = {*operation.reads, *operation.writes}
    if places and not 0 <= min(places) <= max(places) < len(operands):
        return f"{kind!r} reads or writes operands that it has not"
    if kind == "use" and len(places) < len(operands):
        return "'use' neither reads nor writes some operand"
    if any(not operands[n].is_buffer for n in operation.writes):
        return f"{kind!r} writes what is no buffer"
    return ""


def _allocation(operation: Operation) -> str:
    type_ = operation.results[0].type
    sizes = type_.shape.count(None) if isinstance(type_, BufferType) else 0
    if len(operation.operands) != sizes or any(v.is_buffer for v in operation.operands):
        return f"{operation.kind!r} of {type_} needs {sizes} sizes"
    alignment = operation.attributes.get("alignment", 1)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or alignment < 1:
        return (
            f"{operation.kind!r} has an alignment that is no whole number over 0: "
            f"{shown(alignment)}"
        )
    return ""


def _aliases(operation: Operation, aliases: Any) -> str:
    """Results of a call that are arguments: both are buffers of the call."""
    problem = "'aliases' of a call maps numbers of results to numbers of arguments"
    if not isinstance(aliases, dict):
        return f"{problem}, not {shown(aliases)}"
    for result, argument in aliases.items():
        for place, values in (
            (result, operation.results),
            (argument, operation.operands),
        ):
            if not isinstance(place, int) or not 0 <= place < len(values):
                return f"{problem}; there is no {shown(place)}"
            if not values[place].is_buffer:
                return f"{problem} that are buffers"
    return ""


def is_part(source: Value, view: Value) -> bool:
    """Whether a view certainly has fewer elements than its source."""
    whole, part = source.type, view.type
    return (
        isinstance(whole, BufferType)
        and isinstance(part, BufferType)
        and whole.dtype == part.dtype
        and whole.is_static
        and part.is_static
        and part.element_count < whole.element_count
    )
