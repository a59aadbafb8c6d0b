"""Which node of a network is wrong: each alone on the backend, on what the references give its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import check_arrays, check_outcome
from lite_conformance.judge.compare import Expected, Measured
from lite_conformance.judge.outcome import Failure, Outcome, Refused, Replay
from lite_conformance.judge.tolerances import GRAPH, NETWORK, Numerics
from lite_core.errors import LiteError
from lite_core.ir import Graph, Node, TensorType, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph

__all__ = ["Blame", "blame"]

_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Alone:
    """A node and the values it uses.

    Attributes:
        position: of the node in its graph.
        node: the node.
        used: what its inputs and the captures of its sub-graphs hold.
        constants: those of the whole graph.
    """

    position: int
    node: Node
    used: Mapping[Value, Array]
    constants: Mapping[Value, Array]

    def graph(self) -> tuple[Graph, list[Array]]:
        """A graph of this one node, whose inputs have the types of the arrays, and the arrays for them."""
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
        """The outputs by the references."""
        return evaluate_node(self.node, [None if v is None else self.used[v] for v in self.node.inputs], self.used)


Compute = Callable[[_Alone], "list[Array]"]


@dataclass(frozen=True, slots=True)
class Blame:
    """What was found out.

    Attributes:
        sentence: the first wrong node, or that none is wrong alone.
        table: the worst nodes, for the details of a failure.
        replay: the first wrong node alone, with its inputs.
    """

    sentence: str
    table: str
    replay: Replay | None = None


@dataclass(frozen=True, slots=True)
class _Finding:
    """How one node did alone."""

    position: int
    node: Node
    #: Its relative error; infinite where it failed altogether.
    error: float
    text: str
    wrong: bool


def blame(context: Context, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]) -> Blame:
    """Find out what makes a network wrong on the backend.

    Tensors live from their making to their last use, so that it takes no more memory than running the network.

    Args:
        context: the backend, and its allowance for the network.
        graph: as it ran, after the passes.
        inputs: an array for each input of the graph.
        expected: what the outputs of the whole should be.
    """
    examiner = _Examiner(context)
    _walk(graph, inputs, examiner)
    table = _table(examiner.findings, len(graph.nodes))
    first = next((f for f in examiner.findings if f.wrong), None)
    if first is not None:
        return Blame(f"the first wrong node is {_described(first.node)}: {first.text}", table, examiner.replay)
    why = _why(context, graph, inputs, expected)
    return Blame(f"every node is right when it runs alone on the reference's values; {why}", table)


def _why(context: Context, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]) -> str:
    """What to suspect when no node is wrong alone: whether one after another gives the wrong result, too."""
    try:
        outputs = _walk(graph, inputs, _OneByOne(context))
        measured = check_arrays(outputs, expected, NETWORK, context.allowance)[1]
    except (Failure, LiteError) as error:
        return f"node by node on the backend's own values it fails: {error}"
    if measured.wrong:
        return "node by node on the backend's own values the result is wrong as well: small errors add up"
    return "node by node on the backend's own values the result is right: suspect a fusion or a partition"


class _Examiner:
    """Gives the reference's results, and notes how the backend does on the same inputs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._truths = {t.definition.qualified_name: t.numerics.truth for t in all_tables()}
        self.findings: list[_Finding] = []
        self.replay: Replay | None = None

    def __call__(self, alone: _Alone) -> list[Array]:
        node, position = alone.node, alone.position
        single, given = alone.graph()
        numerics = replace(GRAPH, truth=self._truths.get(node.qualified_op, GRAPH.truth))
        try:
            outcome = self._examine(single, given, numerics)
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

    def _examine(self, single: Graph, given: Sequence[Array], numerics: Numerics) -> Outcome:
        actual = self._context.subject.compile(single).run(given)
        return check_outcome(single, given, actual, numerics, self._context.allowance)


class _OneByOne:
    """Gives the backend's results, the reference's where the backend refuses."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self, alone: _Alone) -> list[Array]:
        single, given = alone.graph()
        try:
            results = iter(self._context.subject.compile(single).run(given))
        except Refused:
            return alone.reference()
        # Nobody asks for what an output holds that is left out.
        return [np.empty(0) if v is None else next(results) for v in alone.node.outputs]


def _walk(graph: Graph, inputs: Sequence[Array], compute: Compute) -> list[Array]:
    """The outputs of a graph whose nodes are computed one after another by a function."""
    known: dict[Value, Array] = {**dict(zip(graph.inputs, inputs)), **graph.constants}
    last_use = {value: node for node in graph.nodes for value in node.used()}
    keep = {*graph.outputs, *graph.inputs, *graph.constants}
    for position, node in enumerate(graph.nodes):
        used = {v: known[v] for v in node.used()}
        results = compute(_Alone(position, node, used, graph.constants))
        known.update((v, a) for v, a in zip(node.outputs, results) if v is not None)
        for value in (*used, *(v for v in node.outputs if v is not None)):
            if last_use.get(value, node) is node and value not in keep:
                known.pop(value, None)
    return [known[v] for v in graph.outputs]


def _error(measured: Measured | None) -> float:
    """The root mean square error over the root mean square result."""
    return math.inf if measured is None else math.sqrt(measured.nmse)


def _described(node: Node) -> str:
    origin = f", from {node.origin}" if node.origin else ""
    return f"{node.qualified_op} {node.name!r}{origin}"


def _table(findings: Sequence[_Finding], count: int) -> str:
    worst = sorted(findings, key=lambda f: (-f.wrong, -f.error, f.position))[:_MOST_SHOWN]
    lines = [f"{len(findings)} of {count} nodes ran alone on the backend; the worst, with relative errors:"]
    for finding in worst:
        mark = "wrong" if finding.wrong else "right"
        lines.append(
            f"  {finding.error:9.3g} {mark}  node {finding.position}: {_described(finding.node)}; {finding.text}"
        )
    return "\n".join(lines)
