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
_HOMES = {op: family for family, ops in FAMILIES.items() for op in ops.split()}


@cache
def import_family(op: str) -> None:
    """Import the module that registers how an operator is run."""
    import_module(f"lite_cpu.lowering.{_HOMES.get(op, 'elementwise')}")


def import_all_families() -> None:
    """Import them all, for lists of what there is."""
    for op in (*_HOMES, ""):
        import_family(op)
