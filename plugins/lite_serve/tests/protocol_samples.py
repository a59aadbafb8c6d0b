"""Arrays of every element type of the protocol, and requests with them: what the tests of the protocol share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_serve.protocol import grpc_requests, json_requests
from lite_serve.protocol.element_types import DATATYPES, datatype_of, dtype_of
from lite_serve.protocol.grpc_messages import METHODS, message_class
from lite_serve.protocol.messages import InferRequest, InferResponse
from lite_serve.protocol.tensors import bytes_of_array

Array = np.ndarray[Any, Any]


def _samples() -> dict[str, Array]:
    found: dict[str, Array] = {}
    for datatype in DATATYPES:
        dtype = dtype_of(datatype)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            values: list[Any] = [info.min, info.max, 0, 1, 2, 100]
        elif datatype == "BOOL":
            values = [True, False, True, True, False, False]
        elif datatype == "BYTES":
            values = ["", "plain", "Grüße", "漢字", "\x00\n", "𝄞"]
        else:
            values = [np.nan, np.inf, -np.inf, -0.0, 0.1, 65504.0]
        found[datatype] = np.array(values, dtype).reshape(2, 3)
    return found


#: An array of the shape [2, 3] for each element type, with the extremes of its range.
SAMPLES = _samples()


def is_equal(found: Array, expected: Array) -> bool:
    """Return whether two arrays have the same element type, shape and bits; any NaN equals any other."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return False
    if found.dtype.kind in "fV":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            numbers, found_numbers = ~np.isnan(expected), ~np.isnan(found)
        if not np.array_equal(found_numbers, numbers):
            return False
        found, expected = found[numbers], expected[numbers]
    return found.tolist() == expected.tolist() if found.dtype.hasobject else found.tobytes() == expected.tobytes()


def json_input(name: str, array: Array, is_nested: bool = False) -> dict[str, Any]:
    """Return an input as an object of JSON."""
    values = array.astype(np.float32) if array.dtype.kind == "V" else array
    data = values.tolist() if is_nested else values.reshape(-1).tolist()
    return {"name": name, "shape": list(array.shape), "datatype": datatype_of(array.dtype), "data": data}


def binary_input(name: str, array: Array) -> dict[str, Any]:
    """Return an input as an object of JSON whose content follows as bytes."""
    made = json_input(name, array[:0] if array.ndim else array)
    del made["data"]
    return {**made, "shape": list(array.shape), "parameters": {"binary_data_size": len(bytes_of_array(array))}}


def decoded(document: Any, *tensors: bytes) -> InferRequest:
    """Return the request of a JSON document, with a header for its length if tensors follow it."""
    text = json.dumps(document).encode()
    body = b"".join([text, *tensors])
    return json_requests.decode_request(body, len(text) if tensors else None, "model", "1")


def answered(outputs: Mapping[str, Array], request: InferRequest) -> tuple[dict[str, Any], bytes]:
    """Return the parsed JSON of an answer by HTTP, and the bytes that follow it."""
    response = InferResponse(request.model, request.version, request.id, dict(outputs))
    chunks, json_length = json_requests.encode_response(response, request)
    body = b"".join(chunks)
    return json.loads(body[:json_length]), b"" if json_length is None else body[json_length:]


def grpc_request(**members: Any) -> Any:
    """Return a ModelInferRequest."""
    return message_class("ModelInferRequest")(model_name="model", **members)


def grpc_parameter(**value: Any) -> Any:
    """Return an InferParameter; older versions of protobuf do not make one of a dict."""
    return message_class("InferParameter")(**value)


def grpc_input(name: str, array: Array) -> dict[str, Any]:
    """Return the members of an input of a ModelInferRequest, without its content."""
    return {"name": name, "datatype": datatype_of(array.dtype), "shape": array.shape}


def grpc_decoded(message: Any) -> InferRequest:
    """Return the request of a message that was sent."""
    return grpc_requests.decode_request(METHODS["ModelInfer"].parse(message.SerializeToString()))
