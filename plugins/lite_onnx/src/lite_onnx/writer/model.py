"""Conversion of a whole graph to a ``ModelProto``."""

from __future__ import annotations

from onnx import ModelProto, OperatorSetIdProto, StringStringEntryProto, helper

import lite_core
from lite_core.errors import InputError
from lite_core.ir import Graph, verify_structure
from lite_onnx.writer.constants import Constants
from lite_onnx.writer.graphs import LITE_DOMAIN, GraphWriter
from lite_onnx.writer.schemas import check_opset

__all__ = ["make_model"]

#: Metadata that describes the ONNX file a graph was read from; the new file has its own.
_FILE_METADATA = {"format", "ir_version", "opset", "producer", "file"}
_FROM_ONNX = "onnx."


def make_model(graph: Graph, constants: Constants, opset: int) -> ModelProto:
    """Convert a graph to the message of a model.

    Args:
        graph: a graph read from any format.
        constants: stores its constants.
        opset: the version of ONNX's operator set.

    Raises:
        InputError: models of this opset cannot be written.
        UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
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
    """Return the graph's metadata; if it was read from ONNX, without the entries that describe that file."""
    is_onnx = graph.metadata.get("format") == "onnx"
    found: dict[str, str] = {}
    for key, text in graph.metadata.items():
        if is_onnx and key.startswith(_FROM_ONNX):
            found[key.removeprefix(_FROM_ONNX)] = text
        elif not (is_onnx and key in _FILE_METADATA):
            found[f"source.{key}"] = text
    return sorted(found.items())
