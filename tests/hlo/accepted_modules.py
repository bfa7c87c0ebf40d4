"""Unusual but valid modules, which the verifier has to accept."""

ACCEPTED = {
    "scatter-scalar": """
sum {
  l = s32[] parameter(0)
  ROOT r = s32[] parameter(1)
}
ENTRY e {
  p = s32[] parameter(0)
  i = s32[0]{0} parameter(1)
  u = s32[] parameter(2)
  ROOT s = s32[] scatter(p,i,u), update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=sum
}
""",
    "gather-rank-5": """
ENTRY e {
  p = f32[50,49,48,47,46]{4,3,2,1,0} parameter(0)
  i = s64[10,9,8,7,5]{4,3,2,1,0} parameter(1)
  ROOT g = f32[10,9,8,7,30,29,28,27,26]{8,7,6,5,4,3,2,1,0} gather(p,i), offset_dims={4,5,6,7,8}, collapsed_slice_dims={}, start_index_map={0,1,2,3,4}, index_vector_dim=4, slice_sizes={30,29,28,27,26}
}
""",
    "all-to-all-tuple": """
ENTRY e {
  p = f32[128,32]{0,1} parameter(0)
  q = f32[128,32]{0,1} parameter(1)
  ROOT a = (f32[128,32]{0,1}, f32[128,32]{0,1}) all-to-all(p,q), replica_groups={{1,2},{3,0}}
}
""",
    "all-to-all-one": """
ENTRY e {
  p = f32[128,32]{0,1} parameter(0)
  ROOT a = (f32[128,32]{0,1}) all-to-all(p), replica_groups={}
}
""",
    "all-gather-across-partitions": """
ENTRY e {
  p = f32[128,32]{0,1} parameter(0)
  ROOT a = f32[512,32]{0,1} all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}
}
""",
    "permute-in-place": """
ENTRY e {
  p = f32[128,128]{1,0} parameter(0)
  o = f32[128,128]{1,0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], s32[]) tuple(z,z)
  ROOT c = f32[128,128]{1,0} collective-permute(p,o,t,t), source_target_pairs={{1,0},{2,1},{3,2}}, slice_sizes={{64,64}}
}
""",
    "permute-start-in-place": """
ENTRY e {
  p = f32[128,128]{1,0} parameter(0)
  o = f32[128,128]{1,0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], s32[]) tuple(z,z)
  c = (f32[128,128]{1,0}, f32[128,128]{1,0}, u32[], u32[]) collective-permute-start(p,o,t,t), source_target_pairs={{1,0},{2,1},{3,2}}, slice_sizes={{64,64}}
  ROOT d = f32[128,128]{1,0} collective-permute-done(c)
}
""",
    "permute-start-two": """
ENTRY e {
  p = f32[8]{0} parameter(0)
  q = s32[4]{0} parameter(1)
  c = ((f32[8]{0}, s32[4]{0}), (f32[8]{0}, s32[4]{0})) collective-permute-start(p,q), source_target_pairs={{1,0},{2,1},{3,2}}
  ROOT d = (f32[8]{0}, s32[4]{0}) collective-permute-done(c)
}
""",
    "all-gather-start-two": """
ENTRY e {
  p = f32[8]{0} parameter(0)
  q = s32[4]{0} parameter(1)
  c = ((f32[8]{0}, s32[4]{0}), (f32[16]{0}, s32[8]{0})) all-gather-start(p,q), dimensions={0}, replica_groups={{0,1}}
  ROOT d = (f32[16]{0}, s32[8]{0}) all-gather-done(c)
}
""",
    "all-gather-start-contexts": """
ENTRY e {
  p = f32[8]{0} parameter(0)
  c = (f32[8]{0}, f32[16]{0}, u32[], u32[]) all-gather-start(p), dimensions={0}, replica_groups={}
  ROOT d = f32[16]{0} all-gather-done(c)
}
""",
    "host-transfer": """
ENTRY e {
  t = token[] after-all()
  r = (f32[], u32[], token[]) recv(t), channel_id=15, is_host_transfer=true
  ROOT d = (f32[], token[]) recv-done(r), channel_id=15, is_host_transfer=true
  k = f32[] constant(2.1)
  s = (f32[], u32[], token[]) send(k,t), channel_id=16, is_host_transfer=true, control-predecessors={r}
  sd = token[] send-done(s), channel_id=16, is_host_transfer=true
}
""",
    "pipelined-send-recv": """
cond {
  p = (u32[], (f32[2], u32[], token[]), (f32[2], u32[], token[])) parameter(0)
  c = u32[] get-tuple-element(p), index=0
  k = u32[] constant(3)
  ROOT r = pred[] compare(c,k), direction=LT
}
body {
  p = (u32[], (f32[2], u32[], token[]), (f32[2], u32[], token[])) parameter(0)
  c = u32[] get-tuple-element(p), index=0
  k = u32[] constant(1)
  n = u32[] add(c,k)
  rv = (f32[2], u32[], token[]) get-tuple-element(p), index=1
  rd = (f32[2], token[]) recv-done(rv), channel_id=1
  sv = (f32[2], u32[], token[]) get-tuple-element(p), index=2
  sd = token[] send-done(sv), channel_id=1
  d = f32[2] get-tuple-element(rd), index=0
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  s = (f32[2], u32[], token[]) send(d,t), channel_id=1
  ROOT o = (u32[], (f32[2], u32[], token[]), (f32[2], u32[], token[])) tuple(n,r,s)
}
ENTRY e {
  z = u32[] constant(0)
  d = f32[2] parameter(0)
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  s = (f32[2], u32[], token[]) send(d,t), channel_id=1
  i = (u32[], (f32[2], u32[], token[]), (f32[2], u32[], token[])) tuple(z,r,s)
  w = (u32[], (f32[2], u32[], token[]), (f32[2], u32[], token[])) while(i), condition=cond, body=body
  rv = (f32[2], u32[], token[]) get-tuple-element(w), index=1
  rd = (f32[2], token[]) recv-done(rv), channel_id=1
  sv = (f32[2], u32[], token[]) get-tuple-element(w), index=2
  sd = token[] send-done(sv), channel_id=1
  ROOT x = f32[2] get-tuple-element(rd), index=0
}
""",
    "reduce-window-two": """
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] add(a,c)
  y = f32[] add(b,d)
  ROOT t = (f32[], f32[]) tuple(x,y)
}
ENTRY e {
  p = f32[4,2]{1,0} parameter(0)
  q = f32[4,2]{1,0} parameter(1)
  k = f32[] constant(0)
  ROOT r = (f32[2,2]{1,0}, f32[2,2]{1,0}) reduce-window(p,q,k,k), window={size=5x1 stride=3x1 pad=2_2x0_0}, to_apply=f
}
""",
    "domain": """
ENTRY e {
  p = (f32[], f32[]) parameter(0)
  g = f32[] get-tuple-element(p), index=0
  ROOT d = f32[] domain(g), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
}
""",
    "late-operand": """
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  s = ((f32[2]), (), u32[]) add-start(p)
  u = ((f32[2], f32[2]), f32[2], u32[]) add-update(s, q)
  ROOT d = f32[2] add-done(u)
}
""",
    "late-everything": """
f {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT c = f32[2] add(a,b)
}
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  s = ((), (), ()) call-start(), to_apply=f
  u = ((f32[2], f32[2]), (), ()) call-update(s, p, q)
  v = ((f32[2], f32[2]), f32[2]) call-update(u)
  ROOT d = f32[2] call-done(v)
}
""",
    "dynamic-size": """
ENTRY e {
  p = f32[<=8,4] parameter(0)
  n = s32[] get-dimension-size(p), dimensions={0}
  s = f32[8,4] custom-call(p), custom_call_target="SliceToDynamic"
  t = f32[<=8,4] set-dimension-size(s, n), dimensions={0}
  ROOT r = (f32[<=8,4], s32[]) tuple(t, n)
}
""",
    "dynamic-reshape": """
ENTRY e {
  p = f32[<=8,4] parameter(0)
  n = s32[] parameter(1)
  ROOT r = f32[<=32] dynamic-reshape(p, n)
}
""",
    "unbounded": """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a,b)
}
ENTRY e {
  p = f32[?,10] parameter(0)
  q = f32[10,?] parameter(1)
  z = f32[] constant(0)
  d = f32[?,?] dot(p,q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[?] reduce(d,z), dimensions={0}, to_apply=add
  t = f32[?,?] transpose(d), dimensions={1,0}
  pd = f32[?,12] pad(p,z), padding=0_0x1_1
  cc = f32[?,10] concatenate(p,p), dimensions={0}
  rs = f32[?] reshape(p)
  bc = f32[?,?,3] broadcast(d), dimensions={0,1}
  ag = f32[?,20] all-gather(p), replica_groups={{0,1}}, dimensions={1}
  ar = f32[?,10] all-reduce(p), to_apply=add
  aa = f32[?,10] all-to-all(p), replica_groups={{0,1}}, dimensions={0}
  cv = s32[?,10] convert(p)
  bcv = u8[?,10,4] bitcast-convert(p)
  rv = f32[?,10] reverse(p), dimensions={0}
  ROOT o = (f32[?]) tuple(r)
}
""",
    "buffers": """
cond {
  p = (s32[], b(f32[8])) parameter(0)
  ROOT c = pred[] constant(false)
}
body {
  ROOT p = (s32[], b(f32[8])) parameter(0)
}
ENTRY e {
  p = f32[8] parameter(0)
  z = s32[] constant(0)
  b = b(f32[8]) custom-call(p), custom_call_target="Pin", output_to_operand_aliasing={{}:(0,{})}
  t = (s32[], b(f32[8])) tuple(z,b)
  w = (s32[], b(f32[8])) while(t), condition=cond, body=body
  g = b(f32[8]) get-tuple-element(w), index=1
  ROOT u = f32[8] custom-call(g), custom_call_target="Unpin", output_to_operand_aliasing={{}:(0,{})}
}
""",
    "batch-norm": """
ENTRY e {
  p = f32[2,2,1,2]{3,2,1,0} parameter(0)
  o = f32[2]{0} parameter(1)
  f = f32[2]{0} parameter(2)
  ROOT b = (f32[2,2,1,2]{3,2,1,0}, f32[2]{0}, f32[2]{0}) batch-norm-training(p,o,f), epsilon=0.001, feature_index=3
}
""",
    "random-bits": """
ENTRY e {
  p = u64[2]{0} parameter(0)
  ROOT b = (u64[2]{0}, u32[11,17]{1,0}) rng-bit-generator(p), algorithm=rng_three_fry
}
""",
    "scan": """
f {
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  y = f32[] add(x,c)
  ROOT t = (f32[], f32[]) tuple(y,y)
}
ENTRY e {
  p = f32[8] parameter(0)
  i = f32[] parameter(1)
  ROOT s = (f32[8], f32[]) scan(p,i), dimensions={0}, num_carries=1, is_associative=true, to_apply=f
}
""",
    "all-reduce-narrow-reducer": """
addp {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a,b)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={}, to_apply=addp
}
""",
    "conditional-different-operands": """
t {
  p = (f32[], s32[]) parameter(0)
  ROOT g = f32[] get-tuple-element(p), index=0
}
f {
  p = f32[] parameter(0)
  ROOT g = f32[] negate(p)
}
ENTRY e {
  p = pred[] parameter(0)
  a = (f32[], s32[]) parameter(1)
  b = f32[] parameter(2)
  ROOT c = f32[] conditional(p,a,b), true_computation=t, false_computation=f
}
""",
    "copy-dynamic": """
ENTRY e {
  p = f32[<=8]{0:T(8)} parameter(0)
  c = (f32[<=8]{0:T(8)S(1)}, f32[<=8]{0:T(8)}, u32[]{:S(2)}) copy-start(p)
  ROOT d = f32[<=8]{0:T(8)S(1)} copy-done(c)
}
""",
    "elided-constant": """
ENTRY e {
  ROOT c = f32[2,300] constant({...})
}
""",
    "tuple-constant": """
ENTRY e {
  ROOT c = (f32[], s32[2]) constant((1, {2,3}))
}
""",
    "tokens-in-tuples": """
ENTRY e {
  t = token[] parameter(0)
  ROOT c = (token[], (token[])) custom-call(t), custom_call_target="x"
}
""",
    "fusion-custom-spaces": """
f {
  a = f32[8]{0} parameter(0)
  ROOT b = f32[8]{0:S(1)} copy(a)
}
ENTRY e {
  a = f32[8]{0:S(5)} parameter(0)
  ROOT r = f32[8]{0:S(1)} fusion(a), kind=kCustom, calls=f, output_to_operand_aliasing={{}: (0, {})}
}
""",
    "fusions-sharing-a-body": """
f {
  a = f32[8]{0} parameter(0)
  ROOT b = f32[8]{0} negate(a)
}
ENTRY e {
  a = f32[8]{0} parameter(0)
  r = f32[8]{0} fusion(a), kind=kLoop, calls=f
  ROOT s = f32[8]{0} fusion(r), kind=kLoop, calls=f
}
""",
    "bitcast-convert-packed": """
ENTRY e {
  a = s8[8]{0} parameter(0)
  ROOT r = s4[8,2]{1,0:E(4)} bitcast-convert(a)
}
""",
    "broadcast-two": """
ENTRY e {
  a = s8[8]{0} parameter(0)
  b = f32[2] parameter(1)
  ROOT r = (s8[8]{0}, f32[2]) collective-broadcast(a,b), replica_groups={{1,0},{2,5}}
}
""",
    "ragged-all-to-all": """
ENTRY e {
  a = f32[8,2] parameter(0)
  b = f32[9,2] parameter(1)
  o = s64[2] parameter(2)
  ROOT r = f32[9,2] ragged-all-to-all(a,b,o,o,o,o), replica_groups={{0,1}}
}
""",
    "infeed-tuple": """
ENTRY e {
  t = token[] after-all()
  i = ((u32[3]{0}, pred[]), token[]) infeed(t), infeed_config="x"
  d = (u32[3]{0}, pred[]) get-tuple-element(i), index=0
  o = token[] outfeed(d, t), outfeed_shape=(u32[3]{0}, pred[])
  ROOT x = () tuple()
}
""",
}
