"""What a sweep is given: modules under names, targets, a place to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from msa.errors import OptionsError, TargetError, shown
from msa.hlo import Module, load
from msa.hlo.arguments import expect
from msa.target import Target

Modules = Mapping[str, "Module | str | Path"] | Iterable["Module | str | Path"]


def texts_of(modules: Any) -> dict[str, str]:
    """Modules as text, by name.

    Raises:
        OptionsError: these are no modules, or two share a name.
    """
    given: Iterable[tuple[Any, Any]]
    if isinstance(modules, Mapping):
        given = modules.items()
    elif isinstance(modules, (Module, str, PathLike)) or not isinstance(
        modules, Iterable
    ):
        raise OptionsError(
            f"modules must be a sequence or a mapping, not {shown(modules)}",
            hint="[module]",
        )
    else:
        given = ((None, module) for module in modules)
    texts: dict[str, str] = {}
    for key, module in given:
        expect(
            module,
            (Module, str, PathLike),
            where="sweep",
            what="modules and paths",
            hint="msa.parse(text)",
            error=OptionsError,
        )
        name = key
        if not isinstance(modules, Mapping):
            name = module.name if isinstance(module, Module) else Path(module).name
        expect(name, str, where="sweep", what="names as text", error=OptionsError)
        if name in texts:
            raise OptionsError(
                f"two modules are named {name!r}", hint="give a mapping name → module"
            )
        loaded = module if isinstance(module, Module) else load(module)
        texts[name] = loaded.to_text()
    return texts


def targets_of(targets: Any) -> list[Target]:
    """Targets, of which some may be given by name.

    Raises:
        OptionsError: that is no sequence.
        TargetError: an unknown name, or something else among them.
    """
    if isinstance(targets, (Target, str)) or not isinstance(targets, Iterable):
        raise OptionsError(
            f"targets must be a sequence, not {shown(targets)}", hint="[target]"
        )
    return [
        Target.preset(target)
        if isinstance(target, str)
        else expect(
            target,
            Target,
            where="sweep",
            what="targets and names of presets",
            hint='msa.Target.preset("tpu_v5e")',
            error=TargetError,
        )
        for target in targets
    ]


def check_places(executor: Any, journal: Any) -> None:
    """Where a sweep runs, and where it keeps its rows.

    Raises:
        OptionsError: nothing can be submitted to the executor, or the journal is no
            path.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise OptionsError(
            f"an executor has a method `submit`, and {shown(executor)} has none",
            hint="concurrent.futures.ProcessPoolExecutor()",
        )
    if journal is not None:
        expect(
            journal,
            (str, PathLike),
            where="sweep",
            what="the path of a journal",
            error=OptionsError,
        )
