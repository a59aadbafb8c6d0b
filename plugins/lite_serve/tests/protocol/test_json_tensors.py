"""Tensors as JSON: all element types, flat and nested, and what does not fit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from protocol_samples import SAMPLES, answered, decoded, is_equal, json_input

from lite_serve.protocol import json_requests
from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.json_texts import list_as_json, parse_json_with_data
from lite_serve.protocol.messages import InferRequest, InferResponse

pytestmark = pytest.mark.usefixtures("parser")


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("datatype", SAMPLES)
def test_every_element_type_arrives(datatype: str, is_nested: bool) -> None:
    array = SAMPLES[datatype]
    request = decoded({"inputs": [json_input("x", array, is_nested)]})
    assert is_equal(request.inputs["x"], array)


@pytest.mark.parametrize("datatype", SAMPLES)
def test_every_element_type_is_answered(datatype: str) -> None:
    array = SAMPLES[datatype]
    document, rest = answered({"y": array}, InferRequest("model", "1"))
    (output,) = document["outputs"]
    assert (output["name"], output["datatype"], output["shape"], rest) == ("y", datatype, [2, 3], b"")
    # What a server says, it understands.
    assert is_equal(decoded({"inputs": [{**output, "name": "x"}]}).inputs["x"], array)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (2, 0), (2, 0, 3), (1, 1, 1), (3, 1, 2)])
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("datatype", ["FP32", "INT8", "BYTES", "BF16"])
def test_shapes(datatype: str, shape: tuple[int, ...], is_nested: bool) -> None:
    array = np.resize(SAMPLES[datatype], shape)
    found = decoded({"inputs": [json_input("x", array, is_nested)]}).inputs["x"]
    assert is_equal(found, array)
    (output,) = answered({"y": array}, InferRequest("model"))[0]["outputs"]
    assert (output["shape"], len(output["data"])) == (list(shape), array.size)


def test_numbers_that_json_has_not() -> None:
    text = b'{"inputs": [{"name": "x", "shape": [5], "datatype": "FP32", "data": [NaN, Infinity, -Infinity, null, 1]}]}'
    found = json_requests.decode_request(text, None, "model").inputs["x"]
    assert is_equal(found, np.array([np.nan, np.inf, -np.inf, np.nan, 1], np.float32))
    chunks, _ = json_requests.encode_response(_response(found), InferRequest("model"))
    assert b'"data": [null,Infinity,-Infinity,null,1.0]' in b"".join(chunks)
    # Strict readers of JSON can read NaN, because it is null.
    chunks, _ = json_requests.encode_response(_response(np.array([np.nan, 1], np.float16)), InferRequest("model"))
    assert json.loads(b"".join(chunks), parse_constant=pytest.fail)["outputs"][0]["data"] == [None, 1]


def _response(array: np.ndarray[Any, Any]) -> Any:
    return InferResponse("model", "1", "", {"y": array})


def test_float32_keeps_its_bits_by_json() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, np.uint32)
    array = bits.view(np.float32)
    (output,) = answered({"y": array}, InferRequest("model"))[0]["outputs"]
    assert is_equal(np.array(output["data"], np.float32), array)
    assert is_equal(decoded({"inputs": [{**output, "name": "x"}]}).inputs["x"], array)


def test_strings_that_are_not_utf8_are_no_json() -> None:
    array = np.array(["good", b"\xff".decode("utf-8", "surrogateescape")], object)
    with pytest.raises(InvalidRequestError, match=r"output 'y': an element is not UTF-8.* Ask for the output as bytes"):
        answered({"y": array}, InferRequest("model"))


def test_long_lists_arrive() -> None:
    for dtype in (np.float32, np.int64, np.uint8, np.bool_):
        array = np.random.default_rng(0).integers(0, 2, (4, 100_000)).astype(dtype)
        assert is_equal(decoded({"inputs": [json_input("a", array), json_input("b", array)]}).inputs["b"], array)
    escaped = decoded({"id": '"data":[', "inputs": [json_input("100%é\\", array)]})
    assert (escaped.id, is_equal(escaped.inputs["100%é\\"], array)) == ('"data":[', True)


def test_long_lists_are_parsed_and_written_in_pieces() -> None:
    # Between pieces, other threads run.
    array = np.arange(200_000, dtype=np.float32)
    document = parse_json_with_data(json.dumps({"inputs": [json_input("x", array)]}).encode())
    pieces = list(document["inputs"][0]["data"])
    assert len(pieces) > 3
    assert [element for piece in pieces for element in piece] == array.tolist()
    written = [piece for piece in list_as_json(array) if len(piece) > 1]
    assert len(written) > 3
    assert max(map(len, written)) < 1 << 18


@pytest.mark.parametrize(
    ("find", "replace", "message"),
    [
        (b"7, 7]", b"7, 7,]", "is not JSON"),
        (b"7, 7]", b"7, ,7]", "is not JSON"),
        (b"7, 7]", b"7 7, 7]", "is not JSON"),
        (b"7, 7]", b"7, 7", "is not JSON"),
        (b"7, 7]", b"7]", "the shape .200000. has 200000 elements, its data has 199999"),
        (b"7, 7]", b"7, 7.5]", "input 'x': element 199999 of INT32 must be an integer, is 7.5"),
        (b"7, 7]", b"7, 4294967296]", "element 199999 of INT32 must be from -2147483648 to 2147483647, is 4294967296"),
        (b'"INT32"', b"INT32", "is not JSON"),
        (b'"data": [', b'"data": [[', "is not JSON"),
        (b'"shape": [200000]', b'"shape": [[200000]]', "is a list"),
    ],
)
def test_wrong_long_lists(find: bytes, replace: bytes, message: str) -> None:
    text = json.dumps({"inputs": [{"name": "x", "shape": [200_000], "datatype": "INT32", "data": [7] * 200_000}]})
    assert text.encode().count(find) == 1
    with pytest.raises(InvalidRequestError, match=message):
        json_requests.decode_request(text.encode().replace(find, replace), None, "model")


WRONG: list[tuple[str, list[int], Any, str]] = [
    ("INT8", [1], [128], "element 0 of INT8 must be from -128 to 127, is 128"),
    ("INT8", [2], [0, -129], "element 1 of INT8 must be from -128 to 127, is -129"),
    ("UINT8", [1], [-1], "element 0 of UINT8 must be from 0 to 255, is -1"),
    ("INT16", [1], [1 << 15], "is 32768"),
    ("UINT16", [1], [1 << 16], "is 65536"),
    ("UINT32", [1], [1 << 32], "is 4294967296"),
    ("INT64", [1], [1 << 63], "is 9223372036854775808"),
    ("UINT64", [1], [-1], "element 0 of UINT64 must be from 0 to 18446744073709551615, is -1"),
    ("UINT64", [1], [1 << 64], "element 0 of UINT64 must be "),
    ("INT64", [1], [10**400], "the request has an integer|element 0 of INT64 must be .* is an integer of many digits"),
    ("INT32", [1], [1.0], "element 0 of INT32 must be an integer, is 1.0"),
    ("INT32", [1], [float("nan")], "must be an integer, is nan"),
    ("INT32", [1], [None], "must be an integer, is null"),
    ("INT32", [1], [True], "must be an integer, is true"),
    ("INT32", [1], ["1"], "must be an integer, is '1'"),
    ("BOOL", [1], [1], "element 0 of BOOL must be true or false, is 1"),
    ("FP32", [2], [0, True], "element 1 of FP32 must be a number, is true"),
    ("FP32", [1], ["0.5"], "must be a number, is '0.5'"),
    ("FP32", [1], [1e39], "element 0 of FP32 must be within the range of the type, is 1e[+]39"),
    ("FP16", [1], [65536], "element 0 of FP16 must be within the range of the type, is 65536"),
    ("BF16", [1], [3.5e38], "element 0 of BF16 must be within the range of the type"),
    ("FP64", [1], [10**400], "of FP64 must be within the range of the type, is an integer of many digits"),
    ("BYTES", [1], [1], "element 0 of BYTES must be a string, is 1"),
    ("BYTES", [2], ["", "\ud800"], "element 1 of BYTES must be a string without half of a surrogate pair"),
    ("FP32", [2], [1], "the shape .2. has 2 elements, its data has 1"),
    ("FP32", [2], [1, 2, 3], "the shape .2. has 2 elements, its data has 3"),
    ("FP32", [], [1, 2], "has 1 elements, its data has 2"),
    ("FP32", [2], 1, "its data must be a list, is 1"),
    ("FP32", [1], {"0": 1}, "its data must be a list, is an object"),
    ("FP32", [], {"0": 1}, "element 0 of FP32 must be a number, is an object"),
    ("FP32", [2], [[1], [2]], "element 0 of FP32 must be a number, is a list"),
    ("FP32", [2, 2], [[1, 2], [3]], "the lists at depth 2 do not have 2 elements each"),
    ("FP32", [2, 2], [[1, 2], 3], "the lists at depth 2 do not have 2 elements each"),
    ("FP32", [2, 2], [[1, 2]], "the lists at depth 1 do not have 2 elements each"),
    ("FP32", [2, 2], [[[1], [2]], [[3], [4]]], "element 0 of FP32 must be a number, is a list"),
    ("FP32", [0, 2], [[1, 2]], "the lists at depth 1 do not have 0 elements each"),
    ("FP32", [0], [1], "has 0 elements, its data has 1"),
    ("FP32", [1], None, "has neither data nor the parameter binary_data_size"),
]


@pytest.mark.parametrize(("datatype", "shape", "data", "message"), WRONG)
def test_wrong_data(datatype: str, shape: list[int], data: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"input 'the name'.* {message}|the request has an integer"):
        decoded({"inputs": [{"name": "the name", "shape": shape, "datatype": datatype, "data": data}]})
