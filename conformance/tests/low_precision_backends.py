"""Backends that compute products in fewer bits: right ones, and wrong ones with one intentional error each.

Each computes in its precision whatever it is asked for, so that the judgement at another level can be tested.
On a command line: ``low_precision_backends.py:right_bfloat16``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from graph_backends import Values, Walker

from lite_conformance.judge.decisions import has_decisions
from lite_core.backend import Device
from lite_core.errors import InputError
from lite_core.ir import DType, Graph, Node, TensorType
from lite_core.ops.evaluate import evaluate_node

Array = np.ndarray[Any, Any]

PRODUCTS = ("Conv", "ConvTranspose", "DeformConv", "Einsum", "Gemm", "MatMul")
RECURRENT = {"LSTM": 1, "GRU": 1, "RNN": 1}


class Low(Walker):
    """A backend that rounds the operands of products, and sums in float32.

    Args:
        name: its name.
        dtype: float16, bfloat16 or int8.
    """

    def __init__(self, name: str, dtype: DType) -> None:
        self.name = name
        self.dtype = dtype

    def probe(self) -> list[Device]:
        return [Device(self.name, name="rounds operands")]

    def check_options(self, options: Mapping[str, Any]) -> None:
        if dict(options) not in ({}, {"precision": "int8"}):
            raise InputError(f"{self.name} has one option, precision='int8', not {dict(options)!r}")

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        arrays = [None if v is None else known[v] for v in node.inputs]
        first = arrays[0] if arrays else None
        if node.domain or first is None or first.dtype != np.float32:
            return evaluate_node(node, arrays, known)
        with np.errstate(all="ignore"):
            if node.op in PRODUCTS and len(arrays) > 1:
                constants = [v in graph.constants for v in node.inputs]
                return [self.result(node, self.product(node, self.rounded(node, arrays, constants)))]
            if node.op in RECURRENT:
                return self.recurrent(node, arrays)
        return evaluate_node(node, arrays, known)

    def rounded(self, node: Node, arrays: list[Array | None], constants: list[bool]) -> list[Array | None]:
        """Return the operands of a product, the factors rounded."""
        count = len(arrays) if node.op == "Einsum" else 2
        rounded = list(arrays)
        for i in range(count):
            array = arrays[i]
            assert array is not None
            rounded[i] = self.operand(array, channel_axis(node, i, constants[i]))
        return rounded

    def operand(self, array: Array, axis: int | None) -> Array:
        """Return a rounded operand, for int8 with one scale for each position of an axis."""
        if self.dtype is DType.INT8:
            return np.rint(array / scale_of(array, axis)).astype(np.float32) * scale_of(array, axis)
        with np.errstate(over="ignore"):
            return array.astype(self.dtype.numpy).astype(np.float32)

    def product(self, node: Node, arrays: list[Array | None]) -> Array:
        return evaluate_node(node, arrays)[0]

    def result(self, node: Node, array: Array) -> Array:
        return array

    def recurrent(self, node: Node, arrays: list[Array | None]) -> list[Array]:
        """Run a recurrent operator with rounded inputs and weights."""
        rounded = list(arrays)
        for i in (0, 1, 2):
            array = arrays[i]
            assert array is not None
            rounded[i] = self.operand(array, None)
        return evaluate_node(node, rounded)


def channel_axis(node: Node, position: int, constant: bool) -> int | None:
    """Return the axis of the output channels of constant weights, otherwise None."""
    if position != 1 or not constant:
        return None
    axes = {"Conv": 0, "DeformConv": 0, "ConvTranspose": 1, "MatMul": -1}
    return axes.get(node.op, (0 if node.attributes.get("transB") else 1) if node.op == "Gemm" else None)


def scale_of(array: Array, axis: int | None) -> Array:
    """Return the scale of a symmetric grid of 8 bits."""
    others = None if axis is None else tuple(i for i in range(array.ndim) if i != axis % array.ndim)
    largest = np.abs(array).max(axis=others, keepdims=True) if array.size else np.ones((1,) * array.ndim)
    return (np.where(largest > 0, largest, 1) / 127).astype(np.float32)


# **** right ****


class Stores(Low):
    """Stores the results of all nodes in its type, the outputs of the graph too."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        product = (node.op in PRODUCTS and len(node.inputs) > 1) or len(graph.nodes) > 1
        return [self.operand(r, None) if product and r.dtype == np.float32 else r for r in results]


class WeightsOnly(Low):
    """Rounds constants only."""

    def rounded(self, node: Node, arrays: list[Array | None], constants: list[bool]) -> list[Array | None]:
        every = super().rounded(node, arrays, constants)
        return [r if c else a for r, a, c in zip(every, arrays, constants)]


class Everywhere(Low):
    """Computes every operator on rounded operands, and rounds every result."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        arrays = [None if v is None else known[v] for v in node.inputs]
        with np.errstate(all="ignore"):
            # The bounds of a Range decide the size of the result.
            rounded = arrays if node.op == "Range" else [self.narrow(a) for a in arrays]
            return [r for r in map(self.narrow, evaluate_node(node, rounded, known)) if r is not None]

    def narrow(self, array: Array | None) -> Array | None:
        return self.operand(array, None) if array is not None and array.dtype == np.float32 else array


class RoundsSome(Everywhere):
    """Rounds about one of two numbers, and keeps the others: stands for operators that round some operands only."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        self.random = np.random.default_rng(len(node.inputs))
        return super().compute(graph, node, known)

    def operand(self, array: Array, axis: int | None) -> Array:
        rounded = super().operand(array, axis)
        return np.asarray(np.where(self.random.random(array.shape) < 0.5, rounded, array))


class ZeroPoint(Low):
    """Quantizes activations with a zero point, to the range of their numbers and zero."""

    #: Added to the zero point when it is subtracted again.
    error = 0

    def operand(self, array: Array, axis: int | None) -> Array:
        if axis is not None or not array.size:
            return super().operand(array, axis)
        low, high = min(array.min(), 0), max(array.max(), 0)
        scale = np.float32((high - low) / 255 or 1)
        point = np.rint(-low / scale)
        quantized = np.clip(np.rint(array / scale) + point, 0, 255)
        return ((quantized - point - self.error) * scale).astype(np.float32)


class SumsInFloat16(Low):
    """Adds the products one by one in float16; right only where the level says so."""

    def product(self, node: Node, arrays: list[Array | None]) -> Array:
        if node.op != "MatMul":
            return super().product(node, arrays)
        return sum_in(node, arrays, 1, lambda total: total.astype(np.float16).astype(np.float32))


def sum_in(node: Node, arrays: list[Array | None], block: int, rounded: Any) -> Array:
    """Multiply two matrices in blocks of the inner axis; a function rounds the sum after each block."""
    a, b = arrays[0], arrays[1]
    assert a is not None
    assert b is not None
    inner = a.shape[-1]
    if not inner or b.ndim < 2 or a.ndim < 2:
        return evaluate_node(node, [a, b])[0]
    total: Any = 0
    for start in range(0, inner, block):
        total = rounded(total + np.matmul(a[..., start : start + block], b[..., start : start + block, :]))
    return np.asarray(total, np.float32)


# **** wrong ****


class Truncates(Low):
    """Cuts off the bits that do not fit, instead of rounding to nearest."""

    def operand(self, array: Array, axis: int | None) -> Array:
        if self.dtype is DType.INT8:
            return np.trunc(array / scale_of(array, axis)).astype(np.float32) * scale_of(array, axis)
        bits = np.uint32(0xFFFF0000 if self.dtype is DType.BFLOAT16 else 0xFFFFE000)
        return (np.ascontiguousarray(array).view(np.uint32) & bits).view(np.float32).reshape(array.shape)


class SumsInBlocks(Low):
    """Adds blocks of 64 products in the low type."""

    def product(self, node: Node, arrays: list[Array | None]) -> Array:
        if node.op != "MatMul":
            return super().product(node, arrays)
        return sum_in(node, arrays, 64, lambda total: total.astype(self.dtype.numpy).astype(np.float32))


class DropsZeroPoint(ZeroPoint):
    """Forgets that the zero point was rounded: subtracts one more."""

    error = 1


class WrongChannelScale(Low):
    """Uses the scale of the next output channel."""

    def operand(self, array: Array, axis: int | None) -> Array:
        if axis is None:
            return super().operand(array, axis)
        scale = scale_of(array, axis)
        wrong = np.roll(scale, 1, axis)
        return np.rint(array / scale).astype(np.float32) * wrong


class Saturates(Low):
    """Adds pairs of 8-bit products in 16 bits with saturation, as pmaddubsw does with unsigned activations."""

    def product(self, node: Node, arrays: list[Array | None]) -> Array:
        if node.op != "MatMul" or arrays[1] is None or arrays[1].ndim != 2 or not arrays[1].size:
            return super().product(node, arrays)
        scales = [scale_of(a, None) for a in arrays if a is not None]
        unit = np.float32(scales[0] / 2) * scales[1]  # unsigned activations have one more bit
        one, two = np.float32(-32768) * unit, np.float32(32767) * unit
        total: Any = 0
        a, b = arrays[0], arrays[1]
        assert a is not None
        for start in range(0, a.shape[-1], 2):
            total = total + np.clip(np.matmul(a[..., start : start + 2], b[start : start + 2]), one, two)
        return np.asarray(total, np.float32)


class Noisy(Low):
    """Adds noise of up to four units in the last place of the low type to each product."""

    def result(self, node: Node, array: Array) -> Array:
        unit = 2.0 ** (-10 if self.dtype is DType.FLOAT16 else -7)
        noise = np.random.default_rng(array.size).uniform(-4, 4, array.shape)
        return (array * (1 + unit * noise)).astype(np.float32)


class ForgetsStoredRounding(Stores):
    """Stores results with truncated bits."""

    def result(self, node: Node, array: Array) -> Array:
        bits = np.uint32(0xFFFF0000 if self.dtype is DType.BFLOAT16 else 0xFFFFE000)
        return (np.ascontiguousarray(array).view(np.uint32) & bits).view(np.float32).reshape(array.shape)


class OffByOne(Everywhere):
    """Adds one to integer results, turns booleans around, and adds one to floating results of operators that decide."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        if not has_decisions(graph):
            return results
        if all(r.dtype == np.float32 for r in results):
            return [np.asarray(r + np.float32(1)) for r in results]
        return [~r if r.dtype == bool else r if r.dtype == np.float32 else np.asarray(r + 1, r.dtype) for r in results]


class DropsRows(Everywhere):
    """Keeps the first third only of what an operator chose, if the number depends on the data."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        outputs = [v for v in node.outputs if v is not None]
        if not has_decisions(graph) or len(outputs) != len(results):
            return results
        return [_third(r, v.type) for v, r in zip(outputs, results)]


def _third(array: Array, kind: TensorType) -> Array:
    """Return the first third of the axes whose size depends on data."""
    sizes = zip(array.shape, kind.shape or ())
    return array[tuple(slice(size if isinstance(known, int) else size // 3) for size, known in sizes)]


FLOATS = (DType.FLOAT16, DType.BFLOAT16)
#: Right backends with the levels that must accept them.
RIGHT = {
    **{f"right_{d}": (Low(f"right_{d}", d), d.value) for d in (*FLOATS, DType.INT8)},
    **{f"stores_{d}": (Stores(f"stores_{d}", d), d.value) for d in FLOATS},
    **{f"weights_{d}": (WeightsOnly(f"weights_{d}", d), d.value) for d in (*FLOATS, DType.INT8)},
    **{f"everywhere_{d}": (Everywhere(f"everywhere_{d}", d), f"{d}-everywhere") for d in FLOATS},
    "zero_point_int8": (ZeroPoint("zero_point_int8", DType.INT8), "int8"),
    "sums_float16": (SumsInFloat16("sums_float16", DType.FLOAT16), "float16-sums"),
}
#: Wrong backends with the levels that must reject them.
WRONG = {
    **{f"truncates_{d}": (Truncates(f"truncates_{d}", d), d.value) for d in (*FLOATS, DType.INT8)},
    **{f"sums_in_blocks_{d}": (SumsInBlocks(f"sums_in_blocks_{d}", d), d.value) for d in FLOATS},
    **{f"noisy_{d}": (Noisy(f"noisy_{d}", d), d.value) for d in FLOATS},
    **{f"stores_truncated_{d}": (ForgetsStoredRounding(f"stores_truncated_{d}", d), d.value) for d in FLOATS},
    "drops_zero_point": (DropsZeroPoint("drops_zero_point", DType.INT8), "int8"),
    "wrong_channel_scale": (WrongChannelScale("wrong_channel_scale", DType.INT8), "int8"),
    "saturates": (Saturates("saturates", DType.INT8), "int8"),
}
#: Backends whose decisions differ from those of rounding to nearest, with the levels that must accept them.
OTHER_DECISIONS = {"rounds_some": (RoundsSome("rounds_some", DType.BFLOAT16), "bfloat16-everywhere")}
#: Backends that decide wrongly, with the levels that must reject them.
WRONG_DECISIONS = {
    "off_by_one": (OffByOne("off_by_one", DType.BFLOAT16), "bfloat16-everywhere"),
    "drops_rows": (DropsRows("drops_rows", DType.BFLOAT16), "bfloat16-everywhere"),
}
for _name, (_backend, _) in {**RIGHT, **WRONG, **OTHER_DECISIONS, **WRONG_DECISIONS}.items():
    globals()[_name] = _backend
