"""The server by gRPC, asked with tritonclient: every element type, asynchronously, and wrong."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from asked import ARRAYS, GRPC, WRONG, Wrong, equal_bits, sample, zeros
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException


@pytest.fixture
def client() -> Iterator[triton.InferenceServerClient]:
    with contextlib.closing(triton.InferenceServerClient(GRPC)) as client:
        yield client


@pytest.fixture
def stub() -> Iterator[service_pb2_grpc.GRPCInferenceServiceStub]:
    with grpc.insecure_channel(GRPC) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def tensor(name: str, datatype: str, array: np.ndarray[Any, Any]) -> triton.InferInput:
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("datatype", ARRAYS)
def test_tensors(client: triton.InferenceServerClient, datatype: str, rows: int) -> None:
    array = sample(datatype, rows)
    answer = client.infer(f"echo_{datatype.lower()}", [tensor("x", datatype, array)])
    assert equal_bits(answer.as_numpy("y"), array)
    described = answer.get_output("y")
    assert described.datatype == datatype
    assert list(described.shape) == list(array.shape)


#: The field of the contents for each element type that has one.
FIELDS = {
    "BOOL": "bool_contents",
    **{f"INT{bits}": "int_contents" for bits in (8, 16, 32)},
    "INT64": "int64_contents",
    **{f"UINT{bits}": "uint_contents" for bits in (8, 16, 32)},
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


@pytest.mark.parametrize("datatype", FIELDS)
def test_typed_contents(stub: service_pb2_grpc.GRPCInferenceServiceStub, datatype: str) -> None:
    array = sample(datatype)
    request = service_pb2.ModelInferRequest(model_name=f"echo_{datatype.lower()}")
    x = request.inputs.add(name="x", datatype=datatype, shape=array.shape)
    getattr(x.contents, FIELDS[datatype]).extend(array.flatten().tolist())
    answer = triton.InferResult(stub.ModelInfer(request))
    assert equal_bits(answer.as_numpy("y"), array)


def test_outputs_that_are_named(client: triton.InferenceServerClient) -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    outputs = [triton.InferRequestedOutput("mean")]
    answer = client.infer("sum", [tensor("a", "FP32", a), tensor("b", "FP32", b)], outputs=outputs, request_id="seven")
    assert answer.as_numpy("mean").tolist() == (a + b).mean(axis=1, keepdims=True).tolist()
    assert answer.as_numpy("total") is None
    assert answer.get_response().id == "seven"


@pytest.mark.parametrize("way", ["gzip", "deflate"])
def test_compressed(client: triton.InferenceServerClient, way: str) -> None:
    array = np.arange(3 * 1000, dtype=np.float32).reshape(-1, 3)
    answer = client.infer("echo_fp32", [tensor("x", "FP32", array)], compression_algorithm=way)
    assert equal_bits(answer.as_numpy("y"), array)


def test_asynchronous(client: triton.InferenceServerClient) -> None:
    answers: queue.Queue[tuple[int, Any, Any]] = queue.Queue()
    arrays = [np.full((1 + number, 3), number, np.float32) for number in range(20)]
    for number, array in enumerate(arrays):

        def done(result: Any, error: Any, number: int = number) -> None:
            answers.put((number, result, error))

        client.async_infer("echo_fp32", [tensor("x", "FP32", array)], callback=done)
    for _ in arrays:
        number, result, error = answers.get(timeout=60)
        assert error is None
        assert equal_bits(result.as_numpy("y"), arrays[number])


def test_the_server(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    metadata = client.get_server_metadata()
    assert metadata.name
    assert metadata.version


def test_a_model(client: triton.InferenceServerClient) -> None:
    metadata = client.get_model_metadata("sum")
    assert metadata.name == "sum"
    assert [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs] == [
        ("a", "FP32", [-1, 3]),
        ("b", "FP32", [-1, 3]),
    ]
    assert [(o.name, list(o.shape)) for o in metadata.outputs] == [("total", [-1, 3]), ("mean", [-1, 1])]
    assert client.is_model_ready("sum")


@pytest.mark.parametrize(("version", "factor"), [("1", 1), ("2", 2), ("", 2)])
def test_versions(client: triton.InferenceServerClient, version: str, factor: int) -> None:
    assert list(client.get_model_metadata("scale", version).versions) == ["1", "2"]
    assert client.is_model_ready("scale", version)
    array = np.array([[1.5, -2]], np.float32)
    answer = client.infer("scale", [tensor("x", "FP32", array)], model_version=version)
    assert equal_bits(answer.as_numpy("y"), array * np.float32(factor))
    assert answer.get_response().model_version == str(factor)


def test_the_index_and_unloading(client: triton.InferenceServerClient) -> None:
    def states() -> dict[tuple[str, str], str]:
        return {(row.name, row.version): row.state for row in client.get_model_repository_index().models}

    array = np.zeros((1, 3), np.uint16)
    assert states()["echo_uint16", "1"] == "READY"
    client.unload_model("echo_uint16")
    assert states()["echo_uint16", "1"] != "READY"
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_uint16", [tensor("x", "UINT16", array)])
    assert refused.value.status() in ("StatusCode.UNAVAILABLE", "StatusCode.NOT_FOUND")
    assert "echo_uint16" in refused.value.message()
    client.load_model("echo_uint16")
    assert client.is_model_ready("echo_uint16")
    assert equal_bits(client.infer("echo_uint16", [tensor("x", "UINT16", array)]).as_numpy("y"), array)
    with pytest.raises(InferenceServerException, match="nothing"):
        client.load_model("nothing")


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_wrong(client: triton.InferenceServerClient, wrong: Wrong) -> None:
    inputs = [tensor(name, datatype, zeros(datatype, shape)) for name, datatype, shape in wrong.inputs]
    outputs = [triton.InferRequestedOutput(wrong.output)] if wrong.output else None
    with pytest.raises(InferenceServerException) as refused:
        client.infer(wrong.model, inputs, model_version=wrong.version, outputs=outputs)
    assert refused.value.status() == f"StatusCode.{'INVALID_ARGUMENT' if wrong.found else 'NOT_FOUND'}"
    assert wrong.named in refused.value.message()


@pytest.mark.parametrize("shape", [[3, 3], [1, 3], [-2, 3], [2**62, 3]], ids=str)
def test_shapes_that_do_not_fit_the_data(client: triton.InferenceServerClient, shape: list[int]) -> None:
    x = tensor("x", "FP32", zeros("FP32", (2, 3)))
    x.set_shape(shape)
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_fp32", [x])
    assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"
    assert "'x'" in refused.value.message()


def test_shared_memory_is_refused(client: triton.InferenceServerClient) -> None:
    x = triton.InferInput("x", [2, 3], "FP32")
    x.set_shared_memory("region", 24)
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_fp32", [x])
    assert refused.value.status() in ("StatusCode.INVALID_ARGUMENT", "StatusCode.UNIMPLEMENTED")
    assert "'x'" in refused.value.message()


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_system_shared_memory_status(),
        lambda client: client.get_trace_settings(),
        lambda client: client.get_log_settings(),
        lambda client: client.get_inference_statistics("sum"),
        lambda client: client.get_model_config("sum"),
    ],
    ids=["shared memory", "trace", "log", "statistics", "configuration"],
)
def test_what_the_server_does_not_have_is_unimplemented(client: triton.InferenceServerClient, ask: Any) -> None:
    with pytest.raises(InferenceServerException) as refused:
        ask(client)
    assert refused.value.status() == "StatusCode.UNIMPLEMENTED"


def test_a_stream_is_unimplemented(client: triton.InferenceServerClient) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put(error))
    with contextlib.suppress(InferenceServerException):  # the stream may have been refused already
        client.async_stream_infer("echo_fp32", [tensor("x", "FP32", zeros("FP32", (1, 3)))])
    assert answers.get(timeout=60).status() == "StatusCode.UNIMPLEMENTED"


def test_bytes_that_are_no_message(client: triton.InferenceServerClient) -> None:
    with grpc.insecure_channel(GRPC) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"\xff\xff\xff no protobuf")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
