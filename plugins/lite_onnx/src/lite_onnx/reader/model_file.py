"""Parser of model files into ``ModelProto``."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from lite_core.errors import ModelFormatError

__all__ = ["find_model", "parse"]

logger = logging.getLogger("lite.onnx")

#: The largest protobuf message; larger models keep their tensors in other files.
_MAX_BYTES = 2**31 - 1


def find_model(path: Path) -> Path:
    """Return the model's file: the path itself, or the ONNX file in a folder.

    Raises:
        ModelFormatError: the folder contains several models.
    """
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.onnx"))
    default = [file for file in found if file.name == "model.onnx"]
    if len(found) > 1 and not default:
        names = ", ".join(file.name for file in found)
        raise ModelFormatError(f"the folder {str(path)!r} contains {len(found)} ONNX models; name one of {names}")
    return (default or found or [path])[0]


def parse(path: Path) -> onnx.ModelProto:
    """Parse the model in a file without reading its tensors.

    Raises:
        ModelFormatError: it cannot be read, or is not an ONNX model.
    """
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ModelFormatError(
                f"model {str(path)!r} has {size} bytes; an ONNX file has at most {_MAX_BYTES}: larger models keep "
                "their tensors in files beside them (save it with save_as_external_data=True)"
            )
        content = path.read_bytes()
    except OSError as error:
        raise ModelFormatError(f"model {str(path)!r} cannot be read: {error}") from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ModelFormatError(
            f"model {str(path)!r} is damaged or not an ONNX model: {error}; copy or export it again"
        ) from error
    if not model.HasField("graph"):
        raise ModelFormatError(f"model {str(path)!r} contains no graph; copy or export it again")
    if model.ir_version < 3:
        raise ModelFormatError(
            f"model {str(path)!r} has IR version {model.ir_version}; Lite reads 3 and newer: export it again"
        )
    if model.ir_version > onnx.IR_VERSION:
        logger.info("%s has IR version %d, newer than onnx knows (%d)", path, model.ir_version, onnx.IR_VERSION)
    return model
