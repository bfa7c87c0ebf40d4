"""Passes by name, loaded on first use."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Final

from msa.errors import OptionsError, did_you_mean
from msa.passes.base import Pass

_PASSES: Final = {
    "copy-insertion": "msa.passes.copies:InsertCopies",
    "cse": "msa.passes.common_subexpressions:EliminateCommonSubexpressions",
    "dce": "msa.passes.dead_code:EliminateDeadCode",
    "host-offload": "msa.passes.offload:OffloadToHost",
    "host-offload-legalize": "msa.passes.offload.legalize:LegalizeHostOffload",
    "host-transfers-async": "msa.passes.offload.asyncify:AsyncHostTransfers",
    "memory-space-propagation": "msa.passes.propagation:PropagateMemorySpaces",
    "rematerialize": "msa.passes.rematerialization:Rematerialize",
    "schedule": "msa.passes.scheduling:ScheduleModule",
}


_KINDS: Final = {
    "bool": ("bool",),
    "int": ("int",),
    "str": ("str",),
    "float": ("float", "int"),
    "int | str": ("size", "int", "float", "str"),
}
"""Kinds of values by the annotation of a field; the first is the name in messages."""

_FORMS: Final = {
    "bool": "true or false",
    "int": "a whole number",
    "str": "a word",
    "float": "a number",
    "size": "a size such as 16MiB",
}


def pass_names() -> tuple[str, ...]:
    """Names of all passes.

    >>> len(pass_names()) > 3
    True
    """
    return tuple(_PASSES)


def make_pass(name: str, options: dict[str, Any]) -> Pass:
    """A pass by name with options by field name.

    Raises:
        OptionsError: an unknown pass or option; the nearest is suggested.
    """
    place = _PASSES.get(name)
    if place is None:
        raise OptionsError(
            f"unknown pass {name!r}; known: {', '.join(_PASSES)}",
            hint=did_you_mean(name, _PASSES),
        )
    module, _, kind = place.partition(":")
    made = getattr(importlib.import_module(module), kind)
    fields = {f.name: f for f in dataclasses.fields(made)}
    values = {}
    for key, value in options.items():
        field = key.replace("-", "_")
        if field not in fields:
            raise OptionsError(
                f"the pass {name!r} has no option {key!r}; it has: "
                f"{', '.join(fields) or 'none'}",
                hint=did_you_mean(field, fields),
            )
        kinds = _KINDS.get(str(fields[field].type))
        given = "bool" if isinstance(value, bool) else type(value).__name__
        if kinds is not None and given not in kinds:
            raise OptionsError(
                f"the option {key!r} of {name!r} is no {kinds[0]}: {value!r}",
                hint=_FORMS[kinds[0]],
            )
        values[field] = value
    try:
        result: Pass = made(**values)
    except (TypeError, ValueError) as error:
        raise OptionsError(f"options of {name!r}: {error}") from error
    return result
