"""A graph of independent nodes, which has several inputs, constants and outputs, and the check of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lite_conformance.cases.supported import supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.checks import Allowance, check_expected
from lite_conformance.judge.compare import Expected
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Refused
from lite_conformance.judge.tolerances import GRAPH, Numerics
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph

__all__ = ["SideBySide", "weighted_graphs"]

# Operators with a constant as second operand; most backends support one of them. Shapes of the input and constant.
_WEIGHTED = {"MatMul": ((3, 6), (6, 6)), "Add": ((3, 6), (3, 6)), "Mul": ((3, 6), (3, 6)), "Sub": ((3, 6), (3, 6))}


class _Part(NamedTuple):
    """One node: its own graph, the inputs of that, their expected results and the required accuracy."""

    label: str
    graph: Graph
    inputs: list[Array]
    expected: list[Expected]
    numerics: Numerics


class SideBySide:
    """A graph in which each operator that the backend supports (of a few) occurs twice, with its own inputs.

    Two nodes of one operator differ only in their inputs and constants. Graphs for different seeds do, too.

    Attributes:
        graph: the graph.
        inputs: its inputs.

    Raises:
        Refused: the backend supports no operator.
    """

    def __init__(self, subject: Subject, seed: int) -> None:
        self._parts = list(_parts(subject, 2 * seed)) + list(_parts(subject, 2 * seed + 1))
        builder = GraphBuilder("side_by_side")
        self.inputs: list[Array] = []
        for number, part in enumerate(self._parts):
            known = {v: builder.constant(a, f"constant_{number}_{v.name}") for v, a in part.graph.constants.items()}
            for value in part.graph.inputs:
                known[value] = builder.input(f"input_{number}_{value.name}", value.dtype, value.shape)
            (node,) = part.graph.nodes
            names = [f"output_{number}_{index}" for index in range(len(node.outputs))]
            operands = [None if v is None else known[v] for v in node.inputs]
            for output in builder.add_node(node.op, operands, node.attributes, domain=node.domain, outputs=names):
                builder.output(output)
            self.inputs += part.inputs
        self.graph = builder.build()

    def check(self, outputs: Sequence[Array], what: str) -> None:
        """Raise a Failure unless all outputs are right; ``what`` begins its reason."""
        given = iter(outputs)
        for part in self._parts:
            actual = [next(given) for _ in part.expected]
            try:
                check_expected(part.graph, part.inputs, actual, part.expected, part.numerics, Allowance())
            except Failure as failure:
                failure.reason = f"{what}: {part.label}: {failure.reason}"
                failure.replay = None  # a script of one node would not repeat it
                raise


def weighted_graphs(subject: Subject, seed: int) -> list[tuple[str, Graph, list[Array]]]:
    """Return for each supported operator of a few its name, a graph of it with a float32 constant, and inputs.

    Graphs for different seeds differ in the elements of their constants.

    Raises:
        Refused: the backend supports none.
    """
    found = []
    reason = ""
    for op, (shape, constant_shape) in _WEIGHTED.items():
        random = np.random.default_rng([seed, len(op)])
        builder = GraphBuilder("weighted")
        x = builder.input("x", "float32", shape)
        weight = builder.constant(random.standard_normal(constant_shape).astype(np.float32), "weight")
        builder.output(builder.add(op, [x, weight]), "y")
        graph = builder.build()
        refusals = subject.refusals(graph.nodes)
        reason = reason or "".join(refusals[:1])
        if not refusals:
            found.append((op, graph, [random.standard_normal(shape).astype(np.float32)]))
    if not found:
        raise Refused(f"none of {', '.join(_WEIGHTED)} with a constant is supported: {reason}")
    return found


def _parts(subject: Subject, seed: int) -> Iterator[_Part]:
    for case in supported_cases(subject):
        graph, inputs = case.build(seed)
        if not graph.nodes[0].subgraphs:  # bodies would capture values of this graph
            yield _Part(case.name, graph, inputs, case.case.expect(graph, inputs), case.case.numerics)
    try:
        weighted = weighted_graphs(subject, seed)
    except Refused:
        return
    for op, graph, inputs in weighted:
        yield _Part(f"{op} with a constant", graph, inputs, expect(graph, inputs, GRAPH), GRAPH)
