"""Requests and answers of HTTP: their members, and the binary tensor data."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from protocol_samples import SAMPLES, answered, binary_input, decoded, is_equal, json_input

from lite_serve.protocol import json_requests
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError
from lite_serve.protocol.messages import InferRequest, InferResponse, RequestedOutput
from lite_serve.protocol.tensors import bytes_of_array

pytestmark = pytest.mark.usefixtures("parser")
X = np.array([[1, 2, 3]], np.float32)


def test_a_request_with_all_members() -> None:
    request = decoded(
        {
            "id": "seven",
            "model_name": "ignored",
            "parameters": {"priority": 2, "note": "é", "ratio": 0.5, "fast": True, "binary_data_output": True},
            "inputs": [json_input("x", X)],
            "outputs": [{"name": "a"}, {"name": "b", "parameters": {"binary_data": False}}],
        }
    )
    assert (request.model, request.version, request.id) == ("model", "1", "seven")
    assert request.parameters == {"priority": 2, "note": "é", "ratio": 0.5, "fast": True}
    assert request.outputs == (RequestedOutput("a", True), RequestedOutput("b", False))
    assert request.binary_outputs


@pytest.mark.parametrize("outputs", [None, []])
def test_members_that_may_be_missing_or_null(outputs: Any) -> None:
    request = decoded({"id": None, "parameters": None, "outputs": outputs, "inputs": []})
    assert (request.id, request.parameters, request.outputs, request.inputs) == ("", {}, None, {})


@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (0, 3), (2, 0), (6,)])
@pytest.mark.parametrize("datatype", SAMPLES)
def test_binary_data_of_every_element_type(datatype: str, shape: tuple[int, ...]) -> None:
    array = np.resize(SAMPLES[datatype], shape)
    raw = bytes(bytes_of_array(array))
    # The second tensor may begin at an odd address.
    request = decoded(
        {"inputs": [binary_input("x", array), json_input("j", X), binary_input("z", array)]}, raw, raw, b""
    )
    assert is_equal(request.inputs["x"], array)
    assert is_equal(request.inputs["z"], array)
    assert list(request.inputs) == ["x", "j", "z"]
    assert all(found.flags.aligned for found in request.inputs.values())
    request.outputs = (RequestedOutput("a", True), RequestedOutput("b", False), RequestedOutput("c", True))
    document, rest = answered({"a": array, "b": X, "c": array}, request)
    sizes = [output.get("parameters", {}).get("binary_data_size") for output in document["outputs"]]
    assert sizes == [len(raw), None, len(raw)]
    assert ["data" in output for output in document["outputs"]] == [False, True, False]
    assert rest == raw + raw


def test_strings_of_any_bytes_come_and_go_as_they_are() -> None:
    raw = b"".join(struct.pack("<I", len(text)) + text for text in (b"\xff\xfe", b"", "é".encode()))
    request = decoded({"inputs": [{**binary_input("x", SAMPLES["BYTES"][0]), **_sized(len(raw))}]}, raw)
    assert request.inputs["x"].tolist() == ["\udcff\udcfe", "", "é"]
    request.binary_outputs = True
    assert answered({"y": request.inputs["x"]}, request)[1] == raw


def _sized(size: Any) -> dict[str, Any]:
    return {"parameters": {"binary_data_size": size}}


def test_aligned_binary_data_is_not_copied() -> None:
    array = np.arange(1024, dtype=np.float64)
    document = {"inputs": [binary_input("x", array)]}
    text = json.dumps(document).encode()
    for padding in range(8):
        head = text + b" " * padding
        body = head + array.tobytes()
        found = json_requests.decode_request(body, len(head), "model").inputs["x"]
        address = np.frombuffer(body, np.uint8).ctypes.data
        is_view = address <= found.ctypes.data < address + len(body)
        assert is_view == ((address + len(head)) % array.itemsize == 0)
        assert is_equal(found, array)
    chunks, _ = json_requests.encode_response(
        InferResponse("model", "1", "", {"y": array}), InferRequest("model", binary_outputs=True)
    )
    assert np.shares_memory(np.frombuffer(chunks[-1], np.uint8), array)


def test_an_answer_has_what_identifies_it() -> None:
    response = InferResponse("model", "3", "seven", {"y": X, "z": X[:, ::2]}, {"batch_size": 2})
    chunks, json_length = json_requests.encode_response(response, InferRequest("model"))
    assert json_length is None
    assert json.loads(b"".join(chunks)) == {
        "model_name": "model",
        "model_version": "3",
        "id": "seven",
        "parameters": {"batch_size": 2},
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]},
            {"name": "z", "datatype": "FP32", "shape": [1, 2], "data": [1, 3]},
        ],
    }
    assert json.loads(
        b"".join(json_requests.encode_response(InferResponse("m", "", "", {}), InferRequest("m"))[0])
    ) == {
        "model_name": "m",
        "model_version": "",
        "outputs": [],
    }


def test_an_output_of_bytes_that_is_not_contiguous() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4).T
    assert answered({"y": array}, InferRequest("model", binary_outputs=True))[1] == array.tobytes()


def test_an_empty_tensor_without_a_header() -> None:
    # KServe's client sends it so.
    item = {"name": "x", "shape": [0, 3], "datatype": "FP32", "data": None, **_sized(0)}
    assert decoded({"inputs": [item]}).inputs["x"].shape == (0, 3)


@pytest.mark.parametrize("header", ["-1", "+1", "1.5", "", "ten", "١", "9" * 30, " 7"])
def test_a_header_that_is_no_number(header: str) -> None:
    with pytest.raises(InvalidRequestError, match="Inference-Header-Content-Length must be a number"):
        json_requests.json_length_of(header)


def test_the_header() -> None:
    assert json_requests.json_length_of(None) is None
    assert json_requests.json_length_of("602112") == 602112


@pytest.mark.parametrize("json_length", [0, -1, 3, 10**18])
def test_a_header_that_lies(json_length: int) -> None:
    with pytest.raises(InvalidRequestError, match=rf"Inference-Header-Content-Length is {json_length}; the body has 2"):
        json_requests.decode_request(b"{}", json_length, "model")


@pytest.mark.parametrize("json_length", [1, 20, 60, 150])
def test_a_header_that_cuts_the_json(json_length: int) -> None:
    body = json.dumps({"inputs": [binary_input("x", X)]}).encode() + X.tobytes()
    with pytest.raises(InvalidRequestError):
        json_requests.decode_request(body, json_length, "model")


ITEM = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
SHAPES = "input 'x': "
#: A request, or its text, and what is said about it.
WRONG: list[tuple[Any, str]] = [
    ("", "the request is not JSON"),
    ("{", "the request is not JSON"),
    ("{} {}", "the request is not JSON"),
    ("\x00", "the request is not JSON"),
    ("[" * 100_000, "nested too deep"),
    ('{"a":' * 100_000, "nested too deep"),
    ([], "the request must be an object with the member inputs, is a list"),
    ("3", "must be an object with the member inputs, is 3"),
    ("null", "must be an object with the member inputs, is null"),
    ({}, "the request has no list of inputs"),
    ({"inputs": None}, "the request has no list of inputs"),
    ({"inputs": {"x": [1]}}, "the request has no list of inputs"),
    ({"inputs": [3]}, "input 0 must be an object, is 3"),
    ({"inputs": [ITEM, {}]}, "input 1 has no name"),
    ({"inputs": [{**ITEM, "name": ""}]}, "input 0 has no name"),
    ({"inputs": [{**ITEM, "name": 7}]}, "input 0: name must be a string, is 7"),
    ({"inputs": [{**ITEM, "name": "\udc80"}]}, r"input 0: name has half of a surrogate pair: '\\udc80'|not JSON"),
    ({"inputs": [ITEM, ITEM]}, "input 'x' is there twice"),
    ({"inputs": [{**ITEM, "datatype": "FP8"}]}, "input 'x': datatype 'FP8' is not one of BOOL, UINT8"),
    ({"inputs": [{**ITEM, "datatype": None}]}, "input 'x': datatype '' is not one of"),
    ({"inputs": [{**ITEM, "datatype": ["FP32"]}]}, "input 'x': datatype must be a string, is a list"),
    ({"inputs": [{**ITEM, "datatype": "X" * 10**6}]}, r"datatype 'X{70,80}\.\.\. is not one of"),
    ({"inputs": [{**ITEM, "shape": None}]}, "input 'x': its shape must be a list of integers, is null"),
    ({"inputs": [{**ITEM, "shape": 3}]}, "input 'x': its shape must be a list of integers, is 3"),
    ({"inputs": [{**ITEM, "shape": [-1, 3]}]}, "input 'x': a shape is a list of integers from 0 on, one is -1"),
    ({"inputs": [{**ITEM, "shape": [1.0, 3]}]}, "integers from 0 on, one is 1.0"),
    ({"inputs": [{**ITEM, "shape": [True, 3]}]}, "integers from 0 on, one is true"),
    ({"inputs": [{**ITEM, "shape": ["1", 3]}]}, "integers from 0 on, one is '1'"),
    ({"inputs": [{**ITEM, "shape": [[1], 3]}]}, "integers from 0 on, one is a list"),
    (
        {"inputs": [{**ITEM, "shape": [10**400]}]},
        "integers from 0 on, one is an integer of many digits|within the range",
    ),
    ({"inputs": [{**ITEM, "shape": [2**63]}]}, "integers from 0 on, one is 9223372036854775808"),
    ({"inputs": [{**ITEM, "shape": [2**62]}]}, "an array of the shape .4611686018427387904. is larger than any memory"),
    ({"inputs": [{**ITEM, "shape": [2**40, 2**40]}]}, "is larger than any memory"),
    ({"inputs": [{**ITEM, "shape": [0, 2**62], "data": []}]}, "is larger than any memory"),
    ({"inputs": [{**ITEM, "shape": [2**40]}]}, "the shape .1099511627776. has 1099511627776 elements, its data has 3"),
    ({"inputs": [{**ITEM, "shape": [1] * 33}]}, "its shape has 33 dimensions, at most 32 are possible"),
    ({"inputs": [{**ITEM, "parameters": [1]}]}, "input 'x': parameters must be an object, is a list"),
    ({"inputs": [{**ITEM, "parameters": {"a": None}}]}, "input 'x': the parameter 'a' must be a string"),
    ({"inputs": [{**ITEM, "parameters": {"a": [1]}}]}, "input 'x': the parameter 'a' must be a string"),
    ({"inputs": [{**ITEM, **_sized(12)}]}, "input 'x' has data and the parameter binary_data_size"),
    ({"inputs": [ITEM], "id": 7}, "the request: id must be a string, is 7"),
    ({"inputs": [ITEM], "parameters": "fast"}, "the request: parameters must be an object, is 'fast'"),
    ({"inputs": [ITEM], "parameters": {"binary_data_output": 1}}, "binary_data_output of the request must be true or"),
    ({"inputs": [ITEM], "outputs": {}}, "outputs of the request must be a list, is an object"),
    ({"inputs": [ITEM], "outputs": ["y"]}, "output 0 must be an object, is 'y'"),
    ({"inputs": [ITEM], "outputs": [{}]}, "output 0 has no name"),
    ({"inputs": [ITEM], "outputs": [{"name": "y"}, {"name": "y"}]}, "output 'y' is there twice"),
    (
        {"inputs": [ITEM], "outputs": [{"name": "y", "parameters": {"binary_data": "yes"}}]},
        "output 'y': binary_data must",
    ),
]


@pytest.mark.parametrize(("document", "message"), WRONG)
def test_wrong_requests(document: Any, message: str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(InvalidRequestError, match=message) as caught:
        json_requests.decode_request(text.encode(), None, "model")
    assert len(str(caught.value)) < 400


def test_text_that_is_not_utf8() -> None:
    for body in (b"\xff", b'{"inputs": [], "id": "\xc3"}', '{"inputs": []}'.encode("utf-16")):
        with pytest.raises(InvalidRequestError, match="the request is not JSON"):
            json_requests.decode_request(body, None, "model")


WITHOUT_DATA = {name: value for name, value in ITEM.items() if name != "data"}
WRONG_BYTES: list[tuple[dict[str, Any], bytes, str]] = [
    ({**WITHOUT_DATA}, b"", "input 'x' has neither data nor the parameter binary_data_size"),
    ({**WITHOUT_DATA, **_sized(12)}, b"", "input 'x': binary_data_size is 12, 0 bytes are left"),
    ({**WITHOUT_DATA, **_sized(12)}, bytes(11), "input 'x': binary_data_size is 12, 11 bytes are left"),
    ({**WITHOUT_DATA, **_sized(12)}, bytes(13), "13 bytes follow the JSON, binary_data_size of all inputs is 12"),
    (
        {**WITHOUT_DATA, **_sized(11)},
        bytes(11),
        r"input 'x': FP32 of the shape \[1, 3\] is 12 bytes, the request has 11",
    ),
    ({**WITHOUT_DATA, **_sized(-1)}, bytes(12), "input 'x': binary_data_size must be a number of bytes, is -1"),
    ({**WITHOUT_DATA, **_sized(12.0)}, bytes(12), "binary_data_size must be a number of bytes, is 12.0"),
    ({**WITHOUT_DATA, **_sized(True)}, bytes(12), "binary_data_size must be a number of bytes, is true"),
    ({**WITHOUT_DATA, **_sized("12")}, bytes(12), "binary_data_size must be a number of bytes, is '12'"),
    ({**WITHOUT_DATA, **_sized(10**30)}, bytes(12), "binary_data_size (is|must be)"),
    ({**WITHOUT_DATA, "datatype": "BOOL", **_sized(3)}, b"\0\1\2", "input 'x': an element of BOOL is a byte of 0 or 1"),
    ({**WITHOUT_DATA, "datatype": "BYTES", **_sized(11)}, bytes(11), "3 elements of BYTES take at least 12 bytes"),
    (
        {**WITHOUT_DATA, "datatype": "BYTES", **_sized(12)},
        b"\xff" * 12,
        "input 'x': the element 0 of 3 ends at byte 4294967299, the request has 12 bytes",
    ),
    (
        {**WITHOUT_DATA, "datatype": "BYTES", **_sized(13)},
        b"\4\0\0\0abcd" + bytes(5),
        "the element 2 of 3 ends at byte 16, the request has 13 bytes",
    ),
    ({**WITHOUT_DATA, "datatype": "BYTES", **_sized(13)}, bytes(13), "1 bytes follow the last of 3 elements"),
    (
        {**WITHOUT_DATA, "datatype": "BYTES", "shape": [2**50], **_sized(12)},
        bytes(12),
        "elements of BYTES take at least",
    ),
    ({**WITHOUT_DATA, "shape": [2**50], **_sized(12)}, bytes(12), "is 4503599627370496 bytes, the request has 12"),
]


@pytest.mark.parametrize(("item", "content", "message"), WRONG_BYTES)
def test_wrong_binary_data(item: dict[str, Any], content: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        decoded({"inputs": [item]}, content)


def test_binary_data_without_the_header() -> None:
    with pytest.raises(InvalidRequestError, match="input 'x': binary_data_size needs the header Inference-Header-Cont"):
        decoded({"inputs": [{**WITHOUT_DATA, **_sized(12)}]})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"inputs": [{**WITHOUT_DATA, "parameters": {"shared_memory_region": "r"}}]}, "input 'x': shared memory"),
        (
            {"inputs": [ITEM], "outputs": [{"name": "y", "parameters": {"shared_memory_region": "r"}}]},
            "output 'y': shared memory",
        ),
        (
            {"inputs": [ITEM], "outputs": [{"name": "y", "parameters": {"classification": 3}}]},
            "output 'y': classification is not supported",
        ),
    ],
)
def test_extensions_that_lite_has_not(members: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        decoded(members)


def test_no_classification_is_no_extension() -> None:
    # Triton's client says it of every output.
    request = decoded({"inputs": [ITEM], "outputs": [{"name": "y", "parameters": {"classification": 0}}]})
    assert request.outputs == (RequestedOutput("y"),)


@pytest.mark.parametrize("datatype", ["FP64", "BYTES"])
def test_nothing_is_allocated_for_what_was_not_sent(datatype: str) -> None:
    item = {**WITHOUT_DATA, "datatype": datatype, "shape": [2**36]}
    tracemalloc.start()
    try:
        for document in (
            {**item, "data": []},
            {**item, "data": [[]]},
            {**item, **_sized(2**36)},
            {**item, **_sized(8)},
        ):
            with pytest.raises(InvalidRequestError, match="input 'x'"):
                decoded({"inputs": [document]}, *([bytes(8)] if "data" not in document else []))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
