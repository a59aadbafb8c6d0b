"""Fourier transforms, expressed by products with constant matrices.

Rules:
    1. DFT of at most 1,024 elements -> MatMul. Speech models transform a few hundred elements; at these lengths a
       matrix product is about as fast as a fast Fourier transform on most devices.
    2. DFT of a * b elements -> MatMul of a elements, rotation by twiddle factors, MatMul of b elements (Cooley and
       Tukey, "An Algorithm for the Machine Calculation of Complex Fourier Series", 1965).
    3. DFT of at most 4,096 elements, whose number has a prime factor above 1,024 -> MatMul.

Longer transforms of such numbers have no rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["expand_fourier", "refuse_fourier"]

Array = np.ndarray[Any, Any]

#: Transforms up to this length take one product.
_ONE_PRODUCT = 1024
#: Transforms up to this length may take one product, if their length has a large prime factor.
_LONGEST_PRODUCT = 4096


def refuse_fourier(node: Node) -> str | None:
    """Return the reason why no rule applies to a DFT, or None. Shapes may be unknown."""
    x = node.inputs[0]
    assert x is not None
    if len([v for v in node.inputs if v is not None]) > 1:
        return "DFT with its length or axis as tensors"
    size = x.type.shape[-2] if x.type.shape is not None else None
    if not isinstance(size, int):
        return "DFT of a length that is not known at load"
    if size > _LONGEST_PRODUCT and _factors(size) is None:
        return f"DFT of {size} elements, which has a prime factor above {_ONE_PRODUCT}"
    return None


def expand_fourier(graph: Graph) -> None:
    """Apply the rules to a graph whose shapes are known, and change it."""
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if node.op == "DFT" and not node.domain and refuse_fourier(node) is None:
            rewriter.begin(node)
            rewriter.replace([_transform(rewriter, node)])
    rewriter.finish()


def _factors(length: int) -> tuple[int, int] | None:
    """Return the two factors nearest to each other, the smaller first; None if the larger is above 1,024."""
    small = next(n for n in range(int(length**0.5), 0, -1) if length % n == 0)
    return (small, length // small) if length // small <= _ONE_PRODUCT else None


def _transform(r: Rewriter, node: Node) -> Value:
    (x,) = (v for v in node.inputs if v is not None)
    result = node.outputs[0]
    assert result is not None
    attributes = ops.attributes_of(node)
    sign, length = (1 if attributes["inverse"] else -1), x.shape[-2]
    scale = 1 / length if attributes["inverse"] else 1.0
    factors = _factors(length) if length > _ONE_PRODUCT else None
    if factors is None:
        spectrum = _product(r, x, sign, scale, result.shape[-2])
    else:
        spectrum = _in_two_stages(r, x, sign, scale, *factors)
    if spectrum.shape[-2] != result.shape[-2]:
        bounds = [r.constant(np.array([n], np.int64)) for n in (0, result.shape[-2], len(x.shape) - 2)]
        spectrum = r.add("Slice", [spectrum, *bounds], x.dtype, (*x.shape[:-2], result.shape[-2], 2))
    return spectrum


def _product(r: Rewriter, x: Value, sign: int, scale: float, frequencies: int) -> Value:
    """Transform [..., n, 1 or 2] to [..., frequencies, 2] by one product."""
    *others, length, parts = x.shape
    matrix = r.constant(_matrix(length, frequencies, parts, sign, scale).astype(x.dtype.numpy))
    rows = r.reshape(x, (*others, length * parts))
    product = r.add("MatMul", [rows, matrix], x.dtype, (*others, frequencies * 2))
    return r.reshape(product, (*others, frequencies, 2))


def _in_two_stages(r: Rewriter, x: Value, sign: int, scale: float, a: int, b: int) -> Value:
    """Transform [..., a * b, parts]; elements are numbered b i + j, frequencies k + a m, with i, k < a and j, m < b."""
    *others, length, parts = x.shape
    count = int(np.prod(others, dtype=np.int64))
    by_start = _swapped(r, r.reshape(x, (count, a, b, parts)))  # [count, j, i, parts]
    first = _product(r, by_start, sign, 1.0, a)  # [count, j, k, 2]
    angles = sign * 2 * np.pi / length * np.outer(np.arange(b), np.arange(a))
    rotated = _swapped(r, _rotated(r, first, angles))  # [count, k, j, 2]
    second = _product(r, rotated, sign, scale, b)  # [count, k, m, 2]
    return r.reshape(_swapped(r, second), (*others, length, 2))


def _swapped(r: Rewriter, x: Value) -> Value:
    count, rows, columns, parts = x.shape
    return r.add("Transpose", [x], x.dtype, (count, columns, rows, parts), {"perm": (0, 2, 1, 3)})


def _rotated(r: Rewriter, x: Value, angles: Array) -> Value:
    """Multiply complex numbers [count, rows, columns, 2] by ``exp(i angle)``."""
    axis, half = len(x.shape) - 1, (*x.shape[:-1], 1)
    cosine, sine = (r.constant(f(angles)[None, :, :, None].astype(x.dtype.numpy)) for f in (np.cos, np.sin))
    bounds = [[r.constant(np.array([n], np.int64)) for n in (start, start + 1, axis)] for start in (0, 1)]
    real, imaginary = (r.add("Slice", [x, *b], x.dtype, half) for b in bounds)
    parts = [
        r.like("Sub", [r.like("Mul", [real, cosine]), r.like("Mul", [imaginary, sine])]),
        r.like("Add", [r.like("Mul", [real, sine]), r.like("Mul", [imaginary, cosine])]),
    ]
    return r.add("Concat", parts, x.dtype, x.shape, {"axis": axis})


def _matrix(length: int, frequencies: int, parts: int, sign: int, scale: float) -> Array:
    """Compute the matrix [length * parts, frequencies * 2] from the parts of elements to those of frequencies."""
    # NOTE: the product of position and frequency is reduced modulo the length, so that large angles stay exact.
    turns = np.outer(np.arange(length), np.arange(frequencies)) % length
    angles = sign * 2 * np.pi / length * turns
    cosine, sine = np.cos(angles), np.sin(angles)
    rows = [np.stack([cosine, sine], axis=-1), np.stack([-sine, cosine], axis=-1)][:parts]
    return np.stack(rows, axis=1).reshape(length * parts, frequencies * 2) * scale
