"""Each rule of collective and host memory, broken on purpose, makes its test fail."""

from __future__ import annotations
import __future__

import importlib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from collective_support import PATIENT, QUICK, Cluster
from msa.runtime.collective import DeviceWorld
from msa.runtime.host import HostMemoryPool, TransferManager
from runtime import (
    collective_mutation_rows,
    host_mutation_rows,
    mapping_mutation_rows,
)
from runtime.test_mutations import module_at

ROWS = [
    pytest.param(path, *row, id=row[0].replace(" ", "-"))
    for rows in (
        collective_mutation_rows,
        mapping_mutation_rows,
        host_mutation_rows,
    )
    for path, listed in rows.FILES.items()
    for row in listed
]


def rewritten(function: Callable[..., Any], old: str, new: str) -> Any:
    """The function with a piece of its text replaced, in the same module."""
    source = textwrap.dedent(inspect.getsource(function))
    old, new = (textwrap.dedent(text) for text in (old, new))
    squeezed = source.replace("\n        ", "\n    ") if "\n" in old else source
    assert old in source or old in squeezed, f"{function.__qualname__} has no {old!r}"
    found: dict[str, Any] = {}
    code = compile(
        source.replace(old, new),
        function.__code__.co_filename,
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    exec(code, function.__globals__, found)
    (made,) = found.values()
    return made


def hasten(spoiled: pytest.MonkeyPatch) -> None:
    """Ranks that wait in vain give up soon."""
    defaults = [QUICK if d is PATIENT else d for d in Cluster.__init__.__defaults__]
    assert QUICK in defaults
    spoiled.setattr(Cluster.__init__, "__defaults__", tuple(defaults))


def place_of(place: str) -> tuple[Any, str]:
    where, _, what = place.partition(":")
    owner: Any = importlib.import_module(where)
    *parents, last = what.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, last


def arguments_of(wanted: tuple[Any, ...]) -> list[Any]:
    """Arguments of a test, with fixtures made anew."""
    world = DeviceWorld(2, granularity=4096)
    fixtures = {
        collective_mutation_rows.WORLD: lambda: DeviceWorld(4, granularity=4096),
        host_mutation_rows.WORLD: lambda: world,
        host_mutation_rows.MANAGER: lambda: TransferManager(
            world, HostMemoryPool(1 << 20), staging_bytes=1024
        ),
    }
    return [
        fixtures[a]() if isinstance(a, str) and a in fixtures else a for a in wanted
    ]


@pytest.mark.parametrize(
    ("path", "fault", "place", "old", "new", "test", "wanted"), ROWS
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    fault: str,
    place: str,
    old: str,
    new: str,
    test: str,
    wanted: tuple[Any, ...],
) -> None:
    tests = module_at(path)
    owner, name = place_of(place)
    plain = inspect.getattr_static(owner, name)
    function = plain.fget if isinstance(plain, property) else getattr(owner, name)
    broken = rewritten(function, old, new)
    with monkeypatch.context() as spoiled:
        hasten(spoiled)
        value = property(broken) if isinstance(plain, property) else broken
        spoiled.setattr(owner, name, value)
        if inspect.ismodule(owner) and hasattr(tests, name):
            spoiled.setattr(tests, name, value)
        with pytest.raises((Exception, pytest.fail.Exception)):
            getattr(tests, test)(*arguments_of(wanted))
    getattr(tests, test)(*arguments_of(wanted))


def test_every_group_has_its_rows() -> None:
    letters = {str(row.id)[0] for row in ROWS}
    assert letters == set("ABCDEFG")
    assert len(ROWS) > 100
