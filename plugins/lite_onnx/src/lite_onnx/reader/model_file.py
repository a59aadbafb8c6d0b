"""Parser of model files into ``ModelProto``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from lite_core.checks import is_there
from lite_core.errors import ModelFormatError
from lite_onnx.reader.stored_tensors import StoredTensors
from lite_onnx.reader.structure import first_damage

__all__ = ["find_model", "parse"]

logger = logging.getLogger("lite.onnx")

#: The largest protobuf message; larger models keep their tensors in other files.
_MAX_BYTES = 2**31 - 1
#: The tensors of smaller files are parsed.
_LEAST_MAPPED = 2**20
#: Larger files are examined before they are read: they may be huge and empty.
_SMALL_BYTES = 2**26


def find_model(path: Path) -> Path:
    """Return the model's file: the path itself, or the ONNX file in a folder.

    Raises:
        ModelFormatError: the folder contains several models.
    """
    if not path.is_dir():
        return path
    found = sorted(file for file in path.glob("*.onnx") if file.is_file())
    default = [file for file in found if file.name == "model.onnx"]
    if len(found) > 1 and not default:
        names = ", ".join(file.name for file in found)
        raise ModelFormatError(f"the folder {str(path)!r} contains {len(found)} ONNX models; name one of {names}")
    return (default or found or [path])[0]


def parse(path: Path) -> tuple[onnx.ModelProto, StoredTensors | None]:
    """Parse the model in a file without reading its large tensors, and return the message and these tensors.

    Raises:
        ModelFormatError: it cannot be read, or is not an ONNX model.
    """
    is_there(path)
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ModelFormatError(
                f"model {str(path)!r} has {size} bytes; an ONNX file has at most {_MAX_BYTES}: larger models keep "
                "their tensors in files beside them (save it with save_as_external_data=True)"
            )
        if size > _SMALL_BYTES and first_damage(path) is not None:
            raise _damaged(path, size)
        stored = StoredTensors(path) if size >= _LEAST_MAPPED else None
        model = onnx.ModelProto()
        model.ParseFromString(path.read_bytes() if stored is None else stored.message())
    except OSError as error:
        raise ModelFormatError(f"model {str(path)!r} cannot be read: {error}") from error
    except MemoryError as error:
        raise ModelFormatError(
            f"model {str(path)!r} has {size} bytes, for which there is not enough memory; keep its tensors in files "
            "beside it, which are mapped (save it with save_as_external_data=True)"
        ) from error
    except DecodeError as error:
        raise _damaged(path, size) from error
    if not model.HasField("graph"):
        raise ModelFormatError(f"model {str(path)!r} contains no graph; copy or export it again")
    if model.ir_version < 3:
        raise ModelFormatError(
            f"model {str(path)!r} has IR version {model.ir_version}; Lite reads 3 and newer: export it again"
        )
    # NOTE: protobuf returns a string that is not UTF-8 as bytes, without an error.
    damaged = next((name for name in _names(model) if not isinstance(name, str)), None)
    if damaged is not None:
        raise ModelFormatError(
            f"model {str(path)!r} is damaged: the name {damaged!r} is not UTF-8; copy or export it again"
        )
    if model.ir_version > onnx.IR_VERSION:
        logger.info("%s has IR version %d, newer than onnx knows (%d)", path, model.ir_version, onnx.IR_VERSION)
    return model, stored


def _damaged(path: Path, size: int) -> ModelFormatError:
    """Return an error that tells how far a file is intact."""
    where = first_damage(path) if size else 0
    found = "the content of a node or tensor is not" if where is None else f"it is intact up to byte {where}"
    return ModelFormatError(
        f"model {str(path)!r} is damaged or not an ONNX model: of its {size} bytes, {found}; copy or export it again"
    )


def _names(model: onnx.ModelProto) -> list[str | bytes]:
    """Return the names that the lowering relies on, in the model's graphs and functions."""
    names: list[str | bytes] = [opset.domain for opset in model.opset_import]
    for function in model.functions:
        names += (function.domain, function.name, function.overload)
        names += (*function.input, *function.output, *function.attribute)
        names += [opset.domain for opset in function.opset_import]
        _add_names_in_nodes(names, function.node)
    _add_names_in_graph(names, model.graph)
    return names


def _add_names_in_graph(names: list[str | bytes], graph: onnx.GraphProto) -> None:
    names.append(graph.name)
    names += [value.name for value in (*graph.input, *graph.output)]
    for tensor in graph.initializer:
        names.append(tensor.name)
        for entry in tensor.external_data:
            names += (entry.key, entry.value)
    names += [sparse.values.name for sparse in graph.sparse_initializer]
    _add_names_in_nodes(names, graph.node)


def _add_names_in_nodes(names: list[str | bytes], nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        names += (node.name, node.op_type, node.domain, node.overload)
        names += node.input
        names += node.output
        for attribute in node.attribute:
            names += (attribute.name, attribute.ref_attr_name)
            if attribute.HasField("g"):
                _add_names_in_graph(names, attribute.g)
            for graph in attribute.graphs:
                _add_names_in_graph(names, graph)
