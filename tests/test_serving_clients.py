"""``lite serve`` asked with clients that others wrote, each in a process of its own: tritonclient, kserve's, curl."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serving_process import CLIENTS, Server, run_clients, serving, write_repository

FILES = Path(__file__).parent / "serving_clients"

pytestmark = [
    pytest.mark.full("serving"),
    pytest.mark.skipif(sys.platform != "linux", reason="the environment of the clients is made for Linux"),
    pytest.mark.skipif(not CLIENTS.exists(), reason="no environment with clients: make clients"),
]
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: make clients")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_repository(tmp_path_factory.mktemp("repository") / "models")


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[Server]:
    log = repository.with_name("log")
    with serving(repository, "--control", "--versions", "all", log=log) as server:
        yield server


@pytest.mark.parametrize("client", ["triton_http", "triton_grpc", "kserve_rest", "kserve_grpc"])
def test_a_client(client: str, server: Server) -> None:
    print(run_clients(FILES / f"{client}.py", server))
    assert server.process.poll() is None


def test_the_server_and_tritonclient_in_one_process(repository: Path) -> None:
    """Their messages have the same names, and each keeps its own, whichever is imported first."""
    program = FILES / "one_process.py"
    done = subprocess.run([CLIENTS, program, repository], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("tritonclient: [[0.0, 1.0, 2.0]]") == 2, done.stderr


@needs_curl
def test_curl(server: Server, tmp_path: Path) -> None:
    def curl(path: str, *options: str) -> tuple[int, bytes]:
        answer = tmp_path / "answer"
        command = ["curl", "--silent", "--show-error", "--output", str(answer), "--write-out", "%{http_code}", *options]
        done = subprocess.run([*command, f"{server.http}{path}"], capture_output=True, text=True, check=True)
        return int(done.stdout), answer.read_bytes()

    assert curl("/v2/health/ready")[0] == 200
    assert json.loads(curl("/v2/models/sum")[1])["inputs"][0] == {"name": "a", "datatype": "FP32", "shape": [-1, 3]}
    x = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2.5, -3]}
    status, answer = curl("/v2/models/echo_fp32/infer", "--data", json.dumps({"inputs": [x]}))
    assert status == 200
    assert json.loads(answer)["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [1, 2.5, -3]}]

    content = np.array([[1, 2.5, -3]], np.float32).tobytes()
    head = json.dumps({"inputs": [x | {"data": None, "parameters": {"binary_data_size": len(content)}}]}).encode()
    (tmp_path / "body").write_bytes(head + content)
    length = ["--header", f"Inference-Header-Content-Length: {len(head)}"]
    status, answer = curl("/v2/models/echo_fp32/infer", *length, "--data-binary", f"@{tmp_path / 'body'}")
    assert status == 200, answer
    assert json.loads(answer)["outputs"][0]["data"] == [1, 2.5, -3]

    wrong = json.dumps({"inputs": [x | {"shape": [1, 4]}]})
    status, answer = curl("/v2/models/echo_fp32/infer", "--data", wrong)
    assert status == 400
    assert "'x'" in json.loads(answer)["error"]
    for body in ("", "{", "[]", "null", '{"inputs": 3}', '{"inputs": [{"name": "x"}]}', "\xff"):
        status, answer = curl("/v2/models/echo_fp32/infer", "--data", body)
        assert status == 400, body
        assert json.loads(answer)["error"], body
    status, metrics = curl("/metrics")
    assert status == 200
    assert b"sum" in metrics


def test_many_clients_at_once(server: Server) -> None:
    """Locust: eight users by HTTP, whose answers are each checked."""
    program = FILES / "many_users.py"
    command = [CLIENTS.parent / "locust", "--locustfile", program, "--headless", "--json", "--host", server.http]
    done = subprocess.run(
        [*command, "--users", "8", "--spawn-rate", "8", "--run-time", "3s"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (stats,) = json.loads(done.stdout)
    assert stats["num_requests"]
    assert not stats["num_failures"]
