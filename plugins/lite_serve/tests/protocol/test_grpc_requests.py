"""Requests and answers of gRPC: raw and typed contents of every element type, and what is wrong with others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pool
from protocol_samples import SAMPLES, grpc_decoded, grpc_input, grpc_parameter, grpc_request, is_equal

from lite_serve.protocol import grpc_requests
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError
from lite_serve.protocol.grpc_messages import METHODS, SERVICE, message_class
from lite_serve.protocol.messages import InferResponse, ModelMetadata, RequestedOutput, TensorMetadata
from lite_serve.protocol.tensors import bytes_of_array

X = np.array([[1, 2, 3]], np.float32)
CONTENTS = {
    "BOOL": "bool_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
}


@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("datatype", SAMPLES)
def test_raw_contents_of_every_element_type(datatype: str, shape: tuple[int, ...]) -> None:
    array = np.resize(SAMPLES[datatype], shape)
    raw = bytes(bytes_of_array(array))
    inputs = [grpc_input("x", array), grpc_input("z", array)]
    request = grpc_decoded(grpc_request(inputs=inputs, raw_input_contents=[raw, raw]))
    assert list(request.inputs) == ["x", "z"]
    assert all(is_equal(found, array) for found in request.inputs.values())
    message = grpc_requests.encode_response(InferResponse("model", "3", "seven", {"y": array}))
    sent = type(message).FromString(message.SerializeToString())
    assert (sent.model_name, sent.model_version, sent.id) == ("model", "3", "seven")
    (output,) = sent.outputs
    assert (output.name, output.datatype, tuple(output.shape)) == ("y", datatype, shape)
    assert sent.raw_output_contents == [raw]


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)])
@pytest.mark.parametrize("datatype", [*CONTENTS, "BYTES"])
def test_typed_contents(datatype: str, shape: tuple[int, ...]) -> None:
    array = np.resize(SAMPLES[datatype], shape)
    values = array.reshape(-1).tolist()
    contents = {"bytes_contents": [v.encode() for v in values]} if datatype == "BYTES" else {CONTENTS[datatype]: values}
    request = grpc_decoded(grpc_request(inputs=[{**grpc_input("x", array), "contents": contents}]))
    assert is_equal(request.inputs["x"], array)


def test_raw_contents_are_not_copied_again() -> None:
    array = np.arange(1024, dtype=np.float32)
    message = grpc_request(inputs=[grpc_input("x", array)], raw_input_contents=[array.tobytes()])
    found = grpc_requests.decode_request(message).inputs["x"]
    assert not found.flags.owndata
    assert not found.flags.writeable


def test_all_members() -> None:
    parameters = {
        "flag": grpc_parameter(bool_param=False),
        "number": grpc_parameter(int64_param=-3),
        "text": grpc_parameter(string_param="é"),
        "ratio": grpc_parameter(double_param=0.5),
        "large": grpc_parameter(uint64_param=2**64 - 1),
    }
    message = grpc_request(
        model_version="3",
        id="seven",
        parameters=parameters,
        inputs=[grpc_input("x", X)],
        raw_input_contents=[X.tobytes()],
        outputs=[{"name": "b"}, {"name": "a", "parameters": {"classification": grpc_parameter(int64_param=0)}}],
    )
    request = grpc_decoded(message)
    assert (request.model, request.version, request.id) == ("model", "3", "seven")
    expected = {"flag": False, "number": -3, "text": "é", "ratio": 0.5, "large": 2**64 - 1}
    assert request.parameters == expected
    assert request.outputs == (RequestedOutput("b", True), RequestedOutput("a", True))
    answer = grpc_requests.encode_response(InferResponse("model", "3", "", {}, expected))
    sent = type(answer).FromString(answer.SerializeToString())
    found = {name: (p.WhichOneof("parameter_choice"), p) for name, p in sent.parameters.items()}
    assert {name: getattr(p, kind) for name, (kind, p) in found.items()} == expected
    assert found["flag"][0] == "bool_param"


def _typed(datatype: str, shape: list[int], **contents: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape, "contents": contents}]}


RAW = {"inputs": [grpc_input("x", X)]}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"inputs": [{"datatype": "FP32"}]}, "input 0 has no name"),
    (_typed("FP8", [1]), "input 'x': datatype 'FP8' is not one of BOOL"),
    (_typed("", [1]), "input 'x': datatype '' is not one of BOOL"),
    (_typed("FP32", [-1], fp32_contents=[1]), "input 'x': a shape is a list of integers from 0 on, one is -1"),
    (_typed("FP32", [2**40, 2**40]), "input 'x': an array of the shape .* is larger than any memory"),
    (_typed("FP32", [2**40]), "has 1099511627776 elements, fp32_contents has 0"),
    (_typed("FP32", [1] * 33), "its shape has 33 dimensions"),
    (_typed("FP32", [2], fp32_contents=[1]), "input 'x': the shape .2. has 2 elements, fp32_contents has 1"),
    (
        _typed("FP32", [1], fp64_contents=[1]),
        "input 'x': elements of FP32 must be in fp32_contents, are in fp64_contents",
    ),
    (_typed("FP32", [1], fp32_contents=[1], int_contents=[1]), "must be in fp32_contents, are in int_contents"),
    (_typed("FP16", [1], fp32_contents=[1]), "of FP16 must be in raw_input_contents, are in fp32_contents"),
    (_typed("BF16", [1]), "input 'x': elements of BF16 must be in raw_input_contents, are in neither"),
    (_typed("INT8", [2], int_contents=[1, 128]), "input 'x': element 1 of INT8 must be from -128 to 127, is 128"),
    (_typed("UINT16", [1], uint_contents=[65536]), "element 0 of UINT16 must be from 0 to 65535, is 65536"),
    ({"inputs": RAW["inputs"] * 2, "raw_input_contents": [X.tobytes()] * 2}, "input 'x' is there twice"),
    ({**RAW, "raw_input_contents": [X.tobytes()] * 2}, "raw_input_contents has 2 entries for 1 inputs"),
    ({**RAW, "raw_input_contents": [bytes(11)]}, "input 'x': FP32 of the shape .1, 3. is 12 bytes, the request has 11"),
    (
        {**_typed("FP32", [1], fp32_contents=[1]), "raw_input_contents": [bytes(4)]},
        "input 'x' has contents, and the req",
    ),
    (
        {**_typed("BYTES", [1]), "raw_input_contents": [b"\5\0\0\0abcd"]},
        "the element 0 of 1 ends at byte 9, the request",
    ),
    ({**_typed("BOOL", [1]), "raw_input_contents": [b"\2"]}, "an element of BOOL is a byte of 0 or 1"),
    ({"outputs": [{}]}, "output 0 has no name"),
    ({"outputs": [{"name": "y"}, {"name": "y"}]}, "output 'y' is there twice"),
    ({"parameters": {"empty": grpc_parameter()}}, "the request: the parameter 'empty' has no value"),
]


@pytest.mark.parametrize(("members", "message"), WRONG)
def test_wrong_requests(members: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        grpc_decoded(grpc_request(**members))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {
                "inputs": [
                    {**RAW["inputs"][0], "parameters": {"shared_memory_region": grpc_parameter(string_param="r")}}
                ]
            },
            "input 'x': shared memory is not supported",
        ),
        (
            {"outputs": [{"name": "y", "parameters": {"classification": grpc_parameter(int64_param=3)}}]},
            "output 'y': classification is not supported",
        ),
    ],
)
def test_extensions_that_lite_has_not(members: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        grpc_decoded(grpc_request(**members))


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05abc", b"\x0a\x01\xff", b"\x2a" * 1000])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="bytes are not a message inference.ModelInferRequest"):
        METHODS["ModelInfer"].parse(data)


def test_the_methods() -> None:
    assert SERVICE == "inference.GRPCInferenceService"
    assert METHODS["ModelInfer"].path == "/inference.GRPCInferenceService/ModelInfer"
    assert {name: (m.name, m.request.DESCRIPTOR.name, m.response.DESCRIPTOR.name) for name, m in METHODS.items()} == {
        name: (name, f"{name}Request", f"{name}Response") for name in METHODS
    }


def test_the_messages_are_in_a_pool_of_their_own() -> None:
    file = message_class("ModelInferRequest").DESCRIPTOR.file
    assert file.pool is not descriptor_pool.Default()
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindFileByName(file.name)


def test_metadata() -> None:
    tensors = (TensorMetadata("x", "FP32", (-1, 3)),), (TensorMetadata("y", "BYTES", ()),)
    found = grpc_requests.model_metadata(ModelMetadata("model", ("1", "3"), "lite_onnx", *tensors, {"batch": "off"}))
    assert (found.name, found.versions, found.platform) == ("model", ["1", "3"], "lite_onnx")
    assert [(t.name, t.datatype, tuple(t.shape)) for t in found.inputs] == [("x", "FP32", (-1, 3))]
    assert [(t.name, t.datatype, tuple(t.shape)) for t in found.outputs] == [("y", "BYTES", ())]
    server = grpc_requests.server_metadata("0.1.0")
    assert (server.name, server.version) == ("lite-serve", "0.1.0")
    assert server.extensions == ["binary_tensor_data", "model_repository"]
    (entry,) = grpc_requests.repository_index([("model", "1", "UNAVAILABLE", "unloaded")]).models
    assert (entry.name, entry.version, entry.state, entry.reason) == ("model", "1", "UNAVAILABLE", "unloaded")


def test_names_of_models_to_load() -> None:
    request = message_class("RepositoryModelLoadRequest")
    assert grpc_requests.repository_model_name(request(model_name="model")) == "model"  # Triton's client
    assert grpc_requests.repository_model_name(request(repository_name="model")) == "model"  # KServe's
    with pytest.raises(InvalidRequestError, match="has no model_name"):
        grpc_requests.repository_model_name(request())
    parameter = message_class("ModelRepositoryParameter")(string_param="{}")
    for name in ("config", "file:1/model.lite"):
        with pytest.raises(UnsupportedError, match=f"the parameter '{name}' is not supported"):
            grpc_requests.repository_model_name(request(model_name="m", parameters={name: parameter}))
    answer = grpc_requests.repository_response("RepositoryModelLoad", "model")
    assert (answer.model_name, answer.isLoaded) == ("model", True)
    assert grpc_requests.repository_response("RepositoryModelUnload", "model").isUnloaded
