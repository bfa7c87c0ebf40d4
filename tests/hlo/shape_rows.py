"""Rows of the shape tests: operands and attributes in, result shape out.

Expected shapes were worked out by hand from the operations' meaning; `-` means none.
"""

CALLED = {
    "add": "(f32[], f32[]) -> f32[]",
    "lt": "(f32[], f32[]) -> pred[]",
    "argmax": "(f32[], s32[], f32[], s32[]) -> (f32[], s32[])",
    "by_key": "(f32[], f32[], s32[], s32[]) -> pred[]",
    "step": "(f32[3], f32[]) -> (f32[3], f32[])",
    "two_results": "(f32[8]) -> (f32[8], s32[])",
    "half": "(f32[8]) -> f32[4]",
    "body": "((s32[], f32[8])) -> (s32[], f32[8])",
    "condition": "((s32[], f32[8])) -> pred[]",
    "quarter": "(f32[8]) -> f32[2]",
    "make": "(s32[]) -> f32[2]",
    "two_operands": "(f32[8], s32[]) -> f32[2]",
    "grow": "(f32[]) -> f32[2]",
    "same": "(f32[8]) -> f32[8]",
    "test": "(f32[8]) -> pred[]",
    "count": "(f32[8]) -> s32[]",
    "index": "(s32[]) -> s32[]",
    "to_float": "(s32[]) -> f32[]",
    "pair": "(f32[2]) -> f32[2]",
    "one": "(f32[]) -> f32[]",
}
"""Signatures of the computations that rows call."""

# id | operation | attributes | result
INFERRED = """
acos-floats | acos(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
acosh-floats | acosh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
asin-floats | asin(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
asinh-floats | asinh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
atanh-floats | atanh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
cbrt-floats | cbrt(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
ceil-floats | ceil(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
cosh-floats | cosh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
cosine-floats | cosine(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
erf-floats | erf(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
exponential-floats | exponential(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
exponential-minus-one-floats | exponential-minus-one(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
floor-floats | floor(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
log-floats | log(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
log-plus-one-floats | log-plus-one(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
logistic-floats | logistic(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
negate-floats | negate(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
round-nearest-afz-floats | round-nearest-afz(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
round-nearest-even-floats | round-nearest-even(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
rsqrt-floats | rsqrt(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
sign-floats | sign(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
sine-floats | sine(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
sinh-floats | sinh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
sqrt-floats | sqrt(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
tan-floats | tan(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
tanh-floats | tanh(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
not-bits | not(u8[5]) | - | u8[5]{0}
popcnt-bits | popcnt(u8[5]) | - | u8[5]{0}
count-leading-zeros-bits | count-leading-zeros(u8[5]) | - | u8[5]{0}
negate-bits | negate(u8[5]) | - | u8[5]{0}
not-pred | not(pred[4]) | - | pred[4]{0}
abs-complex | abs(c64[2,3]{0,1}) | - | f32[2,3]{0,1}
abs-signed | abs(s16[2]) | - | s16[2]{0}
real | real(c128[2]) | - | f64[2]{0}
imag | imag(c64[2]) | - | f32[2]{0}
is-finite | is-finite(bf16[2,2]{0,1}) | - | pred[2,2]{0,1}
add-pair | add(s32[4], s32[4]) | - | s32[4]{0}
subtract-pair | subtract(s32[4], s32[4]) | - | s32[4]{0}
multiply-pair | multiply(s32[4], s32[4]) | - | s32[4]{0}
divide-pair | divide(s32[4], s32[4]) | - | s32[4]{0}
remainder-pair | remainder(s32[4], s32[4]) | - | s32[4]{0}
maximum-pair | maximum(s32[4], s32[4]) | - | s32[4]{0}
minimum-pair | minimum(s32[4], s32[4]) | - | s32[4]{0}
power-pair | power(s32[4], s32[4]) | - | s32[4]{0}
and-pair | and(s32[4], s32[4]) | - | s32[4]{0}
or-pair | or(s32[4], s32[4]) | - | s32[4]{0}
xor-pair | xor(s32[4], s32[4]) | - | s32[4]{0}
shift-left-pair | shift-left(s32[4], s32[4]) | - | s32[4]{0}
shift-right-arithmetic-pair | shift-right-arithmetic(s32[4], s32[4]) | - | s32[4]{0}
shift-right-logical-pair | shift-right-logical(s32[4], s32[4]) | - | s32[4]{0}
mulhi-pair | mulhi(s32[4], s32[4]) | - | s32[4]{0}
atan2 | atan2(f32[4], f32[4]) | - | f32[4]{0}
add-dynamic | add(f32[<=4], f32[4]) | - | f32[<=4]{0}
add-unbounded | add(f32[?,3], f32[2,3]) | - | f32[2,3]{1,0}
add-precision | add(bf16[4], f32[4]) | - | f32[4]{0}
add-scalar | add(f32[2,3], f32[]) | - | f32[2,3]{1,0}
complex | complex(f64[3], f64[3]) | - | c128[3]{0}
compare | compare(s8[3], s8[3]) | direction=LT | pred[3]{0}
select | select(pred[3], f32[3], f32[3]) | - | f32[3]{0}
select-scalar | select(pred[], f32[3], f32[3]) | - | f32[3]{0}
clamp | clamp(f32[], f32[3], f32[3]) | - | f32[3]{0}
reduce-precision | reduce-precision(f32[3]) | exponent_bits=5, mantissa_bits=10 | f32[3]{0}
copy | copy(f32[2,3]{0,1}) | - | f32[2,3]{0,1}
broadcast-scalar | broadcast(f32[]) | - | f32[]
transpose | transpose(f32[2,3,4]{0,1,2}) | dimensions={2,0,1} | f32[4,2,3]{1,2,0}
reverse | reverse(f32[2,3]{0,1}) | dimensions={1} | f32[2,3]{0,1}
concatenate | concatenate(f32[2,3], f32[2,5]) | dimensions={1} | f32[2,8]{1,0}
concatenate-one | concatenate(f32[2,3]{0,1}) | dimensions={1} | f32[2,3]{1,0}
concatenate-? | concatenate(f32[2,3], f32[2,?]) | dimensions={1} | f32[2,?]{1,0}
pad | pad(f32[2,4], f32[]) | padding=0_1x1_-1_2 | f32[3,10]{1,0}
slice | slice(f32[2,8]) | slice={[0:2], [1:8:3]} | f32[2,3]{1,0}
dynamic-slice | dynamic-slice(f32[4,8], s32[], s32[]) | dynamic_slice_sizes={1,8} | f32[1,8]{1,0}
dynamic-slice-one-array | dynamic-slice(f32[4,8], s32[2]) | dynamic_slice_sizes={1,8} | f32[1,8]{1,0}
dynamic-update-slice | dynamic-update-slice(f32[4,8]{0,1}, f32[1,8], u32[], u32[]) | - | f32[4,8]{0,1}
get-dimension-size | get-dimension-size(f32[<=4,8]) | dimensions={1} | s32[]
set-dimension-size | set-dimension-size(f32[4,8]{0,1}, s32[]) | dimensions={1} | f32[4,<=8]{0,1}
dot | dot(f32[8,10]{0,1}, f32[10,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | f32[8,16]{1,0}
dot-outer | dot(f32[2], f32[3]) | - | f32[2,3]{1,0}
dot-batch | dot(f32[3,8,10], f32[3,10,16]) | lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} | f32[3,8,16]{2,1,0}
dot-mixed | dot(s8[8,10], f32[10,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | f32[8,16]{1,0}
ragged-dot-rows | ragged-dot(bf16[64,9], bf16[2,9,8], s64[2]) | lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} | bf16[64,8]{1,0}
ragged-dot-contracted | ragged-dot(bf16[64,9], bf16[9,8], s64[2]) | lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1} | bf16[2,64,8]{2,1,0}
scaled-dot | scaled-dot(f8e4m3fn[64,64], f8e8m0fnu[64,2], f8e4m3fn[64,32], f8e8m0fnu[2,32]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | f8e4m3fn[64,32]{1,0}
fft | fft(c64[3,12]) | fft_type=FFT, fft_length={12} | c64[3,12]{1,0}
rfft | fft(f32[3,256]) | fft_type=RFFT, fft_length={256} | c64[3,129]{1,0}
irfft | fft(c128[3,129]) | fft_type=IRFFT, fft_length={257} | f64[3,257]{1,0}
cholesky | cholesky(f32[2,4,4]) | lower=true | f32[2,4,4]{2,1,0}
triangular-solve-left | triangular-solve(f32[2,4,4], f32[2,4,3]) | left_side=true | f32[2,4,3]{2,1,0}
triangular-solve-right | triangular-solve(f32[2,4,4], f32[2,3,4]) | - | f32[2,3,4]{2,1,0}
reduce | reduce(f32[2,3,4], f32[]) | dimensions={1}, to_apply=add | f32[2,4]{1,0}
reduce-all | reduce(f32[2,3], f32[]) | dimensions={0,1}, to_apply=add | f32[]
reduce-two | reduce(f32[2,3], s32[2,3], f32[], s32[]) | dimensions={1}, to_apply=argmax | (f32[2]{0}, s32[2]{0})
reduce-wider | reduce(bf16[2,3], f32[]) | dimensions={1}, to_apply=add | f32[2]{0}
reduce-window | reduce-window(f32[2,3,4], f32[]) | window={size=1x2x2 stride=1x1x2 pad=0_0x1_0x0_0}, to_apply=add | f32[2,3,2]{2,1,0}
reduce-window-dilated | reduce-window(f32[3,4], f32[]) | window={size=2x2 stride=1x2 lhs_dilate=2x1 rhs_dilate=1x2}, to_apply=add | f32[4,1]{1,0}
reduce-window-empty | reduce-window(f32[4], f32[]) | window={size=9}, to_apply=add | f32[0]{0}
reduce-window-scalar | reduce-window(f32[], f32[]) | to_apply=add | f32[]
select-and-scatter | select-and-scatter(f32[4,4], f32[2,2], f32[]) | window={size=2x2 stride=2x2}, select=lt, scatter=add | f32[4,4]{1,0}
conv | convolution(f32[1,8,8,4], f32[3,3,4,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f | f32[1,8,8,16]
conv-feature-groups | convolution(f32[1,8,8,4], f32[3,3,2,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2 | f32[1,8,8,16]
conv-batch-groups | convolution(f32[2,8,8,4], f32[3,3,4,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, batch_group_count=2 | f32[1,8,8,16]
conv-strided | convolution(f32[1,8,8,4], f32[3,3,4,16]) | window={size=3x3 stride=2x2 lhs_dilate=2x1 rhs_dilate=1x2}, dim_labels=b01f_01io->bf01 | f32[1,16,7,2]
conv-no-space | convolution(f32[4,6], f32[6,8]) | dim_labels=bf_io->bf | f32[4,8]
all-gather-groups | all-gather(f32[8,2]{0,1}) | dimensions={1}, replica_groups={{0,1},{2,3}} | f32[8,4]{1,0}
all-gather-iota | all-gather(f32[8,2]) | dimensions={1}, replica_groups=[2,4]<=[8] | f32[8,8]
all-gather-mesh | all-gather(f32[8,2]) | dimensions={1}, replica_groups=mesh['x'=2,'y'=4] {'y'} | f32[8,8]
map | map(f32[2,3], f32[2,3]) | dimensions={0,1}, to_apply=lt | pred[2,3]{1,0}
sort | sort(f32[2,3]{0,1}) | dimensions={1}, to_apply=lt | f32[2,3]{0,1}
sort-two | sort(f32[2,3]{0,1}, s32[2,3]) | dimensions={1}, to_apply=by_key | (f32[2,3]{0,1}, s32[2,3]{1,0})
topk | topk(bf16[4,9]) | k=3 | (bf16[4,3]{1,0}, s32[4,3]{1,0})
scan | scan(f32[2,3], f32[]) | dimensions={0}, num_carries=1, to_apply=step | (f32[2,3]{1,0}, f32[])
batch-norm-training | batch-norm-training(f32[2,4,4,3], f32[3], f32[3]) | epsilon=0.1, feature_index=3 | (f32[2,4,4,3]{3,2,1,0}, f32[3]{0}, f32[3]{0})
batch-norm-inference | batch-norm-inference(f32[2,4,4,3], f32[3], f32[3], f32[3], f32[3]) | epsilon=0.1, feature_index=3 | f32[2,4,4,3]{3,2,1,0}
batch-norm-grad | batch-norm-grad(f32[2,4,4,3], f32[3], f32[3], f32[3], f32[2,4,4,3]) | epsilon=0.1, feature_index=3 | (f32[2,4,4,3]{3,2,1,0}, f32[3]{0}, f32[3]{0})
gather | gather(f32[5,3,4], s32[7,1]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | f32[7,3,4]{2,1,0}
gather-scalar | gather(f32[5,3,4], s32[7]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | f32[7,3,4]{2,1,0}
gather-batching | gather(f32[5,3,4], s32[5,7,1]) | offset_dims={2,3}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,3,4} | f32[5,7,3,4]{3,2,1,0}
scatter | scatter(f32[5,3,4]{0,1,2}, s32[7,1], f32[7,3,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add | f32[5,3,4]{0,1,2}
scatter-two | scatter(f32[5,3,4], s32[5,3,4], s64[7,1], f32[7,3,4], s32[7,3,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=argmax | (f32[5,3,4]{2,1,0}, s32[5,3,4]{2,1,0})
tuple | tuple(f32[2], s32[]) | - | (f32[2]{0}, s32[])
tuple-empty | tuple() | - | ()
get-tuple-element | get-tuple-element((f32[2], (s32[3]))) | index=1 | (s32[3]{0})
call | call(f32[8]) | to_apply=two_results | (f32[8]{0}, s32[])
fusion | fusion(f32[8]) | calls=half, kind=kLoop | f32[4]{0}
while | while((s32[], f32[8])) | body=body, condition=condition | (s32[], f32[8]{0})
conditional-pred | conditional(pred[], f32[8], s32[]) | branch_computations={quarter, make} | f32[2]{0}
conditional-index | conditional(s32[], s32[], s32[], s32[]) | branch_computations={make, make, make} | f32[2]{0}
opt-barrier | opt-barrier((f32[2])) | - | (f32[2]{0})
domain | domain(f32[2]) | - | f32[2]{0}
partition-id | partition-id() | - | u32[]
replica-id | replica-id() | - | u32[]
after-all | after-all(token[], token[]) | - | token[]
add-dependency | add-dependency(f32[2], token[]) | - | f32[2]{0}
copy-start | copy-start(f32[2]) | - | (f32[2]{0}, f32[2]{0}, u32[])
copy-done | copy-done((f32[2], f32[2], u32[])) | - | f32[2]{0}
send | send(f32[2], token[]) | - | (f32[2]{0}, u32[], token[])
send-done | send-done((f32[2], u32[], token[])) | - | token[]
recv-done | recv-done((f32[2], u32[], token[])) | - | (f32[2]{0}, token[])
outfeed | outfeed(f32[2], token[]) | - | token[]
async-start | async-start(f32[8], s32[]) | calls=two_operands | ((f32[8]{0}, s32[]), f32[2]{0})
async-update | async-update(((f32[8]), f32[2], u32[])) | - | ((f32[8]{0}), f32[2]{0}, u32[])
async-done | async-done(((f32[8]), f32[2], u32[])) | - | f32[2]{0}
all-reduce | all-reduce(f32[8]{0}) | to_apply=add | f32[8]{0}
all-reduce-two | all-reduce(f32[8], s32[]) | to_apply=add | (f32[8]{0}, s32[])
all-reduce-start | all-reduce-start(f32[8]) | to_apply=add | f32[8]{0}
all-reduce-done | all-reduce-done(f32[8]) | - | f32[8]{0}
all-gather-done | all-gather-done((f32[8], f32[16])) | - | f32[16]{0}
collective-permute-done | collective-permute-done((f32[8], f32[8], u32[], u32[])) | - | f32[8]{0}
collective-permute | collective-permute(f32[8]) | source_target_pairs={{0,1},{1,0}} | f32[8]{0}
collective-permute-in-place | collective-permute(f32[8], f32[64], s32[], s32[]) | source_target_pairs={{0,1},{1,0}}, slice_sizes={{8}} | f32[64]{0}
collective-broadcast | collective-broadcast(f32[8]) | - | f32[8]{0}
all-to-all | all-to-all(f32[8]) | dimensions={0} | f32[8]{0}
all-to-all-tuple | all-to-all(f32[8], f32[8]) | - | (f32[8]{0}, f32[8]{0})
all-gather-start-groups | all-gather-start(f32[8,2]) | dimensions={1}, replica_groups={{0,1}} | (f32[8,2], f32[8,4])
collective-permute-start-inferred | collective-permute-start(f32[8]) | source_target_pairs={{0,1}} | (f32[8], f32[8])
ragged-all-to-all | ragged-all-to-all(f32[8,2], f32[16,2], s64[4], s64[4], s64[4], s64[4]) | - | f32[16,2]{1,0}
"""

# id | operation | attributes | stated result, accepted
STATED = """
broadcast | broadcast(f32[3]) | dimensions={1} | f32[2,3,4]
convert | convert(f32[3]) | - | s8[3]
stochastic-convert | stochastic-convert(f32[3], u32[3]) | - | bf16[3]
bitcast | bitcast(f32[3,4]) | - | f32[12]
bitcast-convert | bitcast-convert(f32[3]) | - | u32[3]
bitcast-convert-narrow | bitcast-convert(f32[3]) | - | u8[3,4]
bitcast-convert-wide | bitcast-convert(u8[3,4]) | - | f32[3]
bitcast-convert-packed | bitcast-convert(s4[3,2]) | - | s8[3]
reshape | reshape(f32[3,4]) | - | f32[2,6]
reshape-dynamic | reshape(f32[<=3,4]) | - | f32[<=12]
dynamic-reshape | dynamic-reshape(f32[12], s32[], s32[]) | - | f32[3,4]
iota | iota() | iota_dimension=1 | s32[3,4]
dot-accumulates | dot(bf16[8,10], bf16[10,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | f32[8,16]
dot-narrows | dot(f32[8,10], f32[10,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | bf16[8,16]
dot-integers | dot(s8[8,10], u8[10,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | s32[8,16]
recv | recv(token[]) | - | (f32[2], u32[], token[])
infeed | infeed(token[]) | - | ((f32[2], s32[]), token[])
custom-call | custom-call(f32[3]) | - | (f32[9], token[])
rng | rng(f32[], f32[]) | distribution=rng_normal | f32[8]
rng-state | rng-get-and-update-state() | delta=1 | u64[2]
rng-bits | rng-bit-generator(u64[3]) | - | (u64[3], u32[11])
parameter | parameter() | parameter_number=0 | (f32[2], s32[])
all-gather | all-gather(f32[8,2]) | dimensions={1} | f32[8,8]
all-gather-two | all-gather(f32[8,2], s8[2,1]) | dimensions={1} | (f32[8,4], s8[2,2])
all-gather-start | all-gather-start(f32[8,2]) | dimensions={1} | (f32[8,2], f32[8,8])
reduce-scatter | reduce-scatter(f32[8,8]) | dimensions={1}, to_apply=add | f32[8,2]
collective-permute-start | collective-permute-start(f32[8]) | source_target_pairs={{0,1}} | (f32[8], f32[8], u32[], u32[])
async-start-late | async-start() | calls=quarter | ((), (), u32[])
async-done-late | async-done(((), (), u32[])) | - | f32[2]
"""

# id | operation | attributes | stated result | fragment of the message
REJECTED = """
unary-count | negate(f32[2], f32[2]) | - | - | takes 1 operands, got 2
unary-tuple | negate((f32[2])) | - | - | must be an array
unary-token | negate(token[]) | - | - | must be an array
negate-pred | negate(pred[2]) | - | - | got pred[2]
abs-unsigned | abs(u32[2]) | - | - | got u32[2]
floor-int | floor(s32[2]) | - | - | got s32[2]
floor-complex | floor(c64[2]) | - | - | got c64[2]
tanh-int | tanh(s32[2]) | - | - | got s32[2]
not-float | not(f32[2]) | - | - | got f32[2]
popcnt-float | popcnt(f32[2]) | - | - | got f32[2]
is-finite-int | is-finite(s32[2]) | - | - | got s32[2]
add-types | add(f32[2], s32[2]) | - | - | differ in type
add-widths | add(s64[2], s32[2]) | - | - | differ in type
add-sizes | add(f32[2,3], f32[2,4]) | - | - | differ in size
add-ranks | add(f32[3], f32[2,3]) | - | - | differ in rank
and-float | and(f32[2], f32[2]) | - | - | got f32[2]
subtract-pred | subtract(pred[2], pred[2]) | - | - | got pred[2]
atan2-int | atan2(s32[2], s32[2]) | - | - | got s32[2]
complex-bf16 | complex(bf16[2], bf16[2]) | - | - | two f32
complex-mixed | complex(f32[2], f64[2]) | - | - | two f32
compare-direction | compare(f32[2], f32[2]) | - | - | direction is missing
select-type | select(s8[2], f32[2], f32[2]) | - | - | type pred
select-choices | select(pred[2], f32[2], f32[3]) | - | - | choices differ
select-predicate | select(pred[3], f32[2], f32[2]) | - | - | does not fit
clamp-type | clamp(s32[], f32[2], s32[]) | - | - | differs in type
clamp-size | clamp(f32[3], f32[2], f32[]) | - | - | does not fit
convert-size | convert(f32[2]) | - | s32[3] | cannot turn
convert-complex | convert(c64[2]) | - | f32[2] | cannot become
stochastic-signed | stochastic-convert(f32[2], s32[2]) | - | bf16[2] | unsigned
stochastic-width | stochastic-convert(f32[2], u16[2]) | - | bf16[2] | as wide
reduce-precision-bits | reduce-precision(f32[2]) | exponent_bits=0, mantissa_bits=1 | - | at least 1
broadcast-size | broadcast(f32[3]) | dimensions={1} | f32[2,4] | does not fit
broadcast-count | broadcast(f32[3]) | dimensions={} | f32[3] | 0 dimensions
broadcast-bounds | broadcast(f32[3]) | dimensions={2} | f32[2,3] | rank 2
broadcast-twice | broadcast(f32[3,3]) | dimensions={1,1} | f32[2,3] | repeats
transpose-short | transpose(f32[2,3]) | dimensions={0} | - | permutation
transpose-twice | transpose(f32[2,3]) | dimensions={0,0} | - | permutation
reverse-bounds | reverse(f32[2,3]) | dimensions={2} | - | rank 2
reverse-twice | reverse(f32[2,3]) | dimensions={1,1} | - | repeats
reshape-count | reshape(f32[4,8]) | - | f32[31] | 32 elements
reshape-tuple | reshape(f32[4]) | - | (f32[4]) | cannot give
bitcast-convert-bits | bitcast-convert(f32[3]) | - | u16[3] | differ in bits
bitcast-convert-dims | bitcast-convert(f32[3]) | - | u32[4] | differ in bits
iota-bounds | iota() | iota_dimension=2 | s32[3,4] | iota_dimension 2
iota-scalar | iota() | iota_dimension=0 | s32[] | iota_dimension 0
iota-pred | iota() | iota_dimension=0 | pred[3] | cannot give
concatenate-rank | concatenate(f32[2], f32[2,3]) | dimensions={0} | - | differ
concatenate-size | concatenate(f32[2,3], f32[4,3]) | dimensions={1} | - | differ in more
concatenate-type | concatenate(f32[2,3], s32[2,3]) | dimensions={1} | - | differ in type
concatenate-axis | concatenate(f32[2]) | dimensions={1} | - | not a dimension
concatenate-none | concatenate() | dimensions={1} | - | at least 1
pad-rank | pad(f32[2], f32[]) | padding=0_1x1_-1_2 | - | 2 entries
pad-value | pad(f32[2,4], f32[1]) | padding=0_1x1_-1_2 | - | must be a scalar
pad-type | pad(f32[2,4], s32[]) | padding=0_1x1_-1_2 | - | padding f32[2,4]
pad-negative | pad(f32[2], f32[]) | padding=-3_0 | - | negative
pad-interior | pad(f32[2], f32[]) | padding=0_0_-1 | - | negative
slice-rank | slice(f32[2]) | slice={[0:2], [1:8:3]} | - | 2 ranges
slice-bounds | slice(f32[4]) | slice={[0:5]} | - | [0:5]
slice-order | slice(f32[4]) | slice={[3:2]} | - | [3:2]
slice-negative | slice(f32[4]) | slice={[-1:2]} | - | [-1:2]
slice-stride | slice(f32[4]) | slice={[0:2:0]} | - | stride 0
dynamic-slice-sizes | dynamic-slice(f32[4], s32[]) | dynamic_slice_sizes={5} | - | slice size 5
dynamic-slice-starts | dynamic-slice(f32[4,4], s32[], s32[], s32[]) | dynamic_slice_sizes={1,1} | - | 3 start indices
dynamic-slice-float | dynamic-slice(f32[4], f32[]) | dynamic_slice_sizes={1} | - | integral
dynamic-slice-mixed | dynamic-slice(f32[4,4], s32[], s64[]) | dynamic_slice_sizes={1,1} | - | differ in type
update-large | dynamic-update-slice(f32[4], f32[5], s32[]) | - | - | does not fit into
update-rank | dynamic-update-slice(f32[4], f32[1,1], s32[]) | - | - | rank
update-type | dynamic-update-slice(f32[4], s32[1], s32[]) | - | - | type
get-size-bounds | get-dimension-size(f32[4]) | dimensions={1} | - | dimension 1
set-size-type | set-dimension-size(f32[4,4], u32[]) | dimensions={1} | - | s32 scalar
dot-sizes | dot(f32[8,10], f32[11,16]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | - | does not fit
dot-bounds | dot(f32[8], f32[8]) | lhs_contracting_dims={1}, rhs_contracting_dims={0} | - | rank 1
dot-overlap | dot(f32[3,8,10], f32[3,10,16]) | lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={0}, rhs_contracting_dims={1} | - | both batch and contracting
dot-counts | dot(f32[8,10], f32[10,16]) | lhs_contracting_dims={1} | - | contracting dimensions differ
fft-real | fft(f32[12]) | fft_type=FFT, fft_length={12} | - | complex
rfft-length | fft(f32[12]) | fft_type=RFFT, fft_length={16} | - | does not fit
irfft-length | fft(c64[129]) | fft_type=IRFFT, fft_length={200} | - | does not fit
cholesky-square | cholesky(f32[4,3]) | - | - | must be equal
cholesky-type | cholesky(s32[4,4]) | - | - | floating or complex
triangular-side | triangular-solve(f32[4,4], f32[4,3]) | - | - | solve
triangular-batch | triangular-solve(f32[2,4,4], f32[3,4,4]) | - | - | batch
reduce-bounds | reduce(f32[2], f32[]) | dimensions={1}, to_apply=add | - | rank 1
reduce-twice | reduce(f32[2,3], f32[]) | dimensions={1,1}, to_apply=add | - | repeats
reduce-odd | reduce(f32[2,3], f32[], f32[]) | dimensions={1}, to_apply=add | - | got 3
reduce-init | reduce(f32[2,3], f32[1]) | dimensions={1}, to_apply=add | - | initial value
reduce-type | reduce(s32[2,3], f32[]) | dimensions={1}, to_apply=add | - | does not take
reduce-result | reduce(f32[2,3], f32[]) | dimensions={1}, to_apply=lt | - | differs from its result
reduce-arity | reduce(f32[2,3], f32[]) | dimensions={1}, to_apply=argmax | - | 2 parameters
reduce-missing | reduce(f32[2,3], f32[]) | dimensions={1} | - | is missing
reduce-inputs | reduce(f32[2,3], s32[2,4], f32[], s32[]) | dimensions={1}, to_apply=argmax | - | inputs differ
window-rank | reduce-window(f32[2,3,4], f32[]) | window={size=2x2 stride=2x2}, to_apply=add | - | 2 dimensions where 3
window-size | reduce-window(f32[2], f32[]) | window={size=0}, to_apply=add | - | size of dimension 0
window-stride | reduce-window(f32[2], f32[]) | window={size=1 stride=0}, to_apply=add | - | stride of dimension 0
window-negative | reduce-window(f32[2], f32[]) | window={size=1 pad=-3_0}, to_apply=add | - | negative
select-and-scatter-source | select-and-scatter(f32[4,4], f32[2,3], f32[]) | window={size=2x2 stride=2x2}, select=lt, scatter=add | - | does not fit windows
select-and-scatter-selection | select-and-scatter(f32[4,4], f32[2,2], f32[]) | window={size=2x2 stride=2x2}, select=add, scatter=add | - | give a pred
conv-kernel | convolution(f32[1,8,8,4], f32[2,3,4,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f | - | does not fit the kernel
conv-features | convolution(f32[1,8,8,4], f32[3,3,3,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f | - | 4 input features
conv-groups | convolution(f32[1,8,8,4], f32[3,3,2,15]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2 | - | 15 output features
conv-rank | convolution(f32[8,8,4], f32[3,3,4,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f | - | does not fit dim_labels
conv-type | convolution(f32[1,8,8,4], s32[3,3,4,16]) | window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f | - | differ in type
map-arity | map(f32[2]) | dimensions={0}, to_apply=add | - | 1 parameters
map-axes | map(f32[2,3], f32[2,3]) | dimensions={0}, to_apply=add | - | all those
map-sizes | map(f32[2], f32[3]) | dimensions={0}, to_apply=add | - | operands differ
map-vector | map(f32[2]) | to_apply=grow | - | scalar
sort-axis | sort(f32[2,3]) | dimensions={2}, to_apply=lt | - | dimension 2
sort-arity | sort(f32[2,3], f32[2,3]) | dimensions={1}, to_apply=lt | - | 4 parameters
sort-result | sort(f32[2,3]) | dimensions={1}, to_apply=add | - | give a pred
sort-type | sort(s32[2,3]) | dimensions={1}, to_apply=lt | - | does not take
topk-k | topk(f32[4]) | k=5 | - | k = 5
norm-features | batch-norm-training(f32[2,4,4,3], f32[4], f32[3]) | epsilon=0.1, feature_index=3 | - | 3 features
norm-index | batch-norm-training(f32[2], f32[2], f32[2]) | epsilon=0.1, feature_index=3 | - | feature_index 3
gather-float | gather(f32[5,3,4], f32[7,1]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | - | integral
gather-map | gather(f32[5,3,4], s32[7,2]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | - | 2 elements
gather-order | gather(f32[5,3,4], s32[7,1]) | offset_dims={2,1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | - | ascending
gather-collapse | gather(f32[5,3,4], s32[7,1]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,3,4} | - | slice size 2
gather-size | gather(f32[5,3,4], s32[7,1]) | offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,5} | - | slice size 5
gather-offsets | gather(f32[5,3,4], s32[7,1]) | offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,4} | - | 1 offset_dims
gather-batching | gather(f32[6,3,4], s32[5,7,1]) | offset_dims={2,3}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,3,4} | - | batching dimension 0
scatter-window | scatter(f32[5,3,4], s32[7,1], f32[7,4,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add | - | does not fit
scatter-batch | scatter(f32[5,3,4], s32[7,1], f32[6,3,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add | - | does not fit scatter indices
scatter-even | scatter(f32[5,3,4], s32[7,1], f32[7,3,4], f32[7,3,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add | - | got 4
scatter-reducer | scatter(s32[5,3,4], s32[7,1], s32[7,3,4]) | update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add | - | initial value
element-bounds | get-tuple-element((f32[2])) | index=1 | - | out of bounds
element-negative | get-tuple-element((f32[2])) | index=-1 | - | out of
element-array | get-tuple-element(f32[2]) | index=0 | - | must be a tuple
call-count | call() | to_apply=same | - | takes 1 operands
call-shape | call(f32[4]) | to_apply=same | - | parameter 0
fusion-shape | fusion(s32[8]) | calls=same, kind=kLoop | - | parameter 0
while-body | while(f32[8]) | body=half, condition=test | - | the body gives
while-condition | while(f32[8]) | body=same, condition=count | - | pred[]
conditional-chooser | conditional(u32[], s32[]) | branch_computations={index} | - | pred[] or s32[]
conditional-branches | conditional(pred[], s32[], s32[], s32[]) | branch_computations={index, index, index} | - | two branches
conditional-results | conditional(pred[], s32[], s32[]) | branch_computations={index, to_float} | - | branch 1 gives
dependency-token | add-dependency(f32[2], f32[]) | - | - | must be a token
send-token | send(f32[2], f32[]) | - | - | must be a token
recv-token | recv(f32[]) | - | (f32[2], u32[], token[]) | must be a token
send-done-handle | send-done(f32[2]) | - | - | (data, u32[], token[])
copy-start-dims | copy-start(f32[2]) | - | (f32[3], f32[2], u32[]) | copies
copy-start-type | copy-start(f32[2]) | - | (f32[2], s32[2], u32[]) | copies
copy-start-arity | copy-start(f32[2]) | - | (f32[2], f32[2]) | context
copy-done-tuple | copy-done(f32[2]) | - | - | needs a tuple
async-start-shape | async-start(f32[2]) | calls=add | f32[2] | must be of a tuple
async-start-operand | async-start(f32[2]) | calls=pair | ((f32[3]), f32[2]) | slot 0
async-done-shape | async-done(f32[2]) | - | - | must be of a tuple
all-gather-multiple | all-gather(f32[8,2]) | dimensions={1} | f32[8,5] | not a multiple
all-gather-axis | all-gather(f32[8,2]) | dimensions={1} | f32[16,2] | differ in more
all-gather-type | all-gather(f32[8,2]) | dimensions={1} | s32[8,4] | cannot become
reduce-scatter-axis | reduce-scatter(f32[8,4]) | dimensions={1}, to_apply=add | f32[4,4] | differ
all-gather-groups | all-gather(f32[8,2]) | dimensions={1}, replica_groups={{0,1},{2,3}} | f32[8,8] | groups of 2
reduce-scatter-mesh | reduce-scatter(f32[8,8]) | dimensions={1}, replica_groups=mesh['x'=2,'y'=4] {'y'}, to_apply=add | f32[8,4] | groups of 4
groups-repeat | all-reduce(f32[8]) | replica_groups={{0,1},{1,2}}, to_apply=add | - | repeat device 1
all-to-all-groups | all-to-all(f32[6]) | dimensions={0}, replica_groups=[2,4]<=[8] | - | cut into 4
all-to-all-axis | all-to-all(f32[8]) | dimensions={1} | - | not a dimension
all-reduce-reducer | all-reduce(f32[8]) | to_apply=one | - | 2 param
all-reduce-ids | all-reduce(f32[8]) | use_global_device_ids=true, to_apply=add | - | channel_id
permute-sources | collective-permute(f32[8]) | source_target_pairs={{0,1},{0,2}} | - | source 0
permute-targets | collective-permute(f32[8]) | source_target_pairs={{0,2},{1,2}} | - | target 2
parameter-negative | parameter() | parameter_number=-1 | f32[] | >= 0
parameter-flags | parameter() | parameter_number=0, parameter_replication={true} | (f32[], f32[]) | 1 flags for 2 leaves
"""
