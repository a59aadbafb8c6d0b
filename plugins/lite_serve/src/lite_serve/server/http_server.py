"""uvicorn as a part of a larger program: without its signals and ticks, with limits for slow and many clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lite_serve.server.connections import EXTENSION, ClientConnection
from lite_serve.server.settings import ServerSettings

__all__ = ["HttpServer"]

#: Bytes of the headers of a request at most, its first line included.
_LARGEST_HEAD = 64 << 10
#: Seconds for what clients have sent on open connections before they can know that the server shuts down.
_GRACE = 0.2


class HttpServer(uvicorn.Server):
    """Serves an ASGI application on a socket until :meth:`stop`.

    Args:
        application: the application.
        settings: the settings.
    """

    def __init__(self, application: Any, settings: ServerSettings) -> None:
        self._stopping = asyncio.Event()
        self._seconds = settings.request_seconds
        tls = settings.tls
        certificates: dict[str, Any] = {}
        if tls is not None:
            certificates = {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)}
        if tls is not None and tls.client_ca is not None:
            certificates |= {"ssl_ca_certs": str(tls.client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
        super().__init__(
            uvicorn.Config(
                application,
                http=_protocol(settings),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,  # the application writes it: uvicorn would wake up for it ten times a second
                timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]  # uvicorn only adds it to a time
                timeout_graceful_shutdown=settings.request_seconds + 1,  # type: ignore[arg-type]
                **certificates,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program: uvicorn would raise them again after it has shut down."""
        yield

    async def main_loop(self) -> None:
        """Wait for :meth:`stop`; then stop listening, and answer what was sent before clients could know."""
        await self._stopping.wait()
        for server in self.servers:
            server.close()
        await asyncio.sleep(_GRACE)

    async def run_on(self, bound: socket.socket) -> None:
        """Listen on a socket, answer requests, and return when the server has shut down."""
        await self.serve(sockets=[bound])

    async def wait_until_listening(self, task: asyncio.Task[None]) -> None:
        """Return when the server listens.

        Args:
            task: the task of :meth:`run_on`, whose error is raised.
        """
        while not self.started and not task.done():
            await asyncio.sleep(0.001)
        if task.done():
            task.result()

    def stop(self) -> None:
        """Let :meth:`run_on` answer what was accepted, and return."""
        self._stopping.set()


def _protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """Return the class of connections, with the limits of the settings."""

    class Connection(HttpToolsProtocol):
        """A connection with limits for the time and size of headers, the time of a body, and their number."""

        _timer: asyncio.TimerHandle | None = None
        _unparsed = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._client = ClientConnection()
            if len(self.connections) > settings.most_connections:
                self._refuse(b"503 Service Unavailable", "the server has too many connections: try again later")
                return
            self._limit(settings.header_seconds, "the headers of the request took too long")

        def data_received(self, data: bytes) -> None:
            self._unparsed += len(data)
            super().data_received(data)
            if self._unparsed > _LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(
                    b"431 Request Header Fields Too Large", f"the headers have more than {_LARGEST_HEAD} bytes"
                )

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {EXTENSION: {"connection": self._client}}
            self._limit(settings.header_seconds, "the headers of the request took too long")

        def on_headers_complete(self) -> None:
            self._unparsed = 0
            # The application limits the time, too; here the rest of a body ends that it has already answered.
            self._limit(settings.request_seconds + 1, "")
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._unparsed = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._unparsed = 0
            self._end_limit()
            super().on_message_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_limit()
            super().connection_lost(exc)
            self._client.lost()

        def _limit(self, seconds: float, message: str) -> None:
            self._end_limit()
            self._timer = self.loop.call_later(seconds, self._time_is_over, message)

        def _end_limit(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _time_is_over(self, message: str) -> None:
            if message and (self.cycle is None or self.cycle.response_complete):
                self._refuse(b"408 Request Timeout", message)
            else:
                self.transport.abort()

        def _refuse(self, status: bytes, message: str) -> None:
            """Answer without the application, and close the connection."""
            content = b'{"error":"' + message.encode() + b'"}'
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(content)
                + b"connection: close\r\n\r\n" + content
            )  # fmt: skip
            self.transport.close()

        def send_400_response(self, msg: str) -> None:
            self._refuse(b"400 Bad Request", "this is no HTTP request that the server understands")

    return Connection
