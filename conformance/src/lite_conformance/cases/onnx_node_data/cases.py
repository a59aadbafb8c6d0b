"""The cases of a folder of node test data: operator, element type, graph, inputs and expected outputs."""

from __future__ import annotations

import fnmatch
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lite_conformance.cases.tensors import Array
from lite_conformance.judge.compare import Expected
from lite_conformance.judge.tolerances import Numerics
from lite_core import ops
from lite_core.errors import InputError, LiteError
from lite_core.ir import DType, Graph, Value

__all__ = [
    "FOUR_DECIMALS",
    "NODE_DATA",
    "DataSet",
    "NodeDataCase",
    "expected",
    "left_out",
    "node_data_cases",
    "unmapped",
]

#: In float32: 1e-4 relative, 1e-5 absolute. The data was computed in the case's element type with another order of
#: summation; ONNX's runner allows a relative error of 1e-3 for all cases.
NODE_DATA = Numerics("onnx node data", (840, 84), (4, 4), "one", "native")
#: For expected values written with four decimals: half a unit of the last decimal, plus rounding.
FOUR_DECIMALS = Numerics("onnx node data of four decimals", (840, 840), (4, 4), "one", "native")

_FOUR_DECIMAL_CASES = ("test_roialign_aligned_*", "test_gridsample_bicubic")


class DataSet(NamedTuple):
    """A data set of a case: the graph, an array for each input, and an expected array for each output."""

    graph: Graph
    inputs: list[Array]
    outputs: list[Array]


@dataclass(frozen=True, slots=True)
class NodeDataCase:
    """A case whose model Lite's operators can express.

    Attributes:
        name: the name, such as ``onnx[conv_with_strides_padding]``.
        op: the operator; empty if the graph has several nodes, as the expanded forms of functions have.
        dtype: the element type under test.
        folder: the folder of the case.
        numerics: the required accuracy.
    """

    name: str
    op: str
    dtype: DType
    folder: Path
    numerics: Numerics

    def load(self) -> list[DataSet]:
        """Read the data sets of the case (nearly always one).

        Raises:
            LiteError: a file cannot be read.
        """
        from lite_conformance.cases.onnx_node_data import convert

        graph = convert.read_graph(self.folder)
        return [
            DataSet(
                graph,
                _as_declared(graph.inputs, convert.read_tensors(folder, "input")),
                _as_declared(graph.outputs, convert.read_tensors(folder, "output")),
            )
            for folder in sorted(self.folder.glob("test_data_set_*"))
        ]


def expected(data: DataSet) -> list[Expected]:
    """Return the expected outputs for :func:`lite_conformance.judge.checks.check_arrays`."""
    return [
        Expected(value.name, value.dtype, array.astype(np.float64) if value.dtype.is_floating else array, 1.0)
        for value, array in zip(data.graph.outputs, data.outputs)
    ]


def node_data_cases(folder: Path) -> Iterator[NodeDataCase]:
    """Yield the cases of a folder that :func:`find_node_data` returned, in the order of their names.

    Raises:
        InputError: the package ``onnx``, which reads them, is not installed.
    """
    yield from _survey(folder)[0]


def unmapped(folder: Path) -> list[tuple[str, str]]:
    """Return the name of every excluded case of the folder, with the reason.

    Raises:
        InputError: the package ``onnx`` is not installed.
    """
    return list(_survey(folder)[1])


@cache
def left_out() -> tuple[tuple[str, str], ...]:
    """Return the patterns of folder names that ``left_out.txt`` excludes, each with its reason."""
    lines = (resources.files(__package__) / "left_out.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return tuple((pattern.strip(), reason.strip()) for pattern, reason in pairs)


@cache
def _survey(folder: Path) -> tuple[Sequence[NodeDataCase], Sequence[tuple[str, str]]]:
    """Return all cases, and names and reasons of excluded ones. Takes about half a second."""
    if importlib.util.find_spec("onnx") is None:
        raise InputError(
            "ONNX's node test data is read by the package onnx, which is not installed; "
            "install it with `pip install 'lite-conformance[onnx]'`"
        )
    from lite_conformance.cases.onnx_node_data import convert

    cases: list[NodeDataCase] = []
    others: list[tuple[str, str]] = []
    for path in sorted(model.parent for model in folder.glob("*/model.onnx")):
        name = f"onnx[{path.name.removeprefix('test_')}]"
        reason = next((r for pattern, r in left_out() if fnmatch.fnmatchcase(path.name, pattern)), None)
        if reason is None:
            try:
                graph = convert.read_graph(path)
            except LiteError as error:
                reason = str(error)
            else:
                if graph.nodes:
                    cases.append(_case(name, path, graph))
                    continue
                reason = "the graph is a constant, without nodes to run"
        others.append((name, reason))
    return cases, others


def _case(name: str, folder: Path, graph: Graph) -> NodeDataCase:
    has_four_decimals = any(fnmatch.fnmatchcase(folder.name, pattern) for pattern in _FOUR_DECIMAL_CASES)
    numerics = FOUR_DECIMALS if has_four_decimals else NODE_DATA
    if len(graph.nodes) > 1:
        return NodeDataCase(name, "", _shared_dtype(graph.inputs, graph.outputs), folder, numerics)
    (node,) = graph.nodes
    definition = ops.get(node)
    dtype = definition.working_dtype(node)
    assert dtype is not None
    return NodeDataCase(name, definition.qualified_name, dtype, folder, numerics)


def _shared_dtype(inputs: Sequence[Value], outputs: Sequence[Value]) -> DType:
    """Return the element type that an input shares with the first output, or else the first input's."""
    shared = not inputs or any(v.dtype is outputs[0].dtype for v in inputs)
    return outputs[0].dtype if shared else inputs[0].dtype


def _as_declared(values: Sequence[Value], arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays with the types that the model declares: some files store bfloat16 as uint16."""
    return [
        a.view(DType.BFLOAT16.numpy) if v.dtype is DType.BFLOAT16 and a.dtype == np.uint16 else a
        for v, a in zip(values, arrays)
    ]
