"""Running one operator in a test: its reference, and the results of inference checked against it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import Node, SymbolicDim, TensorType, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import GraphInference

Array = np.ndarray[Any, Any]


def make_node(op: str, types: list[TensorType | None], outputs: int, domain: str = "", **attributes: Any) -> Node:
    """Return a node on inputs of these types."""
    inputs = [None if t is None else Value(f"input_{i}", t) for i, t in enumerate(types)]
    placeholders = [Value(f"output_{i}", TensorType.of_array(np.zeros(0, np.float32))) for i in range(outputs)]
    return Node(op, inputs, placeholders, attributes, domain=domain, name="tested")


def infer_op(
    op: str, types: list[TensorType | None], outputs: int = 1, domain: str = "", **attributes: Any
) -> list[str]:
    """Return the inferred output types as text. Raises GraphError as a graph would."""
    node = make_node(op, types, outputs, domain, **attributes)
    problems = list(ops.get(node).check(node))
    assert not problems, problems
    return [str(t) for t in GraphInference().infer(node)[:outputs]]


def run_op(op: str, inputs: list[Array | None], outputs: int = 1, domain: str = "", **attributes: Any) -> list[Array]:
    """Return the outputs of the reference; check them against shapes inferred from known and unknown input shapes."""
    types = [None if a is None else TensorType.of_array(a) for a in inputs]
    results = evaluate_node(make_node(op, types, outputs, domain, **attributes), inputs)[:outputs]
    bindings = {f"d{i}_{k}": n for i, a in enumerate(inputs) if a is not None for k, n in enumerate(a.shape)}
    symbolic = [
        None if t is None else t.with_shape(tuple(SymbolicDim.named(f"d{i}_{k}") for k in range(t.rank or 0)))
        for i, t in enumerate(types)
    ]
    unranked = [None if t is None else t.with_shape(None) for t in types]
    for given in (types, symbolic, unranked):
        node = make_node(op, given, outputs, domain, **attributes)
        for index, (inferred, result) in enumerate(zip(GraphInference().infer(node), results)):
            assert inferred.dtype.numpy == result.dtype, f"output {index}: {inferred}, is {result.dtype}"
            assert inferred.accepts(result.shape), f"output {index}: {inferred}, is {result.shape}"
            for dim, size in zip(inferred.shape or (), result.shape):
                if isinstance(dim, SymbolicDim) and dim.symbols <= bindings.keys():
                    assert dim.evaluate(bindings) == size, f"output {index}: {inferred}, is {result.shape}"
    return results
