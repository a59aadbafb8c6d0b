"""The registry of the lowering functions of CPU backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_compiler.registry import Registry
from lite_core.ir import Node
from lite_cpu.lowering.half import as_float32, has_halves

if TYPE_CHECKING:
    from lite_cpu.lowering.context import Lowering

__all__ = ["OPERATORS", "find_lowering", "lowers", "refusal", "register_rewritten", "takes_epilogue"]

#: For each module of this package, the operators that it registers. Others are element-wise or have no kernel.
_FAMILIES = {
    "control": "If Loop Scan lite_cpu.OpenLoop",
    "iteration": "lite_cpu.Append lite_cpu.LoopIteration",
    "boxes": "lite.AnchorGenerator lite.BoxClip lite.BoxCoder lite.DensityPriorBox lite.PriorBox",
    "convolution": "Conv",
    "decoder": "Attention RMSNormalization RotaryEmbedding TensorScatter",
    "deformable": "DeformConv lite_cpu.DeformSample",
    "einsum": "Einsum",
    "forest": "lite.DecisionForest",
    "fourier": "DFT",
    "inverse": "lite.Inverse",
    "gather": "Gather GatherElements GatherND ScatterElements ScatterND",
    "int8_convolution": "ConvInteger",
    "int8_matmul": "MatMulInteger",
    "matmul": "Gemm MatMul",
    "narrow_products": "lite_cpu.NarrowMatMul",
    "movement": "CenterCropPad Concat ConstantOfShape OneHot Pad Range Tile Trilu",
    "normalization": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization "
        "MeanVarianceNormalization"
    ),
    "pooling": "AveragePool LpPool MaxPool",
    "proposals": "lite.GenerateProposals",
    "pyramid": "lite.CollectFpnProposals lite.DistributeFpnProposals",
    "quantization": "DynamicQuantizeLinear QLinearConv QLinearMatMul",
    "recurrent": "GRU LSTM RNN",
    "quantized_recurrent": "lite.QuantizedLSTM",
    "reduction": (
        "GlobalAveragePool GlobalLpPool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    "regions": "RoiAlign",
    "resize": "Resize",
    "search": "ArgMax ArgMin CumSum TopK lite.Mode",
    "shape": (
        "DepthToSpace Expand EyeLike Flatten Reshape Shape Size Slice SpaceToDepth Split Squeeze Transpose Unsqueeze"
    ),
    "softmax": "Hardmax LogSoftmax Softmax",
    "local_suppression": "lite.LocalityAwareNms",
    "suppression": "NonMaxSuppression lite.MatrixNms lite.MulticlassNms",
    "transposed": "ConvTranspose",
    "yolo_box": "lite.YoloBox",
    "viterbi": "lite.ViterbiDecode",
}

#: The lowering functions by operator. A model imports only the modules of its own operators.
OPERATORS: Registry[Lowering] = Registry(
    "lite_cpu.lowering", _FAMILIES, default_family="elementwise", kernel_name="CPU kernel"
)

lowers, register_rewritten = OPERATORS.lowers, OPERATORS.register_rewritten
find_lowering, takes_epilogue = OPERATORS.find_lowering, OPERATORS.takes_epilogue


def refusal(node: Node) -> str | None:
    """Return the reason why a node of a model cannot be run, or None if it can be run, directly or rewritten."""
    reason = OPERATORS.refusal(node)
    if reason is None or OPERATORS.is_rewritten(node) or not has_halves(node):
        return reason
    return OPERATORS.refusal(as_float32(node))
