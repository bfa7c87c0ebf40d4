"""HLO texts that must be read, by acceptance row; each row is a list of snippets.

Rows P1 to P9 and P12 are bodies of an entry computation that has the parameters of
`CONTEXT`; rows P10 and P11 are shapes and module headers.
"""

CONTEXT = """HloModule m{header}

add_f32 {{
  lhs = f32[] parameter(0)
  rhs = f32[] parameter(1)
  ROOT sum = f32[] add(lhs, rhs)
}}

ge_f32 {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT ge = pred[] compare(a, b), direction=GE
}}

ENTRY main {{
  p = f32[4,8] parameter(0)
  q = f32[8] parameter(1)
  s = f32[] parameter(2)
  i = s32[] parameter(3)
  c = pred[] parameter(4)
  k = token[] after-all()
  {body}
}}
"""

CONSTANTS = """
pred[] true | pred[] false | pred[] 1 | pred[2] {1,0} | pred[2,2] { {1,0},{true,false} }
s1[] -1 | s2[] -2 | s4[] -8 | s4[] 7 | s8[] -128 | s16[] 32767 | s32[] -42
s64[] -9223372036854775808 | u1[] 1 | u2[] 3 | u4[3] {0,15,3} | u8[] 255 | u16[] 65535
u32[] 4294967295 | u64[] 18446744073709551615
f8e5m2[] 1.5 | f8e5m2[] inf | f8e5m2[] nan(0x1) | f8e4m3[] 240 | f8e4m3fn[] 448
f8e4m3fn[] nan | f8e4m3b11fnuz[] 0.3 | f8e5m2fnuz[] -0.7 | f8e4m3fnuz[] -nan
f8e3m4[] 15.5 | f8e8m0fnu[] 2 | f8e8m0fnu[] nan | f4e2m1fn[] 6 | f6e3m2fn[] 28
f6e2m3fn[] 7.5 | f16[] 65504 | f16[] nan(0x1) | bf16[] 0.1 | bf16[] nan(0x7f)
f32[] 1e-30 | f32[] -0.0 | f32[] 1E+5 | f32[] 5. | f32[] nan | f32[] -nan | f32[] inf
f32[] -inf | f32[] nan(0x123) | f64[] 1e308 | f64[] nan(0x123456789)
c64[] (1, 2) | c64[] (-1.5, inf) | c128[] (1e300, nan) | c64[2] {(1, 2), (3, 4)}
f32[0] {} | f32[2,0] { {}, {} } | f32[0,2] {} | f32[1,1] { {1} } | f32[2] {1 2}
f32[2,2] { {1, 2}, {3, 4}, } | f32[20] {...} | f32[2,10] {...} | f32[<=3] (2){1,2}
f32[2,1,2] { { {1, 2} }, { {3, 4} } } | f32[2,2]{0,1} { {1,2},{3,4} }
f32[2,2,1,1] { /*i0=0*/ { { {1} }, { {2} } }, { /*i1=0*/ {{3}}, {{4}} } }
(f32[], f32[2]) (1, {2, 3}) | () () | (f32[], (s32[], pred[])) (1, (2, true))
(f32[2]) ({...}) | s4[4]{0:E(4)} {1,2,3,4}
"""


def _constants() -> list[str]:
    rows = []
    for item in CONSTANTS.replace("\n", "|").split("|"):
        if item.strip():
            text = item.strip()
            end = _shape_end(text)
            rows.append(f"ROOT r = {text[:end]} constant({text[end:].strip()})")
    return rows


def _shape_end(text: str) -> int:
    if text.startswith("("):
        depth = 0
        for n, char in enumerate(text):
            depth += {"(": 1, ")": -1}.get(char, 0)
            if not depth:
                return n + 1
    return text.index(" ")


_COMPARATOR = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }"
_IDENTITY = "{ ROOT a = f32[4,8] parameter(0) }"
_SCALAR = "{ ROOT a = f32[] parameter(0) }"
_START = "((f32[4,8]), f32[4,8], u32[])"

BODIES: dict[str, list[str]] = {
    "P1": _constants(),
    "P2": [
        "ROOT r = f32[4,8] select(c, p, p)",
        "ROOT r = pred[4,8] compare(p, p), direction=EQ",
        "ROOT r = pred[4,8] compare(p, p), direction=LT, type=FLOAT",
        "ROOT r = pred[4,8] compare(p, p), direction=GE, type=TOTALORDER",
        "ROOT r = f32[4,8] round-nearest-afz(p)",
        "ROOT r = f32[4,8] round-nearest-even(f32[4,8]{1,0} p)",
        "ROOT r = s32[] shift-left(i, i)",
        "ROOT r = s32[] popcnt(i)",
        "ROOT r = s32[] count-leading-zeros(i)",
        "u = u32[4,8] parameter(5)\n ROOT r = s32[4,8] stochastic-convert(p, u)",
        "ROOT r = f32[4,8] clamp(s, p, s)",
        "ROOT r = c64[] complex(s, s)",
        "ROOT r = f32[4,8] exponential(p), result_accuracy={mode=highest}",
        "ROOT r = f32[4,8] tanh(p), result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=3}}",
        "ROOT r = s32[] mulhi(i, i)",
    ],
    "P3": [
        "t = (f32[]) tuple(s)\n ROOT r = (f32[]) while(t), condition={ a = (f32[]) parameter(0) ROOT r = pred[] constant(false) }, body={ ROOT a = (f32[]) parameter(0) }",
        f"ROOT r = f32[] conditional(c, s, s), true_computation={_SCALAR}, false_computation={_SCALAR}",
        f"ROOT r = f32[] conditional(i, s, s), branch_computations={{ {_SCALAR}, {_SCALAR} }}",
        f"ROOT r = f32[4,8] call(p), to_apply={_IDENTITY}",
        f'ROOT r = f32[4,8] call(p), to_apply={_IDENTITY}, is_composite=true, frontend_attributes={{composite.name="a.b",composite.version="1"}}',
    ],
    "P4": [
        "x = (f32[4,8], u32[], token[]) send(p, k), channel_id=15, is_host_transfer=true\n ROOT r = token[] send-done(x), channel_id=15, is_host_transfer=true",
        "x = (f32[4,8], u32[], token[]) recv(k), channel_id=15\n ROOT r = (f32[4,8], token[]) recv-done(x), channel_id=15",
        'ROOT r = ((f32[4,8], s32[]), token[]) infeed(k), infeed_config="a\\"b\\\\"',
        'ROOT r = token[] outfeed(p, k), outfeed_shape=f32[4,8]{0,1}, outfeed_config="x"',
        "t = (f32[4,8], f32[8]) tuple(p, q)\n ROOT r = token[] outfeed(t, k), outfeed_shape=(f32[4,8]{1,0}, f32[8]{0})",
        "ROOT r = u32[] partition-id()",
        "ROOT r = u32[] replica-id()",
    ],
    "P5": [
        "x = f32[1,8,8,4] parameter(5)\n w = f32[3,3,4,4] parameter(6)\n ROOT r = f32[1,8,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "x = f32[2,4] parameter(5)\n w = f32[4,4] parameter(6)\n ROOT r = f32[2,4] convolution(x, w), dim_labels=bf_io->bf",
        "x = f32[1,8,4] parameter(5)\n w = f32[2,4,4] parameter(6)\n ROOT r = f32[1,7,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f, operand_precision={high,highest}",
        "x = f32[1,8,4] parameter(5)\n w = f32[3,1,4] parameter(6)\n ROOT r = f32[1,4,4] convolution(x, w), dim_labels=b0f_0io->b0f, window={pad=1_0 stride=2 size=3 rhs_reversal=1}, feature_group_count=4",
        "x = f32[4,8,4] parameter(5)\n w = f32[8,4,4] parameter(6)\n ROOT r = f32[2,1,4] convolution(x, w), window={size=8}, dim_labels=b0f_0io->b0f, batch_group_count=2",
        "ROOT r = f32[2,4] reduce-window(p, s), window={size=2x2 stride=2x2}, to_apply=add_f32",
        "ROOT r = f32[] reduce-window(s, s), window={}, to_apply=add_f32",
        "z = f32[1,4,8] parameter(5)\n y = f32[1,2,8] parameter(6)\n ROOT r = f32[1,4,8] select-and-scatter(z, y, s), window={size=1x2x1 stride=1x2x1}, select=ge_f32, scatter=add_f32",
        "ROOT r = f32[7,8] pad(p, s), padding=0_0_1x0_0",
        "ROOT r = f32[3,8] pad(p, s), padding=0_-1x0_0",
        "ROOT r = f32[2,4] slice(p), slice={[0:2], [0:8:2]}",
        "ROOT r = f32[16] concatenate(q, q), dimensions={0}",
        "n = s32[3,1] parameter(5)\n ROOT r = f32[3,8] gather(p, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}, indices_are_sorted=true",
        "n = s32[4,1] parameter(5)\n ROOT r = f32[4,1] gather(p, n), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}",
        "n = s32[3,1] parameter(5)\n u = f32[3,8] parameter(6)\n ROOT r = f32[4,8] scatter(p, n, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add_f32",
        "n = s32[3,1] parameter(5)\n u = f32[3,8] parameter(6)\n ROOT r = (f32[4,8], f32[4,8]) scatter(p, p, n, u, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] parameter(2) e = f32[] parameter(3) ROOT t = tuple(d, e) }",
        f"ROOT r = f32[8] sort(q), dimensions={{0}}, to_apply={_COMPARATOR}",
        "ROOT r = (f32[8], f32[8]) sort(q, q), dimensions={0}, is_stable=true, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] parameter(2) e = f32[] parameter(3) ROOT r = pred[] compare(a, b), direction=LT }",
        "ROOT r = (f32[3], s32[3]) topk(q), k=3, largest=false",
        "ROOT r = (f32[4], f32[4]) reduce(p, p, s, s), dimensions={1}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] parameter(2) e = f32[] parameter(3) ROOT t = tuple(a, b) }",
        "ROOT r = f32[4,8] reverse(p), dimensions={0,1}",
        "ROOT r = f32[8,4]{0,1} transpose(p), dimensions={1,0}",
        "ROOT r = f32[1,4] dynamic-slice(p, i, i), dynamic_slice_sizes={1,4}",
        "u = f32[1,4] parameter(5)\n ROOT r = f32[4,8] dynamic-update-slice(p, u, i, i)",
        "ROOT r = f32[4,8] reduce-precision(p), exponent_bits=5, mantissa_bits=10",
        "ROOT r = f32[4,8] iota(), iota_dimension=1",
        "ROOT r = f32[4,8] rng(s, s), distribution=rng_uniform",
        "z = u64[2] parameter(5)\n ROOT r = (u64[2], u32[11]) rng-bit-generator(z), algorithm=RNG_THREE_FRY",
        "ROOT r = u64[2] rng-get-and-update-state(), delta=4096",
        "ROOT r = f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}, algorithm=dot_bf16_bf16_f32",
        "b = f32[2,8,5] parameter(5)\n g = s64[2] parameter(6)\n ROOT r = f32[4,5] ragged-dot(p, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
        "ROOT r = f32[4,8] map(p), dimensions={0,1}, to_apply={ a = f32[] parameter(0) ROOT b = f32[] negate(a) }",
        "ROOT r = (f32[], f32[8]) scan(q, s), dimensions={0}, num_carries=1, is_associative=true, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] add(a, b) ROOT t = tuple(d, d) }",
    ],
    "P6": [
        "ROOT r = c64[5] fft(q), fft_type=RFFT, fft_length={8}",
        "z = f32[4,4] parameter(5)\n ROOT r = f32[4,4] cholesky(z), lower=true",
        "z = f32[4,4] parameter(5)\n ROOT r = f32[4,8] triangular-solve(z, p), left_side=true, unit_diagonal=true, transpose_a=ADJOINT",
        "z = f32[2,2,2,8] parameter(5)\n ROOT r = (f32[2,2,2,8], f32[8], f32[8]) batch-norm-training(z, q, q), epsilon=0.001, feature_index=3",
        "z = f32[2,2,2,8] parameter(5)\n ROOT r = f32[2,2,2,8] batch-norm-inference(z, q, q, q, q), epsilon=1e-05, feature_index=3",
        "z = f32[2,2,2,8] parameter(5)\n ROOT r = (f32[2,2,2,8], f32[8], f32[8]) batch-norm-grad(z, q, q, q, z), epsilon=1, feature_index=3",
        "ROOT r = f32[4,8] opt-barrier(p)",
        'ROOT r = f32[4,8] domain(p), domain={kind="sharding", entry={maximal device=0}, exit={replicated}}',
        "j = token[] after-all(k, k)\n ROOT r = f32[4,8] add-dependency(p, j)",
        "ROOT r = f32[8,4] bitcast(p)",
        "ROOT r = s32[4,8] bitcast-convert(p)",
        "ROOT r = f32[<=4,8] set-dimension-size(p, i), dimensions={0}",
        "ROOT r = s32[] get-dimension-size(p), dimensions={1}",
        "ROOT r = f32[<=4,8] dynamic-reshape(p, i, i)",
        "ROOT r = f32[32] reshape(p), inferred_dimension=0",
    ],
    "P7": [
        'ROOT r = f32[4,8] custom-call(p, q), custom_call_target="a\\"b\\\\c"',
        "ROOT r = f32[4,8] custom-call(p), custom_call_target='single'",
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", backend_config="raw \\"text\\""',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", backend_config={"a":{"b":[1,"}"]}}',
        't = (f32[4,8], f32[8]) tuple(p, q)\n ROOT r = f32[4,8] custom-call(p, t), custom_call_target="f", operand_layout_constraints={f32[4,8]{0,1}, (f32[4,8]{1,0}, f32[8]{0})}',
        'ROOT r = (f32[4,8], token[]) custom-call(p), custom_call_target="f", custom_call_has_side_effect=true',
        't = (f32[4,8], f32[8]) tuple(p, q)\n ROOT r = (f32[4,8], f32[8]) custom-call(t), custom_call_target="f", output_to_operand_aliasing={{0}: (0, {0}), {1}: (0, {1})}',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", literal=s32[2] {1, 2}',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", literal=( s32[2]{0} {1,2}, pred[] true )',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", called_computations={add_f32, ge_f32}',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", to_apply=add_f32',
        'ROOT r = f32[4,8] custom-call(p), custom_call_target="f", padding_type=PADDING_SAME, window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2',
        "ROOT r = f32[4,8] fusion(p), kind=kInput, output_to_operand_aliasing={ {}: (0, {}), }, calls={ a = f32[4,8] parameter(0) ROOT b = negate(a) }",
    ],
    "P8": [
        "ROOT r = f32[8] all-reduce(q), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add_f32",
        "ROOT r = f32[8] all-reduce(q), replica_groups={}, constrain_layout=true, to_apply=add_f32, mode=cross_replica",
        "ROOT r = (f32[8], f32[8]) all-reduce(q, q), replica_groups=[2,4]<=[8], to_apply=add_f32",
        "ROOT r = f32[8] all-reduce(q), replica_groups=[1,8]<=[2,2,2]T(2,0,1), to_apply=add_f32",
        "ROOT r = f32[8] all-reduce(q), replica_groups=mesh['x'=2,'z/w'=4], device_ids=([4,2]T(1,0)) {'z/w':(1)2}, to_apply=add_f32",
        "ROOT r = f32[16] all-gather(q), replica_groups={{0,1}}, dimensions={0}",
        "x = (f32[8], f32[16]) all-gather-start(q), replica_groups={{0,1}}, dimensions={0}\n ROOT r = f32[16] all-gather-done(x)",
        "x = f32[8] all-reduce-start(q), to_apply=add_f32\n ROOT r = f32[8] all-reduce-done(x)",
        "ROOT r = f32[4] reduce-scatter(q), replica_groups={{0,1}}, dimensions={0}, to_apply=add_f32",
        "ROOT r = f32[8] all-to-all(q), replica_groups={{0,1}}, dimensions={0}",
        "ROOT r = (f32[8], f32[8]) all-to-all(q, q), replica_groups={{0,1}}",
        "ROOT r = f32[8] collective-permute(q), source_target_pairs={{0,1},{1,2},{2,3}}, channel_id=1",
        "x = (f32[8], f32[8], u32[], u32[]) collective-permute-start(q), source_target_pairs={{0,1}}\n ROOT r = f32[8] collective-permute-done(x)",
        "t = (s32[]) tuple(i)\n ROOT r = f32[8] collective-permute(q, q, t, t), source_target_pairs={{0,1}}, slice_sizes={{4}}",
        "ROOT r = f32[8] collective-broadcast(q), replica_groups={{0,1}}",
        "n = s32[2] parameter(5)\n ROOT r = f32[8] ragged-all-to-all(q, q, n, n, n, n), replica_groups={{0,1}}",
    ],
    "P9": [
        "x = (f32[4,8]{1,0:S(1)}, f32[4,8]{1,0}, u32[]) copy-start(p), cross_program_prefetch_index=0\n ROOT r = f32[4,8]{1,0:S(1)} copy-done(x)",
        'x = ((f32[4,8]), f32[2,8], u32[]) slice-start(p), slice={[0:2], [0:8]}, async_execution_thread="t", metadata={op_name="n"}\n y = ((f32[4,8]), f32[2,8], u32[]) slice-update(x)\n ROOT r = f32[2,8] slice-done(y)',
        f'x = {_START} custom-call-start(p), custom_call_target="f", frontend_attributes={{a="b"}}, backend_config={{"k":1}}\n ROOT r = f32[4,8] custom-call-done(x)',
        f"x = {_START} call-start(p), to_apply={_IDENTITY}\n ROOT r = f32[4,8] call-done(x)",
        f"x = {_START} fusion-start(p), kind=kLoop, calls={_IDENTITY}\n ROOT r = f32[4,8] fusion-done(x)",
        "x = ((f32[8]), f32[4]) reduce-scatter-start(q), to_apply=add_f32, replica_groups={{0,1}}, dimensions={0}\n ROOT r = f32[4] reduce-scatter-done(x)",
        "x = ((), (), u32[]) add-start()\n y = ((f32[8]), (), u32[]) add-update(x, q)\n z = ((f32[8], f32[8]), f32[8], u32[]) add-update(y, q)\n ROOT r = f32[8] add-done(z)",
        f"x = ((), (), u32[]) call-start(), to_apply={_IDENTITY}\n y = ((f32[4,8]), (), u32[]) call-update(x, p)\n ROOT r = f32[4,8] call-done(y)",
        'x = ((f32[4,8]), f32[4,8], s32[]) custom-call-start(p), custom_call_target="f"\n y = ((f32[4,8]), f32[4,8], ()) custom-call-update(x)\n ROOT r = f32[4,8] async-done(y)',
    ],
    "P12": [
        *(
            f"ROOT r = f32[4,8] negate(p), sharding={text}"
            for text in (
                "{replicated}",
                "{manual}",
                "{unknown}",
                "{unreduced}",
                "{maximal device=3}",
                "{devices=[2,2]0,1,2,3}",
                "{devices=[2,4]<=[8]}",
                "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}",
                "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}",
                "{replicated shard_as 1}",
                '{devices=[2,2]0,1,2,3 metadata={{op_name="a"},{op_name="b"}}}',
                "{mesh['x'=2,'y'=2], [{'x', ?}, {'y'}]}",
                "{mesh['a'=8], [{'a':(1)2}, {}], replicated={'a':(4)2}}",
                "{mesh['x'=2,'y'=2], device_ids=(0,2,1,3), manual}",
                "{mesh['x'=4], [{}, {}], unreduced=max{'x'}}",
                "{maximal_mesh[device_id=5]}",
            )
        ),
        "ROOT r = (f32[4,8], f32[8]) tuple(p, q), sharding={{replicated}, /*index=1*/ {maximal device=1}}",
        'ROOT r = f32[4,8] negate(p), metadata={op_type="t" op_name="a/{b}[\\"c\\"]" source_file="f.py" source_line=42 source_end_line=43 source_column=1 source_end_column=2 profile_type={1} deduplicated_name="x" scheduling_name="y" stack_frame_id=5}',
        'ROOT r = f32[4,8] negate(p), metadata={op_type="t", op_name="n"}',
        'ROOT r = f32[4,8] negate(p), frontend_attributes={b="y\\"z",a={"j":{"k":"}"}}}',
        "ROOT r = f32[4,8] negate(p), statistics={visualizing_index=1,stat-1=33.5,stat-2=44}",
        'ROOT r = (f32[4,8], f32[8]) tuple(p, q), origin={({"v1"}, {"v2" {1}})}',
        "ROOT r = f32[4,8] negate(p), origin={[synthetic_call]}",
        "x = (f32[2], f32[3]) parameter(5), parameter_replication={true,false}\n ROOT r = f32[4,8] negate(p)",
        "ROOT r = f32[4,8] negate(p), control-predecessors={%q, s}",
        'ROOT r = f32[4,8] negate(p), metadata={op_name="two\n   lines"\n  source_line=3}',
        'ROOT r = f32[4,8] negate(p), backend_config={"a":\n   "b"}',
    ],
}

SHAPES = """
f32[] | f32[4]{0:T(8)} | f32[]{:T(128)S(6)} | f32[8,16]{0,1} | f32[4]{0:L(16)}
f32[8,128]{1,0:T(8,128)(2,1)E(32)S(1)} | s4[4]{0:T(8)L(2)E(4)S(1)SC(0:2)}
f32[4]{0:SC(0:1,2)} | f32[8,128]{1,0:T(8,*,128)} | f32[2]{0:#(u32)*(s8)}
f32[<=8,4]{1,0} | f32[?,<=4]{1,0} | token[] | opaque[] | () | (f32[2]{0})
b(f32[8]{0}) | (b(f32[8]{0:S(1)}), s32[]) | ((f32[2]{0}, ()), token[])
(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) | f8e4m3b11fnuz[2]{0}
f32[<=8]{0:M(1024)} | f4e2m1fn[2,3]{1,0}
"""
SHAPE_ROWS = [
    row.strip() for row in SHAPES.replace("\n", "|").split("|") if row.strip()
]

HEADERS = [
    "is_scheduled=true",
    "replica_count=4, num_partitions=2",
    "input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }",
    "input_output_alias={ {0}: (0, {}), }",
    "buffer_donor={ (0, {}), (1, {}) }",
    "alias_passthrough_params=true",
    "entry_computation_layout={(f32[4,8]{0,1}, f32[8]{0}, f32[], s32[], pred[])->(f32[4,8]{1,0}, f32[8]{0:S(1)})}",
    "allow_spmd_sharding_propagation_to_parameters={true,false,true,true,true}",
    "allow_spmd_sharding_propagation_to_output=true",
    'frontend_attributes={z="1",a={"x":{}}}',
    'origin_recovery_table={ {"a"} : {"b"}, "\n  ENTRY r (p: f32[]) -> f32[] { ... }\n" }',
    'debug_attributes={a="b"}',
]


def module_text(body: str, header: str = "") -> str:
    """A module whose entry ends with `body`."""
    return CONTEXT.format(body=body, header=header)
