"""Bounds for the error of products whose operands are rounded: Conv, MatMul and other operators that sum products.

Let ``y = sum x_i w_i`` with n terms, and let each operand be rounded to nearest with an error of at most its half
step, ``a_i`` for x and ``b_i`` for w. Three errors add up:

*Operands.* The error is ``sum (x_i d_i + w_i e_i + d_i e_i)`` with ``|e_i| <= a_i``, ``|d_i| <= b_i``, so it is at most

    worst = sum (|x_i| + a_i) (|w_i| + b_i) - sum |x_i| |w_i|

which for floating types is the known ``(2u + u^2) |x|.|y|`` (Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, section 3.1), and for int8 half a scale for each operand. Errors of rounding to nearest have both signs:
if they are independent with mean zero, Hoeffding's inequality (Probability inequalities for sums of bounded random
variables, 1963, theorem 2) gives

    P(|error| > L sigma) <= 2 exp(-L^2 / 2),   sigma^2 = sum (x_i^2 + a_i^2) (w_i^2 + b_i^2) - sum x_i^2 w_i^2

with L = 7: less than 5e-11 for each element. The smaller of the two bounds holds. It grows with the square root of n,
so that truncated operands, whose errors have one sign, exceed it from about a hundred terms of one sign on.

*Sums.* In float32, ``min(n, L sqrt(n)) u sum (|x_i| + a_i)(|w_i| + b_i)`` with ``u = 2^-24`` (Higham and Mary, A new
approach to probabilistic rounding error analysis, 2019, theorem 2.4). In float16 only the worst case ``n u`` counts,
because long sums in float16 stagnate, and stagnation is no random error.

*Result.* If every element of the result is a number of the low type, it may have been rounded to it: half a step.

All sums over terms are computed by the operator's reference on other operands: magnitudes, squares, ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_conformance.judge.compare import Array
from lite_conformance.judge.precision import Precision, half_steps, round_to_nearest
from lite_core.ir import DType, Graph, Node
from lite_core.ops.evaluate import evaluate_node

__all__ = [
    "CONFIDENCE",
    "PRODUCTS",
    "ProductError",
    "deviation_of_sums",
    "operand_positions",
    "product_error",
    "scale_axis",
]

#: Standard deviations: an element of a correct result exceeds them with a probability below 5e-11.
CONFIDENCE = 7.0
#: The operators that sum products, and the positions of the factors among their inputs. Other inputs are not rounded,
#: except the addend of Gemm and the bias of convolutions, at the next position.
PRODUCTS: dict[str, tuple[int, ...]] = {
    "Conv": (0, 1),
    "ConvTranspose": (0, 1),
    "DeformConv": (0, 1),
    "Einsum": (0, 1, 2, 3, 4, 5, 6, 7),
    "Gemm": (0, 1),
    "MatMul": (0, 1),
}
_ADDENDS = {"Conv": 2, "ConvTranspose": 2, "DeformConv": 3, "Gemm": 2}
_UNIT_ROUNDOFF = {DType.FLOAT32: 2.0**-24, DType.FLOAT16: 2.0**-11}


@dataclass(frozen=True, slots=True)
class ProductError:
    """The error that a precision level allows in a result.

    Attributes:
        limits: the largest error of each element, infinite where an operand is beyond the range of the type.
        candidates: exact results of rounding all factors, only constants, or only run-time tensors to nearest:
            results as exact as float32 around one of them are right, whatever the distribution of the errors.
    """

    limits: Array
    candidates: Sequence[Array] = ()


def operand_positions(node: Node) -> tuple[int, ...]:
    """Return the positions of the factors among a node's inputs; none for other operators than products."""
    positions = PRODUCTS.get(node.op, ()) if not node.domain else ()
    found = tuple(i for i in positions if i < len(node.inputs) and node.inputs[i] is not None)
    return found if len(found) > 1 else ()


def scale_axis(node: Node, position: int, constant: bool, precision: Precision) -> int | None:
    """Return the axis of an operand whose positions have separate int8 scales, None for one scale."""
    if position != 1 or not constant or not precision.per_channel:
        return None
    if node.op in ("Conv", "DeformConv"):
        return 0
    if node.op == "ConvTranspose":
        return 1
    if node.op == "Gemm":
        return 0 if node.attributes.get("transB") else 1
    return -1 if node.op == "MatMul" else None


def product_error(
    graph: Graph, inputs: Sequence[Array], precision: Precision, worst_case: bool = False
) -> ProductError:
    """Return the error allowed in the result of a graph of one product, in addition to that of float32.

    Args:
        graph: a graph of one node, see :func:`operand_positions`.
        inputs: an array for each of its inputs.
        precision: the precision level.
        worst_case: use only the bound that holds for every distribution of the errors.
    """
    node = graph.nodes[0]
    known = {**graph.constants, **dict(zip(graph.inputs, inputs))}
    arrays = [None if v is None else _wide(known[v]) for v in node.inputs]
    factors = operand_positions(node)
    constant = [node.inputs[i] in graph.constants for i in range(len(arrays))]
    steps: dict[int, Array] = {}
    for i in factors:
        steps[i] = half_steps(_given(arrays, i), precision.operands, scale_axis(node, i, constant[i], precision))
    addend = _ADDENDS.get(node.op, len(arrays))
    if addend < len(arrays) and arrays[addend] is not None:
        steps[addend] = _addend_steps(_given(arrays, addend), [steps[i] for i in factors], precision)
    with np.errstate(all="ignore"):
        limits = _limits(node, arrays, steps, factors, precision, worst_case)
        candidates = [] if worst_case else _candidates(node, arrays, factors, constant, precision)
    return ProductError(limits, candidates)


def _limits(
    node: Node,
    arrays: Sequence[Array | None],
    steps: dict[int, Array],
    factors: Sequence[int],
    precision: Precision,
    worst_case: bool,
) -> Array:
    size = [np.abs(a) if i in steps and a is not None else a for i, a in enumerate(arrays)]
    grown = [s + steps[i] if i in steps and s is not None else s for i, s in enumerate(size)]
    magnitudes = _evaluate(_with_factors(node, np.abs), grown)
    limits = magnitudes - _evaluate(_with_factors(node, np.abs), size)
    if not worst_case:
        squares = [s * s if i in steps and s is not None else s for i, s in enumerate(size)]
        more = [s + steps[i] ** 2 if i in steps and s is not None else s for i, s in enumerate(squares)]
        squared = _with_factors(node, np.square)
        variance = _evaluate(squared, more) - _evaluate(squared, squares)
        limits = np.fmin(limits, CONFIDENCE * np.sqrt(np.maximum(variance, 0)))
    count = _terms(node, arrays, factors, steps) + 1
    unit = _UNIT_ROUNDOFF[precision.sums]
    share = count if worst_case or precision.sums.is_half else np.minimum(count, CONFIDENCE * np.sqrt(count))
    limits = np.maximum(limits, 0) + np.minimum(share * unit, 1.0) * magnitudes
    if precision.sums.is_half:
        limits = np.where(magnitudes > np.finfo(np.float16).max, np.inf, limits)
    return np.where(np.isnan(limits), _unknown(limits, steps), limits)


def _terms(node: Node, arrays: Sequence[Array | None], factors: Sequence[int], rounded: Collection[int]) -> Array:
    """Return the number of terms of each sum, without the addend."""
    ones = [a if a is None or i not in rounded else np.full_like(a, i in factors) for i, a in enumerate(arrays)]
    return np.maximum(_evaluate(_with_factors(node, np.ones_like), ones), 0)


def deviation_of_sums(node: Node, arrays: Sequence[Array | None]) -> Array:
    """Return the standard deviation of the error of sums whose terms are added one by one in float16.

    Let n terms have the sum S and squares with the sum Q. After k of them, the square of the partial sum is about
    ``(k S / n)^2 + k Q / n``. Rounding it at random has a standard deviation of about ``u / sqrt(3)`` times the partial
    sum; for all additions together that is ``u sqrt(n (S^2 / 9 + Q / 6))``.

    Args:
        node: a product, see :func:`operand_positions`.
        arrays: its inputs.
    """
    factors = operand_positions(node)
    rounded = {*factors, _ADDENDS.get(node.op, len(arrays))}
    wide = [None if a is None else _wide(a) for a in arrays]
    squares = [a if a is None or i not in rounded else a * a for i, a in enumerate(wide)]
    total, squared = _evaluate(node, wide), _evaluate(_with_factors(node, np.square), squares)
    count = _terms(node, wide, factors, rounded)
    return np.asarray(_UNIT_ROUNDOFF[DType.FLOAT16] * np.sqrt(count * (total * total / 9 + squared / 6)))


def _unknown(limits: Array, steps: dict[int, Array]) -> Array:
    """Return the limits of results that contain an infinity or a NaN: 0, or anything if an operand was out of range."""
    return np.full(limits.shape, np.inf if any(np.isinf(s).any() for s in steps.values()) else 0.0)


def _candidates(
    node: Node, arrays: Sequence[Array | None], factors: Sequence[int], constant: Sequence[bool], precision: Precision
) -> list[Array]:
    choices = {tuple(factors), tuple(i for i in factors if constant[i]), tuple(i for i in factors if not constant[i])}
    found = []
    for chosen in sorted(choices - {()}):
        rounded = list(arrays)
        for i in chosen:
            axis = scale_axis(node, i, constant[i], precision)
            rounded[i] = round_to_nearest(_given(arrays, i), precision.operands, axis)
        found.append(_evaluate(node, rounded))
    return found


def _addend_steps(addend: Array, factor_steps: Sequence[Array], precision: Precision) -> Array:
    """Return the half steps of a bias: as those of the factors, or one unit of the int32 sums of int8 products."""
    if precision.operands.is_half:
        return half_steps(addend, precision.operands)
    unit = np.prod([2 * s.max() if s.size else 0.0 for s in factor_steps])
    return np.full(addend.shape, unit / 2)


def _with_factors(node: Node, change: Any) -> Node:
    """Return the node with the factors of Gemm changed by a function."""
    if node.op != "Gemm":
        return node
    factors = {key: float(change(node.attributes.get(key, 1.0))) for key in ("alpha", "beta")}
    return Node(node.op, node.inputs, node.outputs, {**node.attributes, **factors}, name=node.name)


def _evaluate(node: Node, arrays: Sequence[Array | None]) -> Array:
    return np.asarray(evaluate_node(node, arrays)[0], np.float64)


def _given(arrays: Sequence[Array | None], position: int) -> Array:
    array = arrays[position]
    assert array is not None
    return array


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if DType.of(array.dtype).is_floating else array
