"""Running HLO text through jaxlib's CPU client."""

from __future__ import annotations

from typing import Any

import jax
import jax.lax.linalg
import ml_dtypes
import numpy as np
from jaxlib import _hlo, _jax, lapack, xla_client

from msa.hlo.module import Module
from msa.hlo.shape import Shape

jax.config.update("jax_enable_x64", True)
lapack._lapack.initialize()  # the handlers of custom calls look up LAPACK here

DTYPES = {
    "pred": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "s4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
}


def dtype_of(shape: Shape) -> Any:
    name = shape.element_type.name
    if name in DTYPES:
        return DTYPES[name]
    letters = {"s": "int", "u": "uint", "f": "float", "c": "complex"}
    return np.dtype(letters[name[0]] + name[1:])


def run_text(
    text: str, module: Module, inputs: list[list[Any]], *, devices: int = 1
) -> list[list[np.ndarray]]:
    """Compile text and run it; per device the flat list of result arrays.

    `inputs` has, per device, the flat arrays of all parameters.
    """
    hlo = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(hlo.as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    places = jax.devices("cpu")[:devices]
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    if devices > 1:
        options.num_partitions = devices
        build.num_partitions = devices
        build.use_spmd_partitioning = True
        build.device_assignment = xla_client.DeviceAssignment.create(
            np.arange(devices).reshape(1, devices)
        )
    client = places[0].client
    program = client.compile_and_load(mlir, _jax.DeviceList(tuple(places)), options)
    shapes = [p.shape for p in module.entry.parameters]
    columns = []
    for number, shape in enumerate(shapes):
        dtype = dtype_of(shape)
        arrays = [
            jax.device_put(np.asarray(given[number]).astype(dtype), place)
            for given, place in zip(inputs, places, strict=True)
        ]
        columns.append(arrays if devices > 1 else arrays[0])
    if devices == 1:
        results = program.execute_sharded(columns)
        rows = results.disassemble_into_single_device_arrays()
        return [[np.asarray(x[0]) for x in rows]]
    sharded = [make_sharded(column, places) for column in columns]
    results = program.execute_sharded(sharded)
    rows = results.disassemble_into_single_device_arrays()
    return [[np.asarray(x[d]) for x in rows] for d in range(devices)]


def make_sharded(column: list[Any], places: list[Any]) -> Any:
    mesh = jax.sharding.Mesh(np.array(places), ("d",))
    shape = column[0].shape
    spec = jax.sharding.PartitionSpec("d")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    whole = (len(places), *shape) if not shape else (shape[0] * len(places), *shape[1:])
    return jax.make_array_from_single_device_arrays(whole, sharding, column)
