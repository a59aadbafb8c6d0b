"""Answers about the server and its models, as JSON, and requests that have no tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.json_texts import parse_json, to_json
from lite_serve.protocol.messages import ModelMetadata, Parameter
from lite_serve.protocol.parameters import check_repository_parameters
from lite_serve.protocol.tensors import shortened

__all__ = [
    "EXTENSIONS",
    "SERVER_NAME",
    "IndexEntry",
    "error",
    "index_request",
    "load_request",
    "model_metadata",
    "model_ready",
    "repository_index",
    "server_live",
    "server_metadata",
    "server_ready",
]

SERVER_NAME = "lite-serve"
#: Triton's extensions of the protocol that the server has.
EXTENSIONS = ("binary_tensor_data", "model_repository")

#: A model's name, its version, its state (READY, UNAVAILABLE, LOADING, UNLOADING) and the reason for it.
IndexEntry = tuple[str, str, str, str]


def server_live(live: bool) -> bytes:
    """Return the answer to ``v2/health/live``."""
    return to_json({"live": live})


def server_ready(ready: bool) -> bytes:
    """Return the answer to ``v2/health/ready``."""
    return to_json({"ready": ready})


def model_ready(name: str, ready: bool) -> bytes:
    """Return the answer to ``v2/models/NAME/ready``."""
    return to_json({"name": name, "ready": ready})


def server_metadata(version: str) -> bytes:
    """Return the answer to ``v2``."""
    return to_json({"name": SERVER_NAME, "version": version, "extensions": EXTENSIONS})


def model_metadata(model: ModelMetadata) -> bytes:
    """Return the answer to ``v2/models/NAME``."""
    document: dict[str, Any] = {
        "name": model.name,
        "versions": model.versions,
        "platform": model.platform,
        "inputs": [tensor._asdict() for tensor in model.inputs],
        "outputs": [tensor._asdict() for tensor in model.outputs],
    }
    if model.properties:
        document["properties"] = dict(model.properties)
    return to_json(document)


def repository_index(entries: Iterable[IndexEntry]) -> bytes:
    """Return the answer to ``v2/repository/index``."""
    return to_json([dict(zip(("name", "version", "state", "reason"), entry)) for entry in entries])


def error(message: str) -> bytes:
    """Return the body of every answer that is an error."""
    return to_json({"error": message})


def index_request(body: bytes | memoryview) -> bool:
    """Return whether a request for ``v2/repository/index`` asks for ready models only. The body may be empty.

    Raises:
        InvalidRequestError: the body is not such a request.
    """
    ready = _object(body).get("ready", False)
    if type(ready) is not bool:
        raise InvalidRequestError(f"ready must be true or false, is {shortened(ready)}")
    return ready


def load_request(body: bytes | memoryview) -> dict[str, Parameter]:
    """Return the parameters of a request to load or unload a model. The body may be empty.

    Raises:
        InvalidRequestError: the body is not such a request.
        UnsupportedError: it brings a configuration or files of its own.
    """
    parameters = _object(body).get("parameters") or {}
    if type(parameters) is not dict:
        raise InvalidRequestError(f"parameters must be an object, is {shortened(parameters)}")
    check_repository_parameters(parameters)
    return parameters


def _object(body: bytes | memoryview) -> dict[str, Any]:
    document = parse_json(body) if body else {}
    if type(document) is not dict:
        raise InvalidRequestError(f"the request must be an object, is {shortened(document)}")
    return document
