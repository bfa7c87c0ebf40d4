"""The bridge to JAX (extra `jax`): functions in, reports on every compilation.

    plan = msa.assign(msa.from_jax(step, params, batch), target)

Nothing here is imported before it is asked for, and JAX itself only inside the calls.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from msa.analysis import analyze
from msa.errors import FileFormatError, UnsupportedError
from msa.hlo import Module, parse
from msa.report.tables import format_table
from msa.units import format_bytes

log = logging.getLogger("msa.jax")

Report = Callable[[Module], None]


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnsupportedError(
            f"{name} is not installed or too old",
            subject=name,
            hint="pip install -U 'msa[jax]'",
        ) from error


def from_jax(
    function: Callable[..., Any],
    *arguments: Any,
    optimized: bool = True,
    **keywords: Any,
) -> Module:
    """The module of a JAX function for these arguments.

    Args:
        function: any function that `jax.jit` takes, or one that it gave.
        arguments, keywords: arrays, or `jax.ShapeDtypeStruct`s, which need no memory.
        optimized: compile for the default backend and take its scheduled module;
            otherwise the module before optimization, without a schedule.

    Raises:
        UnsupportedError: JAX is not installed.

    Example::

        module = msa.from_jax(lambda x: jnp.tanh(x @ x), jnp.ones((512, 512)))

    >>> import msa, numpy as np  # doctest: +SKIP
    >>> module = msa.from_jax(lambda x: x @ x, np.ones((8, 8)))  # doctest: +SKIP
    >>> module.is_scheduled, module.entry.root.shape.dimensions  # doctest: +SKIP
    (True, (8, 8))
    """
    jax = _imported("jax")
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    lowered = jitted.lower(*arguments, **keywords)
    return from_compiled(lowered.compile()) if optimized else from_lowered(lowered)


def from_compiled(compiled: Any) -> Module:
    """The optimized, scheduled module of `jax.jit(f).lower(…).compile()`.

    Constants are kept in full. A program of several modules is not supported.

    Raises:
        UnsupportedError: the backend keeps no HLO, or several modules.

    >>> import msa, jax  # doctest: +SKIP
    >>> compiled = jax.jit(lambda x: x * 2).lower(1.0).compile()  # doctest: +SKIP
    >>> msa.from_compiled(compiled).is_scheduled  # doctest: +SKIP
    True
    """
    hlo = _imported("jaxlib._hlo")
    try:
        modules = compiled.runtime_executable().hlo_modules()
    except (AttributeError, RuntimeError, NotImplementedError) as error:
        raise UnsupportedError(
            f"the executable gives no HLO: {error}", subject="hlo_modules"
        ) from error
    if len(modules) != 1:
        raise UnsupportedError(
            f"the executable has {len(modules)} modules", subject="hlo_modules"
        )
    return parse(_printed(hlo, modules[0]))


def from_lowered(lowered: Any) -> Module:
    """The module of `jax.jit(f).lower(…)`, before optimization, without a schedule.

    `msa.assign` and `msa.analyze` schedule it themselves; `msa.schedule` does so alone.

    >>> import msa, jax  # doctest: +SKIP
    >>> module = msa.from_lowered(jax.jit(lambda x: x * 2).lower(1.0))  # doctest: +SKIP
    >>> module.is_scheduled  # doctest: +SKIP
    False
    """
    return parse(lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True))


def from_proto(data: bytes) -> Module:
    """A module from a serialized `HloModuleProto`.

    Raises:
        FileFormatError: the bytes are something else.
        UnsupportedError: jaxlib is not installed.

    >>> import jax  # doctest: +SKIP
    >>> lowered = jax.jit(lambda x: x * 2).lower(1.0)  # doctest: +SKIP
    >>> data = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()  # doctest: +SKIP
    >>> from_proto(data).entry.root.opcode  # doctest: +SKIP
    'multiply'
    """
    hlo = _imported("jaxlib._hlo")
    try:
        module = hlo.HloModule.from_serialized_hlo_module_proto(data)
    except (ValueError, RuntimeError) as error:
        raise FileFormatError(f"is no serialized HLO module: {error}") from error
    return parse(_printed(hlo, module))


def _printed(hlo: Any, module: Any) -> str:
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(module.to_string(options))


# -- reports on every compilation ------------------------------------------------------


@dataclass(eq=False)
class Registration:
    """A report that runs on every compilation until it is closed.

    Attributes:
        name: under which JAX knows it.
        stage: name of the pipeline stage.
        modules: names of the modules seen, in order.
        errors: what went wrong in the report; compilation goes on regardless.

    >>> registration = Registration("msa", "post-scheduler")
    >>> registration.modules, registration.errors
    ([], [])
    """

    name: str
    stage: str
    modules: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    _open: bool = field(default=True, repr=False)

    def close(self) -> None:
        """Stop reporting; calling it again does nothing."""
        if self._open:
            self._open = False
            xla = _imported("jax.extend.xla")
            xla.clear_hlo_module_transformation(
                self.name, xla.PipelineStage[self.stage]
            )

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def log_peak(module: Module) -> None:
    """The report used by default: peak memory, one line in the log `msa.jax`.

    >>> import msa
    >>> log_peak(msa.schedule(msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }")))
    """
    report = analyze(module)
    log.info(
        "%s: peak %s, lower bound %s",
        module.name,
        format_bytes(report.peak_bytes),
        format_bytes(report.lower_bound),
    )


def register(
    report: Report = log_peak,
    *,
    name: str = "msa",
    stage: str = "POST_SCHEDULER",
    platforms: str | list[str] | None = None,
) -> Registration:
    """Call `report(module)` on every compilation, through JAX's public hook.

    Modules are only looked at, never changed; an error in the report is logged and
    kept in `Registration.errors`, and compilation goes on.

    Args:
        report: what to do with each module.
        name: under which JAX knows it; different reports need different names.
        stage: `POST_SCHEDULER` (with a schedule) or `PRE_SCHEDULER`.
        platforms: such as `"cpu"`; all by default.

    Raises:
        UnsupportedError: JAX is missing or has no such hook (it came with 0.10.2).

    Example::

        with msa.integrations.jax.register(lambda m: print(msa.analyze(m))):
            jax.jit(step)(params, batch)

    >>> import jax  # doctest: +SKIP
    >>> with register(lambda module: print(module.name)):  # doctest: +SKIP
    ...     result = jax.jit(lambda x: x * 2)(1.0)
    jit__lambda
    """
    xla = _imported("jax.extend.xla")
    registration = Registration(name, stage)

    def look(data: bytes) -> None:
        try:
            module = from_proto(data)
            registration.modules.append(module.name)
            report(module)
        except Exception as error:  # a report must never break a compilation
            registration.errors.append(error)
            log.warning("the report %r failed: %s", name, error)

    try:
        xla.register_hlo_module_transformation(
            look, name=name, stage=xla.PipelineStage[stage], platforms=platforms
        )
    except (AttributeError, KeyError, NotImplementedError) as error:
        raise UnsupportedError(
            f"this JAX has no hook for stage {stage!r}: {error}",
            subject="register_hlo_module_transformation",
            hint="pip install -U 'msa[jax]'",
        ) from error
    return registration


# -- side by side with XLA -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """XLA's own memory figures of an executable beside this library's, in bytes.

    >>> table = MemoryComparison("m", (("temporaries", 4096, 2048),))
    >>> table.rows[0][0]
    'temporaries'
    """

    module: str
    rows: tuple[tuple[str, int, int], ...]

    def __str__(self) -> str:
        body = [
            (name, format_bytes(xla), format_bytes(ours), _ratio(ours, xla))
            for name, xla, ours in self.rows
        ]
        return format_table(("", "XLA", "msa", "ratio"), body, right={1, 2, 3})


def _ratio(ours: int, theirs: int) -> str:
    return f"{ours / theirs:.3f}" if theirs else ""


def compare_memory(compiled: Any) -> MemoryComparison:
    """XLA's buffer assignment of an executable and this library's, side by side.

    Args:
        compiled: of `jax.jit(f).lower(…).compile()`.

    Raises:
        UnsupportedError: the backend tells no memory figures, or keeps no HLO.

    >>> import jax, numpy as np  # doctest: +SKIP
    >>> lowered = jax.jit(lambda x: x @ x).lower(np.ones((8, 8), "f4"))  # doctest: +SKIP
    >>> compare_memory(lowered.compile()).rows[0]  # doctest: +SKIP
    ('arguments', 256, 256)
    """
    stats = compiled.memory_analysis()
    if stats is None:
        raise UnsupportedError(
            "the backend tells no memory figures", subject="memory_analysis"
        )
    module = from_compiled(compiled)
    breakdown = analyze(module).breakdown
    xla_total = (
        stats.argument_size_in_bytes
        + stats.output_size_in_bytes
        - stats.alias_size_in_bytes
        + stats.temp_size_in_bytes
    )
    rows = (
        ("arguments", stats.argument_size_in_bytes, breakdown.arguments),
        ("outputs", stats.output_size_in_bytes, breakdown.outputs),
        ("aliased", stats.alias_size_in_bytes, breakdown.aliased),
        ("temporaries", stats.temp_size_in_bytes, breakdown.temporaries),
        ("total", xla_total, breakdown.total),
    )
    return MemoryComparison(module.name, rows)


__all__: Final = [
    "MemoryComparison",
    "Registration",
    "compare_memory",
    "from_compiled",
    "from_jax",
    "from_lowered",
    "from_proto",
    "log_peak",
    "register",
]
