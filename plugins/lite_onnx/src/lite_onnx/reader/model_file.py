"""A file as a ``ModelProto``."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from lite_core.errors import ModelFormatError

__all__ = ["model_in", "parse"]

logger = logging.getLogger("lite.onnx")

#: What protocol buffers can hold; larger models keep their tensors in other files.
_MOST_BYTES = 2**31 - 1


def model_in(path: Path) -> Path:
    """The model's file, where a folder is given that holds one.

    Raises:
        ModelFormatError: it holds several.
    """
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.onnx"))
    usual = [file for file in found if file.name == "model.onnx"]
    if len(found) > 1 and not usual:
        names = ", ".join(file.name for file in found)
        raise ModelFormatError(f"the folder {str(path)!r} holds {len(found)} ONNX models; name one of {names}")
    return (usual or found or [path])[0]


def parse(path: Path) -> onnx.ModelProto:
    """The model in a file; its tensors are not looked at.

    Raises:
        ModelFormatError: it cannot be read, or is no ONNX model.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise ModelFormatError(
                f"model {str(path)!r} has {size} bytes; an ONNX file has at most {_MOST_BYTES}: larger models keep "
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
            f"model {str(path)!r} is damaged or no ONNX model: {error}; copy or export it again"
        ) from error
    if not model.HasField("graph"):
        raise ModelFormatError(f"model {str(path)!r} holds no graph; copy or export it again")
    if model.ir_version < 3:
        raise ModelFormatError(
            f"model {str(path)!r} has IR version {model.ir_version}; Lite reads 3 and newer: export it again"
        )
    if model.ir_version > onnx.IR_VERSION:
        logger.info("%s has IR version %d, newer than onnx knows (%d)", path, model.ir_version, onnx.IR_VERSION)
    return model
