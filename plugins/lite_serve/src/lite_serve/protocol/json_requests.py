"""Requests and answers of HTTP: JSON, and the binary tensor data that may follow it."""

from __future__ import annotations

from typing import Any

from lite_serve.protocol.element_types import datatype_of
from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.json_tensors import array_as_json, array_of_json
from lite_serve.protocol.json_texts import parse_json_with_data, to_json
from lite_serve.protocol.messages import Array, InferRequest, InferResponse, Parameter, RequestedOutput
from lite_serve.protocol.parameters import check_tensor_parameters
from lite_serve.protocol.tensors import array_of_bytes, bytes_of_array, checked_header, is_unicode, shortened

__all__ = ["decode_request", "encode_response", "json_length_of"]


def json_length_of(header: str | None) -> int | None:
    """Return the value of the header ``Inference-Header-Content-Length``; None if there is none.

    Raises:
        InvalidRequestError: it is not a number.
    """
    if header is None:
        return None
    if not (header.isascii() and header.isdigit() and len(header) < 19):
        raise InvalidRequestError(f"Inference-Header-Content-Length must be a number of bytes, is {shortened(header)}")
    return int(header)


# **** requests ****


def decode_request(body: bytes | memoryview, json_length: int | None, model: str, version: str = "") -> InferRequest:
    """Return the request that the body of an HTTP request holds.

    Args:
        body: the body. Arrays of the request may be views of it.
        json_length: the number of its bytes that are JSON, as the header ``Inference-Header-Content-Length`` states;
            None if the request has no such header, and everything is JSON.
        model: the model's name.
        version: the model's version; empty if the request names none.

    Raises:
        InvalidRequestError: the body is not such a request.
        UnsupportedError: it asks for what Lite does not have: shared memory, classification.
    """
    view = memoryview(body)
    if json_length is not None and not 0 < json_length <= len(view):
        raise InvalidRequestError(
            f"Inference-Header-Content-Length is {json_length}; the body has {len(view)} bytes, and begins with JSON"
        )
    document = parse_json_with_data(view[:json_length])
    if type(document) is not dict:
        raise InvalidRequestError(f"the request must be an object with the member inputs, is {shortened(document)}")
    parameters = _parameters(document, "the request")
    binary_outputs = _flag(parameters.pop("binary_data_output", False), "binary_data_output of the request")
    return InferRequest(
        model,
        version,
        _text(document, "id", "the request"),
        _inputs(document, None if json_length is None else view[json_length:]),
        _outputs(document, binary_outputs),
        parameters,
        binary_outputs,
    )


def _inputs(document: dict[str, Any], rest: memoryview | None) -> dict[str, Array]:
    """Return the inputs, in their order.

    Args:
        document: the request.
        rest: the bytes behind the JSON; None if the request does not say where they begin.
    """
    items = document.get("inputs")
    if type(items) is not list:
        raise InvalidRequestError("the request has no list of inputs")
    inputs: dict[str, Array] = {}
    start = 0
    for index, item in enumerate(items):
        name = _name(item, f"input {index}")
        what = f"input {shortened(name)}"
        if name in inputs:
            raise InvalidRequestError(f"{what} is there twice")
        shape = item.get("shape")
        if type(shape) is not list:
            raise InvalidRequestError(f"{what}: its shape must be a list of integers, is {shortened(shape)}")
        header = checked_header(what, _text(item, "datatype", what), shape)
        size, data = _parameters(item, what).get("binary_data_size"), item.get("data")
        if size is None:
            if data is None:
                raise InvalidRequestError(f"{what} has neither data nor the parameter binary_data_size")
            inputs[name] = array_of_json(header, data)
            continue
        if data is not None:
            raise InvalidRequestError(f"{what} has data and the parameter binary_data_size, only one can be")
        if type(size) is not int or size < 0:
            raise InvalidRequestError(f"{what}: binary_data_size must be a number of bytes, is {shortened(size)}")
        if rest is None and size:
            raise InvalidRequestError(
                f"{what}: binary_data_size needs the header Inference-Header-Content-Length, the length of the JSON"
            )
        left = 0 if rest is None else len(rest) - start
        if size > left:
            raise InvalidRequestError(f"{what}: binary_data_size is {shortened(size)}, {left} bytes are left")
        inputs[name] = array_of_bytes(header, b"" if rest is None else rest[start : start + size])
        start += size
    if rest is not None and start != len(rest):
        raise InvalidRequestError(f"{len(rest)} bytes follow the JSON, binary_data_size of all inputs is {start}")
    return inputs


def _outputs(document: dict[str, Any], binary_outputs: bool) -> tuple[RequestedOutput, ...] | None:
    items = document.get("outputs")
    if items is not None and type(items) is not list:
        raise InvalidRequestError(f"outputs of the request must be a list, is {shortened(items)}")
    outputs: dict[str, RequestedOutput] = {}
    for index, item in enumerate(items or ()):
        name = _name(item, f"output {index}")
        what = f"output {shortened(name)}"
        if name in outputs:
            raise InvalidRequestError(f"{what} is there twice")
        is_binary = _parameters(item, what).get("binary_data", binary_outputs)
        outputs[name] = RequestedOutput(name, _flag(is_binary, f"{what}: binary_data"))
    return tuple(outputs.values()) or None


def _name(item: Any, what: str) -> str:
    if type(item) is not dict:
        raise InvalidRequestError(f"{what} must be an object, is {shortened(item)}")
    name = _text(item, "name", what)
    if not name:
        raise InvalidRequestError(f"{what} has no name")
    return name


def _text(document: dict[str, Any], member: str, what: str) -> str:
    found = document.get(member)
    if found is None:
        return ""
    if type(found) is not str:
        raise InvalidRequestError(f"{what}: {member} must be a string, is {shortened(found)}")
    if not is_unicode(found):
        raise InvalidRequestError(f"{what}: {member} has half of a surrogate pair: {shortened(found)}")
    return found


def _parameters(document: dict[str, Any], what: str) -> dict[str, Parameter]:
    found = document.get("parameters")
    if found is None:
        return {}
    if type(found) is not dict:
        raise InvalidRequestError(f"{what}: parameters must be an object, is {shortened(found)}")
    for name, value in found.items():
        if not isinstance(value, (bool, int, float, str)):
            raise InvalidRequestError(
                f"{what}: the parameter {shortened(name)} must be a string, a number, true or false, "
                f"is {shortened(value)}"
            )
    check_tensor_parameters(what, found)
    return found


def _flag(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise InvalidRequestError(f"{what} must be true or false, is {shortened(value)}")
    return value


# **** answers ****


def encode_response(response: InferResponse, request: InferRequest) -> tuple[list[bytes | memoryview], int | None]:
    """Return the body of the answer in pieces, which may be views of the outputs, and the length of its JSON.

    Args:
        response: the answer.
        request: the request, which says which outputs are bytes.

    Returns:
        The pieces, and the number of bytes of JSON for the header ``Inference-Header-Content-Length``; None if
        everything is JSON, and there must be no such header.

    Raises:
        InvalidRequestError: an output cannot be JSON.
        UnsupportedError: the protocol has no such element type.
    """
    binary = {output.name: output.binary for output in request.outputs or ()}
    head: dict[str, Any] = {"model_name": response.model, "model_version": response.version}
    if response.id:
        head["id"] = response.id
    if response.parameters:
        head["parameters"] = dict(response.parameters)
    texts: list[bytes | memoryview] = [to_json(head)[:-1], b', "outputs": [']
    tensors: list[bytes | memoryview] = []
    has_binary = False
    for index, (name, array) in enumerate(response.outputs.items()):
        item: dict[str, Any] = {"name": name, "datatype": datatype_of(array.dtype), "shape": array.shape}
        if index:
            texts.append(b", ")
        if binary.get(name, request.binary_outputs):
            has_binary = True
            tensors.append(bytes_of_array(array))
            texts.append(to_json({**item, "parameters": {"binary_data_size": len(tensors[-1])}}))
        else:
            texts += [to_json(item)[:-1], b', "data": ', *array_as_json(f"output {shortened(name)}", array), b"}"]
    texts.append(b"]}")
    if not has_binary:
        return texts, None
    return [*texts, *tensors], sum(map(len, texts))
