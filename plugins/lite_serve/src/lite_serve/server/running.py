"""Both servers in one event loop, from the start to the answer to the last request that was accepted."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import Repository
from lite_serve.server.grpc import GrpcServer
from lite_serve.server.http import http_application
from lite_serve.server.http_server import HttpServer
from lite_serve.server.lifetime import Lifetime
from lite_serve.server.listening import PortError, bound_socket, check_free, resolved, with_port
from lite_serve.server.logs import SERVER
from lite_serve.server.settings import ServerSettings

__all__ = ["Addresses", "Listeners", "run_servers", "serve"]

_SIGNALS = [signal.SIGINT, signal.SIGTERM]
if sys.platform == "win32":
    _SIGNALS.append(signal.SIGBREAK)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the servers.

    Attributes:
        http: the address for HTTP: ``http://127.0.0.1:8000``; empty for none.
        grpc: the address for gRPC: ``127.0.0.1:8001``; empty for none.
    """

    http: str
    grpc: str


@dataclass(slots=True)
class Listeners:
    """The ports of the servers, taken before models are loaded: a port that is taken is known at once.

    Args:
        settings: the settings.

    Raises:
        PortError: a port is taken.
        InputError: the host has no address.
    """

    settings: ServerSettings
    address: str = field(init=False)
    http: socket.socket | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        settings = self.settings
        self.address = resolved(settings.host)
        if settings.http_port is not None:
            if settings.http_port:
                check_free(self.address, settings.http_port, "--http-port")
            self.http = bound_socket(self.address, settings.http_port, "--http-port")
        if settings.grpc_port:
            check_free(self.address, settings.grpc_port, "--grpc-port")

    def close(self) -> None:
        """Let go of the ports."""
        if self.http is not None:
            self.http.close()


def serve(
    repository: Repository,
    metrics: Metrics,
    listeners: Listeners,
    when_ready: Callable[[Addresses], None],
    *,
    only_check: bool = False,
) -> None:
    """Answer requests until a signal ends the process; return when every request that was accepted is answered.

    Args:
        repository: the models, which are closed at the end.
        metrics: counts requests.
        listeners: the ports.
        when_ready: called when the servers answer.
        only_check: end as soon as they do.
    """
    run: Callable[[Any], None] = asyncio.run
    with contextlib.suppress(ImportError):  # not on Windows
        import uvloop

        run = uvloop.run

    async def until_a_signal() -> None:
        ending = asyncio.Event()
        if only_check:
            ending.set()
        with _signals(ending):
            await run_servers(repository, metrics, listeners, when_ready, ending)

    run(until_a_signal())


async def run_servers(
    repository: Repository,
    metrics: Metrics,
    listeners: Listeners,
    when_ready: Callable[[Addresses], None],
    ending: asyncio.Event,
) -> None:
    """Answer requests until an event is set; then answer what was accepted, and close the models.

    Args:
        repository: the models.
        metrics: counts requests.
        listeners: the ports.
        when_ready: called when the servers answer.
        ending: the event.

    Raises:
        PortError: the port for gRPC was taken in the meantime.
    """
    settings, lifetime, was_ending = listeners.settings, Lifetime(), ending.is_set()
    http_server, http_task, http_address = None, None, ""
    grpc_server, grpc_address = None, ""
    try:
        if settings.grpc_port is not None:
            grpc_server = GrpcServer(repository, metrics, settings, lifetime)
            wanted = with_port(listeners.address, settings.grpc_port)
            try:
                port = grpc_server.listen(wanted, settings.tls)
            except OSError as error:
                raise PortError(f"the server cannot listen on {wanted}: {error}", "--grpc-port") from None
            grpc_address = with_port(listeners.address, port)
            await grpc_server.start()
        if listeners.http is not None:
            http_server = HttpServer(http_application(repository, metrics, settings, lifetime), settings)
            http_task = asyncio.create_task(http_server.run_on(listeners.http))
            await http_server.wait_until_listening(http_task)
            scheme = "https" if settings.tls is not None else "http"
            http_address = f"{scheme}://{with_port(listeners.address, listeners.http.getsockname()[1])}"
        lifetime.is_ready = True
        when_ready(Addresses(http_address, grpc_address))
        await _first_of(ending, http_task)
        lifetime.is_ready = False
        if not was_ending:
            SERVER.info("shutting down: answering the requests that were accepted")
            await asyncio.sleep(settings.drain_delay)
    finally:
        lifetime.is_ready, lifetime.is_ending = False, True
        await _drain(http_server, http_task, grpc_server, settings.request_seconds)
        await repository.close()
    if not was_ending:
        SERVER.info("shut down")


async def _drain(
    http_server: HttpServer | None, http_task: asyncio.Task[None] | None, grpc_server: GrpcServer | None, seconds: float
) -> None:
    """Stop both servers at once, and wait for their last answers."""
    waiting: list[Any] = []
    if http_server is not None and http_task is not None:
        http_server.stop()
        waiting.append(http_task)
    if grpc_server is not None:
        waiting.append(grpc_server.stop(seconds + 1))
    await asyncio.gather(*waiting)


async def _first_of(ending: asyncio.Event, task: asyncio.Task[None] | None) -> None:
    """Wait for the signal, or for a server that ends by itself because it failed."""
    signalled = asyncio.create_task(ending.wait())
    try:
        await asyncio.wait([signalled, *([task] if task else [])], return_when=asyncio.FIRST_COMPLETED)
    finally:
        signalled.cancel()


@contextlib.contextmanager
def _signals(ending: asyncio.Event) -> Iterator[None]:
    """Set an event at the first signal to end; end the process at once at the second."""
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        if ending.is_set():
            SERVER.warning("a second signal: ending at once")
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        ending.set()

    def handle(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(end, number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, end, number)
        except NotImplementedError:  # Windows
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
