"""Writing ONNX models: a graph becomes messages, messages become a file."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, shape_inference

from lite_core.errors import GraphError, ModelFormatError
from lite_core.ir import Graph
from lite_onnx.writer.constants import MOST_BYTES, ExternalConstants, InlineConstants
from lite_onnx.writer.model import make_model
from lite_onnx.writer.schemas import NEWEST_MEANING

__all__ = ["to_model", "write"]

logger = logging.getLogger("lite.onnx")


def write(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    opset: int = NEWEST_MEANING,
    external_data: bool | None = None,
    check: bool = True,
) -> None:
    """Write a graph as an ONNX model, at once or not at all: a file that was there stays until the new one is complete.

    Names of values and nodes are kept. Operators of Lite's own become functions of the model, made of ONNX's operators.

    Args:
        graph: of any origin.
        path: the ``.onnx`` file.
        opset: of ONNX's operators, 17 to 22.
        external_data: whether constants go into a second file, ``path`` with ``.data`` behind it. By default they do
            where they are more than the 2 GiB that an ONNX file can hold.
        check: have ``onnx.checker`` look at the whole file, types and shapes included. It refuses inputs and outputs of
            unknown rank; a graph with such is written unchecked.

    Raises:
        UnsupportedOperatorError: nodes that cannot be said in ONNX; all are listed.
        GraphError: the graph is not valid, or the checker refuses what was written.
        ModelFormatError: the file cannot be written.
    """
    file = Path(path)
    if external_data is None:
        external_data = sum(array.nbytes for array in graph.every_constant()) > MOST_BYTES
    try:
        # NOTE: a folder beside the file, because the name of the second file is in the first, and renaming is quick.
        with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
            written = Path(folder, file.name)
            data = Path(folder, f"{file.name}.data")
            if external_data:
                with data.open("wb") as stream:
                    model = make_model(graph, ExternalConstants(stream, data.name), opset)
            else:
                model = make_model(graph, InlineConstants(), opset)
            written.write_bytes(_serialized(graph, model))
            if check:
                _check(graph, written)
            for made in (data, written):
                if made.exists():
                    made.replace(file.parent / made.name)
    except OSError as error:
        raise ModelFormatError(f"{str(path)!r} cannot be written: {error}") from error


def to_model(graph: Graph, *, opset: int = NEWEST_MEANING) -> onnx.ModelProto:
    """A graph as the message of an ONNX model, constants in it; see :func:`write`. It is not checked.

    Raises:
        UnsupportedOperatorError: nodes that cannot be said in ONNX; all are listed.
        GraphError: the graph is not valid.
    """
    return make_model(graph, InlineConstants(), opset)


def _serialized(graph: Graph, model: onnx.ModelProto) -> bytes:
    try:
        content: bytes = model.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise GraphError(
            f"graph {graph.name!r} is too large for one ONNX file ({error}); write it with external_data=True"
        ) from error
    return content


def _check(graph: Graph, file: Path) -> None:
    unknown = [value.name for value in (*graph.inputs, *graph.outputs) if value.type.rank is None]
    if unknown:
        # NOTE: the checker asks for a shape of every input and output, and an unknown rank has none to give.
        logger.warning("%s is not checked: the rank of %s is not known", file.name, ", ".join(unknown))
        return
    try:
        checker.check_model(str(file), full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise GraphError(
            f"graph {graph.name!r} makes no ONNX model that onnx.checker accepts: {str(error).strip()}; check=False "
            "writes it all the same"
        ) from error
