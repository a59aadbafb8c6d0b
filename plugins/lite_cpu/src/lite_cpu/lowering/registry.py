"""Which operators CPU backends run, and how each becomes steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_compiler.registry import Registry
from lite_core.ir import Node
from lite_cpu.lowering.half import has_halves, in_float32

if TYPE_CHECKING:
    from lite_cpu.lowering.context import Lowering

__all__ = ["OPERATORS", "find_lowering", "lowers", "refusal", "rewritten", "takes_epilogue"]

#: The operators by the module beside this one that runs them; what is not listed is element-wise, or not run at all.
_FAMILIES = {
    "convolution": "Conv",
    "einsum": "Einsum",
    "gather": "Gather GatherElements GatherND ScatterElements ScatterND",
    "int8_convolution": "ConvInteger",
    "int8_matmul": "MatMulInteger",
    "matmul": "Gemm MatMul",
    "movement": "CenterCropPad Concat ConstantOfShape OneHot Pad Range Tile Trilu",
    "normalization": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization "
        "MeanVarianceNormalization"
    ),
    "pooling": "AveragePool LpPool MaxPool",
    "quantization": "DynamicQuantizeLinear QLinearConv QLinearMatMul",
    "recurrent": "GRU LSTM RNN",
    "reduction": (
        "GlobalAveragePool GlobalLpPool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    "resize": "Resize",
    "search": "ArgMax ArgMin CumSum TopK",
    "shape": (
        "DepthToSpace Expand EyeLike Flatten Reshape Shape Size Slice SpaceToDepth Split Squeeze Transpose Unsqueeze"
    ),
    "softmax": "Hardmax LogSoftmax Softmax",
    "transposed": "ConvTranspose",
}

#: How each operator is lowered. A model imports only the modules of its own operators.
OPERATORS: Registry[Lowering] = Registry("lite_cpu.lowering", _FAMILIES, rest="elementwise", kernels="CPU kernel")

lowers, rewritten = OPERATORS.lowers, OPERATORS.rewritten
find_lowering, takes_epilogue = OPERATORS.find_lowering, OPERATORS.takes_epilogue


def refusal(node: Node) -> str | None:
    """Why a node of a model cannot be run, a sentence; None when it can, as it is or with others in its place."""
    reason = OPERATORS.refusal(node)
    if reason is None or OPERATORS.is_rewritten(node) or not has_halves(node):
        return reason
    return OPERATORS.refusal(in_float32(node))
