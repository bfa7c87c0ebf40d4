"""Valid modules, one for each family of rules, that tests break in one place each."""

ELEMENTWISE = """
HloModule elementwise

ENTRY main {
  p = pred[4,8] parameter(0)
  x = f32[4,8] parameter(1)
  y = f32[4,8] parameter(2)
  i = s32[4,8] parameter(3)
  low = f32[] constant(0)
  high = f32[] constant(1)
  neg = f32[4,8] negate(x)
  sum = f32[4,8] add(neg, y)
  less = pred[4,8] compare(sum, y), direction=LT
  both = pred[4,8] and(p, less)
  flip = pred[4,8] not(both)
  pick = f32[4,8] select(flip, x, y)
  cut = f32[4,8] clamp(low, pick, high)
  pair = c64[4,8] complex(cut, y)
  mag = f32[4,8] abs(pair)
  bits = s32[4,8] popcnt(i)
  wide = f32[4,8] convert(bits)
  short = f32[4,8] reduce-precision(wide), exponent_bits=8, mantissa_bits=7
  ok = pred[4,8] is-finite(short)
  ROOT t = (f32[4,8], pred[4,8]) tuple(mag, ok)
}
"""

MOVEMENT = """
HloModule movement

ENTRY main {
  x = f32[4,8] parameter(0)
  v = f32[8] parameter(1)
  i = s32[] parameter(2)
  zero = f32[] constant(0)
  b = f32[4,8] broadcast(v), dimensions={1}
  t = f32[8,4] transpose(b), dimensions={1,0}
  r = f32[32] reshape(t)
  back = f32[8,4] bitcast(r)
  flip = f32[8,4] reverse(back), dimensions={0}
  cat = f32[8,8] concatenate(flip, back), dimensions={1}
  pad = f32[9,11] pad(cat, zero), padding=0_1x1_2
  cut = f32[4,3] slice(pad), slice={[0:8:2],[2:5]}
  dyn = f32[1,3] dynamic-slice(cut, i, i), dynamic_slice_sizes={1,3}
  upd = f32[4,8] dynamic-update-slice(x, dyn, i, i)
  raw = u32[4,8] bitcast-convert(upd)
  idx = u32[4,8] iota(), iota_dimension=1
  or = u32[4,8] or(raw, idx)
  size = s32[] get-dimension-size(x), dimensions={0}
  any = f32[<=4,8] set-dimension-size(x, size), dimensions={0}
  same = f32[4,8] copy(upd)
  ROOT out = (u32[4,8], f32[<=4,8], f32[4,8]) tuple(or, any, same)
}
"""

PRODUCTS = """
HloModule products

ENTRY main {
  a = f32[3,8,10] parameter(0)
  b = f32[3,10,16] parameter(1)
  d = f32[3,8,16] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  x = f32[1,8,8,4] parameter(2)
  k = f32[3,3,4,16] parameter(3)
  c = f32[1,8,8,16] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  s = f32[2,64] parameter(4)
  f = c64[2,33] fft(s), fft_type=RFFT, fft_length={64}
  m = f32[2,4,4] parameter(5)
  l = f32[2,4,4] cholesky(m), lower=true
  q = f32[2,4,3] parameter(6)
  z = f32[2,4,3] triangular-solve(l, q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
  ROOT t = (f32[3,8,16], f32[1,8,8,16], c64[2,33], f32[2,4,3]) tuple(d, c, f, z)
}
"""

REDUCTIONS = """
HloModule reductions

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}

by_key {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT
}

square {
  a = f32[] parameter(0)
  ROOT c = f32[] multiply(a, a)
}

ENTRY main {
  x = f32[4,8] parameter(0)
  i = s32[4,8] parameter(1)
  n = s32[7,1] parameter(2)
  u = f32[7,8] parameter(3)
  g = f32[8] parameter(4)
  zero = f32[] constant(0)
  red = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  win = f32[2,4] reduce-window(x, zero), window={size=2x2 stride=2x2}, to_apply=add
  sas = f32[4,8] select-and-scatter(x, win, zero), window={size=2x2 stride=2x2}, select=ge, scatter=add
  map = f32[4,8] map(sas), dimensions={0,1}, to_apply=square
  sort = (f32[4,8], s32[4,8]) sort(map, i), dimensions={1}, to_apply=by_key
  key = f32[4,8] get-tuple-element(sort), index=0
  top = (f32[4,3], s32[4,3]) topk(key), k=3, largest=true
  gat = f32[7,8] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  sca = f32[4,8] scatter(x, n, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  bn = (f32[4,8], f32[8], f32[8]) batch-norm-training(sca, g, g), epsilon=0.001, feature_index=1
  ROOT t = (f32[4], (f32[4,3], s32[4,3]), f32[7,8], (f32[4,8], f32[8], f32[8])) tuple(red, top, gat, bn)
}
"""

CONTROL = """
HloModule control

body {
  s = (s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  bx = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  by = f32[8] negate(bx)
  ROOT t = (s32[], f32[8]) tuple(m, by)
}

cond {
  cs = (s32[], f32[8]) parameter(0)
  cn = s32[] get-tuple-element(cs), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(cn, ten), direction=LT
}

left {
  lx = f32[8] parameter(0)
  ROOT ly = f32[8] negate(lx)
}

right {
  rx = f32[8] parameter(0)
  ROOT ry = f32[8] abs(rx)
}

third {
  hx = f32[8] parameter(0)
  ROOT hy = f32[8] cosine(hx)
}

fused {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT c = f32[8] multiply(a, b)
}

callee {
  ca = f32[8] parameter(0)
  ROOT ct = (f32[8]) tuple(ca)
}

ENTRY main {
  p = pred[] parameter(0)
  i = s32[] parameter(1)
  x = f32[8] parameter(2)
  init = (s32[], f32[8]) tuple(i, x)
  loop = (s32[], f32[8]) while(init), condition=cond, body=body
  y = f32[8] get-tuple-element(loop), index=1
  two = f32[8] conditional(p, x, y), true_computation=left, false_computation=right
  three = f32[8] conditional(i, x, y, two), branch_computations={left, right, third}
  fus = f32[8] fusion(two, three), kind=kLoop, calls=fused
  call = (f32[8]) call(fus), to_apply=callee
  ROOT z = f32[8] get-tuple-element(call), index=0
}
"""

ASYNC = """
HloModule asynchronous

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

wrapped {
  a = f32[8] parameter(0)
  n = f32[8] negate(a)
  ROOT e = f32[8] exponential(n)
}

ENTRY main {
  x = f32[8] parameter(0)
  tok = token[] parameter(1)
  cs = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(x)
  as = ((f32[8]), f32[8], u32[]) async-start(x), calls=wrapped
  au = ((f32[8]), f32[8], u32[]) async-update(as)
  ar = f32[8] all-reduce-start(x), replica_groups={}, to_apply=add
  ag = (f32[8], f32[16]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
  cp = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}
  sn = (f32[8], u32[], token[]) send(x, tok), channel_id=1
  rc = (f32[8], u32[], token[]) recv(tok), channel_id=2
  cd = f32[8]{0:S(1)} copy-done(cs)
  ad = f32[8] async-done(au)
  ard = f32[8] all-reduce-done(ar)
  agd = f32[16] all-gather-done(ag)
  cpd = f32[8] collective-permute-done(cp)
  snd = token[] send-done(sn), channel_id=1
  rcd = (f32[8], token[]) recv-done(rc), channel_id=2
  ROOT t = (f32[8], f32[8], f32[8], f32[16], f32[8], token[], (f32[8], token[])) tuple(cd, ad, ard, agd, cpd, snd, rcd)
}
"""

COLLECTIVE = """
HloModule collective, replica_count=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,4] parameter(0)
  ar = f32[8,4] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
  ag = f32[16,4] all-gather(ar), replica_groups=[2,2]<=[4], dimensions={0}
  rs = f32[8,4] reduce-scatter(ag), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=add
  aa = f32[8,4] all-to-all(rs), replica_groups={{0,1,2,3}}, dimensions={1}
  cp = f32[8,4] collective-permute(aa), source_target_pairs={{0,1},{1,2},{2,3}}
  cb = f32[8,4] collective-broadcast(cp), replica_groups={{0,1,2,3}}
  tok = token[] after-all()
  feed = (f32[8,4], token[]) infeed(tok)
  in = f32[8,4] get-tuple-element(feed), index=0
  sum = f32[8,4] add(cb, in)
  dep = f32[8,4] add-dependency(sum, tok)
  out = token[] outfeed(dep, tok), outfeed_shape=f32[8,4]{1,0}
  id = u32[] replica-id()
  part = u32[] partition-id()
  ROOT t = (f32[8,4], u32[], u32[], token[]) tuple(dep, id, part, out)
}
"""

HEADER = """
HloModule header, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {0}, must-alias) }, buffer_donor={ (2, {}) }, entry_computation_layout={(f32[8]{0}, (s32[4]{0}, f32[2]{0}), f32[8,2]{1,0})->(f32[8]{0}, s32[4]{0})}

ENTRY main {
  x = f32[8]{0} parameter(0)
  t = (s32[4]{0}, f32[2]{0}) parameter(1)
  w = f32[8,2]{1,0} parameter(2)
  i = s32[4]{0} get-tuple-element(t), index=0
  y = f32[8]{0} negate(x)
  z = f32[8]{0} add(y, y), control-predecessors={i}
  j = s32[4]{0} negate(i)
  ROOT r = (f32[8]{0}, s32[4]{0}) tuple(z, j)
}
"""

CUSTOM = """
HloModule custom

ENTRY main {
  x = f32[8] parameter(0)
  t = (s32[4], f32[2]) parameter(1)
  c = (f32[8], f32[2]) custom-call(x, t), custom_call_target="c", operand_layout_constraints={f32[8]{0}, (s32[4]{0}, f32[2]{0})}, output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {1})}
  ROOT r = f32[2] get-tuple-element(c), index=1
}
"""

MODULES = {
    "custom": CUSTOM,
    "elementwise": ELEMENTWISE,
    "movement": MOVEMENT,
    "products": PRODUCTS,
    "reductions": REDUCTIONS,
    "control": CONTROL,
    "async": ASYNC,
    "collective": COLLECTIVE,
    "header": HEADER,
}
