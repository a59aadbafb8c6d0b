"""The registry of the backend's operators and of the functions that lower them to steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_compiler.registry import Registry

if TYPE_CHECKING:
    from lite_opencl.lowering.context import Lowering

__all__ = [
    "OPERATORS",
    "data_dependent_nodes",
    "find_lowering",
    "lowers",
    "refusal",
    "register_rewritten",
    "takes_epilogue",
]

#: The operators by the module in this package that lowers them; all others are element-wise or not supported.
_FAMILIES = {
    "boxes": "lite.AnchorGenerator lite.BoxClip lite.BoxCoder lite.DensityPriorBox lite.PriorBox",
    "col2im": "Col2Im",
    "convolution": "Conv",
    "decoder": "Attention RMSNormalization RotaryEmbedding TensorScatter",
    "deformable": "DeformConv lite_opencl.DeformSample",
    "fourier": "DFT",
    "gather": "Gather GatherElements GatherND ReverseSequence",
    "generate": "ConstantOfShape EyeLike OneHot Range Trilu",
    "einsum": "Einsum",
    "grid_sample": "AffineGrid GridSample",
    "integer_convolution": "ConvInteger QLinearConv",
    "integer_matmul": "MatMulInteger QLinearMatMul",
    "matmul": "Gemm MatMul",
    "quantization": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "movement": "Concat DepthToSpace Expand Slice SpaceToDepth Split Tile Transpose",
    "padding": "CenterCropPad Pad",
    "resize": "Resize",
    "roi_align": "RoiAlign",
    "scatter": "ScatterElements ScatterND",
    "normalization": (
        "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization "
        "MeanVarianceNormalization"
    ),
    "pooling": "AveragePool LpPool MaxPool MaxUnpool",
    "recurrent": "GRU LSTM RNN",
    "reduction": (
        "GlobalAveragePool GlobalLpPool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    "scan": "CumSum",
    "search": "ArgMax ArgMin Hardmax TopK",
    "softmax": "LogSoftmax Softmax",
    "shape": "Shape Size",
    "transposed_convolution": "ConvTranspose",
    "views": "Flatten Reshape Squeeze Unsqueeze",
    "yolo_box": "lite.YoloBox",
}

#: The lowering of each operator. A model imports only the modules of its own operators.
OPERATORS: Registry[Lowering] = Registry(
    "lite_opencl.lowering", _FAMILIES, default_family="elementwise", kernel_name="OpenCL kernel"
)

lowers, find_lowering = OPERATORS.lowers, OPERATORS.find_lowering
takes_epilogue, data_dependent_nodes = OPERATORS.takes_epilogue, OPERATORS.data_dependent_nodes
refusal, register_rewritten = OPERATORS.refusal, OPERATORS.register_rewritten
