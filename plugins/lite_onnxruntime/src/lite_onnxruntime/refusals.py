"""Nodes that ONNX Runtime opens and then cannot run, or computes otherwise than ONNX says."""

from __future__ import annotations

from collections.abc import Callable

from lite_core.ir import DType, Node, Value

__all__ = ["refusal"]

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_NIBBLES = (DType.INT4, DType.UINT4)


def refusal(node: Node) -> str | None:
    """Why a node is not for ONNX Runtime although it would take it; None where it is."""
    if node.domain:
        return f"ONNX has no operator {node.qualified_op}"
    if any(value is not None and value.dtype in _NIBBLES for value in (*node.inputs, *node.outputs)):
        return "ONNX Runtime has two integers of 4 bits in a byte, Lite one"
    check = _CHECKS.get(node.op)
    return check(node) if check else None


def _input(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _rank(node: Node, index: int) -> int | None:
    value = _input(node, index)
    return None if value is None else value.type.rank


def _is_for_all(node: Node, index: int) -> bool:
    """Whether a scale or zero point is one for the whole tensor, not one for each row or channel."""
    value = _input(node, index)
    return value is None or value.shape in ((), (1,))


def _size_is_known_zero(value: Value | None) -> bool:
    return value is not None and value.shape is not None and 0 in [d for d in value.shape if isinstance(d, int)]


# **** each of these was seen with ONNX Runtime 1.31 ****


def _col2im(node: Node) -> str | None:
    shape = _input(node, 1)
    planes = shape is not None and shape.shape is not None and shape.shape[0] == 2
    return None if planes else "ONNX Runtime's Col2Im loses elements of what is not a plane"


def _conv_integer(node: Node) -> str | None:
    return None if _is_for_all(node, 3) else "ONNX Runtime's ConvInteger has one zero point for all channels"


def _einsum(node: Node) -> str | None:
    letters = [c for c in str(node.attributes["equation"]) if c.isalpha()]
    mixed = any(c.isupper() for c in letters) and any(c.islower() for c in letters)
    return "ONNX Runtime's Einsum does not take upper-case beside lower-case letters" if mixed else None


def _grid_sample(node: Node) -> str | None:
    return None if _rank(node, 0) in (4, 5) else "ONNX Runtime's GridSample has two or three spatial dimensions"


def _group_normalization(node: Node) -> str | None:
    return "ONNX Runtime's GroupNormalization needs elements" if _size_is_known_zero(_input(node, 0)) else None


def _lrn(node: Node) -> str | None:
    return None if _rank(node, 0) == 4 else "ONNX Runtime's LRN has two spatial dimensions"


def _loop(node: Node) -> str | None:
    stops = _input(node, 1) is None
    return "ONNX Runtime's Loop heeds its body's condition where there is none before it" if stops else None


def _matrix_product(node: Node) -> str | None:
    first = _input(node, 0)
    nothing = any(_size_is_known_zero(value) for value in node.inputs)
    if nothing and first is not None and first.dtype.is_integer:
        return "ONNX Runtime's products of integers need elements"
    per_row = node.op == "MatMulInteger" and not _is_for_all(node, 2)
    return "ONNX Runtime's MatMulInteger has one zero point for all rows" if per_row else None


def _max_unpool(node: Node) -> str | None:
    return "ONNX Runtime's MaxUnpool places elements otherwise than ONNX says"


def _mod(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.is_integer and first.dtype.itemsize == 8
    return "ONNX Runtime's Mod rounds 64-bit integers with fmod=1" if wide and node.attributes.get("fmod") else None


def _non_zero(node: Node) -> str | None:
    return None if _rank(node, 0) else "ONNX Runtime's NonZero gives a scalar an axis"


def _pad(node: Node) -> str | None:
    axes = _input(node, 3)
    if axes is not None and axes.dtype is DType.INT32:
        return "ONNX Runtime's Pad takes axes as int64 only"
    return "ONNX Runtime's Pad does not take scalars" if _rank(node, 0) == 0 else None


def _q_linear_mat_mul(node: Node) -> str | None:
    one = _is_for_all(node, 1) and _is_for_all(node, 2)
    return None if one else "ONNX Runtime's QLinearMatMul has one scale for all rows"


def _reduction(node: Node) -> str | None:
    first = _input(node, 0)
    if _size_is_known_zero(first):
        return f"ONNX Runtime's {node.op} needs elements"
    wide = node.op == "ReduceProd" and first is not None and first.dtype is DType.INT64
    return "ONNX Runtime's ReduceProd rounds 64-bit integers" if wide else None


def _reshape(node: Node) -> str | None:
    return "ONNX Runtime's Reshape needs elements" if _size_is_known_zero(_input(node, 0)) else None


def _recurrent(node: Node) -> str | None:
    first = _input(node, 0)
    double = first is not None and first.dtype is DType.FLOAT64
    return f"ONNX Runtime's {node.op} does not compute in float64" if double else None


def _scan(node: Node) -> str | None:
    nothing = any(_size_is_known_zero(value) for value in node.inputs)
    return "ONNX Runtime's Scan needs elements" if nothing else None


def _scatter(node: Node) -> str | None:
    half = (data := _input(node, 0)) is not None and data.dtype.is_half
    reduces = node.attributes.get("reduction", "none") != "none"
    return f"ONNX Runtime's {node.op} does not reduce 16-bit floats" if half and reduces else None


def _shrink(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.itemsize == 8
    return "ONNX Runtime's Shrink computes types of 64 bits in float32" if wide else None


def _wide_integers(node: Node) -> str | None:
    first = _input(node, 0)
    wide = first is not None and first.dtype.is_integer and first.dtype.itemsize == 8
    return f"ONNX Runtime's {node.op} rounds 64-bit integers" if wide else None


_CHECKS: dict[str, Callable[[Node], str | None]] = {
    "Col2Im": _col2im,
    "ConvInteger": _conv_integer,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "LRN": _lrn,
    "LSTM": _recurrent,
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
