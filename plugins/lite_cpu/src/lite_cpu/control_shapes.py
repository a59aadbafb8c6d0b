"""Shapes in the bodies of control nodes: which nodes can be steps of a program."""

from __future__ import annotations

from collections.abc import Iterable

from lite_core.errors import GraphError
from lite_core.ir import Graph, Node, SymbolicDim, Value
from lite_core.ops.infer import GraphInference

__all__ = [
    "fits",
    "has_known_shapes",
    "has_open_results",
    "invariant_nodes",
    "refuse_changing_shapes",
    "replaced_values",
    "unfit_nodes",
    "unread_inputs",
]


#: Operators that may find invalid indices, which are an error only if the loop has an iteration.
_MAY_FAIL = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "TensorScatter"})

#: Operators that are worth the memory of their results during the whole loop.
_COSTLY = frozenset({"Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})


def has_known_shapes(graph: Graph) -> bool:
    """Return True if every shape in a body is known; inputs that nothing reads do not matter."""
    return all(v.type.is_static for scope in graph.walk() for v in scope.defined() if v not in unread_inputs(scope))


def unread_inputs(graph: Graph) -> set[Value]:
    """Return the inputs of a body that it does not use: values that it replaces in each iteration."""
    used = {*graph.outputs, *(value for node in graph.nodes for value in node.used())} if graph.inputs else set()
    return set(graph.inputs) - used


def fits(graph: Graph, node: Node) -> bool:
    """Return True if a control node of a graph with known shapes can be steps of a program.

    One branch of If may have unknown shapes: because the condition is known, and the other branch is taken, or because
    it does not fit the shapes of the run, and must not be taken.
    """
    if any(value is not None and not value.type.is_static for value in node.outputs):
        return False
    unknown = [body for body in node.subgraphs if not has_known_shapes(body)]
    if not unknown:
        return True
    return node.op == "If" and len(unknown) == 1 and not _can_be_taken(graph, node, unknown[0])


def _can_be_taken(graph: Graph, node: Node, branch: Graph) -> bool:
    """Return True if a branch fits the shapes of the run, and the condition is unknown."""
    inference = GraphInference(branches_may_not_fit=True)
    for value in graph.inputs:
        inference.set_type(value, value.type)
    inference.run(graph)
    condition = node.inputs[0]
    if condition is not None and inference.value_of(condition) is not None:
        return False
    try:
        GraphInference(inference).run(branch)
    except GraphError:
        return False
    return True


def unfit_nodes(graph: Graph) -> list[Node]:
    """Return the nodes of a graph that cannot be steps of a program.

    These are control nodes that do not fit, see :func:`fits`, and nodes whose weights had to be known but are not, or
    that have such nodes in their bodies.
    """
    # Imported late: a restored program needs no lowering.
    from lite_cpu.lowering.registry import OPERATORS

    def has_unknown_weights(scope: Graph, node: Node) -> bool:
        for body in filter(has_known_shapes, node.subgraphs):  # nothing computes the others
            whole = Graph(nodes=body.nodes, constants={**scope.constants, **body.constants})
            if OPERATORS.data_dependent_nodes(whole) or any(has_unknown_weights(whole, n) for n in body.nodes):
                return True
        return False

    found = [n for n in graph.nodes if n.subgraphs and (not fits(graph, n) or has_unknown_weights(graph, n))]
    return [*found, *OPERATORS.data_dependent_nodes(graph)]


def replaced_values(node: Node) -> set[int]:
    """Return which carried values of a Loop have another shape, or rank, before it than after an iteration.

    This is possible for values that the body does not read. Paddle's loops carry a placeholder for each variable that
    only the body defines.
    """
    body = node.attributes["body"]
    assert isinstance(body, Graph)
    unread = unread_inputs(body)
    return {
        i
        for i, (inside, outside) in enumerate(zip(body.inputs[2:], node.outputs))
        if inside in unread and outside is not None and not outside.type.is_static
    }


def has_open_results(node: Node) -> bool:
    """Return True if the shapes of a Loop's results, but none in its body, depend on the number of iterations."""
    if not all(has_known_shapes(body) for body in node.subgraphs):
        return False
    count, replaced = len(node.inputs) - 2, replaced_values(node)
    finals = [v.type.is_static or i in replaced for i, v in enumerate(node.outputs[:count]) if v is not None]
    stacks = [value.type.shape for value in node.outputs[count:] if value is not None]
    is_open = bool(replaced) or any(shape is not None and not isinstance(shape[0], int) for shape in stacks)
    rows = [shape is not None and all(isinstance(d, int) for d in shape[1:]) for shape in stacks]
    return is_open and all(finals) and all(rows)


def invariant_nodes(nodes: Iterable[Node], fixed: set[Value]) -> list[Node]:
    """Return the nodes of a body that compute the same in each iteration; none if that costs little.

    Args:
        nodes: the nodes of the body.
        fixed: the values that are the same in each iteration; the results of the nodes are added.
    """
    own: list[Node] = []
    for node in nodes:
        if not node.subgraphs and fixed.issuperset(node.used()) and node.op not in _MAY_FAIL:
            own.append(node)
            fixed.update(value for value in node.outputs if value is not None)
    return own if any(node.op in _COSTLY for node in own) else []


def refuse_changing_shapes(node: Node) -> str | None:
    """Return the reason why the body of a loop cannot be steps of a program, or None.

    Its shapes must follow from those around it: then they are the same in each iteration. In a Loop they may follow
    from sizes that grow by the same number in each iteration, too; see :mod:`lite_cpu.iteration`.
    """
    outside = _symbols([v for v in node.inputs if v is not None], *[body.captured() for body in node.subgraphs])
    if node.op == "Loop":
        outside |= _growing_symbols(node, outside)
    for body in node.subgraphs:
        for value in (v for scope in body.walk() for v in scope.defined() if v not in unread_inputs(scope)):
            if value.type.shape is None:
                return f"the rank of {value.name!r} in its body is unknown"
            if not _symbols([value]) <= outside:
                return f"the shape of {value.name!r} in its body may change from one iteration to the next"
    return None


def _growing_symbols(node: Node, outside: set[str]) -> set[str]:
    """Return the symbols of carried sizes that grow by the same number in each iteration; none if others change."""
    body = node.attributes["body"]
    assert isinstance(body, Graph)
    found: set[str] = set()
    for value, after in zip(body.inputs[2:], body.outputs[1:]):
        if value in unread_inputs(body):
            continue
        if value.type.shape is None or after.type.shape is None or len(value.type.shape) != len(after.type.shape):
            return set()
        for old, new in zip(value.type.shape, after.type.shape):
            step = new - old
            if step == 0:
                continue
            is_fixed = step > 0 if isinstance(step, int) else step.symbols <= outside
            if not is_fixed or not isinstance(old, SymbolicDim):
                return set()
            found |= old.symbols
    return found


def _symbols(*values: Iterable[Value]) -> set[str]:
    """Return the names of the symbols in the shapes of values."""
    dims = [d for several in values for v in several for d in v.type.shape or () if isinstance(d, SymbolicDim)]
    return {symbol for dim in dims for symbol in dim.symbols}
