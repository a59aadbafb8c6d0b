"""Node test data as cases of the suite, which compare the backend's outputs with the ONNX project's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lite_conformance.cases.case import Case, Context, Example, Settings
from lite_conformance.cases.onnx_node_data.cases import DataSet, NodeDataCase, expected, node_data_cases
from lite_conformance.cases.onnx_node_data.source import find_node_data
from lite_conformance.judge.checks import check_expected
from lite_conformance.judge.outcome import Outcome, merged
from lite_core.ir import Graph, TensorType

__all__ = ["cases"]


def cases(settings: Settings) -> Iterator[Case]:
    """Yield the cases of the data that the settings name, or else of the installed onnx, which may have no data.

    Raises:
        InputError: the data that the settings name does not exist, or onnx is not installed to read it.
    """
    folder = find_node_data(settings.node_data)
    if folder is not None:
        for case in node_data_cases(folder):
            run, examples = partial(_run, case=case), partial(_examples, case=case)
            yield Case(case.name, 2, "onnx", run, case.op, case.dtype.value, examples=examples)


def _run(context: Context, case: NodeDataCase) -> Outcome:
    outcomes = []
    for data in case.load():
        compiled = context.subject.compile(_typed(data))
        actual = compiled.run(data.inputs)
        outcomes.append(
            check_expected(compiled.graph, data.inputs, actual, expected(data), case.numerics, context.allowance)
        )
    return merged(outcomes)


def _examples(settings: Settings, case: NodeDataCase) -> Iterator[Example]:
    for data in case.load():
        yield Example(_typed(data), data.inputs, expected(data), case.numerics)


def _typed(data: DataSet) -> Graph:
    """Return the graph with the shapes of the data set's inputs."""
    graph = data.graph.copy()
    for value, array in zip(graph.inputs, data.inputs):
        value.type = TensorType.of_array(array)
    return graph
