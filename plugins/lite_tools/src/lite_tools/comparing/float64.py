"""The noise floor: how far results may be from exact ones only because numbers are rounded.

A part of a network is computed in float64 from the values that it read, by the operators' references. The same is done
on inputs and weights that are changed at random by up to one unit in the last place of the element type in which the
part was computed: how much the result moves is what rounding alone can do, whatever the operator. A long sum is rounded
once for each of its terms: errors that add like a random walk grow with the square root of the number of terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import LiteError
from lite_core.ir import DType, Node
from lite_core.ops.evaluate import evaluate_node
from lite_tools.comparing.regions import Region

__all__ = ["Exact", "exact_result"]

Array = np.ndarray[Any, Any]

#: Attributes that name the element type of a result.
_TYPE_ATTRIBUTES = ("to", "dtype")
#: Inputs whose element type the opset fixes: they stay as they are.
_FIXED_INPUTS = {("Resize", 1), ("Resize", 2), ("Upsample", 1)}
_PERTURBED_RUNS = 2
#: Operators that add products of elements of their first two inputs.
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"})
#: Functions up to 1 that libraries compute with an absolute error, however small the results are.
_UP_TO_ONE = frozenset({"Sigmoid", "HardSigmoid", "Tanh", "Softmax", "Erf", "Sin", "Cos", "LSTM", "GRU", "RNN"})
#: Square root of the number of terms up to which the order of a sum hardly matters.
_SHORT_SUM = 8.0
_NARROW = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


class Exact(NamedTuple):
    """A result in float64, or in its own type if it is not a floating-point number.

    Attributes:
        array: the result.
        floor: greatest change of an element that rounding explains; 0 for results that are no floats.
        stable: True for elements that the rounding did not change; None for floating-point numbers.
    """

    array: Array
    floor: float
    stable: Array | None


def exact_result(
    region: Region, arrays: Mapping[str, Array], precision: str = "float32", seed: int = 0
) -> Exact | None:
    """Compute a region's output in float64, and what rounding does to it; None if the references have no float64.

    Args:
        region: the nodes.
        arrays: the true inputs of the region, by name.
        precision: the element type whose rounding counts: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        seed: seed of the random changes.
    """
    if any(True for node in region.nodes for _ in node.subgraphs):
        return None
    exact = _evaluate(region, arrays, None, 0.0)
    if exact is None:
        return None
    generator = np.random.default_rng(seed)
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(precision, 2.0**-23)
    floor, stable = 0.0, None if exact.dtype.kind in "fV" else np.ones(exact.shape, bool)
    for _ in range(_PERTURBED_RUNS):
        moved = _evaluate(region, arrays, generator, unit)
        if moved is None or moved.shape != exact.shape:
            return Exact(exact, np.inf, None if stable is None else np.zeros(exact.shape, bool))
        if stable is not None:
            stable &= moved == exact
        elif exact.size:
            with np.errstate(invalid="ignore"):
                gaps = np.abs(moved - exact)
            floor = max(floor, float(np.nanmax(np.where(np.isfinite(gaps), gaps, 0.0))))
    if stable is None and exact.size:
        finite = exact[np.isfinite(exact)]
        scale = float(np.abs(finite).max()) if finite.size else 0.0
        if any(node.op in _UP_TO_ONE for node in region.nodes):
            scale = max(scale, 1.0)
        floor = max(floor, unit / 2 * scale)
    return Exact(exact, floor * max(1.0, sqrt(_longest_sum(region, arrays, exact)) / _SHORT_SUM), stable)


def _longest_sum(region: Region, arrays: Mapping[str, Array], result: Array) -> float:
    """Return about how many terms the longest sum of a region has: of products, or of the elements of an input."""
    longest = 1.0
    for node in region.nodes:
        first = node.inputs[0] if node.inputs else None
        if first is None:
            continue
        other = region.constants.get(node.inputs[1].name) if len(node.inputs) > 1 and node.inputs[1] else None
        if node.op in _PRODUCTS and other is not None and other.ndim:
            longest = max(longest, other.size / max(1, min(other.shape)))
        elif first.name in arrays and result.size:
            longest = max(longest, arrays[first.name].size / result.size)
    return longest


def _evaluate(
    region: Region, arrays: Mapping[str, Array], generator: np.random.Generator | None, unit: float
) -> Array | None:
    """Evaluate a region in float64; with a generator, on inputs and constants that are changed by up to ``unit``."""
    known: dict[str, Array] = {}

    def read(node: Node, position: int) -> Array | None:
        value = node.inputs[position]
        if value is None or value.name in known:
            return None if value is None else known[value.name]
        array = region.constants.get(value.name)
        array = arrays[value.name] if array is None else array
        if (node.op, position) in _FIXED_INPUTS or value.dtype not in _NARROW:
            return array
        wide = array.astype(np.float64)
        if generator is not None:
            wide *= 1 + unit * generator.uniform(-1, 1, wide.shape)
        known[value.name] = wide
        return wide

    try:
        for node in region.nodes:
            inputs = [read(node, position) for position in range(len(node.inputs))]
            for value, result in zip(node.outputs, evaluate_node(_widened(node), inputs)):
                if value is not None:
                    known[value.name] = result
    except LiteError:  # the operator takes no float64, or its inputs have different types then
        return None
    return known[region.output.name]


def _widened(node: Node) -> Node:
    """Return the node with float64 wherever an attribute names a narrower floating-point type."""
    changed = {name: DType.FLOAT64 for name in _TYPE_ATTRIBUTES if node.attributes.get(name) in _NARROW}
    return node.copy_with(node.inputs, node.outputs, {**node.attributes, **changed}) if changed else node
