"""The bodies of HTTP requests: read up to a limit of bytes and of time, and decompressed up to the same limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from types import TracebackType
from typing import Any

from lite_serve.protocol.errors import (
    DeadlineError,
    InvalidRequestError,
    OverloadedError,
    ProtocolError,
    TooLargeError,
)

__all__ = ["Body", "BodyMemory", "ClientGoneError", "UnknownEncodingError", "decompressed", "read_body"]

#: Bits of zlib for the encodings of HTTP. ``deflate`` is zlib's format; some clients send it without zlib's header.
_WINDOW_BITS = {b"gzip": zlib.MAX_WBITS | 16, b"x-gzip": zlib.MAX_WBITS | 16, b"deflate": zlib.MAX_WBITS}
_STEP = 1 << 20


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete, or before the answer."""


class UnknownEncodingError(ProtocolError):
    """The body is compressed in a way that the server does not know."""

    http_status = 415
    grpc_code = "UNIMPLEMENTED"


Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class BodyMemory:
    """The bytes of all bodies that are held at once, with a limit.

    Args:
        most: the limit in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def take(self, size: int) -> None:
        """Add bytes.

        Raises:
            OverloadedError: there would be too many.
        """
        if self.used + size > self._most:
            raise OverloadedError(
                f"the bodies of all requests together would have more than {self._most} bytes: try again later"
            )
        self.used += size

    def give_back(self, size: int) -> None:
        """Subtract bytes."""
        self.used -= size


class Body:
    """The body of a request, which counts in a memory while it is held.

    Attributes:
        content: its bytes, decompressed.
        received: how many bytes were received.
    """

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._held = 0
        self.content = b""
        self.received = 0

    def hold(self, size: int) -> None:
        """Count more bytes."""
        self._memory.take(size)
        self._held += size

    def release(self) -> None:
        """Forget the content."""
        self._memory.give_back(self._held)
        self._held = 0
        self.content = b""


class TimeLimit:
    """A context that ends after some seconds, as ``asyncio.timeout`` does, which Python 3.10 lacks.

    Args:
        seconds: the limit.
        message: what the client is told.
    """

    def __init__(self, seconds: float, message: str) -> None:
        self._seconds = seconds
        self._message = message
        self._is_over = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._is_over:
            remaining = self._task.uncancel() if hasattr(self._task, "uncancel") else 0
            if kind is asyncio.CancelledError and not remaining:
                raise DeadlineError(self._message) from None

    def _end(self) -> None:
        self._is_over = True
        self._task.cancel()


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], body: Body, largest: int, seconds: float) -> None:
    """Receive the content of a body.

    Args:
        receive: the function of ASGI.
        headers: the headers of the request.
        body: gets the content, as it was sent.
        largest: bytes at most.
        seconds: seconds at most.

    Raises:
        TooLargeError: the body has more bytes: known from the headers, or as soon as they are received.
        DeadlineError: the client takes too long.
        OverloadedError: all bodies together have too many bytes.
        ClientGoneError: the client closed the connection.
    """
    declared = headers.get(b"content-length")
    if declared is not None and int(declared) > largest:  # the parser accepts only digits
        raise _too_large(largest, int(declared))
    pieces: list[bytes] = []
    async with TimeLimit(seconds, f"the request was not received within its time, {seconds:.0f} s"):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            if piece := message.get("body", b""):
                body.received += len(piece)
                if body.received > largest:
                    raise _too_large(largest)
                body.hold(len(piece))
                pieces.append(piece)
            if not message.get("more_body", False):
                break
    body.content = pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompressed(content: bytes, encoding: bytes, body: Body, largest: int) -> bytes:
    """Return the decompressed content of a body.

    Args:
        content: the content as it was sent.
        encoding: the header ``Content-Encoding``.
        body: counts the bytes.
        largest: bytes at most, after decompression.

    Raises:
        UnknownEncodingError: the encoding is neither gzip nor deflate.
        TooLargeError: there are more bytes.
        InvalidRequestError: the content is damaged.
    """
    name = encoding.strip().lower()
    if name not in _WINDOW_BITS:
        raise UnknownEncodingError(
            f"the body has the Content-Encoding {name.decode('latin-1')[:100]!r}; this server knows gzip and deflate"
        )
    bits = _WINDOW_BITS[name]
    if name == b"deflate" and content[:1] and (content[0] & 15 != 8 or int.from_bytes(content[:2], "big") % 31):
        bits = -zlib.MAX_WBITS  # no header of zlib
    machine = zlib.decompressobj(bits)
    pieces, size, rest = [], 0, content
    try:
        while rest and not machine.eof:
            piece = machine.decompress(rest, _STEP)
            size += len(piece)
            if size > largest:
                raise _too_large(largest, after="after decompression")
            body.hold(len(piece))
            pieces.append(piece)
            rest = machine.unconsumed_tail
            if not piece and not rest:
                break
    except zlib.error as error:
        raise InvalidRequestError(f"the body is no {name.decode()}, as its Content-Encoding says: {error}") from None
    if not machine.eof:
        raise InvalidRequestError(f"the body ends in the middle of its {name.decode()} data")
    return b"".join(pieces)


def _too_large(largest: int, found: int | None = None, after: str = "") -> TooLargeError:
    has = f"has {found} bytes" if found is not None else f"has more bytes {after}".rstrip()
    return TooLargeError(f"the body {has}; this server accepts at most {largest}, see its option --largest-body")
