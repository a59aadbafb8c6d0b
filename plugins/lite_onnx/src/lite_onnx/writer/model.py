"""A whole graph as a ``ModelProto``."""

from __future__ import annotations

from onnx import ModelProto, OperatorSetIdProto, StringStringEntryProto, helper

import lite_core
from lite_core.errors import InputError
from lite_core.ir import Graph, verify_structure
from lite_onnx.writer.constants import Constants
from lite_onnx.writer.graphs import LITE_DOMAIN, GraphWriter
from lite_onnx.writer.schemas import check_opset

__all__ = ["make_model"]

#: What a graph that was read from ONNX says of that file; the new one has its own.
_OF_THE_FILE = {"format", "ir_version", "opset", "producer", "file"}
_FROM_ONNX = "onnx."


def make_model(graph: Graph, constants: Constants, opset: int) -> ModelProto:
    """The message for a graph.

    Args:
        graph: of any origin.
        constants: where its constants go.
        opset: of ONNX's operators.

    Raises:
        InputError: models of the opset cannot be written.
        UnsupportedOperatorError: nodes that cannot be said in ONNX; all are listed.
        GraphError: the graph is not valid.
    """
    try:
        check_opset(opset)
    except ValueError as error:
        raise InputError(f"graph {graph.name!r} cannot be written as ONNX: {error}") from None
    verify_structure(graph)
    writer = GraphWriter(graph, constants, opset)
    written = writer.graph(graph)
    writer.problems.raise_if_any()
    imports = [OperatorSetIdProto(version=opset)]
    if writer.functions:
        imports.append(OperatorSetIdProto(domain=LITE_DOMAIN, version=1))
    return ModelProto(
        ir_version=helper.find_min_ir_version_for([imports[0]]),
        producer_name="lite",
        producer_version=lite_core.__version__,
        graph=written,
        opset_import=imports,
        functions=writer.functions,
        metadata_props=[StringStringEntryProto(key=key, value=text) for key, text in _metadata(graph)],
    )


def _metadata(graph: Graph) -> list[tuple[str, str]]:
    """What the graph says of itself; of a file that was read only what its model said."""
    is_onnx = graph.metadata.get("format") == "onnx"
    found: dict[str, str] = {}
    for key, text in graph.metadata.items():
        if is_onnx and key.startswith(_FROM_ONNX):
            found[key.removeprefix(_FROM_ONNX)] = text
        elif not (is_onnx and key in _OF_THE_FILE):
            found[f"source.{key}"] = text
    return sorted(found.items())
