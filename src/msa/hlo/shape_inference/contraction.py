"""Products and transforms: dot, convolution, fft, triangular systems.

Source: `xla/service/shape_inference.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.primitive import PRIMITIVE_TYPES, PrimitiveType
from msa.hlo.shape import UNBOUNDED, Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    dims_text,
    flags,
    higher_precision,
    resized,
    retyped,
    row_major,
    same_dims,
    same_size,
    same_type,
)
from msa.hlo.shape_inference.window import window_dimensions, windowed_sizes


def _product_type(op: Operation, a: Shape, b: Shape) -> PrimitiveType:
    """Element type of a product; the text may state a wider one."""
    kind = higher_precision(a.element_type, b.element_type)
    if op.stated is None or op.stated.element_type.family == "special":
        return kind
    stated = op.stated.element_type
    if kind.is_floating and stated.is_floating:
        return stated
    return higher_precision(stated, kind)


class _Dot:
    """Dimension numbers of a product, checked against both sides."""

    def __init__(self, op: Operation, lhs: Shape, rhs: Shape) -> None:
        left, right = len(lhs.dimensions), len(rhs.dimensions)
        self.lhs_batch = op.dimension_numbers("lhs_batch_dims", left, ())
        self.rhs_batch = op.dimension_numbers("rhs_batch_dims", right, ())
        self.lhs_contract = op.dimension_numbers("lhs_contracting_dims", left, ())
        self.rhs_contract = op.dimension_numbers("rhs_contracting_dims", right, ())
        if set(self.lhs_batch) & set(self.lhs_contract) or set(self.rhs_batch) & set(
            self.rhs_contract
        ):
            op.fail("a dimension is both batch and contracting")
        if len(self.lhs_batch) != len(self.rhs_batch):
            op.fail("the numbers of batch dimensions differ")
        if len(self.lhs_contract) != len(self.rhs_contract):
            op.fail("the numbers of contracting dimensions differ")

    def check_sizes(self, op: Operation, lhs: Shape, rhs: Shape) -> None:
        """Batch and contracting sizes of both sides agree."""
        left = (*self.lhs_batch, *self.lhs_contract)
        right = (*self.rhs_batch, *self.rhs_contract)
        for i, j in zip(left, right, strict=True):
            if not same_size(lhs.dimensions[i], rhs.dimensions[j]):
                op.fail(
                    f"dimension {i} of {dims_text(lhs)} does not fit dimension {j} "
                    f"of {dims_text(rhs)}"
                )

    def free(self, rank: int, *taken: tuple[int, ...]) -> list[int]:
        """Dimensions that are in none of the lists."""
        used = {d for numbers in taken for d in numbers}
        return [d for d in range(rank) if d not in used]

    def result(self, kind: PrimitiveType, lhs: Shape, rhs: Shape) -> Shape:
        """Batch dimensions, then the free ones of both sides."""
        left = [
            *self.lhs_batch,
            *self.free(len(lhs.dimensions), self.lhs_batch, self.lhs_contract),
        ]
        right = self.free(len(rhs.dimensions), self.rhs_batch, self.rhs_contract)
        sizes = [lhs.dimensions[d] for d in left] + [rhs.dimensions[d] for d in right]
        dynamic = [flags(lhs)[d] for d in left] + [flags(rhs)[d] for d in right]
        return row_major(kind, sizes, dynamic)


def _dot(op: Operation) -> Shape | None:
    if op.attribute("sparsity", None) is not None:
        return op.stated  # legacy structured sparsity
    lhs, rhs = op.array(0), op.array(1)
    dot = _Dot(op, lhs, rhs)
    dot.check_sizes(op, lhs, rhs)
    return dot.result(_product_type(op, lhs, rhs), lhs, rhs)


def _scaled_dot(op: Operation) -> Shape:
    lhs, lhs_scale, rhs, rhs_scale = op.arrays()
    for side, scale in ((lhs, lhs_scale), (rhs, rhs_scale)):
        if scale.dimensions and len(scale.dimensions) != len(side.dimensions):
            op.fail(f"scale {dims_text(scale)} differs in rank from {dims_text(side)}")
    dot = _Dot(op, lhs, rhs)
    dot.check_sizes(op, lhs, rhs)
    return dot.result(_product_type(op, lhs, rhs), lhs, rhs)


def _ragged_dot(op: Operation) -> Shape:
    """One group of rows (or of contracted elements) after the other."""
    lhs, rhs, sizes = op.arrays()
    op.integral(2, "group sizes")
    dot = _Dot(op, lhs, rhs)
    dot.check_sizes(op, lhs, rhs)
    kind = _product_type(op, lhs, rhs)
    ragged = op.dimension_numbers("lhs_ragged_dims", len(lhs.dimensions))
    if len(ragged) != 1:
        op.fail(f"needs exactly one ragged dimension, got {list(ragged)}")
    groups = op.dimension_numbers("rhs_group_dims", len(rhs.dimensions), ())
    if ragged[0] in dot.lhs_contract:
        result = dot.result(kind, lhs, rhs)
        count = sizes.dimensions[-1] if sizes.dimensions else 1
        return row_major(kind, (count, *result.dimensions), (False, *flags(result)))
    left = dot.free(len(lhs.dimensions), dot.lhs_batch, dot.lhs_contract)
    right = dot.free(len(rhs.dimensions), dot.rhs_batch, dot.rhs_contract, groups)
    dims = [lhs.dimensions[d] for d in (*dot.lhs_batch, *left)]
    return row_major(kind, dims + [rhs.dimensions[d] for d in right])


def _convolution(op: Operation) -> Shape | None:
    lhs, rhs = op.array(0), op.array(1)
    labels = op.attribute("dim_labels")
    if "?" in str(labels):
        return op.stated  # dimensions without a part: only the text knows
    if not same_type(lhs.element_type, rhs.element_type) and not (
        lhs.element_type.is_integral and rhs.element_type.is_integral
    ):
        op.fail(f"operands differ in type: {dims_text(lhs)} and {dims_text(rhs)}")
    spatial = len(labels.input_spatial)
    for shape, what in ((lhs, "input"), (rhs, "kernel")):
        if len(shape.dimensions) != spatial + 2:
            op.fail(f"{what} {dims_text(shape)} does not fit dim_labels {labels}")
    window = window_dimensions(op, spatial)
    kernel = [rhs.dimensions[d] for d in labels.kernel_spatial]
    for d, size in zip(window, kernel, strict=True):
        if not same_size(d.size, size):
            op.fail(f"the window does not fit the kernel {dims_text(rhs)}")
    batch, feature = _convolution_groups(op, lhs, rhs)
    inputs = [lhs.dimensions[d] for d in labels.input_spatial]
    sizes = [0] * (spatial + 2)
    sizes[labels.output_batch] = batch
    sizes[labels.output_feature] = feature
    for place, size in zip(
        labels.output_spatial, windowed_sizes(op, inputs, window), strict=True
    ):
        sizes[place] = size
    dynamic = [size == UNBOUNDED for size in sizes]
    if lhs.dynamic:
        dynamic[labels.output_batch] |= lhs.dynamic[labels.input_batch]
        for out, into in zip(labels.output_spatial, labels.input_spatial, strict=True):
            dynamic[out] |= lhs.dynamic[into]
    return row_major(_product_type(op, lhs, rhs), sizes, dynamic)


def _convolution_groups(op: Operation, lhs: Shape, rhs: Shape) -> tuple[int, int]:
    """Batch and feature sizes of the result, group counts checked."""
    labels = op.attribute("dim_labels")
    features = op.integer("feature_group_count", 1)
    batches = op.integer("batch_group_count", 1)
    if features < 1 or batches < 1:
        op.fail(f"group counts must be positive: {features} and {batches}")
    if features > 1 and batches > 1:
        op.fail("feature and batch groups exclude each other")
    batch = lhs.dimensions[labels.input_batch]
    depth = lhs.dimensions[labels.input_feature]
    taken = rhs.dimensions[labels.kernel_input_feature]
    given = rhs.dimensions[labels.kernel_output_feature]
    if UNBOUNDED not in (depth, taken) and depth != taken * features:
        op.fail(
            f"{depth} input features are not {features} groups of the kernel's {taken}"
        )
    if given != UNBOUNDED and given % features:
        op.fail(f"{given} output features cannot be cut into {features} groups")
    if batch != UNBOUNDED:
        if batch % batches:
            op.fail(f"batch {batch} cannot be cut into {batches} groups")
        batch //= batches
    if given != UNBOUNDED and given % batches:
        op.fail(f"{given} output features cannot be cut into {batches} batch groups")
    return batch, given


def _fft(op: Operation) -> Shape:
    shape = op.array(0)
    kind, lengths = op.attribute("fft_type"), op.integers("fft_length")
    rank, name = len(lengths), shape.element_type.name
    if not 1 <= rank <= 3 or rank > len(shape.dimensions):
        op.fail(f"{rank} lengths are given for {dims_text(shape)}")
    inner = shape.dimensions[-rank:]
    if kind in ("FFT", "IFFT"):
        if not shape.element_type.is_complex:
            op.fail(f"{kind} takes complex elements, got {dims_text(shape)}")
        return shape
    if kind == "RFFT":
        if name not in ("f32", "f64"):
            op.fail(f"RFFT takes f32 or f64, got {dims_text(shape)}")
        if not same_dims(inner, lengths):
            op.fail(f"fft_length {list(lengths)} does not fit {dims_text(shape)}")
        last = lengths[-1] // 2 + 1 if lengths[-1] else 0
        result = PRIMITIVE_TYPES["c64" if name == "f32" else "c128"]
    elif kind == "IRFFT":
        if not shape.element_type.is_complex:
            op.fail(f"IRFFT takes complex elements, got {dims_text(shape)}")
        half = lengths[-1] // 2 + 1 if lengths[-1] else 0
        if not same_dims(inner, (*lengths[:-1], half)):
            op.fail(f"fft_length {list(lengths)} does not fit {dims_text(shape)}")
        last = lengths[-1]
        result = PRIMITIVE_TYPES["f32" if name == "c64" else "f64"]
    else:
        op.fail(f"unknown fft_type {kind}")
    sizes = (*shape.dimensions[:-1], last)
    return retyped(resized(shape, sizes, shape.dynamic), result)


def _square(op: Operation, shape: Shape) -> None:
    if shape.element_type.family not in ("float", "complex"):
        op.fail(f"takes floating or complex elements, got {dims_text(shape)}")
    if len(shape.dimensions) < 2 or not same_size(*shape.dimensions[-2:]):
        op.fail(f"the last two dimensions must be equal, got {dims_text(shape)}")


def _cholesky(op: Operation) -> Shape:
    _square(op, op.array(0))
    return op.operands[0]


def _triangular_solve(op: Operation) -> Shape:
    a, b = op.array(0), op.array(1)
    _square(op, a)
    if not same_type(a.element_type, b.element_type):
        op.fail(f"operands differ in type: {dims_text(a)} and {dims_text(b)}")
    if len(a.dimensions) != len(b.dimensions) or not same_dims(
        a.dimensions[:-2], b.dimensions[:-2]
    ):
        op.fail(f"batch dimensions of {dims_text(a)} and {dims_text(b)} differ")
    shared = b.dimensions[-2 if op.attribute("left_side", False) else -1]
    if not same_size(a.dimensions[-1], shared):
        op.fail(f"{dims_text(a)} does not solve for {dims_text(b)}")
    return b


RULES: Final[dict[str, Rule]] = {
    "cholesky": _cholesky,
    "convolution": _convolution,
    "dot": _dot,
    "fft": _fft,
    "ragged-dot": _ragged_dot,
    "scaled-dot": _scaled_dot,
    "triangular-solve": _triangular_solve,
}
