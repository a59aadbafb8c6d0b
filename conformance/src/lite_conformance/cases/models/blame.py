"""Finding the wrong node of a network: runs of each node alone on the backend, on inputs computed by the references."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.plugins.brought import every_table
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import check_expected, check_outcome
from lite_conformance.judge.compare import Expected, Measured
from lite_conformance.judge.outcome import Failure, Outcome, Refused, Replay
from lite_conformance.judge.tolerances import GRAPH, NETWORK, Numerics
from lite_core.errors import LiteError
from lite_core.ir import Graph, Node, TensorType, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph

__all__ = ["Blame", "blame"]

_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _SingleNode:
    """A node and the values it uses.

    Attributes:
        position: position of the node in its graph.
        node: the node.
        used: the arrays of its inputs and of the values that its sub-graphs capture.
        constants: the constants of the whole graph.
    """

    position: int
    node: Node
    used: Mapping[Value, Array]
    constants: Mapping[Value, Array]

    def graph(self) -> tuple[Graph, list[Array]]:
        """Return a graph of this one node, with inputs of the arrays' types, and the arrays for the inputs."""
        constants = {v: a for v, a in self.used.items() if v in self.constants}
        inputs = [v for v in self.used if v not in constants]
        outputs = [v for v in self.node.outputs if v is not None]
        graph = Graph(f"only {self.node.name}", inputs=inputs, outputs=outputs, nodes=[self.node], constants=constants)
        graph = graph.copy()
        for value, original in zip(graph.inputs, inputs):
            value.type = TensorType.of_array(self.used[original])
        infer_graph(graph)
        return graph, [self.used[v] for v in inputs]

    def reference(self) -> list[Array]:
        """Compute the outputs by the references."""
        return evaluate_node(self.node, [None if v is None else self.used[v] for v in self.node.inputs], self.used)


Compute = Callable[[_SingleNode], "list[Array]"]


@dataclass(frozen=True, slots=True)
class Blame:
    """The result of the search for a wrong node.

    Attributes:
        sentence: names the first wrong node, or says that no node is wrong alone.
        table: the nodes with the largest errors, for the details of a failure.
        replay: the first wrong node alone, with its inputs.
    """

    sentence: str
    table: str
    replay: Replay | None = None


@dataclass(frozen=True, slots=True)
class _Finding:
    """The result of running one node alone."""

    position: int
    node: Node
    #: Its relative error; infinite if the run failed.
    error: float
    text: str
    wrong: bool


def blame(context: Context, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]) -> Blame:
    """Find the cause of wrong outputs of a network.

    Tensors are freed after their last use, so that this takes no more memory than running the network.

    Args:
        context: the backend, and its allowance for the network.
        graph: the graph that ran, after the passes.
        inputs: an array for each input of the graph.
        expected: the expected outputs of the graph.
    """
    examiner = _Examiner(context)
    _evaluate(graph, inputs, examiner)
    table = _table(examiner.findings, len(graph.nodes))
    first = next((f for f in examiner.findings if f.wrong), None)
    if first is not None:
        return Blame(f"the first wrong node is {_described(first.node)}: {first.text}", table, examiner.replay)
    diagnosis = _diagnose(context, graph, inputs, expected)
    return Blame(f"every node is right when it runs alone on the reference's values; {diagnosis}", table)


def _diagnose(context: Context, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]) -> str:
    """Return the suspected cause if no node is wrong alone, found by running the nodes one after another."""
    try:
        outputs = _evaluate(graph, inputs, _NodeByNode(context))
    except (Failure, LiteError) as error:
        return f"node by node on the backend's own values it fails: {error}"
    try:
        check_expected(graph, inputs, outputs, expected, NETWORK, context.allowance)
    except Failure:
        return "node by node on the backend's own values the result is wrong as well: small errors add up"
    return "node by node on the backend's own values the result is right: suspect a fusion or a partition"


class _Examiner:
    """Evaluator of nodes by the references, which records the backend's errors on the same inputs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._truths = {t.definition.qualified_name: t.numerics.truth for t in every_table()}
        self.findings: list[_Finding] = []
        self.replay: Replay | None = None

    def __call__(self, alone: _SingleNode) -> list[Array]:
        node, position = alone.node, alone.position
        graph, inputs = alone.graph()
        numerics = replace(GRAPH, truth=self._truths.get(node.qualified_op, GRAPH.truth))
        try:
            outcome = self._examine(graph, inputs, numerics)
        except Refused:
            pass
        except Failure as failure:
            if self.replay is None:
                self.replay = failure.replay
            self.findings.append(_Finding(position, node, _error(failure.measured), failure.reason, True))
        else:
            text = outcome.measured.worst if outcome.measured else ""
            self.findings.append(_Finding(position, node, _error(outcome.measured), text, False))
        return alone.reference()

    def _examine(self, graph: Graph, inputs: Sequence[Array], numerics: Numerics) -> Outcome:
        actual = self._context.subject.compile(graph).run(inputs)
        return check_outcome(graph, inputs, actual, numerics, self._context.allowance)


class _NodeByNode:
    """Evaluator of nodes on the backend; nodes that it refuses are computed by the references."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self, alone: _SingleNode) -> list[Array]:
        graph, inputs = alone.graph()
        try:
            results = iter(self._context.subject.compile(graph).run(inputs))
        except Refused:
            return alone.reference()
        # Omitted outputs get an empty array, which is not used.
        return [np.empty(0) if v is None else next(results) for v in alone.node.outputs]


def _evaluate(graph: Graph, inputs: Sequence[Array], compute: Compute) -> list[Array]:
    """Return the outputs of a graph whose nodes a function computes one after another."""
    known: dict[Value, Array] = {**dict(zip(graph.inputs, inputs)), **graph.constants}
    last_use = {value: node for node in graph.nodes for value in node.used()}
    keep = {*graph.outputs, *graph.inputs, *graph.constants}
    for position, node in enumerate(graph.nodes):
        used = {v: known[v] for v in node.used()}
        results = compute(_SingleNode(position, node, used, graph.constants))
        known.update((v, a) for v, a in zip(node.outputs, results) if v is not None)
        for value in (*used, *(v for v in node.outputs if v is not None)):
            if last_use.get(value, node) is node and value not in keep:
                known.pop(value, None)
    return [known[v] for v in graph.outputs]


def _error(measured: Measured | None) -> float:
    """Return the root mean square error divided by the root mean square of the expected values."""
    return math.inf if measured is None else math.sqrt(measured.nmse)


def _described(node: Node) -> str:
    origin = f", from {node.origin}" if node.origin else ""
    return f"{node.qualified_op} {node.name!r}{origin}"


def _table(findings: Sequence[_Finding], count: int) -> str:
    worst = sorted(findings, key=lambda f: (-f.wrong, -f.error, f.position))[:_MAX_SHOWN]
    lines = [f"{len(findings)} of {count} nodes ran alone on the backend; the worst, with relative errors:"]
    for finding in worst:
        mark = "wrong" if finding.wrong else "right"
        lines.append(
            f"  {finding.error:9.3g} {mark}  node {finding.position}: {_described(finding.node)}; {finding.text}"
        )
    return "\n".join(lines)
