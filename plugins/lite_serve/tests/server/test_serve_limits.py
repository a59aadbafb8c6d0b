"""Limits and refusals: sizes, times, many and slow clients, tokens, browsers."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from running_servers import Servers, raw, running
from served_models import times

from lite_serve.protocol.grpc_messages import message_class
from lite_serve.server.tokens import digests

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
INFER = "/v2/models/times/infer"
LARGEST = 100_000
TOKEN = "a-token-of-sixteen-or-more"
LIMITS = {"largest_body": LARGEST, "header_seconds": 0.5, "request_seconds": 1.0, "idle_seconds": 0.5}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return times(tmp_path_factory.mktemp("made") / "times.lite")


@pytest.fixture(scope="module")
def servers(model: Path) -> Iterator[Servers]:
    with running(model, {**LIMITS, "most_body_bytes": 10 * LARGEST}) as found:
        yield found


@pytest.fixture(scope="module")
def closed(model: Path) -> Iterator[Servers]:
    with running(model, {"tokens": digests([TOKEN, "another-token-of-some-length"])}) as found:
        yield found


# **** sizes ****


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "identity"])
def test_compressed_bodies(servers: Servers, encoding: str) -> None:
    without_header = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    content = {
        "gzip": gzip.compress(BODY),
        "deflate": zlib.compress(BODY),
        "raw deflate": without_header.compress(BODY) + without_header.flush(),
        "identity": BODY,
    }[encoding]
    answer = servers.http("POST", INFER, content, {"Content-Encoding": encoding.split()[-1]})
    assert answer.status == 200, answer.content


@pytest.mark.parametrize(
    ("content", "encoding", "status"),
    [
        (gzip.compress(bytes(50_000_000)), "gzip", 413),
        (zlib.compress(bytes(LARGEST + 1)), "deflate", 413),
        (gzip.compress(BODY)[:-9], "gzip", 400),
        (BODY, "gzip", 400),
        (BODY, "br", 415),
    ],
    ids=["gzip that grows", "deflate that grows", "cut gzip", "no gzip", "unknown"],
)
def test_compressed_bodies_are_refused(servers: Servers, content: bytes, encoding: str, status: int) -> None:
    answer = servers.http("POST", INFER, content, {"Content-Encoding": encoding})
    assert answer.status == status, answer.content


def test_a_body_that_is_too_large(servers: Servers) -> None:
    answer = servers.http("POST", INFER, bytes(LARGEST + 1))
    assert (answer.status, str(LARGEST) in answer.error) == (413, True)
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(400):
            sent += 1000
            yield bytes(1000)

    assert servers.http("POST", INFER, chunks()).status == 413
    # The answer comes before the body: only headers are sent here.
    head = f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**12}\r\n\r\n".encode()
    assert raw(servers.host, head).startswith(b"HTTP/1.1 413")
    message = message_class("ModelInferRequest")(model_name="times", raw_input_contents=[bytes(2 * LARGEST)])
    with pytest.raises(grpc.RpcError) as found:
        servers.grpc("ModelInfer", message)
    assert found.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert servers.http("POST", INFER, BODY).status == 200


def test_all_bodies_together(model: Path) -> None:
    with running(model, {"most_body_bytes": 1000, "largest_body": 1000}) as servers:
        with socket.create_connection(servers.host) as other:
            other.sendall(
                f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 990\r\n\r\n".encode() + bytes(980)
            )
            time.sleep(0.2)
            answer = servers.http("POST", INFER, BODY)
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        time.sleep(0.2)
        assert servers.http("POST", INFER, BODY).status == 200, "what a client has sent that is gone counts no more"


def test_grpc_counts_decompressed_bytes(servers: Servers) -> None:
    message = message_class("ModelInferRequest")(model_name="times", raw_input_contents=[bytes(30_000_000)])
    with grpc.insecure_channel(servers.addresses.grpc, compression=grpc.Compression.Gzip) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError) as found:
            call(message.SerializeToString(), timeout=20)
    assert found.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


# **** time and connections ****


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((), b"HTTP/1.1 408"),
        ((b"GET /v2 HTTP/1.1\r\nHost: ",), b"HTTP/1.1 408"),
        ((b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n", b"X: " + b"y" * 100_000), b"HTTP/1.1 431"),
        ((b"nothing at all\r\n\r\n",), b"HTTP/1.1 400"),
        ((f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n".encode(), b"half"), b"HTTP/1.1 504"),
    ],
)
def test_slow_and_strange_clients(servers: Servers, pieces: tuple[bytes, ...], status: bytes) -> None:
    start = time.monotonic()
    assert raw(servers.host, *pieces).startswith(status)
    assert time.monotonic() - start < 15, "the connection stayed open"


def test_many_connections(model: Path) -> None:
    with running(model, {"most_connections": 2, "grpc_port": None}) as servers:
        open_ones = [socket.create_connection(servers.host) for _ in range(2)]
        time.sleep(0.1)
        assert raw(servers.host).startswith(b"HTTP/1.1 503")
        for each in open_ones:
            each.close()
        time.sleep(0.2)
        assert servers.http("POST", INFER, BODY).status == 200


def test_a_client_that_goes_away_leaves_the_queue(servers: Servers) -> None:
    with socket.create_connection(servers.host) as connection:
        connection.sendall(f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf".encode())
    assert servers.http("POST", INFER, BODY).status == 200


# **** tokens ****


def test_tokens(closed: Servers) -> None:
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert closed.http("POST", INFER, BODY, right).status == 200
    assert closed.http("GET", "/metrics", headers=right).status == 200
    assert closed.grpc("ServerMetadata", headers=(("authorization", f"bearer {TOKEN}"),)).name
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert closed.http("GET", path).status == 200
    assert closed.grpc("ServerLive").live


@pytest.mark.parametrize("value", [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN])
def test_wrong_tokens(closed: Servers, value: str | None) -> None:
    for path in ("/metrics", "/v2", "/v2/models/times", "/v2/nothing"):
        answer = closed.http("GET", path, headers={} if value is None else {"Authorization": value})
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), path
    with pytest.raises(grpc.RpcError) as found:
        closed.grpc("ServerMetadata", headers=() if value is None else (("authorization", value.strip()),))
    assert found.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_health_may_need_a_token(model: Path) -> None:
    with running(model, {"tokens": digests([TOKEN]), "health_needs_token": True}) as servers:
        assert servers.http("GET", "/v2/health/live").status == 401
        with pytest.raises(grpc.RpcError):
            servers.grpc("ServerLive")


# **** browsers, and what is switched off ****


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "evil.example:8000"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_pages_of_strangers(servers: Servers, headers: dict[str, str], status: int) -> None:
    assert servers.http("POST", INFER, BODY, headers).status == status


def test_pages_that_are_allowed(model: Path) -> None:
    with running(model, {"allowed_hosts": ("our.example",), "allowed_origins": ("https://our.example",)}) as servers:
        headers = {"Host": "our.example", "Origin": "https://our.example"}
        answer = servers.http("POST", INFER, BODY, headers)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://our.example")
        asked = servers.http("OPTIONS", INFER, headers={**headers, "Access-Control-Request-Method": "POST"})
        assert asked.status == 200
        assert servers.http("POST", INFER, BODY, {"Origin": "https://other.example"}).status == 403


def test_control_is_off(servers: Servers) -> None:
    assert servers.http("POST", "/v2/repository/models/times/unload", b"").status == 403
    with pytest.raises(grpc.RpcError) as found:
        servers.grpc("RepositoryModelUnload", message_class("RepositoryModelUnloadRequest")(model_name="times"))
    assert found.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert servers.http("POST", INFER, BODY).status == 200
