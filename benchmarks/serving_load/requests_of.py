"""Requests of the Open Inference Protocol as bytes that a load generator sends again and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lite_serve.protocol.element_types import datatype_of

__all__ = ["Request", "as_binary", "as_grpc", "as_json"]

_JSON = "application/json"
_BYTES = "application/octet-stream"


class Request(NamedTuple):
    """A request by HTTP.

    Attributes:
        model: the model that it asks.
        body: its body.
        headers: its headers, with the content type.
    """

    model: str
    body: bytes
    headers: dict[str, str]

    @property
    def path(self) -> str:
        """The path of its URL."""
        return f"/v2/models/{self.model}/infer"

    def written(self, folder: Path) -> Path:
        """Write the body into a file of a folder and return it."""
        file = folder / f"{self.model}-{len(self.body)}"
        file.write_bytes(self.body)
        return file


def as_json(model: str, **inputs: np.ndarray[Any, Any]) -> Request:
    """Return a request whose tensors, and those of its answer, are JSON."""
    tensors = [{**_about(name, array), "data": array.flatten().tolist()} for name, array in inputs.items()]
    return Request(model, json.dumps({"inputs": tensors}).encode(), {"Content-Type": _JSON})


def as_binary(model: str, **inputs: np.ndarray[Any, Any]) -> Request:
    """Return a request whose tensors, and those of its answer, are bytes after the JSON."""
    tensors = [
        {**_about(name, array), "parameters": {"binary_data_size": array.nbytes}} for name, array in inputs.items()
    ]
    document = {"inputs": tensors, "parameters": {"binary_data_output": True}}
    head = json.dumps(document, separators=(",", ":")).encode()
    body = b"".join([head, *(array.tobytes() for array in inputs.values())])
    return Request(model, body, {"Content-Type": _BYTES, "Inference-Header-Content-Length": str(len(head))})


def as_grpc(model: str, **inputs: np.ndarray[Any, Any]) -> bytes:
    """Return a serialized ``ModelInferRequest``."""
    from lite_serve.protocol.grpc_messages import METHODS

    message = METHODS["ModelInfer"].request(model_name=model)
    for name, array in inputs.items():
        message.inputs.add(**_about(name, array))
        message.raw_input_contents.append(array.tobytes())
    serialized: bytes = message.SerializeToString()
    return serialized


def _about(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype_of(array.dtype), "shape": list(array.shape)}
