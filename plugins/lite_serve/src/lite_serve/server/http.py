"""The Open Inference Protocol over HTTP, with Triton's model repository extension: an ASGI application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from email.utils import formatdate
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router

from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import Repository
from lite_serve.protocol import documents
from lite_serve.protocol.errors import NotFoundError, UnavailableModelError
from lite_serve.protocol.json_requests import decode_request, encode_response, json_length_of
from lite_serve.protocol.messages import InferRequest, InferResponse
from lite_serve.server.bodies import Body, BodyMemory, ClientGoneError, decompressed, read_body
from lite_serve.server.browsers import BrowserCheck
from lite_serve.server.calls import (
    LARGE_TEXT,
    Call,
    Recorder,
    in_thread_above,
    note_request,
    note_response,
    time_left,
    timeout_of,
    told,
)
from lite_serve.server.connections import connection_of
from lite_serve.server.control import check_control
from lite_serve.server.lifetime import Lifetime
from lite_serve.server.logs import request_id_of
from lite_serve.server.own_version import VERSION
from lite_serve.server.settings import ServerSettings
from lite_serve.server.tokens import check_token

__all__ = ["http_application"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Piece = bytes | memoryview

_JSON = b"application/json"
_JSON_LENGTH = b"inference-header-content-length"
_HEALTH = ("/v2/health/live", "/v2/health/ready")
#: Requests that monitors send all the time: they are not logged.
_QUIET = (*_HEALTH, "/metrics")
#: The status in the log if the client was gone, as nginx writes it.
_CLIENT_GONE = 499
#: Bytes of answers that are copied into one piece, because two writes cost more.
_SMALL = 16 << 10


def http_application(
    repository: Repository, metrics: Metrics, settings: ServerSettings, lifetime: Lifetime
) -> Application:
    """Return the ASGI application that answers requests for the models of a repository."""
    application: Application = _Application(repository, metrics, settings, lifetime)
    if settings.allowed_origins:
        application = CORSMiddleware(
            application,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=[_JSON_LENGTH.decode(), "x-request-id"],
        )
    return application


class _Exchange:
    """A request and the way to answer it.

    Attributes:
        scope: what ASGI says about the request.
        receive: the function of ASGI that receives the body.
        call: what logs and metrics are told.
        headers: the headers of the request; the last one of those with the same name.
        model: the model in the path.
        version: the version in the path; empty if there is none.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, call: Call, is_last: bool) -> None:
        self.scope = scope
        self.receive = receive
        self.call = call
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.is_answered = False
        self._send = send
        self._is_last = is_last

    @property
    def model(self) -> str:
        return str(self.scope["path_params"]["model"])

    @property
    def version(self) -> str:
        return str(self.scope["path_params"].get("version", ""))

    async def answer(
        self,
        content: Piece | list[Piece],
        status: int = 200,
        content_type: bytes = _JSON,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Send the answer.

        Args:
            content: the body, or its pieces.
            status: the status.
            content_type: the type of the content.
            headers: more headers.
        """
        pieces: list[Piece] = [content] if isinstance(content, (bytes, memoryview)) else content
        size = sum(map(len, pieces))
        if len(pieces) > 1 and size <= _SMALL:
            pieces = [b"".join(pieces)]
        self.call.bytes_out, self.call.status = size, status
        sent = [
            (b"date", _date()),
            (b"content-type", content_type),
            (b"content-length", b"%d" % size),
            (b"x-request-id", self.call.identify().encode()),
            *headers,
        ]
        if self._is_last:
            sent.append((b"connection", b"close"))
        self.is_answered = True
        await self._send({"type": "http.response.start", "status": status, "headers": sent})
        for piece in pieces[:-1]:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": pieces[-1], "more_body": False})


class _Endpoint:
    """A way to answer, as an ASGI application: Starlette calls functions with objects that cost more."""

    def __init__(self, answer: Callable[[_Exchange], Awaitable[None]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope["lite.exchange"])


class _Application:
    """Checks, routes, answers and records requests."""

    def __init__(self, repository: Repository, metrics: Metrics, settings: ServerSettings, lifetime: Lifetime) -> None:
        self._repository = repository
        self._metrics = metrics
        self._settings = settings
        self._lifetime = lifetime
        self._recorder = Recorder(metrics, settings.log_requests)
        self._browsers = BrowserCheck(settings.host, settings.allowed_hosts, settings.allowed_origins)
        self._memory = BodyMemory(settings.most_body_bytes)
        model = "/v2/models/{model}"
        version = f"{model}/versions/{{version}}"
        ways: list[tuple[str, str, Callable[[_Exchange], Awaitable[None]]]] = [
            ("POST", f"{model}/infer", self._infer),
            ("POST", f"{version}/infer", self._infer),
            ("GET", "/v2/health/live", self._live),
            ("GET", "/v2/health/ready", self._ready),
            ("GET", f"{model}/ready", self._model_ready),
            ("GET", f"{version}/ready", self._model_ready),
            ("GET", model, self._model_metadata),
            ("GET", version, self._model_metadata),
            ("GET", "/v2", self._server_metadata),
            ("POST", "/v2/repository/index", self._index),
            ("POST", "/v2/repository/models/{model}/load", self._load),
            ("POST", "/v2/repository/models/{model}/unload", self._unload),
            ("GET", "/metrics", self._show_metrics),
        ]
        routes = [Route(path, _Endpoint(way), methods=[method]) for method, path, way in ways]
        self._router = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        if scope["type"] != "http":
            raise RuntimeError(f"this application answers only HTTP, not {scope['type']}")
        path = scope["path"]
        call = Call("http", f"{scope['method']} {path}")
        exchange = _Exchange(scope, receive, send, call, self._lifetime.is_ending)
        call.request_id = request_id_of(exchange.headers.get(b"x-request-id", b"").decode("latin-1"))
        scope["lite.exchange"] = exchange
        scope["app"] = self  # so that the router raises HTTPException
        try:
            self._browsers.check(exchange.headers)
            if self._settings.tokens and (self._settings.health_needs_token or path not in _HEALTH):
                check_token(self._settings.tokens, exchange.headers.get(b"authorization"))
            await self._router(scope, receive, send)
        except ClientGoneError:
            call.status, call.outcome = _CLIENT_GONE, "ClientGone"
        except asyncio.CancelledError:
            if connection_of(scope).is_lost:
                call.status, call.outcome = _CLIENT_GONE, "ClientGone"
            else:
                await self._tell(exchange, UnavailableModelError("the server is shutting down"))
        except HTTPException as error:
            await self._tell_about_path(exchange, error)
        except Exception as error:
            await self._tell(exchange, error)
        if path not in _QUIET or call.status != 200:
            self._recorder.done(call)

    async def _tell(self, exchange: _Exchange, error: BaseException) -> None:
        """Answer with an error."""
        exchange.call.outcome = type(error).__name__
        found = told(exchange.call, error)
        if exchange.is_answered:  # its headers are sent: uvicorn closes the connection
            exchange.call.status = _CLIENT_GONE
            raise found
        headers = []
        if found.http_status == 401:
            headers = [(b"www-authenticate", b"Bearer")]
        elif found.http_status in (429, 503):
            headers = [(b"retry-after", b"1")]
        await exchange.answer(documents.error(str(found)), found.http_status, headers=headers)

    async def _tell_about_path(self, exchange: _Exchange, error: HTTPException) -> None:
        """Answer a request for a path that there is not, or with a method that it has not."""
        path = str(exchange.scope["path"])[:200]
        if error.status_code != 405:
            message = f"there is no {path!r}; paths begin with /v2, such as /v2/models/NAME"
            await self._tell(exchange, NotFoundError(message))
            return
        exchange.call.outcome = "MethodNotAllowed"
        allowed = (error.headers or {}).get("Allow", "")
        message = f"{path!r} has no {exchange.scope['method']}; it has {allowed}"
        await exchange.answer(documents.error(message), 405, headers=[(b"allow", allowed.encode())])

    # **** inference ****

    async def _infer(self, exchange: _Exchange) -> None:
        """Answer a request for inference."""
        call, settings = exchange.call, self._settings
        call.is_inference = True
        call.model, call.version = exchange.model, exchange.version
        connection = connection_of(exchange.scope)
        connection.cancel_if_lost(asyncio.current_task())
        body = Body(self._memory)
        try:
            await self._receive(exchange, body)
            content = body.content
            json_length = json_length_of(_text(exchange.headers.get(_JSON_LENGTH)))
            request = await in_thread_above(
                len(content) if json_length is None else json_length,
                LARGE_TEXT,
                lambda: decode_request(content, json_length, call.model, call.version),
            )
            note_request(call, request)
            response = await self._repository.infer(
                request, time_left(call, settings.request_seconds, timeout_of(request))
            )
            note_response(call, response)
            text = _elements_of_text(request, response)
            pieces, length = await in_thread_above(text * 4, LARGE_TEXT, lambda: encode_response(response, request))
        finally:
            body.release()
            connection.cancel_if_lost(None)
        if length is None:
            await exchange.answer(pieces)
        else:
            headers = [(_JSON_LENGTH, b"%d" % length)]
            await exchange.answer(pieces, content_type=b"application/octet-stream", headers=headers)

    async def _receive(self, exchange: _Exchange, body: Body) -> None:
        """Receive and decompress the body of a request."""
        call, largest = exchange.call, self._settings.largest_body
        seconds = time_left(call, self._settings.request_seconds)
        await read_body(exchange.receive, exchange.headers, body, largest, seconds)
        call.bytes_in = body.received
        encoding = exchange.headers.get(b"content-encoding", b"identity")
        if encoding.strip().lower() != b"identity":
            sent = body.content
            body.content = await in_thread_above(
                len(sent), LARGE_TEXT, lambda: decompressed(sent, encoding, body, largest)
            )

    # **** questions ****

    async def _live(self, exchange: _Exchange) -> None:
        await exchange.answer(documents.server_live(True))

    async def _ready(self, exchange: _Exchange) -> None:
        is_ready = self._lifetime.is_ready
        await exchange.answer(documents.server_ready(is_ready), 200 if is_ready else 503)

    async def _model_ready(self, exchange: _Exchange) -> None:
        exchange.call.model, exchange.call.version = exchange.model, exchange.version
        is_ready = self._repository.is_ready(exchange.model, exchange.version)
        await exchange.answer(documents.model_ready(exchange.model, is_ready), 200 if is_ready else 503)

    async def _model_metadata(self, exchange: _Exchange) -> None:
        exchange.call.model, exchange.call.version = exchange.model, exchange.version
        await exchange.answer(documents.model_metadata(self._repository.metadata(exchange.model, exchange.version)))

    async def _server_metadata(self, exchange: _Exchange) -> None:
        await exchange.answer(documents.server_metadata(VERSION))

    async def _show_metrics(self, exchange: _Exchange) -> None:
        content, content_type = self._metrics.text()
        await exchange.answer(content, content_type=content_type.encode())

    # **** the repository ****

    async def _index(self, exchange: _Exchange) -> None:
        only_ready = documents.index_request(await self._small_body(exchange))
        entries = [entry for entry in self._repository.index() if not only_ready or entry[2] == "READY"]
        await exchange.answer(documents.repository_index(entries))

    async def _load(self, exchange: _Exchange) -> None:
        exchange.call.model = exchange.model
        check_control(self._settings)
        documents.load_request(await self._small_body(exchange))
        await self._repository.load(exchange.model)
        await exchange.answer(b"")

    async def _unload(self, exchange: _Exchange) -> None:
        exchange.call.model = exchange.model
        check_control(self._settings)
        documents.load_request(await self._small_body(exchange))
        await self._repository.unload(exchange.model)
        await exchange.answer(b"")

    async def _small_body(self, exchange: _Exchange) -> bytes:
        """Return the body of a request that has no tensors."""
        body = Body(self._memory)
        try:
            await self._receive(exchange, body)
            return body.content
        finally:
            body.release()


def _elements_of_text(request: InferRequest, response: InferResponse) -> int:
    """Return how many elements of an answer are JSON."""
    binary = {output.name: output.binary for output in request.outputs or ()}
    return sum(a.size for name, a in response.outputs.items() if not binary.get(name, request.binary_outputs))


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


_dates: dict[int, bytes] = {}


def _date() -> bytes:
    """Return the header ``Date`` of now, which is made once a second."""
    now = int(time.time())
    if now not in _dates:
        _dates.clear()
        _dates[now] = formatdate(now, usegmt=True).encode()
    return _dates[now]
