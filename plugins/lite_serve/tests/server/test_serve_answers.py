"""Answers of both servers: the same questions get the same answers and the same errors by HTTP and by gRPC."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from running_servers import Servers, running
from served_models import times

from lite_serve.models.repository import Repository
from lite_serve.protocol import errors
from lite_serve.protocol.grpc_messages import message_class
from lite_serve.protocol.messages import InferRequest, InferResponse

#: Errors of the models, by the name of the request.
FAILING = {
    each.__name__: each
    for each in (
        errors.InvalidRequestError,
        errors.NotFoundError,
        errors.OverloadedError,
        errors.UnsupportedError,
        errors.UnavailableModelError,
        errors.DeadlineError,
        errors.FailedModelError,
        ValueError,
    )
}


class FailingRepository(Repository):
    """A repository whose models fail as the name of the request says."""

    async def infer(self, request: InferRequest, timeout: float | None = None) -> InferResponse:
        if request.id in FAILING:
            raise FAILING[request.id]("a secret of the server, or: größer")
        if request.id == "slow":
            await asyncio.sleep(30)
        return await super().infer(request, timeout)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("models")
    times(folder / "times.lite")
    times(folder / "triple/1/model.lite", 3.0)
    (folder / "broken/1").mkdir(parents=True)
    (folder / "broken/1/model.lite").write_bytes(b"nothing")
    with running(folder, {"repository_control": True}, FailingRepository) as found:
        yield found


def by_http(servers: Servers, rows: Any, id: str = "", model: str = "times", **headers: str) -> Any:
    data = np.asarray(rows, np.float32)
    tensor = {"name": "x", "datatype": "FP32", "shape": data.shape, "data": data.ravel().tolist()}
    return servers.http("POST", f"/v2/models/{model}/infer", {"id": id, "inputs": [tensor]}, headers)


def message(rows: Any, id: str = "", model: str = "times") -> Any:
    data = np.asarray(rows, np.float32)
    found = message_class("ModelInferRequest")(model_name=model, id=id, raw_input_contents=[data.tobytes()])
    found.inputs.add(name="x", datatype="FP32", shape=data.shape)
    return found


def grpc_error(servers: Servers, name: str, request: Any, **more: Any) -> Any:
    with pytest.raises(grpc.RpcError) as found:
        servers.grpc(name, request, **more)
    return found.value


def test_inference(servers: Servers) -> None:
    answer = by_http(servers, [[1, 2, 3]], "mine")
    assert answer.status == 200, answer.content
    document = json.loads(answer.content)
    assert document["outputs"][0]["data"] == [2, 4, 6]
    assert (document["id"], answer.headers["x-request-id"]) == ("mine", "mine")
    response = servers.grpc("ModelInfer", message([[1, 2, 3]], "mine"))
    assert np.frombuffer(response.raw_output_contents[0], np.float32).tolist() == [2, 4, 6]
    assert (response.id, response.model_version) == ("mine", "1")


def test_binary_data(servers: Servers) -> None:
    data = np.arange(6, dtype=np.float32)
    tensor = {"name": "x", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    answer = servers.http(
        "POST",
        "/v2/models/times/versions/1/infer",
        head + data.tobytes(),
        {"Inference-Header-Content-Length": str(len(head))},
    )
    assert answer.status == 200, answer.content
    rest = answer.content[int(answer.headers["inference-header-content-length"]) :]
    assert np.frombuffer(rest, np.float32).tolist() == (data * 2).tolist()


@pytest.mark.parametrize("name", FAILING)
def test_an_error_is_the_same_by_both(name: str, servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    kind: Any = FAILING[name] if issubclass(FAILING[name], errors.ProtocolError) else errors.ProtocolError
    answer = by_http(servers, [[1, 2, 3]], name)
    error = grpc_error(servers, "ModelInfer", message([[1, 2, 3]], name))
    assert (answer.status, error.code().name) == (kind.http_status, kind.grpc_code)
    assert answer.error == error.details()
    assert dict(error.trailing_metadata())["x-request-id"] == answer.headers["x-request-id"] == name
    assert "Traceback" not in answer.error
    if name == "ValueError":  # unknown to the protocol: only the log tells it
        assert "secret" not in answer.error
        assert name in answer.error


@pytest.mark.parametrize(
    ("rows", "model", "status", "code", "named"),
    [
        ([[1, 2]], "times", 400, "INVALID_ARGUMENT", "'x'"),
        ([[1, 2, 3]], "nothing", 404, "NOT_FOUND", "nothing"),
        ([[1, 2, 3]], "broken", 503, "UNAVAILABLE", "broken"),
    ],
)
def test_wrong_requests(servers: Servers, rows: Any, model: str, status: int, code: str, named: str) -> None:
    answer = by_http(servers, rows, model=model)
    error = grpc_error(servers, "ModelInfer", message(rows, model=model))
    assert (answer.status, error.code().name) == (status, code), answer.content
    assert named in answer.error
    assert answer.error == error.details()


def test_what_is_no_request(servers: Servers) -> None:
    assert servers.http("POST", "/v2/models/times/infer", b"{").status == 400
    assert grpc_error(servers, "ModelInfer", b"\xff\xff").code() == grpc.StatusCode.INVALID_ARGUMENT
    assert servers.http("GET", "/v2/models/times/infer").headers["allow"] == "POST"
    for path in ("/", "/v1/models", "/v2/", "/v2/models/a%2Fb/infer/more", "/v2/models/../../etc/passwd"):
        found = servers.http("GET", path)
        assert (found.status, found.headers["content-type"]) == (404, "application/json"), path
    for model in ("%252e%252e", "..", "%2e%2e", "a%00b", "%ff"):
        assert servers.http("GET", f"/v2/models/{model}").status == 404, model


def test_long_messages_fit_into_headers(servers: Servers) -> None:
    found = grpc_error(servers, "ModelInfer", message([[1, 2, 3]], model="ä" * 20_000))
    assert found.code() == grpc.StatusCode.NOT_FOUND


def test_questions(servers: Servers) -> None:
    for path, name, field in (("live", "ServerLive", "live"), ("ready", "ServerReady", "ready")):
        assert json.loads(servers.http("GET", f"/v2/health/{path}").content) == {field: True}
        assert getattr(servers.grpc(name), field) is True
    assert json.loads(servers.http("GET", "/v2").content)["name"] == servers.grpc("ServerMetadata").name
    document = json.loads(servers.http("GET", "/v2/models/times").content)
    metadata = servers.grpc("ModelMetadata", message_class("ModelMetadataRequest")(name="times"))
    assert document["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert list(metadata.inputs[0].shape) == [-1, 3]
    assert servers.http("GET", "/v2/models/times/versions/1/ready").status == 200
    assert servers.http("GET", "/v2/models/broken/ready").status == 503
    assert not servers.grpc("ModelReady", message_class("ModelReadyRequest")(name="broken")).ready


def test_the_repository(servers: Servers) -> None:
    index = json.loads(servers.http("POST", "/v2/repository/index", {"ready": True}).content)
    assert {each["name"] for each in index} == {"times", "triple"}
    assert {each.name for each in servers.grpc("RepositoryIndex").models} == {"times", "triple", "broken"}
    assert servers.http("POST", "/v2/repository/models/triple/unload", b"").status == 200
    assert by_http(servers, [[1, 2, 3]], model="triple").status == 503
    request = message_class("RepositoryModelLoadRequest")(model_name="triple")
    servers.grpc("RepositoryModelLoad", request)
    assert by_http(servers, [[1, 2, 3]], model="triple").status == 200
    assert servers.http("POST", "/v2/repository/models/broken/load", b"").status == 503
    own = {"parameters": {"config": "{}"}}
    assert servers.http("POST", "/v2/repository/models/triple/load", own).status == 501


def test_a_model_stops_at_the_time_of_the_request(servers: Servers) -> None:
    error = grpc_error(servers, "ModelInfer", message([[1, 2, 3]], "slow"), timeout=0.3)
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
    for timeout, status in ((-1, 400), ("soon", 400), (0, 200), (60_000_000, 200)):
        answer = servers.http(
            "POST", "/v2/models/times/infer", {"inputs": [tensor], "parameters": {"timeout": timeout}}
        )
        assert answer.status == status, answer.content


def test_names_of_requests(servers: Servers) -> None:
    answer = by_http(servers, [[1, 2, 3]], "in the document", **{"X-Request-Id": "in-the-header"})
    assert answer.headers["x-request-id"] == "in-the-header"
    assert json.loads(answer.content)["id"] == "in the document"
    for unfit in ("two words", "x" * 200, "größe"):
        headers = {"X-Request-Id": unfit.encode().decode("latin-1")}
        assert len(servers.http("GET", "/v2", headers=headers).headers["x-request-id"]) == 16
    with pytest.raises(grpc.RpcError) as found:
        servers.grpc("ModelMetadata", headers=(("x-request-id", "by-grpc"),))
    assert dict(found.value.trailing_metadata())["x-request-id"] == "by-grpc"


def test_log(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lite_serve.access")
    by_http(servers, [[1, 2, 3]], "logged")
    servers.grpc("ModelInfer", message([[1, 2, 3]], "logged"))
    by_http(servers, [[1, 2, 3]], "ValueError")
    servers.http("GET", "/v2/health/live")
    lines = [record.fields for record in caplog.records if record.name == "lite_serve.access"]
    assert [line["status"] for line in lines] == [200, "OK", 500]
    for line, protocol in zip(lines, ("http", "grpc")):
        assert (line["protocol"], line["model"], line["version"], line["batch"]) == (protocol, "times", "1", 1)
        assert line["request_id"] == "logged"
        assert line["ms"] > 0
    assert "secret" in caplog.text, "the traceback of an unknown error is in the log"


def test_metrics(servers: Servers) -> None:
    by_http(servers, [[1, 2, 3]])
    by_http(servers, [[1, 2, 3]], model="none-of-the-models")
    answer = servers.http("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.content.decode()
    assert 'lite_requests_total{model="times",outcome="ok",protocol="http",version="1"}' in text
    assert "none-of-the-models" not in text
