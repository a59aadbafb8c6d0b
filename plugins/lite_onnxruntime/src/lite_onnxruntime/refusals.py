"""Refusals of nodes that ONNX Runtime opens but cannot run, or computes differently from ONNX's specification."""

from __future__ import annotations

from collections.abc import Callable

from lite_core.ir import DType, Node, Value

__all__ = ["refusal"]

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_NIBBLES = (DType.INT4, DType.UINT4)


def refusal(node: Node) -> str | None:
    """Return the reason why a node must not run on ONNX Runtime, which would open it; None if it may run."""
    if node.domain:
        return f"ONNX has no operator {node.qualified_op}"
    if any(value is not None and value.dtype in _NIBBLES for value in (*node.inputs, *node.outputs)):
        return "ONNX Runtime stores two 4-bit integers in a byte, Lite one"
    check = _CHECKS.get(node.op)
    return check(node) if check else None


def _input(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _rank(node: Node, index: int) -> int | None:
    value = _input(node, index)
    return None if value is None else value.type.rank


def _is_per_tensor(node: Node, index: int) -> bool:
    """Return True if a scale or zero point is a single number, not one for each row or channel."""
    value = _input(node, index)
    return value is None or value.shape in ((), (1,))


def _is_known_empty(value: Value | None) -> bool:
    return value is not None and value.shape is not None and 0 in [d for d in value.shape if isinstance(d, int)]


# **** each of these was observed with ONNX Runtime 1.31 ****


def _col2im(node: Node) -> str | None:
    shape = _input(node, 1)
    is_2d = shape is not None and shape.shape is not None and shape.shape[0] == 2
    return None if is_2d else "ONNX Runtime's Col2Im loses elements unless it has two spatial dimensions"


def _is_empty(node: Node, index: int, axes: slice) -> bool:
    """Return True if one of the axes of an input is known to have no elements."""
    value = _input(node, index)
    return value is not None and value.shape is not None and any(d == 0 for d in value.shape[axes])


def _over_nothing(node: Node) -> str | None:
    first = node.attributes.get("axis", -1) if node.op == "LayerNormalization" else 2
    is_empty = isinstance(first, int) and _is_empty(node, 0, slice(first, None))
    return f"ONNX Runtime's {node.op} crashes or fails over axes without elements" if is_empty else None


def _conv_integer(node: Node) -> str | None:
    if _is_empty(node, 0, slice(1, 2)):
        return "ONNX Runtime's ConvInteger leaves the result undefined if there are no channels"
    return (
        None if _is_per_tensor(node, 3) else "ONNX Runtime's ConvInteger supports only one zero point for all channels"
    )


def _einsum(node: Node) -> str | None:
    letters = [c for c in str(node.attributes["equation"]) if c.isalpha()]
    mixed = any(c.isupper() for c in letters) and any(c.islower() for c in letters)
    return "ONNX Runtime's Einsum does not support a mix of upper-case and lower-case letters" if mixed else None


def _grid_sample(node: Node) -> str | None:
    return None if _rank(node, 0) in (4, 5) else "ONNX Runtime's GridSample supports two or three spatial dimensions"


def _group_normalization(node: Node) -> str | None:
    return (
        "ONNX Runtime's GroupNormalization does not support empty tensors" if _is_known_empty(_input(node, 0)) else None
    )


def _lrn(node: Node) -> str | None:
    return None if _rank(node, 0) == 4 else "ONNX Runtime's LRN supports only two spatial dimensions"


def _loop(node: Node) -> str | None:
    is_unconditional = _input(node, 1) is None
    return "ONNX Runtime's Loop without a condition obeys its body's condition" if is_unconditional else None


def _matrix_product(node: Node) -> str | None:
    first = _input(node, 0)
    has_empty_input = any(_is_known_empty(value) for value in node.inputs)
    if has_empty_input and first is not None and first.dtype.is_integer:
        return "ONNX Runtime's integer products do not support empty tensors"
    per_row = node.op == "MatMulInteger" and not _is_per_tensor(node, 2)
    return "ONNX Runtime's MatMulInteger supports only one zero point for all rows" if per_row else None


def _max_unpool(node: Node) -> str | None:
    return "ONNX Runtime's MaxUnpool computes other offsets than ONNX specifies"


def _mod(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.is_integer and first.dtype.itemsize == 8
    return "ONNX Runtime's Mod rounds 64-bit integers with fmod=1" if wide and node.attributes.get("fmod") else None


def _non_zero(node: Node) -> str | None:
    return None if _rank(node, 0) else "ONNX Runtime's NonZero adds an axis to scalars"


def _pad(node: Node) -> str | None:
    axes = _input(node, 3)
    if axes is not None and axes.dtype is DType.INT32:
        return "ONNX Runtime's Pad supports only axes of int64"
    return "ONNX Runtime's Pad does not support scalars" if _rank(node, 0) == 0 else None


def _q_linear_mat_mul(node: Node) -> str | None:
    if _is_empty(node, 0, slice(-1, None)):
        return "ONNX Runtime's QLinearMatMul leaves the result undefined if there is nothing to sum"
    is_per_tensor = _is_per_tensor(node, 1) and _is_per_tensor(node, 2)
    return None if is_per_tensor else "ONNX Runtime's QLinearMatMul supports only one scale for all rows"


def _reduction(node: Node) -> str | None:
    first = _input(node, 0)
    if _is_known_empty(first):
        return f"ONNX Runtime's {node.op} does not support empty tensors"
    wide = node.op == "ReduceProd" and first is not None and first.dtype is DType.INT64
    return "ONNX Runtime's ReduceProd rounds 64-bit integers" if wide else None


def _reshape(node: Node) -> str | None:
    return "ONNX Runtime's Reshape does not support empty tensors" if _is_known_empty(_input(node, 0)) else None


def _recurrent(node: Node) -> str | None:
    first = _input(node, 0)
    double = first is not None and first.dtype is DType.FLOAT64
    return f"ONNX Runtime's {node.op} does not compute in float64" if double else None


def _scan(node: Node) -> str | None:
    has_empty_input = any(_is_known_empty(value) for value in node.inputs)
    return "ONNX Runtime's Scan does not support empty tensors" if has_empty_input else None


def _scatter(node: Node) -> str | None:
    half = (data := _input(node, 0)) is not None and data.dtype.is_half
    reduces = node.attributes.get("reduction", "none") != "none"
    return f"ONNX Runtime's {node.op} with a reduction does not support 16-bit floats" if half and reduces else None


def _shrink(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.itemsize == 8
    return "ONNX Runtime's Shrink computes 64-bit types in float32" if wide else None


def _wide_integers(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.is_integer and first.dtype.itemsize == 8
    return f"ONNX Runtime's {node.op} rounds 64-bit integers" if wide else None


_CHECKS: dict[str, Callable[[Node], str | None]] = {
    "Col2Im": _col2im,
    "ConvInteger": _conv_integer,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "GlobalAveragePool": _over_nothing,
    "GlobalLpPool": _over_nothing,
    "GlobalMaxPool": _over_nothing,
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _over_nothing,
    "LRN": _lrn,
    "LSTM": _recurrent,
    "LayerNormalization": _over_nothing,
    "Loop": _loop,
    "MatMul": _matrix_product,
    "MatMulInteger": _matrix_product,
    "Max": _wide_integers,
    "MaxUnpool": _max_unpool,
    "Min": _wide_integers,
    "Mod": _mod,
    "NonZero": _non_zero,
    "Pad": _pad,
    "QLinearMatMul": _q_linear_mat_mul,
    "RNN": _recurrent,
    "Reshape": _reshape,
    "Scan": _scan,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Shrink": _shrink,
    "Sign": _wide_integers,
    **{f"Reduce{kind}": _reduction for kind in _REDUCTIONS},
}
