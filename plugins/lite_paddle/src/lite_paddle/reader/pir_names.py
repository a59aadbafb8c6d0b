"""The table from PIR operators to their names in the legacy vocabulary: one entry per operator.

An entry is ``pir: legacy | operands -> results | attributes``:

* Operands and results are the legacy slots in PIR order. ``-`` has no legacy counterpart.
  ``Slot*`` is a vector of tensors. Missing result slots at the end have no counterpart either.
* ``Shape=shape:ints`` is a mutable attribute: a constant operand becomes the attribute ``shape``, any other
  the slot ``Shape``. ``Shape/ShapeTensor=shape:ints`` goes to ``ShapeTensor`` when it is a vector of
  scalars. Kinds are ``int``, ``ints``, ``float``.
* Attributes: ``new<old`` renames, ``name=value`` (JSON) sets an attribute of the legacy operator. All others
  keep their names.

The PIR name ``x_`` (in-place) uses the entry of ``x`` unless it has its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_TABLE = """
conv2d: conv2d | Input, Filter -> Output
depthwise_conv2d: depthwise_conv2d | Input, Filter -> Output
conv3d: conv3d | Input, Filter -> Output
conv2d_transpose: conv2d_transpose | Input, Filter, OutputSizeTensor=output_size:ints -> Output
depthwise_conv2d_transpose: depthwise_conv2d_transpose | Input, Filter, OutputSizeTensor=output_size:ints ->
    Output
conv3d_transpose: conv3d_transpose | Input, Filter -> Output
deformable_conv: deformable_conv | Input, Offset, Filter, Mask -> Output
pool2d: pool2d | X, KernelSizeTensor=ksize:ints -> Out
pool3d: pool3d | X -> Out | ksize<kernel_size
max_pool2d_with_index: max_pool2d_with_index | X -> Out, Mask | ksize<kernel_size
max_pool3d_with_index: max_pool3d_with_index | X -> Out, Mask | ksize<kernel_size
batch_norm: batch_norm | X, Mean, Variance, Scale, Bias -> Y, -, -, SavedMean, SavedVariance, - |
    data_layout<data_format
sync_batch_norm: sync_batch_norm | X, Mean, Variance, Scale, Bias -> Y, -, -, SavedMean, SavedVariance, - |
    data_layout<data_format
layer_norm: layer_norm | X, Scale, Bias -> Y, Mean, Variance
instance_norm: instance_norm | X, Scale, Bias -> Y, SavedMean, SavedVariance
group_norm: group_norm | X, Scale, Bias -> Y, Mean, Variance | data_layout<data_format
rms_norm: rms_norm | x, scale -> y, invvar
renorm: renorm | X -> Out
correlation: correlation | Input1, Input2 -> Output
spectral_norm: spectral_norm | Weight, U, V -> Out
inverse: inverse | Input -> Output
lgamma: lgamma | X -> Out
gammaln: gammaln | x -> out
digamma: digamma | X -> Out
det: determinant | Input -> Out
slogdet: slogdeterminant | Input -> Out
solve: solve | X, Y -> Out
triangular_solve: triangular_solve | X, Y -> Out
cholesky_solve: cholesky_solve | X, Y -> Out
matrix_power: matrix_power | X -> Out
dist: dist | X, Y -> Out
bilinear: bilinear_tensor_product | X, Y, Weight, Bias -> Out
segment_pool: segment_pool | X, SegmentIds -> Out, SummedIds
send_u_recv: graph_send_recv | X, Src_index, Dst_index, Out_size=out_size:ints -> Out, Dst_count
send_ue_recv: graph_send_ue_recv | X, Y, Src_index, Dst_index, Out_size=out_size:ints -> Out, Dst_count
send_uv: graph_send_uv | x, y, src_index, dst_index -> out
partial_concat: partial_concat | X* -> Out
partial_sum: partial_sum | X* -> Out
shard_index: shard_index | X -> Out
unique_consecutive: unique_consecutive | X -> Out, Index, Counts
fill_diagonal: fill_diagonal | X -> Out
fill_diagonal_tensor: fill_diagonal_tensor | X, Y -> Out
logspace: logspace | Start, Stop, Num, Base -> Out
bincount: bincount | X, Weights, MinLength=minlength:int -> Out
histogram: histogram | X, Weight -> Out
median: median | X -> Out
nanmedian: nanmedian | X -> Out
mode: mode | X -> Out, Indices
multiplex: multiplex | X*, Ids -> Out
broadcast_tensors: broadcast_tensors | X* -> Out*
tril_indices: tril_indices | -> out
triu_indices: triu_indices | -> out
gaussian: gaussian_random | Shape/ShapeTensor=shape:ints -> Out
uniform: uniform_random | Shape/ShapeTensor=shape:ints, Min=min:float, Max=max:float -> Out
randint: randint | Shape/ShapeTensor=shape:ints -> Out
randperm: randperm | -> Out
bernoulli: bernoulli | X -> Out
truncated_gaussian_random: truncated_gaussian_random | -> Out
fft_r2c: fft_r2c | X -> Out
fft_c2c: fft_c2c | X -> Out
fft_c2r: fft_c2r | X -> Out
stft: stft | X, Window -> Out
frame: frame | X -> Out
overlap_add: overlap_add | X -> Out
complex: complex | X, Y -> Out
real: real | X -> Out
imag: imag | X -> Out
angle: angle | X -> Out
conj: conj | X -> Out
as_real: as_real | X -> Out
as_complex: as_complex | X -> Out
weight_only_linear: weight_only_linear | x, weight, bias, weight_scale -> out
llm_int8_linear: llm_int8_linear | x, weight, bias, weight_scale -> out
weight_dequantize: weight_dequantize | x, scale -> out
apply_per_channel_scale: apply_per_channel_scale | x, scales -> out
norm: norm | X -> Out, Norm
lrn: lrn | X -> Out, MidOut
add: elementwise_add | X, Y -> Out
subtract: elementwise_sub | X, Y -> Out
multiply: elementwise_mul | X, Y -> Out
divide: elementwise_div | X, Y -> Out
maximum: elementwise_max | X, Y -> Out
minimum: elementwise_min | X, Y -> Out
elementwise_pow: elementwise_pow | X, Y -> Out
remainder: elementwise_mod | X, Y -> Out
floor_divide: elementwise_floordiv | X, Y -> Out
hardswish: hard_swish | X -> Out
hardsigmoid: hard_sigmoid | X -> Out
mish: mish | X -> Out | threshold<lambda
leaky_relu: leaky_relu | X -> Out | alpha<negative_slope
prelu: prelu | X, Alpha -> Out
hardtanh: brelu | X -> Out
hardshrink: hard_shrink | X -> Out
softshrink: softshrink | X -> Out | lambda<threshold
pow: pow | X -> Out | factor<y
scale: scale | X, ScaleTensor=scale:float -> Out
clip: clip | X, Min=min:float, Max=max:float -> Out
matmul: matmul_v2 | X, Y -> Out | trans_x<transpose_x, trans_y<transpose_y
matmul_with_flatten: mul | X, Y -> Out
bmm: bmm | X, Y -> Out
dot: dot | X, Y -> Out
mv: mv | X, Vec -> Out
addmm: addmm | Input, X, Y -> Out | Alpha<alpha, Beta<beta
einsum: einsum | Operands* -> Out, InnerCache*, XShape*
fc: fc | Input, W, Bias -> Out
reshape: reshape2 | X, Shape/ShapeTensor=shape:ints -> Out
transpose: transpose2 | X -> Out | axis<perm
flatten: flatten_contiguous_range | X -> Out
squeeze: squeeze2 | X, AxesTensor/AxesTensorList=axes:ints -> Out
unsqueeze: unsqueeze2 | X, AxesTensor/AxesTensorList=axes:ints -> Out
concat: concat | X*, AxisTensor=axis:int -> Out
split: split | X, SectionsTensor/SectionsTensorList=sections:ints, AxisTensor=axis:int -> Out*
split_with_num: split | X, AxisTensor=axis:int -> Out*
stack: stack | X* -> Y
unstack: unstack | X -> Y*
unbind: unbind | X -> Out*
slice: slice | Input, StartsTensor/StartsTensorList=starts:ints, EndsTensor/EndsTensorList=ends:ints -> Out
strided_slice: strided_slice | Input, StartsTensor/StartsTensorList=starts:ints,
    EndsTensor/EndsTensorList=ends:ints, StridesTensor/StridesTensorList=strides:ints -> Out
crop: crop_tensor | X, Shape/ShapeTensor=shape:ints, Offsets/OffsetsTensor=offsets:ints -> Out
set_value: set_value | Input, StartsTensor/StartsTensorList=starts:ints, EndsTensor/EndsTensorList=ends:ints,
    StepsTensor/StepsTensorList=steps:ints -> Out
set_value_with_tensor: set_value | Input, ValueTensor, StartsTensor/StartsTensorList=starts:ints,
    EndsTensor/EndsTensorList=ends:ints, StepsTensor/StepsTensorList=steps:ints -> Out
expand: expand_v2 | X, Shape/expand_shapes_tensor=shape:ints -> Out
expand_as: expand_as_v2 | X, Y -> Out
tile: tile | X, RepeatTimes/repeat_times_tensor=repeat_times:ints -> Out
roll: roll | X, ShiftsTensor=shifts:ints -> Out
tril: tril_triu | X -> Out | lower=true
triu: tril_triu | X -> Out | lower=false
meshgrid: meshgrid | X* -> Out*
pad: pad | X, PadValueTensor=pad_value:float -> Out
pad3d: pad3d | X, Paddings=paddings:ints -> Out | value<pad_value
unfold: unfold | X -> Y
fold: fold | X -> Y
sum: reduce_sum | X, AxisTensor/AxisTensorList=dim:ints -> Out | keep_dim<keepdim, out_dtype<dtype
mean: reduce_mean | X, AxisTensor/AxisTensorList=dim:ints -> Out | keep_dim<keepdim
max: reduce_max | X, AxisTensor/AxisTensorList=dim:ints -> Out | keep_dim<keepdim
min: reduce_min | X, AxisTensor/AxisTensorList=dim:ints -> Out | keep_dim<keepdim
prod: reduce_prod | X, AxisTensor/AxisTensorList=dim:ints -> Out | keep_dim<keepdim
all: reduce_all | X -> Out | dim<axis, keep_dim<keepdim
any: reduce_any | X -> Out | dim<axis, keep_dim<keepdim
mean_all: mean | X -> Out
add_n: sum | X* -> Out
frobenius_norm: frobenius_norm | X, AxisTensor/AxisTensorList=dim:ints -> Out
argmax: arg_max | X, AxisTensor=axis:int -> Out
argmin: arg_min | X, AxisTensor=axis:int -> Out
argsort: argsort | X -> Out, Indices
topk: top_k_v2 | X, K=k:int -> Out, Indices
kthvalue: kthvalue | X -> Out, Indices
cumsum: cumsum | X, AxisTensor=axis:int -> Out
unique: unique | X -> Out, Indices, Index, Counts
nonzero: where_index | Condition -> Out
gather: gather | X, Index, Axis=axis:int -> Out
gather_nd: gather_nd | X, Index -> Out
index_select: index_select | X, Index -> Out | dim<axis
index_sample: index_sample | X, Index -> Out
take_along_axis: take_along_axis | Input, Index -> Result | Axis<axis
put_along_axis: put_along_axis | Input, Index, Value -> Result |
    Axis<axis, Reduce<reduce, Include_self<include_self
scatter: scatter | X, Ids, Updates -> Out
scatter_nd_add: scatter_nd_add | X, Index, Updates -> Out
masked_select: masked_select | X, Mask -> Y
where: where | Condition, X, Y -> Out
embedding: lookup_table_v2 | Ids, W -> Out
one_hot: one_hot_v2 | X, depth_tensor=depth:int -> Out | dtype="float32"
full: fill_constant | -> Out
full_int_array: assign_value | -> Out
empty: empty | ShapeTensor/ShapeTensorList=shape:ints -> Out
empty_like: fill_any_like | X -> Out
full_like: fill_any_like | X, ValueTensor=value:float -> Out
full_with_tensor: fill_constant | ValueTensor=value:float, ShapeTensor/ShapeTensorList=shape:ints -> Out
full_batch_size_like: fill_constant_batch_size_like | Input -> Out
assign: assign | X -> Out
assign_out: assign | X, - -> Out
assign_value_: assign_value | - -> Out
assign_value: assign_value | -> Out
arange: range | Start, End, Step -> Out
linspace: linspace | Start, Stop, Num -> Out
eye: eye | NumRowsTensor=num_rows:int, NumColumnsTensor=num_columns:int -> Out
cast: cast | X -> Out | out_dtype<dtype
shape64: shape | Input -> Out | dtype="int64"
shape: shape | Input -> Out | dtype="int32"
numel: size | Input -> Out
increment: increment | X -> Out | step<value
is_empty: is_empty | X -> Out
nearest_interp: nearest_interp_v2 | X, OutSize, SizeTensor*, Scale -> Out | data_layout<data_format
bilinear_interp: bilinear_interp_v2 | X, OutSize, SizeTensor*, Scale -> Out | data_layout<data_format
bicubic_interp: bicubic_interp_v2 | X, OutSize, SizeTensor*, Scale -> Out | data_layout<data_format
linear_interp: linear_interp_v2 | X, OutSize, SizeTensor*, Scale -> Out | data_layout<data_format
trilinear_interp: trilinear_interp_v2 | X, OutSize, SizeTensor*, Scale -> Out | data_layout<data_format
grid_sample: grid_sampler | X, Grid -> Output
affine_grid: affine_grid | Theta, OutputShape=output_shape:ints -> Output
affine_channel: affine_channel | X, Scale, Bias -> Out
yolo_box: yolo_box | X, ImgSize -> Boxes, Scores
prior_box: prior_box | Input, Image -> Boxes, Variances
box_coder: box_coder | PriorBox, PriorBoxVar, TargetBox -> OutputBox
box_clip: box_clip | Input, ImInfo -> Output
multiclass_nms3: multiclass_nms3 | BBoxes, Scores, RoisNum -> Out, Index, NmsRoisNum
matrix_nms: matrix_nms | BBoxes, Scores -> Out, Index, RoisNum
nms: nms | Boxes -> KeepBoxesIdxs | iou_threshold<threshold
roi_align: roi_align | X, ROIs, RoisNum -> Out
roi_pool: roi_pool | X, ROIs, RoisNum -> Out, Argmax
psroi_pool: psroi_pool | X, ROIs, RoisNum -> Out
distribute_fpn_proposals: distribute_fpn_proposals | FpnRois, RoisNum ->
    MultiFpnRois*, MultiLevelRoIsNum*, RestoreIndex
generate_proposals: generate_proposals_v2 | Scores, BboxDeltas, ImShape, Anchors, Variances ->
    RpnRois, RpnRoiProbs, RpnRoisNum | pre_nms_topN<pre_nms_top_n, post_nms_topN<post_nms_top_n
anchor_generator: anchor_generator | Input -> Anchors, Variances
rnn: rnn | Input, PreState*, WeightList*, SequenceLength, - -> Out, DropoutState, State*, Reserve
lstm: lstm | Input, H0, C0, Weight, Bias -> Hidden, Cell, BatchGate, BatchCellPreAct
gru: gru | Input, H0, Weight, Bias -> BatchGate, BatchResetHiddenPrev, BatchHidden, Hidden
crf_decoding: crf_decoding | Emission, Transition, Label, Length -> ViterbiPath
dropout: dropout | X, Seed, DropoutProbTensor=dropout_prob:float -> Out, Mask | dropout_implementation<mode
array_length: lod_array_length | X -> Out
array_read: read_from_array | X, I -> Out
array_write: write_to_array | Array, X, I -> Out
create_array: create_array | -> Out
array_to_tensor: tensor_array_to_tensor | X -> Out, OutIndex
atan2: atan2 | X1, X2 -> Out
masked_fill: masked_fill | X, Mask, Value -> Out
repeat_interleave: repeat_interleave | X -> Out | Repeats<repeats, dim<axis
repeat_interleave_with_tensor_index: repeat_interleave | X, RepeatsTensor -> Out | dim<axis
diagonal: diagonal | Input -> Out
diag: diag_v2 | X -> Out
diag_embed: diag_embed | Input -> Out
trace: trace | Input -> Out
searchsorted: searchsorted | SortedSequence, Values -> Out
index_add: index_add | X, Index, AddValue -> Out
baddbmm: baddbmm | Input, X, Y -> Out | Alpha<alpha, Beta<beta
logcumsumexp: logcumsumexp | X -> Out
cummax: cummax | x -> out, indices
cummin: cummin | x -> out, indices
kron: kron | X, Y -> Out
cross: cross | X, Y -> Out | dim<axis
copysign: copysign | x, y -> out
isnan: isnan_v2 | X -> Out
isinf: isinf_v2 | X -> Out
isfinite: isfinite_v2 | X -> Out
isclose: isclose | Input, Other, Rtol=rtol:float, Atol=atol:float -> Out
quantize_linear: quantize_linear | X, Scale, ZeroPoint, InAccum, InState -> Y, OutState, OutAccum, OutScale
dequantize_linear: dequantize_linear | X, Scale, ZeroPoint, InAccum, InState ->
    Y, OutState, OutAccum, OutScale
"""

# Operators with the same name and attributes in both, X -> Out (or X, Y -> Out).
_UNARY = (
    "relu relu6 sigmoid swish silu elu selu celu gelu softplus softsign tanh tanh_shrink "
    "thresholded_relu logsigmoid "
    "stanh softmax log_softmax exp expm1 log log1p log2 log10 sqrt rsqrt abs square reciprocal sign "
    "floor ceil round "
    "sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfinv trunc logical_not bitwise_not "
    "logsumexp cumprod "
    "p_norm flip pixel_shuffle pixel_unshuffle channel_shuffle shuffle_channel temporal_shift maxout "
    "share_data"
)
_BINARY = (
    "equal not_equal less_than less_equal greater_than greater_equal logical_and logical_or "
    "logical_xor bitwise_and "
    "bitwise_or bitwise_xor"
)


@dataclass(frozen=True, slots=True)
class Operand:
    """The destination of one PIR operand: a slot, a slot for vectors, or an attribute when it is constant."""

    slot: str | None
    list_slot: str | None = None
    attribute: str | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PirName:
    """The legacy counterpart of one PIR operator."""

    legacy: str
    operands: tuple[Operand, ...]
    results: tuple[str | None, ...]
    renamed: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)


def find_name(pir_type: str) -> PirName | None:
    """Return the entry of a PIR operator, given without dialect, or None."""
    return PIR_NAMES.get(pir_type) or PIR_NAMES.get(pir_type.removesuffix("_"))


def _parse_operand(text: str) -> Operand:
    if text == "-":
        return Operand(None)
    if text.endswith("*"):
        return Operand(text[:-1], text[:-1])
    slots, _, target = text.partition("=")
    slot, _, list_slot = slots.partition("/")
    attribute, _, kind = target.partition(":")
    return Operand(slot, list_slot or None, attribute or None, kind)


def _parse_entry(line: str) -> tuple[str, PirName]:
    pir_type, _, rest = line.partition(":")
    legacy, signature, *more = (part.strip() for part in rest.split("|"))
    operands, results = (part.strip() for part in signature.split("->"))
    renamed, fixed = {}, {}
    for attribute in (text.strip() for text in more[0].split(",")) if more else ():
        if "<" in attribute:
            new, old = attribute.split("<")
            renamed[old] = new
        else:
            name, value = attribute.split("=")
            fixed[name] = json.loads(value)
    return pir_type, PirName(
        legacy,
        tuple(_parse_operand(text.strip()) for text in operands.split(",") if text.strip()),
        tuple(None if text.strip() == "-" else text.strip().rstrip("*") for text in results.split(",")),
        renamed,
        fixed,
    )


def _parse_table() -> dict[str, PirName]:
    same = [f"{name}: {name} | X -> Out" for name in _UNARY.split()]
    same += [f"{name}: {name} | X, Y -> Out" for name in _BINARY.split()]
    lines = [*_TABLE.strip().replace("\n    ", " ").splitlines(), *same]
    return dict(_parse_entry(line) for line in lines)


PIR_NAMES = _parse_table()
