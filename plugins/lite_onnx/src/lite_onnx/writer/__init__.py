"""Writer of ONNX models: a graph is converted to protobuf messages, which are saved to a file."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, shape_inference

from lite_core.checks import is_there
from lite_core.errors import GraphError, ModelFormatError
from lite_core.ir import Graph
from lite_onnx.writer.constants import MAX_INLINE_BYTES, ExternalConstants, InlineConstants
from lite_onnx.writer.model import make_model
from lite_onnx.writer.schemas import NEWEST_OPSET

__all__ = ["to_model", "write"]

logger = logging.getLogger("lite.onnx")


def write(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    opset: int = NEWEST_OPSET,
    external_data: bool | None = None,
    check: bool = True,
) -> None:
    """Write a graph as an ONNX model. An existing file is replaced only when the new one is complete.

    Names of values and nodes are kept. Operators of Lite's own become functions of the model, composed of ONNX's
    operators.

    Args:
        graph: a graph read from any format.
        path: the ``.onnx`` file.
        opset: the version of ONNX's operator set, 17 to 22.
        external_data: True to store constants in a second file, named ``path`` plus ``.data``. By default, this is done
            if the constants do not fit in an ONNX file, which is limited to 2 GiB.
        check: validate the file by ``onnx.checker``, including types and shapes. The checker rejects inputs and outputs
            of unknown rank; a graph that has some is written unchecked.

    Raises:
        UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
        GraphError: the graph is not valid, or the checker rejects the model.
        ModelFormatError: the file cannot be written.
    """
    file = Path(path)
    is_there(file)  # a device or a pipe must not be replaced
    if external_data is None:
        external_data = sum(array.nbytes for array in graph.every_constant()) > MAX_INLINE_BYTES
    try:
        # NOTE: files are written to a folder beside the target, so that they can be renamed into place on the same
        # file system. The names are final, because the first file contains the name of the second one.
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
            for complete in (data, written):
                if complete.exists():
                    complete.replace(file.parent / complete.name)
    except OSError as error:
        raise ModelFormatError(f"{str(path)!r} cannot be written: {error}") from error


def to_model(graph: Graph, *, opset: int = NEWEST_OPSET) -> onnx.ModelProto:
    """Convert a graph to the message of an ONNX model, including constants, without checking it; see :func:`write`.

    Raises:
        UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
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
        # NOTE: the checker requires a shape for every input and output, which a value of unknown rank does not have.
        logger.warning("%s is not checked: the rank of %s is not known", file.name, ", ".join(unknown))
        return
    try:
        checker.check_model(str(file), full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise GraphError(
            f"onnx.checker rejects the model of graph {graph.name!r}: {str(error).strip()}; "
            "check=False writes it anyway"
        ) from error
