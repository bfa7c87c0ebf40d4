"""Single mutations of the text of valid modules; each must be refused.

Most are found by the verifier, the rest already by the reader. Each row replaces the
first occurrence of one piece of text.
"""

import pytest

import msa
from hlo.verifier_modules import MODULES
from msa.errors import HloError, HloVerifyError

ROWS = """
# elementwise -------------------------------------------------------------------
unary-shape | elementwise | neg = f32[4,8] negate(x) | neg = f32[3,8] negate(x)
unary-rank | elementwise | neg = f32[4,8] negate(x) | neg = f32[32] negate(x)
unary-type | elementwise | neg = f32[4,8] negate(x) | neg = bf16[4,8] negate(x)
unary-tuple-result | elementwise | neg = f32[4,8] negate(x) | neg = (f32[4,8]) negate(x)
unary-operand-type | elementwise | negate(x) | negate(p)
unary-operand-count | elementwise | negate(x) | negate(x, y)
unary-no-operand | elementwise | negate(x) | negate()
unary-opcode | elementwise | negate(x) | not(x)
binary-shape | elementwise | sum = f32[4,8] add(neg, y) | sum = f32[8,4] add(neg, y)
binary-operand-type | elementwise | add(neg, y) | add(neg, i)
binary-operand-shape | elementwise | add(neg, y) | add(neg, low)
binary-operand-count | elementwise | add(neg, y) | add(neg)
binary-parameter-dim | elementwise | y = f32[4,8] parameter(2) | y = f32[4,9] parameter(2)
binary-parameter-one | elementwise | y = f32[4,8] parameter(2) | y = f32[1,8] parameter(2)
binary-parameter-type | elementwise | y = f32[4,8] parameter(2) | y = f64[4,8] parameter(2)
binary-parameter-precision | elementwise | y = f32[4,8] parameter(2) | y = bf16[4,8] parameter(2)
compare-result | elementwise | less = pred[4,8] compare | less = s8[4,8] compare
compare-shape | elementwise | less = pred[4,8] compare | less = pred[8] compare
compare-direction | elementwise | direction=LT | direction=SOON
compare-no-direction | elementwise | compare(sum, y), direction=LT | compare(sum, y)
compare-types | elementwise | compare(sum, y) | compare(sum, i)
and-float | elementwise | and(p, less) | and(x, y)
and-mixed | elementwise | and(p, less) | and(p, i)
not-count | elementwise | not(both) | not(both, p)
select-predicate | elementwise | select(flip, x, y) | select(i, x, y)
select-choices | elementwise | select(flip, x, y) | select(flip, x, i)
select-scalar-choice | elementwise | select(flip, x, y) | select(flip, x, low)
select-count | elementwise | select(flip, x, y) | select(flip, x)
select-order | elementwise | select(flip, x, y) | select(x, flip, y)
clamp-shape | elementwise | cut = f32[4,8] clamp | cut = f32[] clamp
clamp-bound | elementwise | clamp(low, pick, high) | clamp(p, pick, high)
clamp-order | elementwise | clamp(low, pick, high) | clamp(low, high, pick)
complex-result | elementwise | pair = c64[4,8] complex | pair = c128[4,8] complex
complex-operand | elementwise | complex(cut, y) | complex(cut, i)
abs-result | elementwise | mag = f32[4,8] abs | mag = c64[4,8] abs
popcnt-float | elementwise | popcnt(i) | popcnt(x)
popcnt-result | elementwise | bits = s32[4,8] popcnt | bits = u32[4,8] popcnt
convert-shape | elementwise | wide = f32[4,8] convert | wide = f32[8,4] convert
precision-int | elementwise | reduce-precision(wide) | reduce-precision(bits)
precision-bits | elementwise | exponent_bits=8 | exponent_bits=0
precision-missing | elementwise | , mantissa_bits=7 | (nothing)
finite-int | elementwise | is-finite(short) | is-finite(bits)
tuple-arity | elementwise | t = (f32[4,8], pred[4,8]) tuple | t = (f32[4,8]) tuple
tuple-element | elementwise | t = (f32[4,8], pred[4,8]) tuple | t = (f32[4,8], pred[8,4]) tuple
tuple-array | elementwise | t = (f32[4,8], pred[4,8]) tuple | t = f32[4,8] tuple
constant-shape | elementwise | low = f32[] constant(0) | low = f32[2] constant(0)
constant-type | elementwise | low = f32[] constant(0) | low = s32[] constant(0.5)
parameter-twice | elementwise | parameter(3) | parameter(2)
parameter-gap | elementwise | parameter(3) | parameter(4)
parameter-negative | elementwise | parameter(3) | parameter(-1)
name-twice | elementwise | low = f32[] | high = f32[]
operand-unknown | elementwise | add(neg, y) | add(negg, y)
operand-later | elementwise | add(neg, y) | add(pick, y)
opcode-unknown | elementwise | add(neg, y) | plus(neg, y)
attribute-unknown | elementwise | direction=LT | direction=LT, dimensions={1}
root-twice | elementwise | mag = f32[4,8] abs | ROOT mag = f32[4,8] abs
layout-rank | elementwise | x = f32[4,8] parameter | x = f32[4,8]{0} parameter
layout-permutation | elementwise | x = f32[4,8] parameter | x = f32[4,8]{1,1} parameter
layout-bounds | elementwise | x = f32[4,8] parameter | x = f32[4,8]{2,0} parameter
# movement ----------------------------------------------------------------------
broadcast-dim | movement | broadcast(v), dimensions={1} | broadcast(v), dimensions={0}
broadcast-bounds | movement | broadcast(v), dimensions={1} | broadcast(v), dimensions={2}
broadcast-count | movement | broadcast(v), dimensions={1} | broadcast(v), dimensions={0,1}
broadcast-type | movement | b = f32[4,8] broadcast | b = s32[4,8] broadcast
transpose-permutation | movement | transpose(b), dimensions={1,0} | transpose(b), dimensions={1,1}
transpose-short | movement | transpose(b), dimensions={1,0} | transpose(b), dimensions={0}
transpose-shape | movement | t = f32[8,4] transpose | t = f32[4,8] transpose
transpose-missing | movement | transpose(b), dimensions={1,0} | transpose(b)
reshape-count | movement | r = f32[32] reshape | r = f32[31] reshape
reshape-type | movement | r = f32[32] reshape | r = s32[32] reshape
reshape-tuple | movement | r = f32[32] reshape | r = (f32[32]) reshape
reverse-bounds | movement | reverse(back), dimensions={0} | reverse(back), dimensions={2}
reverse-twice | movement | reverse(back), dimensions={0} | reverse(back), dimensions={0,0}
reverse-shape | movement | flip = f32[8,4] reverse | flip = f32[4,8] reverse
concatenate-dim | movement | concatenate(flip, back), dimensions={1} | concatenate(flip, back), dimensions={0}
concatenate-bounds | movement | concatenate(flip, back), dimensions={1} | concatenate(flip, back), dimensions={2}
concatenate-shape | movement | cat = f32[8,8] concatenate | cat = f32[8,9] concatenate
concatenate-operand | movement | concatenate(flip, back) | concatenate(flip, x)
concatenate-rank | movement | concatenate(flip, back) | concatenate(flip, v)
pad-value | movement | pad(cat, zero) | pad(cat, v)
pad-type | movement | pad(cat, zero) | pad(cat, i)
pad-config | movement | padding=0_1x1_2 | padding=0_1x1_1
pad-rank | movement | padding=0_1x1_2 | padding=0_1
pad-negative | movement | padding=0_1x1_2 | padding=-9_0x1_2
slice-limit | movement | slice={[0:8:2],[2:5]} | slice={[0:8:2],[2:12]}
slice-start | movement | slice={[0:8:2],[2:5]} | slice={[0:8:2],[1:5]}
slice-stride | movement | slice={[0:8:2],[2:5]} | slice={[0:8:3],[2:5]}
slice-zero-stride | movement | slice={[0:8:2],[2:5]} | slice={[0:8:0],[2:5]}
slice-rank | movement | slice={[0:8:2],[2:5]} | slice={[0:8:2]}
dynamic-slice-size | movement | dynamic_slice_sizes={1,3} | dynamic_slice_sizes={1,2}
dynamic-slice-large | movement | dynamic_slice_sizes={1,3} | dynamic_slice_sizes={1,4}
dynamic-slice-rank | movement | dynamic_slice_sizes={1,3} | dynamic_slice_sizes={3}
dynamic-slice-starts | movement | dynamic-slice(cut, i, i) | dynamic-slice(cut, i, i, i)
dynamic-slice-start-type | movement | dynamic-slice(cut, i, i) | dynamic-slice(cut, i, zero)
update-shape | movement | upd = f32[4,8] dynamic-update-slice | upd = f32[1,3] dynamic-update-slice
update-large | movement | dynamic-update-slice(x, dyn, i, i) | dynamic-update-slice(dyn, x, i, i)
update-type | movement | dynamic-update-slice(x, dyn, i, i) | dynamic-update-slice(x, i, i, i)
update-starts | movement | dynamic-update-slice(x, dyn, i, i) | dynamic-update-slice(x, dyn, i)
bitcast-convert-bits | movement | raw = u32[4,8] bitcast-convert | raw = u16[4,8] bitcast-convert
bitcast-convert-shape | movement | raw = u32[4,8] bitcast-convert | raw = u32[8,4] bitcast-convert
iota-bounds | movement | iota_dimension=1 | iota_dimension=2
iota-negative | movement | iota_dimension=1 | iota_dimension=-1
iota-type | movement | idx = u32[4,8] iota | idx = s32[4,8] iota
get-size-bounds | movement | get-dimension-size(x), dimensions={0} | get-dimension-size(x), dimensions={2}
get-size-type | movement | size = s32[] get | size = s64[] get
set-size-bounds | movement | set-dimension-size(x, size), dimensions={0} | set-dimension-size(x, size), dimensions={2}
set-size-operand | movement | set-dimension-size(x, size) | set-dimension-size(x, zero)
copy-shape | movement | same = f32[4,8] copy | same = f32[8,4] copy
copy-type | movement | same = f32[4,8] copy | same = u32[4,8] copy
bitcast-bytes | movement | back = f32[8,4] bitcast(r) | back = f32[8,5] bitcast(r)
# products ----------------------------------------------------------------------
dot-shape | products | d = f32[3,8,16] dot | d = f32[3,16,8] dot
dot-contracting | products | lhs_contracting_dims={2} | lhs_contracting_dims={1}
dot-contracting-bounds | products | lhs_contracting_dims={2} | lhs_contracting_dims={3}
dot-contracting-batch | products | lhs_contracting_dims={2} | lhs_contracting_dims={0}
dot-batch | products | rhs_batch_dims={0} | rhs_batch_dims={1}
dot-batch-count | products | , rhs_batch_dims={0} | (nothing)
dot-type | products | d = f32[3,8,16] dot | d = s32[3,8,16] dot
dot-operand | products | b = f32[3,10,16] parameter | b = f32[3,11,16] parameter
convolution-shape | products | c = f32[1,8,8,16] convolution | c = f32[1,6,6,16] convolution
convolution-window | products | window={size=3x3 pad=1_1x1_1} | window={size=3x3 pad=0_1x1_1}
convolution-window-size | products | window={size=3x3 pad=1_1x1_1} | window={size=5x3 pad=1_1x1_1}
convolution-window-rank | products | window={size=3x3 pad=1_1x1_1} | window={size=3 pad=1_1}
convolution-labels | products | dim_labels=b01f_01io->b01f | dim_labels=b01f_01io->bf01
convolution-kernel-labels | products | dim_labels=b01f_01io->b01f | dim_labels=b01f_01oi->b01f
convolution-features | products | k = f32[3,3,4,16] parameter | k = f32[3,3,5,16] parameter
convolution-groups | products | window={size=3x3 | feature_group_count=3, window={size=3x3
convolution-no-labels | products | , dim_labels=b01f_01io->b01f | (nothing)
fft-length | products | fft_length={64} | fft_length={32}
fft-type | products | fft_type=RFFT | fft_type=FFT
fft-shape | products | f = c64[2,33] fft | f = c64[2,64] fft
cholesky-square | products | m = f32[2,4,4] parameter | m = f32[2,4,5] parameter
cholesky-shape | products | l = f32[2,4,4] cholesky | l = f32[4,4] cholesky
triangular-side | products | left_side=true | left_side=false
triangular-shape | products | z = f32[2,4,3] triangular | z = f32[2,3,4] triangular
triangular-operands | products | triangular-solve(l, q) | triangular-solve(q, l)
# reductions --------------------------------------------------------------------
reduce-dims | reductions | reduce(x, zero), dimensions={1} | reduce(x, zero), dimensions={0}
reduce-bounds | reductions | reduce(x, zero), dimensions={1} | reduce(x, zero), dimensions={2}
reduce-twice | reductions | reduce(x, zero), dimensions={1} | reduce(x, zero), dimensions={1,1}
reduce-shape | reductions | red = f32[4] reduce | red = f32[8] reduce
reduce-operand-count | reductions | reduce(x, zero) | reduce(x, zero, zero)
reduce-init | reductions | reduce(x, zero) | reduce(x, g)
reduce-input-type | reductions | reduce(x, zero) | reduce(i, zero)
reduce-comparator | reductions | reduce(x, zero), dimensions={1}, to_apply=add | reduce(x, zero), dimensions={1}, to_apply=ge
reduce-arity | reductions | reduce(x, zero), dimensions={1}, to_apply=add | reduce(x, zero), dimensions={1}, to_apply=square
reduce-unknown | reductions | reduce(x, zero), dimensions={1}, to_apply=add | reduce(x, zero), dimensions={1}, to_apply=plus
reduce-missing | reductions | reduce(x, zero), dimensions={1}, to_apply=add | reduce(x, zero), dimensions={1}
window-shape | reductions | win = f32[2,4] reduce-window | win = f32[2,3] reduce-window
window-size | reductions | size=2x2 stride=2x2}, to_apply | size=3x2 stride=2x2}, to_apply
window-stride | reductions | size=2x2 stride=2x2}, to_apply | size=2x2 stride=1x2}, to_apply
window-rank | reductions | size=2x2 stride=2x2}, to_apply | size=2 stride=2}, to_apply
select-scatter-shape | reductions | sas = f32[4,8] select | sas = f32[8,4] select
select-scatter-source | reductions | select-and-scatter(x, win, zero) | select-and-scatter(x, x, zero)
select-scatter-selection | reductions | select=ge | select=add
select-scatter-reducer | reductions | scatter=add | scatter=ge
map-function | reductions | to_apply=square | to_apply=add
map-shape | reductions | map = f32[4,8] map | map = f32[8,4] map
map-type | reductions | map(sas) | map(i)
map-dims | reductions | map(sas), dimensions={0,1} | map(sas), dimensions={1}
sort-shape | reductions | sort = (f32[4,8], s32[4,8]) sort | sort = (f32[4,8], s32[8,4]) sort
sort-comparator | reductions | dimensions={1}, to_apply=by_key | dimensions={1}, to_apply=ge
sort-axis | reductions | sort(map, i), dimensions={1} | sort(map, i), dimensions={2}
sort-axes | reductions | sort(map, i), dimensions={1} | sort(map, i), dimensions={0,1}
sort-operand | reductions | sort(map, i) | sort(i, map)
topk-k | reductions | k=3 | k=9
topk-shape | reductions | top = (f32[4,3], s32[4,3]) topk | top = (f32[4,3], f32[4,3]) topk
gte-index | reductions | get-tuple-element(sort), index=0 | get-tuple-element(sort), index=1
gte-bounds | reductions | get-tuple-element(sort), index=0 | get-tuple-element(sort), index=2
gte-array | reductions | get-tuple-element(sort) | get-tuple-element(map)
gather-shape | reductions | gat = f32[7,8] gather | gat = f32[8,7] gather
gather-offset | reductions | offset_dims={1} | offset_dims={2}
gather-collapsed | reductions | collapsed_slice_dims={0} | collapsed_slice_dims={1}
gather-map | reductions | start_index_map={0} | start_index_map={0,1}
gather-map-bounds | reductions | start_index_map={0} | start_index_map={2}
gather-sizes | reductions | slice_sizes={1,8} | slice_sizes={1,9}
gather-sizes-rank | reductions | slice_sizes={1,8} | slice_sizes={1}
gather-vector | reductions | start_index_map={0}, index_vector_dim=1 | start_index_map={0}, index_vector_dim=3
gather-indices | reductions | gather(x, n) | gather(x, u)
scatter-shape | reductions | sca = f32[4,8] scatter | sca = f32[7,8] scatter
scatter-updates | reductions | scatter(x, n, u) | scatter(x, n, x)
scatter-window | reductions | update_window_dims={1} | update_window_dims={0}
scatter-inserted | reductions | inserted_window_dims={0} | inserted_window_dims={0,1}
scatter-dims | reductions | scatter_dims_to_operand_dims={0} | scatter_dims_to_operand_dims={5}
scatter-function | reductions | index_vector_dim=1, to_apply=add | index_vector_dim=1, to_apply=ge
norm-feature | reductions | feature_index=1 | feature_index=0
norm-feature-bounds | reductions | feature_index=1 | feature_index=2
norm-shape | reductions | bn = (f32[4,8], f32[8], f32[8]) batch | bn = (f32[4,8], f32[4], f32[8]) batch
# control flow ------------------------------------------------------------------
while-body-result | control | ROOT t = (s32[], f32[8]) tuple(m, by) | ROOT t = (f32[8], s32[]) tuple(by, m)
while-body-root | control | m = s32[] add(n, one) | ROOT m = s32[] add(n, one)
while-condition-result | control | ROOT lt = pred[] compare(cn, ten), direction=LT | ROOT lt = s32[] add(cn, ten)
while-condition-parameter | control | while(init), condition=cond | while(init), condition=left
while-swapped | control | condition=cond, body=body | condition=body, body=cond
while-result | control | loop = (s32[], f32[8]) while | loop = (s32[], f32[9]) while
while-init | control | init = (s32[], f32[8]) tuple(i, x) | init = (f32[8], s32[]) tuple(x, i)
while-operand-count | control | while(init) | while(init, x)
while-no-body | control | condition=cond, body=body | condition=cond
while-unknown | control | condition=cond | condition=cnd
conditional-predicate-shape | control | p = pred[] parameter(0) | p = pred[1] parameter(0)
conditional-operand | control | conditional(p, x, y) | conditional(p, x, i)
conditional-count | control | conditional(p, x, y) | conditional(p, x)
conditional-branches | control | {left, right, third} | {left, right}
conditional-result | control | two = f32[8] conditional | two = f32[4] conditional
conditional-branch-result | control | false_computation=right | false_computation=cond
conditional-branch-root | control | ROOT ry = f32[8] abs(rx) | ROOT ry = s8[8] convert(rx)
fusion-operand | control | fusion(two, three) | fusion(two, i)
fusion-count | control | fusion(two, three) | fusion(two)
fusion-result | control | fus = f32[8] fusion | fus = f32[4] fusion
fusion-kind | control | kind=kLoop | kind=kRound
fusion-parameter | control | b = f32[8] parameter(1) | b = f32[4] parameter(1)
call-operand | control | call(fus) | call(i)
call-count | control | call(fus) | call(fus, fus)
call-result | control | call = (f32[8]) call | call = f32[8] call
call-missing | control | call(fus), to_apply=callee | call(fus)
# asynchronous operations -------------------------------------------------------
copy-start-destination | async | cs = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) | cs = (f32[9]{0:S(1)}, f32[8]{0}, u32[])
copy-start-source | async | cs = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) | cs = (f32[8]{0:S(1)}, s32[8]{0}, u32[])
copy-start-context | async | cs = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) | cs = (f32[8]{0:S(1)}, f32[8]{0}, f32[])
copy-start-short | async | cs = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) | cs = (f32[8]{0:S(1)}, f32[8]{0})
copy-done-shape | async | cd = f32[8]{0:S(1)} copy-done | cd = f32[4]{0:S(1)} copy-done
copy-done-operand | async | copy-done(cs) | copy-done(x)
copy-done-other | async | copy-done(cs) | copy-done(cp)
copy-done-twice | async | ad = f32[8] async-done(au) | ad = f32[8]{0:S(1)} copy-done(cs)
async-start-operand | async | as = ((f32[8]), f32[8], u32[]) | as = ((f32[9]), f32[8], u32[])
async-start-result | async | as = ((f32[8]), f32[8], u32[]) | as = ((f32[8]), s32[8], u32[])
async-start-flat | async | as = ((f32[8]), f32[8], u32[]) | as = (f32[8], f32[8], u32[])
async-start-slots | async | as = ((f32[8]), f32[8], u32[]) | as = ((f32[8], f32[8]), f32[8], u32[])
async-update-shape | async | au = ((f32[8]), f32[8], u32[]) | au = ((f32[8]), s32[8], u32[])
async-update-operand | async | async-update(as) | async-update(x)
async-done-shape | async | ad = f32[8] async-done | ad = f32[4] async-done
async-done-operand | async | async-done(au) | async-done(cs)
async-done-start-too | async | ad = f32[8] async-done(au) | ad = f32[8] async-done(as)
wrapped-parameter | async | a = f32[8] parameter(0) | a = f32[9] parameter(0)
wrapped-root | async | ROOT e = f32[8] exponential(n) | ROOT e = pred[8] is-finite(n)
all-reduce-start-shape | async | ar = f32[8] all-reduce-start | ar = f32[4] all-reduce-start
all-reduce-start-function | async | all-reduce-start(x), replica_groups={}, to_apply=add | all-reduce-start(x), replica_groups={}, to_apply=wrapped
all-reduce-done-operand | async | all-reduce-done(ar) | all-reduce-done(x)
all-reduce-done-shape | async | ard = f32[8] all | ard = f32[16] all
all-gather-start-result | async | ag = (f32[8], f32[16]) | ag = (f32[8], f32[12])
all-gather-start-operand | async | ag = (f32[8], f32[16]) | ag = (f32[4], f32[16])
all-gather-start-group | async | replica_groups={{0,1}}, dimensions={0} | replica_groups={{0,1,2,3}}, dimensions={0}
all-gather-start-axis | async | replica_groups={{0,1}}, dimensions={0} | replica_groups={{0,1}}, dimensions={1}
all-gather-done-shape | async | agd = f32[16] all | agd = f32[8] all
all-gather-done-operand | async | all-gather-done(ag) | all-gather-done(cp)
permute-start-shape | async | cp = (f32[8], f32[8]) collective | cp = (f32[8], f32[4]) collective
permute-start-targets | async | source_target_pairs={{0,1},{1,0}} | source_target_pairs={{0,1},{1,1}}
permute-done-operand | async | collective-permute-done(cp) | collective-permute-done(ag)
permute-done-shape | async | cpd = f32[8] coll | cpd = f32[2] coll
send-token | async | send(x, tok) | send(x, x)
send-done-operand | async | send-done(sn) | send-done(rc)
recv-token | async | recv(tok) | recv(x)
recv-done-operand | async | recv-done(rc) | recv-done(sn)
recv-host | async | recv(tok), channel_id=2 | recv(tok), channel_id=2, is_host_transfer=true
handle-read | async | cd = f32[8]{0:S(1)} copy-done(cs) | early = f32[8] get-tuple-element(cs), index=1 cd = f32[8]{0:S(1)} copy-done(cs)
send-channel | async | send-done(sn), channel_id=1 | send-done(sn), channel_id=3
recv-channel | async | recv-done(rc), channel_id=2 | recv-done(rc), channel_id=1
# collectives -------------------------------------------------------------------
all-reduce-shape | collective | ar = f32[8,4] all-reduce | ar = f32[4,8] all-reduce
all-reduce-type | collective | ar = f32[8,4] all-reduce | ar = s32[8,4] all-reduce
all-reduce-repeat | collective | all-reduce(x), replica_groups={{0,1},{2,3}} | all-reduce(x), replica_groups={{0,1},{1,3}}
all-reduce-ids | collective | all-reduce(x), | all-reduce(x), use_global_device_ids=true,
all-reduce-tuple | collective | ar = f32[8,4] all-reduce(x) | ar = f32[8,4] all-reduce(x, x)
all-reduce-device | collective | all-reduce(x), replica_groups={{0,1},{2,3}} | all-reduce(x), replica_groups={{0,1},{2,4}}
permute-device | collective | {{0,1},{1,2},{2,3}} | {{0,1},{1,2},{2,4}}
all-gather-shape | collective | ag = f32[16,4] all | ag = f32[32,4] all
all-gather-axis | collective | [2,2]<=[4], dimensions={0} | [2,2]<=[4], dimensions={1}
all-gather-axes | collective | [2,2]<=[4], dimensions={0} | [2,2]<=[4], dimensions={}
all-gather-groups | collective | [2,2]<=[4] | [1,4]<=[4]
all-gather-iota | collective | [2,2]<=[4] | [2,3]<=[4]
reduce-scatter-shape | collective | rs = f32[8,4] reduce | rs = f32[4,4] reduce
reduce-scatter-groups | collective | reduce-scatter(ag), replica_groups={{0,1},{2,3}} | reduce-scatter(ag), replica_groups={{0,1,2,3}}
all-to-all-axis | collective | {{0,1,2,3}}, dimensions={1} | {{0,1,2,3}}, dimensions={2}
all-to-all-groups | collective | all-to-all(rs), replica_groups={{0,1,2,3}} | all-to-all(rs), replica_groups={{0,1,2}}
permute-sources | collective | {{0,1},{1,2},{2,3}} | {{0,1},{1,2},{1,3}}
permute-shape | collective | cp = f32[8,4] coll | cp = f32[8,8] coll
broadcast-collective-shape | collective | cb = f32[8,4] coll | cb = f32[8,3] coll
infeed-token | collective | infeed(tok) | infeed(x)
infeed-element | collective | get-tuple-element(feed), index=0 | get-tuple-element(feed), index=1
outfeed-shape | collective | outfeed_shape=f32[8,4]{1,0} | outfeed_shape=f32[4,8]{1,0}
outfeed-token | collective | outfeed(dep, tok) | outfeed(dep, dep)
dependency-token | collective | add-dependency(sum, tok) | add-dependency(sum, sum)
replica-id-type | collective | id = u32[] replica-id | id = s32[] replica-id
partition-id-shape | collective | part = u32[] part | part = u32[1] part
all-gather-uneven | collective | replica_groups=[2,2]<=[4] | replica_groups={{0,1,2},{3}}
reduce-scatter-uneven | collective | reduce-scatter(ag), replica_groups={{0,1},{2,3}} | reduce-scatter(ag), replica_groups={{0},{1,2,3}}
all-to-all-uneven | collective | {{0,1,2,3}}, dimensions={1} | {{0},{1,2,3}}, dimensions={1}
# custom calls ------------------------------------------------------------------
custom-layout-count | custom | {f32[8]{0}, ( | {(
custom-layout-shape | custom | {f32[8]{0}, ( | {f32[9]{0}, (
custom-alias-operand | custom | {0}: (0, {}) | {0}: (2, {})
custom-alias-negative | custom | {0}: (0, {}) | {0}: (-1, {})
custom-alias-output | custom | {0}: (0, {}) | {2}: (0, {})
custom-alias-index | custom | (1, {1}) | (1, {2})
custom-alias-shape | custom | (1, {1}) | (1, {0})
custom-alias-depth | custom | (0, {}) | (0, {0})
# header ------------------------------------------------------------------------
alias-output | header | {0}: (0, {}, may-alias) | {2}: (0, {}, may-alias)
alias-output-depth | header | {0}: (0, {}, may-alias) | {0,0}: (0, {}, may-alias)
alias-parameter | header | {0}: (0, {}, may-alias) | {0}: (3, {}, may-alias)
alias-index | header | {1}: (1, {0}, must-alias) | {1}: (1, {2}, must-alias)
alias-array-index | header | {0}: (0, {}, may-alias) | {0}: (0, {0}, may-alias)
alias-size | header | {1}: (1, {0}, must-alias) | {1}: (1, {1}, must-alias)
alias-twice | header | {1}: (1, {0}, must-alias) | {0}: (1, {0}, must-alias)
alias-input-twice | header | {0}: (0, {}, may-alias) | {0}: (1, {0}, may-alias)
alias-tuple | header | {1}: (1, {0}, must-alias) | {1}: (1, {}, must-alias)
donor-parameter | header | buffer_donor={ (2, {}) } | buffer_donor={ (3, {}) }
donor-index | header | buffer_donor={ (2, {}) } | buffer_donor={ (1, {2}) }
donor-aliased | header | buffer_donor={ (2, {}) } | buffer_donor={ (0, {}) }
entry-layout-parameter | header | f32[8,2]{1,0})-> | f32[2,8]{1,0})->
entry-layout-count | header | , f32[8,2]{1,0})-> | )->
entry-layout-result | header | ->(f32[8]{0}, s32[4]{0}) | ->(f32[8]{0}, s32[3]{0})
entry-layout-type | header | {(f32[8]{0}, | {(s32[8]{0},
control-unknown | header | control-predecessors={i} | control-predecessors={k}
control-later | header | control-predecessors={i} | control-predecessors={j}
element-of-parameter | header | get-tuple-element(t), index=0 | get-tuple-element(t), index=1
schedule-flag | header | is_scheduled=true | is_scheduled=maybe
replicas | header | is_scheduled=true | is_scheduled=true, replica_count=0
"""


def rows():
    lines = [x for x in ROWS.strip().splitlines() if not x.startswith("#")]
    fields = [line.removesuffix("(nothing)").split(" | ") for line in lines]
    return [pytest.param(*values, id=name) for name, *values in fields]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_valid(name):
    module = msa.parse(MODULES[name])
    assert msa.parse(module.to_text()) == module


@pytest.mark.parametrize(("name", "old", "new"), rows())
def test_mutation_is_refused(name, old, new):
    text = MODULES[name]
    assert old in text
    with pytest.raises(HloError) as caught:
        msa.parse(text.replace(old, new, 1))
    if isinstance(caught.value, HloVerifyError):
        assert caught.value.violations


def test_most_rows_need_the_verifier():
    found = 0
    for row in rows():
        name, old, new = row.values
        try:
            msa.parse(MODULES[name].replace(old, new, 1), verify=False)
        except HloError:
            continue
        found += 1
    assert found >= 150
