"""Whatever is sent: a request, or an error that names its cause; never another exception, never much memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from protocol_samples import (
    SAMPLES,
    answered,
    binary_input,
    decoded,
    grpc_decoded,
    grpc_input,
    grpc_parameter,
    grpc_request,
    is_equal,
    json_input,
)

from lite_serve.protocol import grpc_requests, json_requests
from lite_serve.protocol.element_types import DATATYPES, dtype_of
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError
from lite_serve.protocol.grpc_messages import METHODS
from lite_serve.protocol.messages import InferRequest, InferResponse
from lite_serve.protocol.tensors import bytes_of_array

Array = np.ndarray[Any, Any]
MUTATIONS = 5000


def outcome(decode: Callable[[], InferRequest], sent: int) -> str:
    """Return how a decoder ended, having checked that it ended well.

    Args:
        decode: the decoder.
        sent: the bytes of the request.
    """
    request, refusal = None, None
    try:
        request = decode()
    except (InvalidRequestError, UnsupportedError) as error:
        refusal = error
    if request is None:
        assert 0 < len(str(refusal).encode()) < 500  # an answer and a log can hold it
        return type(refusal).__name__
    # Eight bytes of memory for one of the text "0,", or for a byte of a varint.
    assert sum(array.nbytes for array in request.inputs.values()) <= 8 * sent
    for array in request.inputs.values():
        np.array(array)  # reads it
    request.id.encode()
    return "decoded"


# **** mutations of sound requests, the same ones each time ****


def _bodies() -> list[tuple[bytes, int | None]]:
    found: list[tuple[bytes, int | None]] = []
    for array in SAMPLES.values():
        raw = bytes(bytes_of_array(array))
        output = {"name": "y", "parameters": {"binary_data": True}}
        for document, tensors in (
            ({"id": "é", "inputs": [json_input("x", array), json_input("z", array, True)], "outputs": [output]}, b""),
            ({"parameters": {"a": 1}, "inputs": [binary_input("x", array), binary_input("z", array)]}, raw + raw),
        ):
            text = json.dumps(document).encode()
            found.append((text + tensors, len(text) if tensors else None))
    return found


TOKENS = [
    *(b'null NaN Infinity true -1 1e999 0.5 9223372036854775808 {} [] [[ ]] "" \\u0000 \\ud800 , : \xff'.split()),
    *(b'"data" "shape" "inputs" "outputs" "parameters" "binary_data_size" "classification" "name" "BYTES"'.split()),
    bytes(4),
    b"\xff" * 9,
]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few changes: bytes or tokens replaced, inserted, removed or repeated."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        start = rng.randrange(len(changed) + 1)
        end = start + rng.choice([0, 1, 1, 2, 8, 40])
        middle = bytes(changed[start:end])
        insert = [b"", bytes([rng.randrange(256)]), rng.choice(TOKENS), middle * 2, middle[::-1]]
        changed[start:end] = rng.choice(insert)
    return bytes(changed)


@pytest.mark.usefixtures("parser")
def test_mutations_of_http_requests() -> None:
    rng, outcomes = random.Random(0), set()
    bodies = _bodies()
    for _ in range(MUTATIONS):
        body, json_length = rng.choice(bodies)
        body = mutated(body, rng)
        if json_length is not None and rng.random() < 0.2:
            json_length += rng.randrange(-50, 50)
        try:
            outcomes.add(outcome(lambda: json_requests.decode_request(body, json_length, "model"), len(body)))  # noqa: B023
        except Exception as error:
            raise AssertionError(f"{body!r} with a header {json_length} ends in {error!r}") from error
    assert outcomes >= {"decoded", "InvalidRequestError"}


def test_mutations_of_grpc_requests() -> None:
    rng, outcomes = random.Random(0), set()
    messages: list[Message] = []
    for array in SAMPLES.values():
        raw = bytes(bytes_of_array(array))
        members = {"id": "é", "parameters": {"a": grpc_parameter(int64_param=3)}, "outputs": [{"name": "y"}]}
        messages.append(grpc_request(inputs=[grpc_input("x", array)], raw_input_contents=[raw], **members))
        messages.append(grpc_request(inputs=[{**grpc_input("x", array), "contents": {"int_contents": [1] * 6}}]))
    sent = [message.SerializeToString() for message in messages]
    for _ in range(MUTATIONS):
        data = mutated(rng.choice(sent), rng)
        try:
            outcomes.add(outcome(lambda: grpc_requests.decode_request(METHODS["ModelInfer"].parse(data)), len(data)))  # noqa: B023
        except Exception as error:
            raise AssertionError(f"{data!r} ends in {error!r}") from error
    assert outcomes >= {"decoded", "InvalidRequestError"}


# **** documents and messages of any structure ****

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-(2**63) - 1, 2**63, 2**64, 10**50])
    | st.floats()
    | st.text(st.characters(), max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=3), v, max_size=3), max_leaves=8
)
SHAPES = st.lists(st.integers(-1, 4) | st.sampled_from([2**31, 2**62, 2**64]), max_size=4)
PARAMETERS = st.dictionaries(
    st.sampled_from(
        ["binary_data", "binary_data_size", "binary_data_output", "classification", "shared_memory_x", "é"]
    ),
    VALUES | st.integers(0, 20) | st.booleans(),
    max_size=2,
)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategy, strategy, strategy, VALUES)


TENSORS = st.fixed_dictionaries(
    {},
    optional={
        "name": _maybe(st.sampled_from(["x", "y"])),
        "datatype": _maybe(st.sampled_from(sorted(DATATYPES))),
        "shape": _maybe(SHAPES),
        "data": _maybe(st.lists(SCALARS, max_size=8)),
        "parameters": _maybe(PARAMETERS),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "id": _maybe(st.text(max_size=5)),
        "inputs": _maybe(st.lists(_maybe(TENSORS), max_size=3)),
        "outputs": _maybe(st.lists(_maybe(TENSORS), max_size=2)),
        "parameters": _maybe(PARAMETERS),
    },
)


@given(document=DOCUMENTS, rest=st.none() | st.binary(max_size=24))
def test_any_document(document: Any, rest: bytes | None) -> None:
    text = json.dumps(document).encode()
    body = text + (rest or b"")
    outcome(lambda: json_requests.decode_request(body, None if rest is None else len(text), "model"), len(body))


@given(body=st.binary(max_size=64), json_length=st.none() | st.integers(-1, 70))
def test_any_bytes(body: bytes, json_length: int | None) -> None:
    outcome(lambda: json_requests.decode_request(body, json_length, "model"), len(body))
    outcome(lambda: grpc_requests.decode_request(METHODS["ModelInfer"].parse(body)), len(body))


_LISTS = {
    "bool_contents": st.booleans(),
    "int_contents": st.integers(-(2**31), 2**31 - 1),
    "int64_contents": st.integers(-(2**63), 2**63 - 1),
    "uint_contents": st.integers(0, 2**32 - 1),
    "uint64_contents": st.integers(0, 2**64 - 1),
    "fp32_contents": st.floats(width=32),
    "fp64_contents": st.floats(),
    "bytes_contents": st.binary(max_size=4),
}
GRPC_INPUTS = st.fixed_dictionaries(
    {"datatype": st.sampled_from([*DATATYPES, "", "FP8"]), "name": st.sampled_from(["x", "y", ""])},
    optional={
        "shape": st.lists(st.integers(-1, 3) | st.sampled_from([2**31, 2**62]), max_size=3),
        "contents": st.fixed_dictionaries({}, optional={f: st.lists(v, max_size=6) for f, v in _LISTS.items()}),
    },
)


@given(
    inputs=st.lists(GRPC_INPUTS, max_size=2),
    raw=st.lists(st.binary(max_size=16), max_size=2),
    outputs=st.lists(st.fixed_dictionaries({"name": st.sampled_from(["x", "y", ""])}), max_size=2),
)
def test_any_message(inputs: Any, raw: list[bytes], outputs: Any) -> None:
    message = grpc_request(inputs=inputs, raw_input_contents=raw, outputs=outputs)
    outcome(lambda: grpc_decoded(message), message.ByteSize())


# **** there and back ****


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Draw an array of any element type of the protocol."""
    datatype = draw(st.sampled_from(sorted(DATATYPES)))
    shape = draw(arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    if datatype == "BYTES":
        texts = draw(st.lists(st.text(max_size=4), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        array = np.empty(len(texts), object)
        array[:] = texts
        return array.reshape(shape)
    dtype = dtype_of(datatype)
    if datatype == "BOOL":
        return draw(arrays_of.arrays(np.bool_, shape))
    bits = draw(arrays_of.arrays(np.dtype(f"u{dtype.itemsize}"), shape))
    return np.asarray(bits.view(dtype))


@pytest.mark.parametrize("is_nested", [False, True])
@given(array=arrays())
def test_json_there_and_back(is_nested: bool, array: Array) -> None:
    assert is_equal(decoded({"inputs": [json_input("x", array, is_nested)]}).inputs["x"], array)
    (output,) = answered({"x": array}, InferRequest("model"))[0]["outputs"]
    assert is_equal(decoded({"inputs": [output]}).inputs["x"], array)


@given(array=arrays())
def test_bytes_there_and_back(array: Array) -> None:
    raw = bytes(bytes_of_array(array))
    request = decoded({"inputs": [binary_input("x", array)]}, raw) if raw else InferRequest("m", inputs={"x": array})
    assert is_equal(request.inputs["x"], array)
    request.binary_outputs = True
    document, rest = answered({"y": array}, request)
    assert (document["outputs"][0]["parameters"], rest) == ({"binary_data_size": len(raw)}, raw)
    answer = grpc_requests.encode_response(InferResponse("model", "1", "", {"x": array}))
    message = grpc_request(inputs=[grpc_input("x", array)], raw_input_contents=answer.raw_output_contents)
    assert is_equal(grpc_decoded(message).inputs["x"], array)
