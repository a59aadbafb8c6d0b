"""Evaluation of nodes and graphs with the operators' NumPy references, which define the opset's semantics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from lite_core.errors import ExecutionError, GraphError, LiteError, RunTimeoutError
from lite_core.forking import undivided
from lite_core.ir import Graph, Node, TensorType, Value
from lite_core.log import tracked
from lite_core.ops.infer import GraphInference
from lite_core.ops.inference import Inference
from lite_core.ops.registry import OpDef, package_of

__all__ = ["evaluate_graph", "evaluate_node", "evaluate_op"]

Array = np.ndarray[Any, Any]
RunGraph = Callable[[Graph, Sequence[Array]], list[Array]]


def evaluate_graph(
    graph: Graph,
    inputs: Sequence[Array],
    outer: Mapping[Value, Array] | None = None,
    observe: Callable[[Node, list[Array]], None] | None = None,
    starts: Callable[[Node], None] | None = None,
) -> list[Array]:
    """Run a graph with the references.

    Args:
        graph: the graph to run.
        inputs: one array for each graph input, in order.
        outer: values of enclosing graphs that this one captures.
        observe: called with each node and its outputs, for tracing; also with those in sub-graphs, each time they run.
        starts: called with each node before it runs.

    Returns:
        One array for each graph output. They may share memory with inputs or constants.
    """

    def run_observed(body: Graph, arrays: Sequence[Array]) -> list[Array]:
        return evaluate_graph(body, arrays, known, observe, starts)

    known: dict[Value, Array] = dict(outer or {})
    known.update(zip(graph.inputs, inputs))
    known.update(graph.constants)
    last_use = {value: node for node in graph.nodes for value in node.used()}
    keep = {*graph.outputs, *graph.inputs, *graph.constants, *(outer or {})}
    for node in tracked(graph.nodes, "running nodes by the references"):
        arrays = [None if v is None else known[v] for v in node.inputs]
        if starts is not None:
            starts(node)
        results = evaluate_node(node, arrays, known, run_observed if observe or starts else None)
        if observe is not None:
            observe(node, results)
        known.update((v, array) for v, array in zip(node.outputs, results) if v is not None)
        for value in (*node.used(), *(v for v in node.outputs if v is not None)):
            if last_use.get(value, node) is node and value not in keep:
                known.pop(value, None)
    return [known[v] for v in graph.outputs]


def evaluate_node(
    node: Node,
    inputs: Sequence[Array | None],
    scope: Mapping[Value, Array] | None = None,
    run_graph: RunGraph | None = None,
) -> list[Array]:
    """Run one node with its operator's reference, which receives read-only views of the inputs.

    Args:
        node: the node.
        inputs: an array for each input, None for one that is left out.
        scope: values that the node's sub-graphs may capture.
        run_graph: runs the node's sub-graphs; by default with the references.

    Raises:
        LiteError: the inputs do not fit the operator or the reference failed; names the node.
    """
    from lite_core import ops

    def run_with_references(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        return evaluate_graph(graph, arrays, scope)

    def infer_outputs() -> list[TensorType]:
        inference = GraphInference()
        captured = {v: scope[v] for v in node.captured()} if scope else {}
        inference.add_arrays([*captured.items(), *zip(node.inputs, inputs)])
        return inference.infer(node)

    definition = ops.get(node)
    arrays = [None if a is None else _read_only(a) for a in inputs]
    attributes = definition.attributes_of(node)
    try:
        run = run_graph or run_with_references
        return evaluate_op(definition, arrays, attributes, len(node.outputs), run, infer_outputs)
    except LiteError as error:
        kind = next((k for k in (GraphError, RunTimeoutError) if isinstance(error, k)), ExecutionError)
        fault = kind(f"{node.describe()}: {error}")
        own = package_of(node.domain) if node.domain not in ("", "lite") and kind is ExecutionError else ""
        fault.source = error.source or own
        raise fault from error
    except (Exception, SystemExit) as error:
        who = f"the reference in {package_of(node.domain)}"
        fault = ExecutionError(f"{node.describe()}: {who} failed with {type(error).__name__}: {error}")
        fault.source = package_of(node.domain)
        raise fault from error


def evaluate_op(
    definition: OpDef,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    n_outputs: int = 1,
    run_graph: RunGraph | None = None,
    infer_outputs: Callable[[], list[TensorType]] | None = None,
) -> list[Array]:
    """Run an operator's reference on arrays; the results have the element types of the signature."""
    types = [None if a is None else TensorType.of_array(a) for a in inputs]
    if len(inputs) < definition.min_inputs:
        raise GraphError(f"{definition.qualified_name} needs {definition.min_inputs} inputs, has {len(inputs)}")
    outputs = definition.infer_types(
        Inference(types, attributes, n_outputs, inputs, _declared_dtypes if run_graph else None)
    )
    arguments = [_widened(a) for a in inputs]
    arguments += [None] * (definition.fixed_inputs - len(arguments))
    extra: dict[str, Any] = {}
    if "n_outputs" in definition.extra_keywords:
        extra["n_outputs"] = n_outputs
    if "run_graph" in definition.extra_keywords:
        extra["run_graph"] = run_graph
    if "infer_outputs" in definition.extra_keywords:
        extra["infer_outputs"] = infer_outputs
    # NumPy's matrix products hold locks. A loop does not: its body may run for hours.
    is_loop = "run_graph" in definition.extra_keywords
    with nullcontext() if is_loop else undivided(), np.errstate(all="ignore"):  # NaN and Inf are valid results
        results = definition.reference(*arguments, **attributes, **extra)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if definition.domain not in ("", "lite"):
            _check_results(definition, results, outputs[:n_outputs])
        return [np.asarray(r).astype(t.dtype.numpy, copy=False) for r, t in zip(results, outputs)]


def _check_results(definition: OpDef, results: Sequence[object], outputs: Sequence[TensorType]) -> None:
    """Raise ExecutionError if the results of a plugin's reference are not what its inference promises."""
    who = f"the reference of {definition.qualified_name} in {package_of(definition.domain)}"
    if not len(outputs) <= len(results) <= len(definition.outputs) and not definition.outputs[-1].variadic:
        raise ExecutionError(f"{who} returned {len(results)} results, expected {len(outputs)}")
    for result, expected in zip(results, outputs):
        if not isinstance(result, (np.ndarray, np.generic)):
            raise ExecutionError(f"{who} returned {type(result).__name__}, expected an array of {expected}")
        if not expected.accepts(result.shape):
            found = f"{result.dtype}{[*result.shape]}"
            raise ExecutionError(f"{who} returned {found}, but its inference promises {expected}")


def _declared_dtypes(graph: Graph, inputs: Sequence[TensorType], values: Sequence[Any]) -> list[TensorType]:
    # The bodies of If and Loop run right after this, with real arrays. Only the element types matter here.
    return [TensorType(v.type.dtype, None) for v in graph.outputs]


def _read_only(array: Array) -> Array:
    """Return a read-only view, so that a reference cannot change constants or the caller's arrays."""
    view = np.asarray(array)[...]
    view.flags.writeable = False
    return view


def _widened(array: Array | None) -> Array | None:
    """Convert float16 and bfloat16 to float32, because references compute with at least single precision."""
    if array is None or array.dtype.itemsize != 2 or array.dtype.kind not in "fV":
        return array
    return array.astype(np.float32)
