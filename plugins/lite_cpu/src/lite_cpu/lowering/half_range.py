"""The range of float16 in rewritten graphs: which values may be float16, and where numbers beyond 65504 are clipped.

Float16 holds no number above 65504, and a model of float32 has no reason to stay below. A sum that exceeds it would
become infinite, and its difference from another one NaN. So what is stored as float16 is clipped to the range before:
the largest numbers lose their size, but nothing becomes infinite. Results of operators that enlarge numbers without a
bound, such as exponentials and sums of squares, stay float32.
"""

from __future__ import annotations

from collections.abc import Container, Set
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, Value
from lite_cpu.lowering.elementwise import is_elementwise

__all__ = ["LARGEST", "clipped_values", "enlarges", "only_passes"]

#: The largest float16.
LARGEST = 65504.0

#: Operators whose results may be far larger than their inputs.
_ENLARGING = frozenset(
    {
        "Cosh", "CumProd", "CumSum", "Det", "Div", "Einsum", "Exp", "Pow", "Reciprocal", "ReduceL1", "ReduceL2",
        "ReduceProd", "ReduceSum", "ReduceSumSquare", "Sinh", "Tan",
    }
)  # fmt: skip

#: Operators whose results are no larger than the largest of their inputs.
_KEEPING_THE_RANGE = frozenset(
    {
        "AveragePool", "Cast", "Concat", "DepthToSpace", "Elu", "Expand", "Flatten", "Gather", "Gelu",
        "GlobalAveragePool", "GlobalMaxPool", "HardSwish", "Identity", "LeakyRelu", "Max", "MaxPool", "Mean", "Min",
        "Pad", "ReduceMax", "ReduceMean", "ReduceMin", "Relu", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze",
        "Tile", "Transpose", "Unsqueeze", "Where", "lite.Swish",
    }
)  # fmt: skip

#: Operators whose results are small whatever their inputs are. A normalized number of a row of n elements is at most
#: the root of n, times a scale.
_SMALL = frozenset(
    {
        "Erf", "GroupNormalization", "HardSigmoid", "InstanceNormalization", "LayerNormalization", "LpNormalization",
        "RMSNormalization", "Sigmoid", "Softmax", "Softsign", "Tanh",
    }
)  # fmt: skip


def enlarges(node: Node) -> bool:
    """Return True if the results of a node should stay float32."""
    return node.op in _ENLARGING


def only_passes(value: Value, node: Node, graph: Graph) -> bool:
    """Return True if a value goes only to one element-wise operator, which reads nothing else that the run computes.

    Both are computed by one kernel, which does not store the value.

    Args:
        value: a value.
        node: its only reader.
        graph: the graph of both.
    """
    return is_elementwise(node) and all(v is None or v is value or v in graph.constants for v in node.inputs)


def clipped_values(graph: Graph, narrow: Set[Value]) -> set[Value]:
    """Return those of the values of float16 that are clipped before they are stored.

    Args:
        graph: the graph; its nodes are in the order of computation.
        narrow: its values of float16.
    """
    clipped: set[Value] = set()
    in_range: set[Value] = set()
    for node in graph.nodes:
        keeps = _is_in_range(node, graph, in_range)
        for value in node.outputs:
            if value is not None and keeps:
                in_range.add(value)
            elif value in narrow:
                assert value is not None
                clipped.add(value)
                in_range.add(value)
    return clipped


def _is_in_range(node: Node, graph: Graph, in_range: Container[Value]) -> bool:
    """Return True if the results of a node are in the range of float16."""
    if node.qualified_op in _SMALL:
        return True
    if node.qualified_op == "Clip":
        bounds = [graph.constants.get(v) for v in node.inputs[1:3] if v is not None]
        return len(bounds) == 2 and all(bound is not None and _is_small(bound) for bound in bounds)
    if node.qualified_op not in _KEEPING_THE_RANGE:
        return False
    values = [v for v in node.inputs if v is not None and v.dtype.is_floating]
    return all(_is_small(graph.constants[v]) if v in graph.constants else v in in_range for v in values)


def _is_small(constant: np.ndarray[Any, Any]) -> bool:
    return bool(constant.size and np.abs(constant).max() <= LARGEST)
