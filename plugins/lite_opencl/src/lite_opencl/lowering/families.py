"""Which module of this package runs which operators, so that a model imports only what it needs.

Operators that are not in the table are element-wise, or not run at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

__all__ = ["FAMILIES", "import_all_families", "import_family"]

#: Qualified names by module.
FAMILIES: Mapping[str, str] = {
    "col2im": "Col2Im",
    "convolution": "Conv",
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
_HOMES = {op: family for family, ops in FAMILIES.items() for op in ops.split()}


@cache
def import_family(op: str) -> None:
    """Import the module that registers how an operator is run."""
    import_module(f"lite_opencl.lowering.{_HOMES.get(op, 'elementwise')}")


def import_all_families() -> None:
    """Import them all, for lists of what there is."""
    for op in (*_HOMES, ""):
        import_family(op)
