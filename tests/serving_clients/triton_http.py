"""The server by HTTP, asked with tritonclient: JSON and binary tensors, compressed, asynchronously, and wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from asked import ARRAYS, HOST, WRONG, Wrong, equal_bits, sample, zeros
from tritonclient.utils import InferenceServerException


@pytest.fixture
def client() -> Iterator[triton.InferenceServerClient]:
    with contextlib.closing(triton.InferenceServerClient(HOST, concurrency=4)) as client:
        yield client


def tensor(name: str, datatype: str, array: np.ndarray[Any, Any], *, binary: bool = True) -> triton.InferInput:
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("datatype", ARRAYS)
def test_binary_tensors(client: triton.InferenceServerClient, datatype: str, rows: int) -> None:
    array = sample(datatype, rows)
    answer = client.infer(f"echo_{datatype.lower()}", [tensor("x", datatype, array)])
    assert equal_bits(answer.as_numpy("y"), array)
    described = answer.get_output("y")
    assert described["datatype"] == datatype
    assert described["shape"] == list(array.shape)


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("datatype", sorted(ARRAYS.keys() - {"BF16"}))
def test_json_tensors(client: triton.InferenceServerClient, datatype: str, rows: int) -> None:
    array = sample(datatype, rows)
    answer = client.infer(
        f"echo_{datatype.lower()}",
        [tensor("x", datatype, array, binary=False)],
        outputs=[triton.InferRequestedOutput("y", binary_data=False)],
    )
    assert "data" in answer.get_output("y")
    if datatype == "BYTES":  # JSON has texts, not bytes
        assert [text.encode() for text in answer.as_numpy("y").flat] == array.flatten().tolist()
        return
    found = answer.as_numpy("y")
    assert found.dtype == array.dtype
    finite = np.isfinite(array)
    assert found.shape == array.shape
    assert np.array_equal(found[finite], array[finite])
    if array.dtype.kind == "f":
        assert np.array_equal(np.isnan(found), np.isnan(array))


def test_bytes_that_are_no_text(client: triton.InferenceServerClient) -> None:
    array = np.array([[b"\xff\xfe", b"\x80", b""]], object)
    assert equal_bits(client.infer("echo_bytes", [tensor("x", "BYTES", array)]).as_numpy("y"), array)


def test_binary_and_json_in_one_request(client: triton.InferenceServerClient) -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    outputs = [triton.InferRequestedOutput("mean", binary_data=False), triton.InferRequestedOutput("total")]
    answer = client.infer(
        "sum", [tensor("a", "FP32", a, binary=False), tensor("b", "FP32", b)], outputs=outputs, request_id="seven"
    )
    assert equal_bits(answer.as_numpy("total"), a + b)
    assert answer.as_numpy("mean").tolist() == (a + b).mean(axis=1, keepdims=True).tolist()
    response = answer.get_response()
    assert [output["name"] for output in response["outputs"]] == ["mean", "total"]
    assert response["id"] == "seven"
    assert response["model_name"] == "sum"


@pytest.mark.parametrize("way", ["gzip", "deflate"])
def test_compressed(client: triton.InferenceServerClient, way: str) -> None:
    array = np.arange(3 * 1000, dtype=np.float32).reshape(-1, 3)
    answer = client.infer(
        "echo_fp32",
        [tensor("x", "FP32", array)],
        request_compression_algorithm=way,
        response_compression_algorithm=way,
    )
    assert equal_bits(answer.as_numpy("y"), array)


def test_asynchronous(client: triton.InferenceServerClient) -> None:
    arrays = [np.full((1 + number, 3), number, np.float32) for number in range(20)]
    pending = [client.async_infer("echo_fp32", [tensor("x", "FP32", array)]) for array in arrays]
    for array, waiting in zip(arrays, pending, strict=True):
        assert equal_bits(waiting.get_result().as_numpy("y"), array)


def test_the_server(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    metadata = client.get_server_metadata()
    assert metadata["name"]
    assert metadata["version"]
    assert "binary_tensor_data" in metadata["extensions"]


def test_a_model(client: triton.InferenceServerClient) -> None:
    metadata = client.get_model_metadata("sum")
    assert metadata["name"] == "sum"
    assert metadata["inputs"] == [{"name": name, "datatype": "FP32", "shape": [-1, 3]} for name in ("a", "b")]
    assert [(output["name"], output["shape"]) for output in metadata["outputs"]] == [
        ("total", [-1, 3]),
        ("mean", [-1, 1]),
    ]
    assert client.is_model_ready("sum")
    assert not client.is_model_ready("nothing")
    assert not client.is_model_ready("scale", "3")


@pytest.mark.parametrize(("version", "factor"), [("1", 1), ("2", 2), ("", 2)])
def test_versions(client: triton.InferenceServerClient, version: str, factor: int) -> None:
    assert client.get_model_metadata("scale", version)["versions"] == ["1", "2"]
    assert client.is_model_ready("scale", version)
    array = np.array([[1.5, -2]], np.float32)
    answer = client.infer("scale", [tensor("x", "FP32", array)], model_version=version)
    assert equal_bits(answer.as_numpy("y"), array * np.float32(factor))
    assert answer.get_response()["model_version"] == str(factor)


def test_the_index_and_unloading(client: triton.InferenceServerClient) -> None:
    def states() -> dict[tuple[str, str], str]:
        return {
            (row["name"], row.get("version", "")): row.get("state", "") for row in client.get_model_repository_index()
        }

    array = np.zeros((1, 3), np.uint8)
    assert states()["echo_uint8", "1"] == "READY"
    assert {("scale", "1"), ("scale", "2")} <= states().keys()
    client.unload_model("echo_uint8")
    assert not client.is_model_ready("echo_uint8")
    assert states()["echo_uint8", "1"] != "READY"
    assert client.is_server_live()
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_uint8", [tensor("x", "UINT8", array)])
    assert refused.value.status() in ("503", "400", "404")
    assert "echo_uint8" in refused.value.message()
    client.load_model("echo_uint8")
    assert client.is_model_ready("echo_uint8")
    assert equal_bits(client.infer("echo_uint8", [tensor("x", "UINT8", array)]).as_numpy("y"), array)
    with pytest.raises(InferenceServerException, match="nothing"):
        client.load_model("nothing")


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_wrong(client: triton.InferenceServerClient, wrong: Wrong, binary: bool) -> None:
    inputs = [tensor(name, datatype, zeros(datatype, shape), binary=binary) for name, datatype, shape in wrong.inputs]
    outputs = [triton.InferRequestedOutput(wrong.output)] if wrong.output else None
    with pytest.raises(InferenceServerException) as refused:
        client.infer(wrong.model, inputs, model_version=wrong.version, outputs=outputs)
    assert refused.value.status() == ("400" if wrong.found else "404")
    assert wrong.named in refused.value.message()


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("shape", [[3, 3], [1, 3], [-2, 3], [2**62, 3]], ids=str)
def test_shapes_that_do_not_fit_the_data(client: triton.InferenceServerClient, shape: list[int], binary: bool) -> None:
    x = tensor("x", "FP32", zeros("FP32", (2, 3)), binary=binary)
    x.set_shape(shape)
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_fp32", [x])
    assert refused.value.status() == "400"
    assert "'x'" in refused.value.message()


def test_shared_memory_is_refused(client: triton.InferenceServerClient) -> None:
    x = triton.InferInput("x", [2, 3], "FP32")
    x.set_shared_memory("region", 24)
    with pytest.raises(InferenceServerException) as refused:
        client.infer("echo_fp32", [x])
    assert refused.value.status() in ("400", "501")
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
def test_what_the_server_does_not_have_is_no_fault_of_it(client: triton.InferenceServerClient, ask: Any) -> None:
    with pytest.raises(InferenceServerException) as refused:
        ask(client)
    assert refused.value.status() in ("404", "501")
