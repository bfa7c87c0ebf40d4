"""Modules written from Python: shapes are inferred, text reads back equal."""

import numpy as np
import pytest

import msa
from msa.errors import HloError, HloVerifyError, ShapeInferenceError
from msa.hlo import Builder, verify
from msa.hlo.opcode import OPCODES
from msa.hlo.primitive import PRIMITIVE_TYPES
from msa.hlo.replica_groups import IotaGroups
from msa.hlo.shape import Shape


@pytest.fixture
def builder():
    return Builder("m")


@pytest.fixture
def main(builder):
    return builder.entry("main")


def finished(builder, **options):
    """The built module, checked to survive printing and reading."""
    module = builder.build(**options)
    assert msa.parse(module.to_text()) == module
    return module


# -- every opcode ------------------------------------------------------------


def unary(b):
    x = b.parameter("f32[4,8]")
    for opcode, info in OPCODES.items():
        if info.elementwise and info.arity == 1 and not info.attributes:
            if opcode in ("convert", "bitcast-convert"):
                continue
            if opcode in ("not", "popcnt", "count-leading-zeros"):
                b.op(opcode, b.convert(x, "s32"))
            else:
                b.op(opcode, x)
    z = b.complex(x, x)
    return b.tuple(
        b.real(z), b.imag(z), b.reduce_precision(x, exponent_bits=5, mantissa_bits=2)
    )


def binary(b):
    x, i = b.parameter("f32[4]"), b.parameter("s32[4]")
    u = b.parameter("u32[4]")
    for opcode in ("add", "divide", "maximum", "power", "remainder", "atan2"):
        b.op(opcode, x, x)
    for opcode in ("and", "or", "xor", "shift-left", "mulhi"):
        b.op(opcode, i, i)
    b.stochastic_convert(x, u, shape="bf16[4]")
    p = b.and_(b.compare(x, x, "LT"), b.not_(b.is_finite(x)))
    return b.clamp(b.constant(0.0), b.select(p, x, x), b.constant(1.0))


def movement(b):
    x, i = b.parameter("f32[4,8]"), b.parameter("s32[]")
    b.bitcast(x, shape="f32[32]")
    b.bitcast_convert(x, shape="u32[4,8]")
    b.broadcast(x, (2, 4, 8), (1, 2))
    b.concatenate(x, x, dimensions=0)
    b.dynamic_slice(x, i, i, dynamic_slice_sizes=(1, 8))
    b.dynamic_update_slice(x, b.slice(x, slice=[(0, 1), (0, 8, 2)]), i, i)
    b.dynamic_reshape(x, i, i, shape="f32[8,4]")
    b.get_dimension_size(x, dimensions=1)
    b.set_dimension_size(x, i, dimensions=0)
    b.iota("s32[4,8]", 1)
    b.pad(x, b.constant(0.0), padding=[(0, 1), (1, 1, 2)])
    b.reshape(x, (8, 4))
    b.reverse(x, dimensions=(0, 1))
    return b.transpose(x, dimensions=(1, 0))


def products(b):
    x, w = b.parameter("f32[3,8,10]"), b.parameter("f32[3,10,16]")
    dims = {
        "lhs_batch_dims": 0,
        "rhs_batch_dims": 0,
        "lhs_contracting_dims": 2,
        "rhs_contracting_dims": 1,
    }
    b.dot(x, w, **dims, operand_precision=("highest", "default"))
    image, kernel = b.parameter("f32[1,8,8,4]"), b.parameter("f32[3,3,4,16]")
    b.convolution(
        image, kernel, window="{size=3x3 pad=1_1x1_1}", dim_labels="b01f_01io->b01f"
    )
    b.fft(b.parameter("f32[2,64]"), fft_type="RFFT", fft_length=64)
    square = b.parameter("f32[4,4]")
    b.triangular_solve(
        b.cholesky(square, lower=True), square, lower=True, transpose_a="NO_TRANSPOSE"
    )
    rows, experts = b.parameter("bf16[64,9]"), b.parameter("bf16[2,9,8]")
    return b.ragged_dot(
        rows,
        experts,
        b.parameter("s64[2]"),
        lhs_contracting_dims=1,
        rhs_contracting_dims=1,
        lhs_ragged_dims=0,
        rhs_group_dims=0,
    )


def reductions(b):
    x, i = b.parameter("f32[4,8]"), b.parameter("s32[4,8]")
    zero, zero_i = b.constant(0.0), b.constant(0)
    b.reduce(x, zero, dimensions=1, to_apply="add")
    b.reduce(
        x,
        i,
        zero,
        zero_i,
        dimensions=1,
        to_apply=lambda f, a, j, c, k: f.tuple(f.maximum(a, c), f.maximum(j, k)),
    )
    pooled = b.reduce_window(
        x, zero, window="{size=2x2 stride=2x2}", to_apply="maximum"
    )
    b.select_and_scatter(
        x, pooled, zero, window="{size=2x2 stride=2x2}", select="GE", scatter="add"
    )
    b.map(x, dimensions=(0, 1), to_apply=lambda f, a: f.exponential(a))
    b.sort(x, dimensions=0, to_apply="LT")
    b.sort(
        x,
        i,
        dimensions=1,
        is_stable=True,
        to_apply=lambda f, a, c, j, k: f.compare(a, c, "GT"),
    )
    b.scan(
        x,
        b.parameter("f32[8]"),
        dimensions=0,
        num_carries=1,
        to_apply=lambda f, a, c: (lambda y: f.tuple(y, y))(f.add(a, c)),
    )
    b.topk(x, k=3)
    where = b.parameter("s32[7,1]")
    b.gather(
        x,
        where,
        offset_dims=1,
        collapsed_slice_dims=0,
        start_index_map=0,
        index_vector_dim=1,
        slice_sizes=(1, 8),
    )
    b.scatter(
        x,
        where,
        b.parameter("f32[7,8]"),
        update_window_dims=1,
        inserted_window_dims=0,
        scatter_dims_to_operand_dims=0,
        index_vector_dim=1,
        to_apply="add",
    )
    g = b.parameter("f32[8]")
    b.batch_norm_training(x, g, g, epsilon=0.001, feature_index=1)
    b.batch_norm_grad(x, g, g, g, x, epsilon=0.001, feature_index=1)
    return b.batch_norm_inference(x, g, g, g, g, epsilon=0.001, feature_index=1)


def control(b):
    x, p, n = b.parameter("f32[8]"), b.parameter("pred[]"), b.parameter("s32[]")
    b.call(x, to_apply=lambda f, a: f.negate(a))
    b.fusion(x, x, kind="kLoop", calls=lambda f, a, c: f.multiply(a, c))
    b.conditional(
        p,
        x,
        n,
        true_computation=lambda f, a: f.negate(a),
        false_computation=lambda f, a: f.broadcast(f.convert(a, "f32"), (8,)),
    )
    b.conditional(n, x, x, branch_computations=[lambda f, a: a] * 2)
    b.while_(
        b.tuple(n, x),
        body=lambda f, s: f.tuple(
            f.subtract(f.get_tuple_element(s, 0), f.constant(1)),
            f.get_tuple_element(s, 1),
        ),
        condition=lambda f, s: f.compare(
            f.get_tuple_element(s, 0), f.constant(0), "GT"
        ),
    )
    b.custom_call(
        x,
        shape="(f32[8], s32[])",
        custom_call_target='my "target"',
        backend_config={"tile": [8, 128]},
        output_to_operand_aliasing=[((0,), 0, ())],
    )
    b.opt_barrier(b.tuple(x, n))
    b.domain(x, domain='{kind="sharding", entry={replicated}, exit={maximal device=1}}')
    b.partition_id()
    b.replica_id()
    b.rng(b.constant(0.0), b.constant(1.0), shape="f32[8]", distribution="rng_uniform")
    b.rng_bit_generator(
        b.parameter("u64[2]"), shape="(u64[2], u32[4])", algorithm="rng_three_fry"
    )
    return b.rng_get_and_update_state(shape="u64[2]", delta=1)


def transfers(b):
    x = b.parameter("f32[8]")
    token = b.after_all()
    b.add_dependency(x, token)
    sent = b.send(x, token, channel_id=1)
    received = b.recv(token, shape="(f32[8], u32[], token[])", channel_id=2)
    b.done(sent, channel_id=1)
    b.done(received, channel_id=2)
    b.infeed(token, shape="(f32[8], token[])", infeed_config="x")
    b.outfeed(x, token, outfeed_shape="f32[8]")
    return b.done(b.start("copy", x, shape="(f32[8]{0:S(1)}, f32[8], u32[])"))


def collectives(b):
    x = b.parameter("f32[8,4]")
    pairs = {"source_target_pairs": [(0, 1), (1, 0)]}
    two = {"replica_groups": [[0, 1]]}
    b.all_reduce(x, **two, to_apply="add")
    b.all_gather(x, **two, dimensions=0)
    b.all_gather(x, replica_groups=IotaGroups((1, 2), (2,), (0,)), dimensions=1)
    b.reduce_scatter(x, **two, dimensions=0, to_apply="add", shape="f32[4,4]")
    b.all_to_all(x, **two, dimensions=0)
    b.collective_permute(x, **pairs)
    b.collective_broadcast(x, **two)
    where = b.parameter("s64[2]")
    b.ragged_all_to_all(x, x, where, where, where, where, **two)
    b.done(b.start("all-reduce", x, **two, to_apply="add"))
    b.done(b.start("all-gather", x, **two, dimensions=0, shape="(f32[8,4], f32[16,4])"))
    return b.done(
        b.start("collective-permute", x, shape="(f32[8,4], f32[8,4])", **pairs)
    )


PROGRAMS = (
    unary,
    binary,
    movement,
    products,
    reductions,
    control,
    transfers,
    collectives,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_opcodes(builder, main, program):
    main.root(program(main))
    module = finished(builder, schedule=True)
    verify(module)


def test_every_opcode_is_written():
    seen = {"scaled-dot", "async-update"}  # below
    for program in PROGRAMS:
        builder = Builder("m")
        program(builder.entry())
        for computation in builder.build().computations:
            seen |= {x.opcode for x in computation.instructions}
    # `async-start` is what `start` makes of opcodes without a start of their own
    assert set(OPCODES) - seen <= {"async-start", "async-done"} | {
        x for x in OPCODES if OPCODES[x].elementwise
    }


def test_scaled_dot(builder, main):
    a, s = main.parameter("f8e4m3fn[64,64]"), main.parameter("f8e8m0fnu[64,2]")
    b, t = main.parameter("f8e4m3fn[64,32]"), main.parameter("f8e8m0fnu[2,32]")
    y = main.scaled_dot(
        a, s, b, t, lhs_contracting_dims=1, rhs_contracting_dims=0, shape="f32[64,32]"
    )
    assert str(y.shape) == "f32[64,32]{1,0}"
    finished(builder)


# -- asynchronous operations -------------------------------------------------


def test_operation_continued_twice(builder, main):
    x = main.parameter("f32[8,128]")
    handle = main.start("slice", x, slice=[(0, 4), (0, 128)])
    main.update(handle)
    y = main.done(handle)
    assert str(handle.shape) == "((f32[8,128]{1,0}), f32[4,128]{1,0}, u32[])"
    assert y.shape == Shape.array("f32", (4, 128))
    with pytest.raises(HloVerifyError, match="continued more than once"):
        builder.build()


def test_wrapped_operation_with_update(builder, main):
    x = main.parameter("f32[8]")
    handle = main.start("negate", x, thread="side", contexts=("s32[]",))
    main.exponential(x)
    main.done(main.update(handle))
    module = finished(builder, schedule=True)
    assert "negate-update" in module.to_text()
    assert module.computation("async_wrapped").execution_thread == "side"


def test_wrapped_computation(builder, main):
    x = main.parameter("f32[8]")
    handle = main.async_start(
        x,
        shape="((f32[8]), f32[8], u32[])",
        calls=lambda f, a: f.exponential(f.negate(a)),
    )
    main.done(handle)
    module = finished(builder)
    assert "async-start(" in module.to_text()


# -- constants ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shape", "text", "result"),
    [
        (1, None, "1", "s32[]"),
        (1.5, None, "1.5", "f32[]"),
        (2.0, None, "2", "f32[]"),
        (True, None, "true", "pred[]"),
        (1 + 2j, None, "(1, 2)", "c128[]"),
        (float("nan"), None, "nan", "f32[]"),
        (float("-inf"), None, "-inf", "f32[]"),
        (1e-30, "f64[]", "1e-30", "f64[]"),
        (0, "bf16[2,2]", "{{0, 0}, {0, 0}}", "bf16[2,2]{1,0}"),
        (np.arange(3, dtype="u1"), None, "{0, 1, 2}", "u8[3]{0}"),
        (np.ones((2, 1), "f2"), None, "{{1}, {1}}", "f16[2,1]{1,0}"),
        (np.zeros((0,), "f4"), None, "{}", "f32[0]{0}"),
        (np.zeros((2, 0), "f4"), None, "{{}, {}}", "f32[2,0]{1,0}"),
        (np.float64(0.25), None, "0.25", "f64[]"),
        (np.array([True]), None, "{true}", "pred[1]{0}"),
        ((1, (2.0,)), None, "( 1, ( 2 ) )", "(s32[], (f32[]))"),
        ([1, 2], "s4[2]", "{1, 2}", "s4[2]{0}"),
    ],
    ids=str,
)
def test_constant(builder, main, value, shape, text, result):
    constant = main.constant(value, shape)
    assert str(constant.attributes["literal"]) == text
    assert str(constant.shape) == result
    finished(builder)


@pytest.mark.parametrize(
    "name", ["s8", "u16", "s64", "f16", "f32", "f64", "c64", "pred"]
)
def test_constant_comes_back_as_numpy(main, name):
    kind = PRIMITIVE_TYPES[name]
    rng = np.random.default_rng(0)
    dtype = {"pred": "bool", "c64": "complex64"}.get(
        name, name.replace("s", "int").replace("u", "uint").replace("f", "float")
    )
    value = (rng.standard_normal((3, 4)) * 5).astype(dtype)
    literal = main.constant(value).attributes["literal"]
    assert literal.shape.element_type is kind
    np.testing.assert_array_equal(literal.to_numpy(), value)


def test_constant_of_another_size(main):
    with pytest.raises(HloError, match="an array of shape"):
        main.constant(np.zeros(3), "f32[4]")
    with pytest.raises(HloError, match="elements are not"):
        main.constant((1, 2), "(s32[])")


# -- names, roots, order -----------------------------------------------------


def test_names_are_unique(builder, main):
    x = main.parameter("f32[8]", name="x")
    names = [main.negate(x).name, main.negate(x).name, main.negate(x, name="x").name]
    assert names == ["negate", "negate.1", "x.1"]
    assert builder.computation("main").computation.name == "main.1"


def test_root(builder, main):
    x = main.parameter("f32[8]")
    y = main.negate(x)
    main.parameter("s32[]")
    assert main.computation.root is y
    main.root(x)
    main.negate(y)
    assert main.computation.root is x
    finished(builder)


def test_control_dependencies(builder, main):
    x = main.parameter("f32[8]")
    a = main.negate(x)
    b = main.exponential(x, after=[a])
    c = main.cosine(x)
    main.order(a, c)
    assert b.control_predecessors == (a,)
    assert a.control_successors == (b, c)
    finished(builder)


def test_schedule(builder, main):
    x = main.parameter("f32[8]")
    a, b = main.negate(x), main.exponential(x)
    main.add(a, b)
    module = builder.build(schedule={"main": ["p0", b, "negate", "add"]})
    order = [i.name for i in module.schedule.sequence(module.entry)]
    assert order == ["p0", "exponential", "negate", "add"]


def test_bad_schedule(builder, main):
    x = main.parameter("f32[8]")
    main.negate(x)
    with pytest.raises(HloVerifyError, match="is scheduled before"):
        builder.build(schedule={main: ["negate", x]})


@pytest.mark.parametrize(
    ("order", "message"),
    [({"main": ["q"]}, "no instruction 'q'"), ({"mian": []}, "no computation 'mian'")],
)
def test_schedule_of_what_is_not_there(builder, main, order, message):
    main.parameter("f32[8]")
    with pytest.raises(HloError, match=message):
        builder.build(schedule=order)


def test_header(main):
    builder = Builder("h", replica_count=2, num_partitions=4)
    main = builder.entry("main")
    x, y = main.parameter("f32[8]"), main.parameter("(f32[8], s32[])")
    main.tuple(main.negate(x), main.get_tuple_element(y, 1))
    builder.alias((0,), 0)
    builder.alias((1,), 1, (1,), must_alias=True)
    builder.donate(1, (0,))
    builder.entry_layout(["f32[8]", "(f32[8], s32[])"], "(f32[8], s32[])")
    module = finished(builder)
    assert (module.replica_count, module.num_partitions) == (2, 4)
    assert "{1}: (1, {1}, must-alias)" in module.to_text()


def test_metadata_and_attributes(builder, main):
    x = main.parameter("f32[8]")
    main.negate(
        x,
        metadata={"op_name": 'jit(f)/"neg"', "source_line": 7},
        frontend_attributes={"b": "2", "a": "1"},
        sharding="{replicated}",
        backend_config="raw",
    )
    module = finished(builder)
    root = module.entry.root
    assert root.metadata.op_name == 'jit(f)/"neg"'
    assert root.metadata.source_line == 7
    assert root.attributes["frontend_attributes"] == (("a", "1"), ("b", "2"))


def test_standard_computations_are_shared(builder, main):
    x, z = main.parameter("f32[4,8]"), main.constant(0.0)
    a = main.reduce(x, z, dimensions=0, to_apply="add")
    b = main.reduce(x, z, dimensions=1, to_apply="add")
    assert a.called_computations == b.called_computations
    assert a.attributes["dimensions"] == (0,)


def test_computations_come_callees_first(builder, main):
    x = main.parameter("f32[8]")
    main.call(x, to_apply=lambda f, a: f.call(a, to_apply=lambda g, c: g.negate(c)))
    names = [c.name for c in finished(builder).computations]
    assert names == ["call_computation.1", "call_computation", "main"]


# -- errors ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        (lambda b, x: b.op("negat", x), HloError, "did you mean 'negate'"),
        (lambda b, x: b.add(x, b.constant(1.0, "f32[9]")), ShapeInferenceError, "size"),
        (lambda b, x: b.reverse(x, dimension=0), HloError, "did you mean 'dimensions'"),
        (lambda b, x: b.reverse(x), HloError, "needs attribute dimensions"),
        (lambda b, x: b.reverse(x, dimensions="{a}"), HloError, "attribute dimensions"),
        (lambda b, x: b.reverse(x, dimensions=object()), HloError, "cannot be"),
        (lambda b, x: b.op("reshape", x), HloError, "give shape="),
        (lambda b, x: b.negate(), ShapeInferenceError, "takes 1 operands, got 0"),
        (lambda b, x: b.convert(x, "f33"), HloError, "unknown element type"),
        (
            lambda b, x: b.map(x, to_apply="add"),
            HloError,
            "no computation of 1 scalars",
        ),
        (
            lambda b, x: b.custom_call(x, shape="f32[", custom_call_target="f"),
            HloError,
            "expected",
        ),
        (lambda b, x: b.compare(x, x, "SOON"), HloError, "direction"),
    ],
)
def test_errors(main, write, error, message):
    x = main.parameter("f32[8]")
    with pytest.raises(error, match=message):
        write(main, x)


def test_operand_of_another_computation(builder, main):
    x = main.parameter("f32[8]")
    other = builder.computation("other")
    with pytest.raises(HloError, match="p0 is not in other"):
        other.negate(x)
    with pytest.raises(HloError, match="p0 is not in other"):
        other.root(x)


def test_unknown_method(main):
    with pytest.raises(AttributeError):
        _ = main.frobnicate


def test_no_computation(builder):
    with pytest.raises(HloError, match="no computation"):
        builder.build()


def test_two_entries(builder, main):
    with pytest.raises(HloError, match="already has the entry main"):
        builder.entry()


def test_verification_can_be_put_off(builder, main):
    x = main.parameter("f32[8]")
    y = main.negate(x)
    y.shape = Shape.array("s32", (8,))
    assert builder.build(verify_module=False).entry.root is y
