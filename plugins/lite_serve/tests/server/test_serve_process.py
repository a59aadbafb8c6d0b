"""``lite serve`` as a process: what it prints, how it fails, and a shutdown that loses no accepted request."""

from __future__ import annotations

import ast
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from served_models import sleeper, times

import lite_serve
from lite_serve.protocol.grpc_messages import METHODS, message_class

ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a process can handle")
COMMAND = [sys.executable, "-m", "lite_core", "serve"]


@contextmanager
def process(*words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start the command with ``--json``, and yield it with its document when it is ready."""
    command = [*COMMAND, *words, "--http-port", "0", "--grpc-port", "0", "--json"]
    environment = {**os.environ, **variables}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert started.stdout is not None
        text = ""
        for line in started.stdout:
            text += line
            if line == "}\n":
                break
        yield started, json.loads(text)
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def failed(*words: str, **variables: str) -> tuple[int, str, str]:
    """Run a command that fails, and return its exit code, standard output and standard error."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env={**os.environ, **variables}, timeout=100
    )
    return done.returncode, done.stdout, done.stderr


def running_requests(address: tuple[str, int]) -> float:
    """Return how many requests wait or run, as the metrics tell."""
    connection = http.client.HTTPConnection(*address)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    counted = ("lite_queue_length{", "lite_requests_running{")
    return sum(float(line.split()[-1]) for line in lines if line.startswith(counted))


@ON_POSIX
@pytest.mark.full("packages")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_every_accepted_request_is_answered(tmp_path: Path, number: int) -> None:
    """Requests of different lengths run, wait and go on coming by both protocols when the signal comes."""
    sleeper(tmp_path / "sleeper.lite")
    times(tmp_path / "times.lite")
    with process(str(tmp_path), "--instances", "2", "--no-log-requests") as (started, document):
        name, _, port = document["http"].partition("://")[2].rpartition(":")
        address = name, int(port)
        counts = [1_000_000 * each for each in range(1, 9)]  # an eighth of a second each
        answers: dict[tuple[str, int], int] = {}
        lost: list[str] = []
        signalled = threading.Event()
        channel = grpc.insecure_channel(document["grpc"])

        def by_http(count: int) -> None:
            connection = http.client.HTTPConnection(*address, timeout=60)
            tensor = {"name": "n", "datatype": "INT64", "shape": [1], "data": [count]}
            connection.request("POST", "/v2/models/sleeper/infer", json.dumps({"inputs": [tensor]}))
            answers["http", count] = json.loads(connection.getresponse().read())["outputs"][0]["data"][0]

        def by_grpc(count: int) -> None:
            request = message_class("ModelInferRequest")(model_name="sleeper")
            request.inputs.add(name="n", datatype="INT64", shape=[1])
            request.raw_input_contents.append(np.int64(count).tobytes())
            response = infer(request.SerializeToString(), timeout=60)
            answers["grpc", count] = int(np.frombuffer(response.raw_output_contents[0], np.int64)[0])

        def on_and_on() -> None:
            """Send requests on one connection until an answer says that it is the last."""
            connection = http.client.HTTPConnection(*address, timeout=60)
            tensor = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
            try:
                while True:
                    connection.request("POST", "/v2/models/times/infer", json.dumps({"inputs": [tensor]}))
                    answer = connection.getresponse()
                    assert answer.status == 200, answer.read()
                    answer.read()
                    if answer.getheader("connection") == "close":
                        assert signalled.is_set(), "a connection ended before the signal"
                        return
            except Exception as error:
                lost.append(repr(error))

        method = METHODS["ModelInfer"]
        infer = channel.unary_unary(method.path, response_deserializer=method.response.FromString)
        work: list[tuple[Callable[..., None], tuple[int, ...]]] = [
            *((by_http, (count,)) for count in counts),
            *((by_grpc, (count + 1,)) for count in counts),
            *((on_and_on, ()) for _ in range(2)),
        ]
        threads = [threading.Thread(target=target, args=arguments) for target, arguments in work]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while running_requests(address) + len(answers) < 2 * len(counts) and time.monotonic() < deadline:
            time.sleep(0.01)
        before = len(answers)
        signalled.set()
        started.send_signal(number)
        for thread in threads:
            thread.join(100)
        assert started.wait(60) == 0
        channel.close()
    assert before < len(answers), "all requests were answered before the signal: they were too short"
    assert answers == {**{("http", c): c for c in counts}, **{("grpc", c + 1): c + 1 for c in counts}}
    assert not lost


@ON_POSIX
def test_readiness_ends_before_listening(tmp_path: Path) -> None:
    model = times(tmp_path / "times.lite")
    with process(str(model), "--drain-delay", "1", "--log-format", "json") as (started, document):
        name, _, port = document["http"].partition("://")[2].rpartition(":")

        def ready() -> int:
            connection = http.client.HTTPConnection(name, int(port))
            connection.request("GET", "/v2/health/ready")
            return connection.getresponse().status

        assert ready() == 200
        assert document["models"][0]["name"] == "times"
        assert document["next"].startswith("curl -s http://127.0.0.1:")
        started.send_signal(signal.SIGTERM)
        seen = {ready() for _ in range(20)}
        assert seen <= {200, 503}
        assert 503 in seen
        _, errors = started.communicate(timeout=60)
        assert started.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert lines[-1]["event"] == "shut down"


@ON_POSIX
@pytest.mark.full("packages")
def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    model = times(tmp_path / "times.lite")
    with process(str(model), "--drain-delay", "100") as (started, _):
        started.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert started.poll() is None
        started.send_signal(signal.SIGTERM)
        assert started.wait(10) == -signal.SIGTERM


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    model = times(tmp_path / "times.lite")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        for option, free in (("--http-port", "--grpc-port"), ("--grpc-port", "--http-port")):
            code, _, errors = failed(str(model), option, port, f"{free}=0")
            assert code == 1
            assert f"127.0.0.1:{port}" in errors
            assert errors.splitlines()[-1] == f"next: lite serve {model} {free}=0 {option} 0"


@pytest.mark.full("packages")
def test_models_that_do_not_load(tmp_path: Path) -> None:
    broken = tmp_path / "broken.lite"
    broken.write_bytes(b"nothing")
    code, _, errors = failed(str(broken), "--http-port", "0", "--grpc-port", "0")
    assert code == 6, errors
    assert "next: " in errors
    code, output, _ = failed(str(tmp_path / "nowhere"), "--json")
    assert (code, json.loads(output)["exit_code"]) == (2, 2)
    (tmp_path / "empty").mkdir()
    assert failed(str(tmp_path / "empty"))[0] == 2
    folder = tmp_path / "folder"
    (folder / "broken/1").mkdir(parents=True)
    (folder / "broken/1/model.lite").write_bytes(b"nothing")
    times(folder / "times.lite")
    with process(str(folder)) as (_, document):
        assert {each["name"]: each["state"] for each in document["models"]} == {
            "broken": "UNAVAILABLE",
            "times": "READY",
        }
        assert any("broken" in note for note in document["notes"])


@pytest.mark.full("packages")
def test_options_that_do_not_fit(tmp_path: Path) -> None:
    model = str(times(tmp_path / "times.lite"))
    short = tmp_path / "tokens"
    short.write_text("# only a comment\nshort\n")
    cases = {
        "--http-port=off --grpc-port=off": "answer nobody",
        "--http-port=8000 --grpc-port=8000": "cannot share",
        "--http-port=70000": "no port",
        "--largest-body=0": "no number of bytes",
        "--host=no.such.name.invalid": "no address",
        f"--tokens={short}": "at least 16",
        f"--tls-cert={short}": "belong together",
        f"--tls-cert={short} --tls-key={short}": "no certificate with its key",
    }
    for words, said in cases.items():
        code, _, errors = failed(model, *words.split())
        assert (code, said in errors) == (2, True), errors
        assert "next: " in errors, errors
    assert failed(model, LITE_SERVE_TOKENS="")[0] == 2


@pytest.mark.full("packages")
def test_tls_and_tokens(tmp_path: Path) -> None:
    """HTTP and gRPC with a certificate that openssl made, a certificate of the client, and a token."""
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run(
            [*making, *names, "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed: apt-get install openssl")
    model = times(tmp_path / "times.lite")
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    options = ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", certificate]
    token = "a-token-of-sixteen-or-more"
    with process(str(model), *options, LITE_SERVE_TOKENS=token) as (_, document):
        asked = ["curl", "-s", "--cacert", certificate, f"{document['http']}/v2/models/times"]
        assert subprocess.run(asked, capture_output=True).returncode != 0, "a client without a certificate is refused"
        shown = subprocess.run([*asked, "--cert", certificate, "--key", key], capture_output=True, text=True)
        assert "Bearer" in shown.stdout
        with_token = [*asked, "--cert", certificate, "--key", key, "-H", f"Authorization: Bearer {token}"]
        assert json.loads(subprocess.run(with_token, capture_output=True, text=True).stdout)["name"] == "times"
        own, secret = Path(certificate).read_bytes(), Path(key).read_bytes()
        for credentials, is_accepted in (
            (grpc.ssl_channel_credentials(own, secret, own), True),
            (grpc.ssl_channel_credentials(own), False),
        ):
            with grpc.secure_channel(document["grpc"], credentials) as channel:
                call = channel.unary_unary("/inference.GRPCInferenceService/ServerMetadata")
                refused = contextlib.nullcontext() if is_accepted else pytest.raises(grpc.RpcError)
                with refused:
                    call(b"", metadata=(("authorization", f"Bearer {token}"),), timeout=20)


def test_the_server_uses_no_pickle() -> None:
    folder = Path(lite_serve.__file__).parent
    for file in sorted(each for name in ("server", "models", "protocol") for each in (folder / name).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            used = {name.partition(".")[0] for name in names} & {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
            assert not used, f"{file}: {used}"
