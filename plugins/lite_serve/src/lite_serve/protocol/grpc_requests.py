"""Requests and answers of gRPC. Tensors of a request are raw bytes, or lists of a type; those of an answer are raw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lite_serve.protocol.documents import EXTENSIONS, SERVER_NAME, IndexEntry
from lite_serve.protocol.element_types import datatype_of
from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.grpc_messages import METHODS, message_class
from lite_serve.protocol.messages import Array, InferRequest, InferResponse, ModelMetadata, Parameter, RequestedOutput
from lite_serve.protocol.parameters import check_repository_parameters, check_tensor_parameters
from lite_serve.protocol.tensors import (
    TensorHeader,
    array_of_bytes,
    array_of_texts,
    bytes_of_array,
    checked_header,
    shortened,
)

__all__ = [
    "decode_request",
    "encode_response",
    "model_metadata",
    "repository_index",
    "repository_model_name",
    "repository_response",
    "server_metadata",
]

# The list that holds the elements of a type. Types of 16-bit floats have none: they are raw.
_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def decode_request(message: Any) -> InferRequest:
    """Return the request that a ``ModelInferRequest`` holds.

    Raises:
        InvalidRequestError: the message is not a sound request.
        UnsupportedError: it asks for what Lite does not have: shared memory, classification.
    """
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise InvalidRequestError(
            f"raw_input_contents has {len(raw)} entries for {len(message.inputs)} inputs; it must have one for each, "
            "or be empty"
        )
    inputs: dict[str, Array] = {}
    for index, item in enumerate(message.inputs):
        if not item.name:
            raise InvalidRequestError(f"input {index} has no name")
        what = f"input {shortened(item.name)}"
        if item.name in inputs:
            raise InvalidRequestError(f"{what} is there twice")
        _parameters(item.parameters, what)
        header = checked_header(what, item.datatype, item.shape)
        if raw:
            if item.contents.ByteSize():
                raise InvalidRequestError(f"{what} has contents, and the request raw_input_contents, only one can be")
            inputs[item.name] = array_of_bytes(header, raw[index])
        else:
            inputs[item.name] = _array_of_contents(header, item.contents)
    parameters = _parameters(message.parameters, "the request")
    outputs = _outputs(message.outputs)
    return InferRequest(message.model_name, message.model_version, message.id, inputs, outputs, parameters, True)


def _array_of_contents(header: TensorHeader, contents: Any) -> Array:
    """Return the array of an input whose elements are a list of a type."""
    field = _CONTENTS.get(header.datatype)
    others = [found.name for found, _ in contents.ListFields() if found.name != field]
    if others or (field is None and header.size):
        raise InvalidRequestError(
            f"{header.what}: elements of {header.datatype} must be in {field or 'raw_input_contents'}, "
            f"are in {others[0] if others else 'neither'}"
        )
    elements = getattr(contents, field) if field else []
    if len(elements) != header.size:
        raise InvalidRequestError(
            f"{header.what}: the shape {list(header.shape)} has {header.size} elements, {field} has {len(elements)}"
        )
    if header.datatype == "BYTES":
        return array_of_texts(elements, header.shape)
    if header.dtype.kind in "iu" and header.dtype.itemsize < 4:
        return _narrowed(header, np.fromiter(elements, np.int64, header.size)).reshape(header.shape)
    return np.fromiter(elements, header.dtype, header.size).reshape(header.shape)


def _narrowed(header: TensorHeader, wide: Array) -> Array:
    low, high = np.iinfo(header.dtype).min, np.iinfo(header.dtype).max
    outside = (wide < low) | (wide > high)
    if outside.any():
        index = int(outside.argmax())
        raise InvalidRequestError(
            f"{header.what}: element {index} of {header.datatype} must be from {low} to {high}, is {wide[index]}"
        )
    return wide.astype(header.dtype)


def _parameters(found: Any, what: str) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for name, parameter in found.items():
        field = parameter.WhichOneof("parameter_choice")
        if field is None:
            raise InvalidRequestError(f"{what}: the parameter {shortened(name)} has no value")
        parameters[name] = getattr(parameter, field)
    check_tensor_parameters(what, parameters)
    return parameters


def _outputs(items: Iterable[Any]) -> tuple[RequestedOutput, ...] | None:
    found: dict[str, RequestedOutput] = {}
    for index, item in enumerate(items):
        if not item.name:
            raise InvalidRequestError(f"output {index} has no name")
        what = f"output {shortened(item.name)}"
        if item.name in found:
            raise InvalidRequestError(f"{what} is there twice")
        _parameters(item.parameters, what)
        found[item.name] = RequestedOutput(item.name, True)
    return tuple(found.values()) or None


def encode_response(response: InferResponse) -> Any:
    """Return an answer as a ``ModelInferResponse``, its tensors as raw bytes."""
    message = message_class("ModelInferResponse")(
        model_name=response.model, model_version=response.version, id=response.id
    )
    for name, array in response.outputs.items():
        message.outputs.add(name=name, datatype=datatype_of(array.dtype), shape=array.shape)
        message.raw_output_contents.append(bytes(bytes_of_array(array)))
    _set_parameters(message.parameters, response.parameters)
    return message


def _set_parameters(target: Any, parameters: Mapping[str, Parameter]) -> None:
    fields = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
    for name, value in parameters.items():
        is_large = type(value) is int and value >= 2**63
        setattr(target[name], "uint64_param" if is_large else fields[type(value)], value)


def server_metadata(version: str) -> Any:
    """Return the answer to ``ServerMetadata``."""
    return message_class("ServerMetadataResponse")(name=SERVER_NAME, version=version, extensions=EXTENSIONS)


def model_metadata(model: ModelMetadata) -> Any:
    """Return the answer to ``ModelMetadata``."""
    return message_class("ModelMetadataResponse")(
        name=model.name,
        versions=model.versions,
        platform=model.platform,
        inputs=[tensor._asdict() for tensor in model.inputs],
        outputs=[tensor._asdict() for tensor in model.outputs],
    )


def repository_index(entries: Iterable[IndexEntry]) -> Any:
    """Return the answer to ``RepositoryIndex``."""
    names = ("name", "version", "state", "reason")
    return message_class("RepositoryIndexResponse")(models=[dict(zip(names, entry)) for entry in entries])


def repository_model_name(message: Any) -> str:
    """Return the model that a request to load or unload a model names, in Triton's way or in KServe's.

    Raises:
        InvalidRequestError: it names none.
        UnsupportedError: it brings a configuration or files of its own.
    """
    check_repository_parameters(message.parameters)
    name: str = message.model_name or message.repository_name
    if not name:
        raise InvalidRequestError("the request has no model_name")
    return name


def repository_response(method: str, name: str) -> Any:
    """Return the answer to ``RepositoryModelLoad`` or ``RepositoryModelUnload`` when it is done."""
    flag = "isLoaded" if method == "RepositoryModelLoad" else "isUnloaded"
    return METHODS[method].response(model_name=name, **{flag: True})
