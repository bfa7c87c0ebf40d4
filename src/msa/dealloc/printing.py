"""Text form of the buffer IR: one operation a line; print, parse, print is identity."""

from __future__ import annotations

import json
from typing import Any, Final

from msa.dealloc.ir import (
    Function,
    Operation,
    Region,
    Successor,
    Value,
)


def print_function(function: Function) -> str:
    """The function as text; unnamed values get names.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> print_function(function).splitlines()[2]
    '  %a = alloc : buf<4xf32>'
    """
    _name_values(function)
    parameters = []
    for number, value in enumerate(function.arguments):
        attributes = (
            function.argument_attributes[number]
            if number < len(function.argument_attributes)
            else {}
        )
        extra = f" {_attributes(attributes)}" if attributes else ""
        parameters.append(f"%{value.name}: {value.type}{extra}")
    results = function.result_types
    arrow = ""
    if len(results) == 1:
        arrow = f" -> {results[0]}"
    elif results:
        arrow = f" -> ({', '.join(map(str, results))})"
    lines = [f"func @{function.name}({', '.join(parameters)}){arrow} {{"]
    # Explicit stack of what is still to print: lines, or (region, indent) pairs.
    work: list[str | tuple[Region, int]] = ["}", (function.region, 1)]
    while work:
        item = work.pop()
        if isinstance(item, str):
            lines.append(item)
        else:
            work.extend(reversed(_region_items(*item)))
    return "\n".join(lines) + "\n"


def _region_items(region: Region, depth: int) -> list[str | tuple[Region, int]]:
    pad = "  " * depth
    items: list[str | tuple[Region, int]] = []
    for number, block in enumerate(region.blocks):
        if number == 0 and region.parent is None:
            items.append(f"^{block.name}:")
        elif number:
            arguments = ", ".join(f"%{a.name}: {a.type}" for a in block.arguments)
            head = f"({arguments})" if arguments else ""
            items.append(f"{'  ' * (depth - 1)}^{block.name}{head}:")
        for operation in block.operations:
            if not operation.regions:
                items.append(pad + _plain(operation))
                continue
            items.append(f"{pad}{_header(operation)} {{")
            for place, inner in enumerate(operation.regions):
                if place:
                    items.append(f"{pad}}} {_between(operation, inner)} {{")
                items.append((inner, depth + 1))
            items.append(f"{pad}}}")
    return items


def _between(operation: Operation, region: Region) -> str:
    if operation.kind == "while":
        arguments = ", ".join(f"%{a.name}: {a.type}" for a in region.entry.arguments)
        return f"do ({arguments})"
    return "else" if operation.kind == "if" else "next"


def _results(operation: Operation) -> str:
    names = ", ".join(f"%{v.name}" for v in operation.results)
    return f"{names} = " if names else ""


def _types(operation: Operation) -> str:
    types = ", ".join(str(v.type) for v in operation.results)
    return f" : {types}" if types else ""


def _list(values: list[Value]) -> str:
    return ", ".join(f"%{v.name}" for v in values)


def _attributes(attributes: dict[str, Any]) -> str:
    parts = [
        key if value is True else f"{key} = {json.dumps(value, sort_keys=True)}"
        for key, value in sorted(attributes.items())
    ]
    return "{" + ", ".join(parts) + "}"


def _header(operation: Operation) -> str:
    kind, values = operation.kind, operation.operands
    start = _results(operation) + kind
    extra = f" {_attributes(operation.attributes)}" if operation.attributes else ""
    if kind == "while":
        pairs = zip(operation.regions[0].entry.arguments, values, strict=True)
        inits = ", ".join(f"%{a.name} = %{v.name}" for a, v in pairs)
        types = ", ".join(str(v.type) for v in values)
        outs = ", ".join(str(v.type) for v in operation.results)
        return f"{start} ({inits}) : ({types}) -> ({outs}){extra}"
    if kind == "if":
        return f"{start} %{values[0].name}{_types(operation)}{extra}"
    if kind in ("for", "parallel"):
        arguments = operation.regions[0].entry.arguments
        low, high, step = (v.name for v in values[:3])
        text = f"{start} %{arguments[0].name} = %{low} to %{high} step %{step}"
        if len(arguments) > 1:
            pairs = zip(arguments[1:], values[3:], strict=True)
            text += f" iter({', '.join(f'%{a.name} = %{v.name}' for a, v in pairs)})"
        return f"{text}{_types(operation)}{extra}"
    name = json.dumps(kind)
    return f"{_results(operation)}{name}({_list(values)}){_types(operation)}{extra}"


def _plain(operation: Operation) -> str:
    kind, values = operation.kind, operation.operands
    attributes = dict(operation.attributes)
    start = _results(operation)
    if kind == "use":
        reads = _list([values[i] for i in operation.reads])
        writes = _list([values[i] for i in operation.writes])
        body = f"use reads({reads}) writes({writes})"
    elif kind == "constant":
        body = f"constant {json.dumps(attributes.pop('value'))}"
    elif kind == "call":
        body = f"call @{attributes.pop('callee')}({_list(values)})"
    elif kind in ("br", "cond_br"):
        targets = [_target(s) for s in operation.successors]
        body = f"{kind} {', '.join([*(f'%{v.name}' for v in values), *targets])}"
    elif kind in PLAIN_OPERATIONS:
        body = f"{kind} {_list(values)}".rstrip()
    else:
        body = f"{json.dumps(kind)}({_list(values)})"
    extra = f" {_attributes(attributes)}" if attributes else ""
    return f"{start}{body}{_types(operation)}{extra}"


def _target(successor: Successor) -> str:
    arguments = _list(successor.arguments)
    return f"^{successor.block.name}" + (f"({arguments})" if arguments else "")


PLAIN_OPERATIONS: Final = frozenset(
    [
        "alloc",
        "alloca",
        "dealloc",
        "clone",
        "copy",
        "view",
        "cast",
        "subview",
        "select",
        "load",
        "store",
        "cmp",
        "add",
        "return",
        "yield",
        "condition",
    ]
)


def _name_values(function: Function) -> None:
    used: set[str] = set()
    unnamed = []
    for value in function.values():
        if not value.name or value.name in used:
            unnamed.append(value)
        else:
            used.add(value.name)
    count = 0
    for value in unnamed:
        while f"v{count}" in used:
            count += 1
        value.name = f"v{count}"
        used.add(value.name)
