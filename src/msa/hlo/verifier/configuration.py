"""Checks of the module's header: entry layout, aliases, donors, counts."""

from __future__ import annotations

from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.hlo.shape_inference.operation import compatible, dims_text
from msa.hlo.verifier.layouts import shape_problem
from msa.hlo.verifier.report import Report


def check_configuration(report: Report, module: Module) -> None:
    """Check what the module says about its entry and its replicas."""
    if module.replica_count < 1:
        report.module(f"replica_count is {module.replica_count}")
    if module.num_partitions < 1:
        report.module(f"num_partitions is {module.num_partitions}")
    entry = module.entry
    if entry is None or not entry.instructions or entry.root is None:
        return
    parameters = [p.shape for p in entry.parameters]
    result = entry.root.shape
    _check_entry_layout(report, module, parameters, result)
    aliased = _check_aliases(report, module, parameters, result)
    _check_donors(report, module, parameters, aliased)


def _check_entry_layout(
    report: Report, module: Module, parameters: list[Shape], result: Shape
) -> None:
    layout = module.entry_layout
    if layout is None:
        return
    if len(layout.parameters) != len(parameters):
        report.module(
            f"entry layout has {len(layout.parameters)} parameters, the entry "
            f"{len(parameters)}"
        )
        return
    for place, stated in (
        *((f"parameter {n}", s) for n, s in enumerate(layout.parameters)),
        ("the result", layout.result),
    ):
        problem = shape_problem(stated)
        if problem is not None:
            report.module(f"entry layout, {place}: {problem}")
    for number, (stated, shape) in enumerate(
        zip(layout.parameters, parameters, strict=True)
    ):
        if not compatible(stated, shape):
            report.module(
                f"entry layout gives parameter {number} as {dims_text(stated)}, the "
                f"entry as {dims_text(shape)}"
            )
    if not compatible(layout.result, result):
        report.module(
            f"entry layout gives the result as {dims_text(layout.result)}, the entry "
            f"as {dims_text(result)}"
        )


Location = tuple[int, ShapeIndex]


def _text(location: Location) -> str:
    number, index = location
    return f"parameter {number} {{{','.join(map(str, index))}}}"


def _parameter_at(
    report: Report, parameters: list[Shape], location: Location, what: str
) -> Shape | None:
    number, index = location
    if not 0 <= number < len(parameters):
        report.module(f"{what} {_text(location)}: there is no such parameter")
        return None
    if not parameters[number].has_index(index):
        shape = dims_text(parameters[number])
        report.module(f"{what} {_text(location)}: there is no such element of {shape}")
        return None
    return parameters[number].subshape(index)


def _check_aliases(
    report: Report, module: Module, parameters: list[Shape], result: Shape
) -> set[Location]:
    outputs: set[ShapeIndex] = set()
    inputs: set[Location] = set()
    for alias in module.aliases:
        location = (alias.parameter_number, alias.parameter_index)
        output = "{" + ",".join(map(str, alias.output_index)) + "}"
        if alias.output_index in outputs:
            report.module(f"alias: output {output} is aliased twice")
        outputs.add(alias.output_index)
        if location in inputs:
            report.module(f"alias: {_text(location)} is aliased twice")
        inputs.add(location)
        source = _parameter_at(report, parameters, location, "alias:")
        if not result.has_index(alias.output_index):
            report.module(f"alias: there is no output {output} of {dims_text(result)}")
        elif source is not None:
            _check_sizes(
                report, output, location, result.subshape(alias.output_index), source
            )
    return inputs


def _check_sizes(
    report: Report, output: str, location: Location, target: Shape, source: Shape
) -> None:
    if target.is_tuple or source.is_tuple:
        report.module(f"alias: output {output} or {_text(location)} is a tuple")
    elif not (target.is_static and source.is_static):
        return
    elif target.byte_size() != source.byte_size():
        report.module(
            f"alias: output {output} has {target.byte_size()} bytes, "
            f"{_text(location)} {source.byte_size()}"
        )


def _check_donors(
    report: Report, module: Module, parameters: list[Shape], aliased: set[Location]
) -> None:
    donors: set[Location] = set()
    for location in module.buffer_donors:
        _parameter_at(report, parameters, location, "buffer donor:")
        if location in donors:
            report.module(f"buffer donor: {_text(location)} is given twice")
        if location in aliased:
            report.module(f"buffer donor: {_text(location)} is aliased to an output")
        donors.add(location)
