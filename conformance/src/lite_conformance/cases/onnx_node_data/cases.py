"""The cases of a folder of node test data: what each is about, and its graph, inputs and outputs."""

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

#: float32: 1e-4 relative, 1e-5 absolute. The data was computed in the case's own element type with another
#: order of summation; ONNX's own runner allows a relative 1e-3 for everything.
NODE_DATA = Numerics("onnx node data", (840, 84), (4, 4), "one", "native")
#: For expected values that were typed in with four decimals: half a unit of the last one, and rounding.
FOUR_DECIMALS = Numerics("onnx node data of four decimals", (840, 840), (4, 4), "one", "native")

_TYPED_IN = ("test_roialign_aligned_*", "test_gridsample_bicubic")


class DataSet(NamedTuple):
    """One set of data of a case: the graph, an array for each of its inputs, and one for each of its outputs."""

    graph: Graph
    inputs: list[Array]
    outputs: list[Array]


@dataclass(frozen=True, slots=True)
class NodeDataCase:
    """A folder of the data that Lite's operators can express.

    Attributes:
        name: ``onnx[conv_with_strides_padding]``.
        op: the operator; empty where the graph has several nodes, as the expanded forms of functions have.
        dtype: the element type it is about.
        folder: where it lies.
        numerics: how near results must be.
    """

    name: str
    op: str
    dtype: DType
    folder: Path
    numerics: Numerics

    def load(self) -> list[DataSet]:
        """Every set of data (nearly always one).

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
    """What the outputs should be, as :func:`lite_conformance.judge.checks.check_arrays` takes it."""
    return [
        Expected(value.name, value.dtype, array.astype(np.float64) if value.dtype.is_floating else array, 1.0)
        for value, array in zip(data.graph.outputs, data.outputs)
    ]


def node_data_cases(folder: Path) -> Iterator[NodeDataCase]:
    """The cases of a folder that :func:`find_node_data` found, by name.

    Raises:
        InputError: the package ``onnx``, which reads them, is not installed.
    """
    yield from _survey(folder)[0]


def unmapped(folder: Path) -> list[tuple[str, str]]:
    """Name and reason of every case of the folder that is not offered.

    Raises:
        InputError: the package ``onnx`` is not installed.
    """
    return list(_survey(folder)[1])


@cache
def left_out() -> tuple[tuple[str, str], ...]:
    """Patterns of folder names that are left out on purpose, each with its reason."""
    lines = (resources.files(__package__) / "left_out.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return tuple((pattern.strip(), reason.strip()) for pattern, reason in pairs)


@cache
def _survey(folder: Path) -> tuple[Sequence[NodeDataCase], Sequence[tuple[str, str]]]:
    """All cases, and what is not one. Takes about half a second."""
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
                reason = "it is a constant: there is nothing to run"
        others.append((name, reason))
    return cases, others


def _case(name: str, folder: Path, graph: Graph) -> NodeDataCase:
    typed_in = any(fnmatch.fnmatchcase(folder.name, pattern) for pattern in _TYPED_IN)
    numerics = FOUR_DECIMALS if typed_in else NODE_DATA
    if len(graph.nodes) > 1:
        return NodeDataCase(name, "", _shared_dtype(graph.inputs, graph.outputs), folder, numerics)
    (node,) = graph.nodes
    definition = ops.get(node)
    dtype = definition.working_dtype(node)
    assert dtype is not None
    return NodeDataCase(name, definition.qualified_name, dtype, folder, numerics)


def _shared_dtype(inputs: Sequence[Value], outputs: Sequence[Value]) -> DType:
    """The element type that an input shares with the first output, or else the first input's."""
    shared = not inputs or any(v.dtype is outputs[0].dtype for v in inputs)
    return outputs[0].dtype if shared else inputs[0].dtype


def _as_declared(values: Sequence[Value], arrays: Sequence[Array]) -> list[Array]:
    """Some files hold the bits of bfloat16 as uint16; the model says what they mean."""
    return [
        a.view(DType.BFLOAT16.numpy) if v.dtype is DType.BFLOAT16 and a.dtype == np.uint16 else a
        for v, a in zip(values, arrays)
    ]
