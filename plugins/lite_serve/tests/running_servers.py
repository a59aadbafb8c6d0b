"""Both servers in a thread of the test's process, and clients that send exactly what a test says."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import Repository
from lite_serve.models.settings import ModelSettings
from lite_serve.protocol.grpc_messages import METHODS
from lite_serve.server.running import Addresses, Listeners, run_servers
from lite_serve.server.settings import ServerSettings

__all__ = ["Answer", "Servers", "raw", "running"]


class Answer(NamedTuple):
    """An answer of HTTP: status, headers by lower-case names, content."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def error(self) -> str:
        """The message of an error."""
        message: str = json.loads(self.content)["error"]
        return message


@dataclass
class Servers:
    """Servers that run.

    Attributes:
        addresses: where they answer.
        metrics: what they count.
        repository: the models.
        end: ends them.
    """

    addresses: Addresses
    metrics: Metrics
    repository: Repository
    end: Any
    thread: threading.Thread

    @property
    def host(self) -> tuple[str, int]:
        """Address and port of HTTP."""
        name, _, port = self.addresses.http.partition("://")[2].rpartition(":")
        return name, int(port)

    def http(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 30
    ) -> Answer:
        """Send a request, with a body as bytes, as an object for JSON, or as an iterator of chunks."""
        connection = http.client.HTTPConnection(*self.host, timeout=timeout)
        try:
            content = json.dumps(body).encode() if isinstance(body, dict) else body
            connection.request(method, path, content, dict(headers or {}), encode_chunked=hasattr(body, "__next__"))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def grpc(
        self, name: str, message: Any = None, headers: tuple[tuple[str, str], ...] = (), timeout: float = 30
    ) -> Any:
        """Call a method with a message, or with bytes, and return its answer.

        Raises:
            grpc.RpcError: the answer is an error.
        """
        method = METHODS[name]
        content = message if isinstance(message, bytes) else (message or method.request()).SerializeToString()
        with grpc.insecure_channel(self.addresses.grpc) as channel:
            call = channel.unary_unary(method.path, response_deserializer=method.response.FromString)
            return call(content, metadata=headers, timeout=timeout)


@contextmanager
def running(
    source: Path,
    settings: Mapping[str, Any] | None = None,
    repository_class: type[Repository] = Repository,
    **model_settings: Any,
) -> Iterator[Servers]:
    """Run servers on ports that the system chooses until the end of the context."""
    metrics = Metrics()
    repository = repository_class(source, ModelSettings(**model_settings), metrics)
    listeners = Listeners(ServerSettings(**{"http_port": 0, "grpc_port": 0, **(settings or {})}))
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()
    ready = threading.Event()
    found: list[Addresses] = []
    failed: list[BaseException] = []

    def tell(addresses: Addresses) -> None:
        found.append(addresses)
        ready.set()

    def work() -> None:
        try:
            loop.run_until_complete(run_servers(repository, metrics, listeners, tell, ending))
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    def end() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(ending.set)

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(60)
    try:
        if failed:
            raise failed[0]
        yield Servers(found[0], metrics, repository, end, thread)
    finally:
        end()
        thread.join(60)
        loop.close()
    assert not failed, failed


def raw(host: tuple[str, int], *pieces: bytes, timeout: float = 20) -> bytes:
    """Send bytes on a connection, and return what comes back until the server closes it."""
    with socket.create_connection(host, timeout=timeout) as connection:
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received
