"""The Open Inference Protocol over gRPC, with Triton's model repository extension, on ``grpc.aio``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import grpc
import grpc.aio

from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import Repository
from lite_serve.protocol import grpc_requests
from lite_serve.protocol.errors import ProtocolError
from lite_serve.protocol.grpc_messages import METHODS, SERVICE, Method
from lite_serve.server.calls import (
    LARGE_BYTES,
    Call,
    Recorder,
    in_thread_above,
    note_request,
    note_response,
    time_left,
    timeout_of,
    told,
)
from lite_serve.server.control import check_control
from lite_serve.server.lifetime import Lifetime
from lite_serve.server.logs import request_id_of
from lite_serve.server.own_version import VERSION
from lite_serve.server.settings import ServerSettings, TlsFiles
from lite_serve.server.tokens import check_token

__all__ = ["GrpcServer"]

#: Bytes of a message's parts that are no tensors, in addition to the largest body.
_OVERHEAD = 64 << 10
#: Bytes of an error's message, as headers carry it: clients refuse headers of more than 8 KiB.
_LARGEST_MESSAGE = 4000
_HEALTH = ("ServerLive", "ServerReady")

Answer = Callable[[Any, Call, Any], Awaitable[Any]]


class GrpcServer:
    """Serves the models of a repository. Belongs to the running event loop.

    Args:
        repository: the models.
        metrics: counts requests.
        settings: the settings.
        lifetime: whether the server is ready.
    """

    def __init__(self, repository: Repository, metrics: Metrics, settings: ServerSettings, lifetime: Lifetime) -> None:
        self._repository = repository
        self._settings = settings
        self._lifetime = lifetime
        self._recorder = Recorder(metrics, settings.log_requests)
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=settings.most_connections,
            options=[
                ("grpc.max_receive_message_length", settings.largest_body + _OVERHEAD),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # a port that another server has is an error
                ("grpc.max_concurrent_streams", settings.most_connections),
                ("grpc.max_connection_idle_ms", int(settings.idle_seconds * 1000)),
                ("grpc.server_handshake_timeout_ms", int(settings.header_seconds * 1000)),
            ],
        )
        answers: dict[str, Answer] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ServerMetadata": self._server_metadata,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._model_metadata,
            "ModelInfer": self._infer,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._handler(METHODS[name], answer))
            for name, answer in answers.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

    def listen(self, address: str, tls: TlsFiles | None) -> int:
        """Listen on an address such as ``127.0.0.1:8001``, and return the port.

        Raises:
            OSError: the address is taken, or there is none like it.
        """
        try:
            if tls is None:
                return int(self._server.add_insecure_port(address))
            return int(self._server.add_secure_port(address, _credentials(tls)))
        except RuntimeError as error:
            raise OSError(str(error)) from None

    async def start(self) -> None:
        """Begin to answer."""
        await self._server.start()

    async def stop(self, seconds: float) -> None:
        """Accept no more calls, answer those that were accepted, and return.

        Args:
            seconds: seconds after which calls are ended without an answer.
        """
        await self._server.stop(seconds)

    # **** every call ****

    def _handler(self, method: Method, answer: Answer) -> Callable[[bytes, Any], Awaitable[bytes]]:
        """Return the function that answers the calls of a method, from bytes to bytes."""

        async def handle(data: bytes, context: Any) -> bytes:
            call = Call("grpc", method.name, bytes_in=len(data))
            headers = dict(context.invocation_metadata())
            call.request_id = request_id_of(_text(headers.get("x-request-id")))
            try:
                if self._settings.tokens and (self._settings.health_needs_token or method.name not in _HEALTH):
                    check_token(self._settings.tokens, _text(headers.get("authorization")).encode() or None)
                request = await in_thread_above(len(data), LARGE_BYTES, lambda: method.parse(data))
                response = await answer(request, call, context)
                content: bytes = response.SerializeToString()
                call.bytes_out, call.status = len(content), "OK"
            except asyncio.CancelledError:
                call.status, call.outcome = "CANCELLED", "ClientGone"
                self._recorder.done(call)
                raise
            except Exception as error:
                found = told(call, error)
                call.status, call.outcome = found.grpc_code, type(error).__name__
                self._recorder.done(call)
                await _abort(context, found, call)
                raise
            context.set_trailing_metadata((("x-request-id", call.identify()),))
            if method.name not in _HEALTH:
                self._recorder.done(call)
            return content

        return handle

    # **** inference ****

    async def _infer(self, message: Any, call: Call, context: Any) -> Any:
        call.is_inference = True
        call.model, call.version = message.model_name, message.model_version
        request = await in_thread_above(call.bytes_in, LARGE_BYTES, lambda: grpc_requests.decode_request(message))
        note_request(call, request)
        left = time_left(call, self._settings.request_seconds, timeout_of(request), context.time_remaining())
        response = await self._repository.infer(request, left)
        note_response(call, response)
        size = sum(array.nbytes for array in response.outputs.values())
        return await in_thread_above(size, LARGE_BYTES, lambda: grpc_requests.encode_response(response))

    # **** questions ****

    async def _live(self, message: Any, call: Call, context: Any) -> Any:
        return METHODS["ServerLive"].response(live=True)

    async def _ready(self, message: Any, call: Call, context: Any) -> Any:
        return METHODS["ServerReady"].response(ready=self._lifetime.is_ready)

    async def _server_metadata(self, message: Any, call: Call, context: Any) -> Any:
        return grpc_requests.server_metadata(VERSION)

    async def _model_ready(self, message: Any, call: Call, context: Any) -> Any:
        call.model, call.version = message.name, message.version
        return METHODS["ModelReady"].response(ready=self._repository.is_ready(message.name, message.version))

    async def _model_metadata(self, message: Any, call: Call, context: Any) -> Any:
        call.model, call.version = message.name, message.version
        return grpc_requests.model_metadata(self._repository.metadata(message.name, message.version))

    # **** the repository ****

    async def _index(self, message: Any, call: Call, context: Any) -> Any:
        return grpc_requests.repository_index(
            entry for entry in self._repository.index() if not message.ready or entry.state == "READY"
        )

    async def _load(self, message: Any, call: Call, context: Any) -> Any:
        check_control(self._settings)
        call.model = grpc_requests.repository_model_name(message)
        await self._repository.load(call.model)
        return grpc_requests.repository_response("RepositoryModelLoad", call.model)

    async def _unload(self, message: Any, call: Call, context: Any) -> Any:
        check_control(self._settings)
        call.model = grpc_requests.repository_model_name(message)
        await self._repository.unload(call.model)
        return grpc_requests.repository_response("RepositoryModelUnload", call.model)


async def _abort(context: Any, error: ProtocolError, call: Call) -> None:
    """End a call with an error."""
    metadata = (("x-request-id", call.identify()),)
    await context.abort(getattr(grpc.StatusCode, error.grpc_code), _short_enough(str(error)), metadata)


def _short_enough(message: str) -> str:
    """Return a message that headers can carry, in which each byte that is not ASCII takes three."""
    if len(quote(message, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}")) <= _LARGEST_MESSAGE:
        return message
    return f"{message[: _LARGEST_MESSAGE // 9]} ..."


def _text(value: str | bytes | None) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value or ""


def _credentials(tls: TlsFiles) -> Any:
    client_ca = tls.client_ca.read_bytes() if tls.client_ca is not None else None
    pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], root_certificates=client_ca, require_client_auth=client_ca is not None)
