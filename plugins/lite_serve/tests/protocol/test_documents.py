"""The documents of the server: metadata, index, errors, and the requests of the repository."""

from __future__ import annotations

import json

import pytest

from lite_serve.protocol import documents
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError
from lite_serve.protocol.messages import ModelMetadata, TensorMetadata


def test_documents() -> None:
    assert json.loads(documents.server_live(True)) == {"live": True}
    assert json.loads(documents.server_ready(False)) == {"ready": False}
    assert json.loads(documents.model_ready("é", True)) == {"name": "é", "ready": True}
    assert json.loads(documents.error("input 'é'\n")) == {"error": "input 'é'\n"}
    assert json.loads(documents.server_metadata("0.1.0")) == {
        "name": "lite-serve",
        "version": "0.1.0",
        "extensions": ["binary_tensor_data", "model_repository"],
    }
    tensors = (TensorMetadata("x", "FP32", (-1, 3)),), (TensorMetadata("y", "BYTES", ()),)
    assert json.loads(documents.model_metadata(ModelMetadata("model", ("1",), "lite_onnx", *tensors))) == {
        "name": "model",
        "versions": ["1"],
        "platform": "lite_onnx",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "y", "datatype": "BYTES", "shape": []}],
    }
    assert json.loads(documents.model_metadata(ModelMetadata("m", (), "", (), (), {"a": "b"})))["properties"] == {
        "a": "b"
    }
    assert json.loads(documents.repository_index([("m", "1", "READY", ""), ("n", "", "UNAVAILABLE", "damaged")])) == [
        {"name": "m", "version": "1", "state": "READY", "reason": ""},
        {"name": "n", "version": "", "state": "UNAVAILABLE", "reason": "damaged"},
    ]


@pytest.mark.usefixtures("parser")
def test_requests_of_the_repository() -> None:
    assert not documents.index_request(b"")
    assert not documents.index_request(b"{}")
    assert documents.index_request(b'{"ready": true}')
    assert documents.load_request(b"") == {}
    assert documents.load_request(b'{"parameters": {"unload_dependents": false}}') == {"unload_dependents": False}
    for body in (b"[", b"[]", b'"ready"', b"\xff", b'{"ready": 1}', b"[" * 10**5):
        with pytest.raises(InvalidRequestError):
            documents.index_request(body)
    for body in (b"[", b"3", b'{"parameters": [1]}'):
        with pytest.raises(InvalidRequestError):
            documents.load_request(body)


@pytest.mark.parametrize("name", ["config", "file:1/model.lite"])
def test_a_request_cannot_bring_a_model_or_its_settings(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the parameter '{name}' is not supported: models and settings are"):
        documents.load_request(json.dumps({"parameters": {name: "{}"}}).encode())
